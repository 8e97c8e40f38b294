"""The run that a certificate describes, built anew from what it states; a value that cannot be right is named."""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.errors import UsageError
from mechanisms.privacy_events import Approximate, Composed, Pure
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.studio.certificates.recipe import recipe_of
from mechanisms.studio.certificates.stated import Stated, at, measured_of, sizes_of
from mechanisms.studio.certificates.writing import plan_of, writing_of
from mechanisms.studio.data.counts import MeasuredSizes
from mechanisms.studio.recipes.request import RecipeRequest
from mechanisms.studio.synthesis.demo_set import MEASURED_SIZES, Certificate, DemoSet
from mechanisms.studio.synthesis.request import NO_FILE, SynthesisRequest

_LEAST_RATE = 1e-12
_OLDER = (
    "This file is of an older version, which does not state label sizes: they were taken from the rates, and failure "
    "probabilities that the rates do not show were taken as stated."
)


@dataclass(frozen=True)
class Rebuilt:
    """A certificate's run.

    Attributes:
        request: public; where tokens are written its target's epsilon means nothing, since a certificate states a
            claim, not a target.
        event: what the run's certificate has to show.
        failures_known: the failure probabilities of `event` are the run's.
        remark: what had to be taken as stated.
    """

    request: SynthesisRequest | RecipeRequest
    event: Composed
    failures_known: bool = True
    remark: str | None = None

    @property
    def recipe(self) -> RecipeRequest | None:
        """The request, where the run has stages."""
        return self.request if isinstance(self.request, RecipeRequest) else None

    @property
    def written(self) -> SynthesisRequest | None:
        """What is written token by token, if anything."""
        return self.request.written if isinstance(self.request, RecipeRequest) else self.request

    @property
    def shots(self) -> int:
        """Demonstrations of a label at most."""
        return self.request.shots if isinstance(self.request, RecipeRequest) else self.request.exported

    @property
    def reads_rows(self) -> bool:
        """Whether any private row is read: the stages of a recipe always do."""
        return isinstance(self.request, RecipeRequest) or self.request.mechanism.uses_private_rows

    @property
    def not_private(self) -> bool:
        """Whether the mechanism that writes promises nothing."""
        return self.written is not None and self.written.mechanism.not_private is not None


def rebuilt(demo_set: DemoSet) -> Rebuilt:
    """The run of a demo set's certificate.

    Raises:
        UsageError: a stated value is missing, of the wrong kind or out of range; the message begins with its field.
    """
    stated, older = Stated(demo_set.certificate.parameters), demo_set.version == 1
    if "recipe" in stated.values and not older:
        request = recipe_of(demo_set, stated)
        with at(stated.where):
            return Rebuilt(request, request.certified_event())
    certificate = demo_set.certificate
    names = {"mechanism": certificate.mechanism, "transform": certificate.transform, "scheme": certificate.scheme}
    named = Stated(names, "privacy")
    plan = plan_of(demo_set, named, stated)
    sizes = _sizes_of_version_1(demo_set.labels, plan, stated) if older else sizes_of(demo_set.labels, stated)
    measured = _measured_in_version_1(certificate, sizes) if older else measured_of(stated, sizes)
    written = writing_of(demo_set, named, stated, plan, sizes, measured)
    with at(stated.where):
        known = not older or plan.scheme is not Scheme.DISJOINT
        return Rebuilt(written, written.certified_event(), known, _OLDER if older else None)


def _sizes_of_version_1(labels: tuple[str, ...], plan: SamplingPlan, stated: Stated) -> dict[str, int]:
    """The sizes that the rates show, n = M N / q; any size where everybody joins, which then costs the same."""
    rates = stated.within("rates")
    sizes = {}
    for label in labels:
        rate = rates.of(label, float)
        if not _LEAST_RATE <= rate <= 1:
            raise UsageError(f"{rates.where}/{label}: a rate must lie between {_LEAST_RATE:g} and 1.")
        sizes[label] = round(plan.expected_sample / rate)
    return sizes


def _measured_in_version_1(certificate: Certificate, sizes: dict[str, int]) -> MeasuredSizes | None:
    """The measurement that the event shows: version 1 has no other place for it."""
    if MEASURED_SIZES not in certificate.public_inputs:
        return None
    match certificate.event.lists[0][1]:
        case (Pure(epsilon, 1), *_, Approximate(failure)):
            return MeasuredSizes(sizes, epsilon, failure, NO_FILE)
    raise UsageError("privacy/event: sizes are said to be measured, but no list begins with that event.")
