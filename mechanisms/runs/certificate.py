"""A certificate read value by value and rebuilt into its run; an error names the field of a wrong value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mechanisms.accounting import PrivacyTarget
from mechanisms.data.columns import MOST_LABELS
from mechanisms.data.sizes import SMALLEST_EPSILON, MeasuredSizes
from mechanisms.demos.demo_set import DemoSet, outputs_of
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Approximate, Composed, Pure
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage
from mechanisms.runs.recipe_request import RecipeRequest, RunRequest, has_stages
from mechanisms.runs.request import NO_FILE, SynthesisRequest
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import (
    TokenMechanism,
    Transform,
    mechanism_class,
    mechanism_names,
    transform_class,
    transform_names,
)
from mechanisms.tallies import Weighing

MOST_DEMONSTRATIONS = 100_000
"""The most that a file may ask to account: each label can be a cost, and each demonstration a list, of its own."""
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", dict: "an object"}


@contextmanager
def naming_field(field: str) -> Iterator[None]:
    """Name the field of a refused value."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{field}: {error}") from error


@dataclass(frozen=True)
class Stated:
    """Values of a JSON object, each read as a required type."""

    values: Mapping[str, Any]
    where: str = "privacy/parameters"

    def of(self, name: str, kind: type) -> Any:
        """The value of that name; JSON writes a whole number with or without a point."""
        value = self.values.get(name)
        if kind is float and type(value) is int:
            value = float(value)
        elif kind is int and type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not kind:
            raise UsageError(f"{self.where}/{name}: {_KINDS[kind]} must stand here.")
        return value

    def known(self, name: str, names: Collection[str]) -> str:
        """The text of that name, which has to be one of some names."""
        value: str = self.of(name, str)
        if value not in names:
            raise UsageError(f"{self.where}/{name}: this version knows no such {name}.")
        return value

    def within(self, name: str) -> Stated:
        """The object of that name."""
        return Stated(self.of(name, dict), f"{self.where}/{name}")

    def own(self, config: Any) -> dict[str, Any]:
        """The parameters of a mechanism's or a transform's class."""
        return {each.name: self.of(each.flag.replace("-", "_"), type(each.default)) for each in parameters(config)}


def check_extent(labels: Collection[str], shots: int, stated: Stated) -> None:
    """Refuse a certificate with more labels or demonstrations than can be checked, before it is rebuilt."""
    if len(labels) > MOST_LABELS or len(labels) * shots > MOST_DEMONSTRATIONS:
        raise UsageError(f"{stated.where}/shots_per_label: so many labels or demonstrations cannot be checked.")


def sizes_of(labels: Collection[str], stated: Stated) -> dict[str, int]:
    """The sizes of the labels."""
    sizes = stated.within("sizes")
    if set(sizes.values) != set(labels):
        raise UsageError(f"{sizes.where}: every label must stand here, and nothing else.")
    return {label: sizes.of(label, int) for label in labels}


def measured_of(stated: Stated, sizes: dict[str, int]) -> MeasuredSizes | None:
    """The measurement that the sizes come from, where one is stated."""
    if "measured" not in stated.values:
        return None
    cost = stated.within("measured")
    measured = MeasuredSizes(sizes, cost.of("epsilon", float), cost.of("failure", float), NO_FILE)
    with naming_field(cost.where):
        Pure(measured.epsilon)
        Approximate(measured.failure)
        if measured.epsilon < SMALLEST_EPSILON or measured.failure <= 0:
            raise UsageError("no measurement of sizes is made with so little epsilon, or never fails.")
    return measured


# Token-level writing as its parameters state it: a run of its own, or the stage "write" of a recipe.


def plan_of(demo_set: DemoSet, named: Stated, stated: Stated, share: float = 1.0) -> SamplingPlan:
    """The sampling plan.

    Args:
        demo_set: whose labels are written for.
        named: where the scheme stands.
        stated: where the parameters stand.
        share: of the units that may join.
    """
    scheme = Scheme(named.known("scheme", list(Scheme)))
    numbers = {name: stated.of(name, int) for name in ("subsets", "per_subset", "tokens")}
    shots, unit_rows = stated.of("shots_per_label", int), stated.of("unit_rows", bool)
    with naming_field(stated.where):
        plan = SamplingPlan(scheme, shots=shots, unit_rows=unit_rows, share=share, **numbers)
    check_extent(demo_set.labels, shots, stated)
    return plan


def writing_of(
    demo_set: DemoSet,
    named: Stated,
    stated: Stated,
    plan: SamplingPlan,
    sizes: dict[str, int],
    measured: MeasuredSizes | None,
) -> SynthesisRequest:
    """The request that states such parameters; its target's epsilon means nothing.

    Args:
        demo_set: whose task it is.
        named: where mechanism and transform stand.
        stated: where the parameters stand.
        plan: who joins a step.
        sizes: of the labels.
        measured: the measurement that they come from.
    """
    certificate = demo_set.certificate
    with naming_field("privacy/delta"):
        target = PrivacyTarget(1.0, certificate.claim.delta)
    with naming_field(f"{stated.where}/sizes"):
        for size in sizes.values():
            plan.rate(size)
    used, transform = _mechanism(named, stated), _transform(named, stated)
    caps = {name: stated.of(name, int) for name in ("candidates", "max_record_tokens")}
    if certificate.by_user:
        caps["max_unit_records"] = stated.of("max_unit_records", int)
    for name, field in (("min_tokens", "min_tokens"), ("kept_per_label", "kept")):
        if name in stated.values:
            caps[field] = stated.of(name, int)
    with naming_field(stated.where):
        return SynthesisRequest(
            labels=demo_set.labels,
            template=demo_set.template,
            plan=plan,
            mechanism=used,
            target=target,
            sizes=sizes,
            content=NO_FILE,
            transform=transform,
            by_user=certificate.by_user,
            schema=demo_set.schema,
            outputs=outputs_of(demo_set),
            measured=measured,
            public_inputs=certificate.public_inputs,
            **caps,
        )


def _mechanism(named: Stated, stated: Stated) -> TokenMechanism:
    used = mechanism_class(named.known("mechanism", mechanism_names()))
    with naming_field(stated.where):
        return used(**stated.own(used))


def _transform(named: Stated, stated: Stated) -> Transform:
    used = transform_class(named.known("transform", transform_names()))
    with naming_field(stated.where):
        return used(**stated.own(used))


# A recipe's run as its certificate states it.


def recipe_of(demo_set: DemoSet, stated: Stated) -> RecipeRequest:
    """The request of the run that such a certificate describes.

    Args:
        demo_set: whose certificate it is.
        stated: its parameters.

    Raises:
        UsageError: a stated value is missing, of the wrong kind or out of range; the message begins with its field.
    """
    recipe = _recipe(stated)
    _check_names(demo_set, recipe)
    certificate = demo_set.certificate
    epsilon = stated.of("target_epsilon", float)
    with naming_field("privacy/delta"):
        PrivacyTarget(1.0, certificate.claim.delta)
    with naming_field(stated.where):
        target = PrivacyTarget(epsilon, certificate.claim.delta)
    shots = stated.of("shots_per_label", int)
    check_extent(demo_set.labels, shots, stated)
    sizes = sizes_of(demo_set.labels, stated)
    measured = measured_of(stated, sizes)
    caps = {name: stated.of(name, int) for name in ("tokens", "max_record_tokens")}
    if certificate.by_user:
        caps["max_unit_records"] = stated.of("max_unit_records", int)
    written = _written(demo_set, stated, recipe, sizes, measured)
    with naming_field(stated.where):
        return RecipeRequest(
            labels=demo_set.labels,
            template=demo_set.template,
            recipe=recipe,
            target=target,
            sizes=sizes,
            content=NO_FILE,
            by_user=certificate.by_user,
            shots=shots,
            written=written,
            measured=measured,
            public_inputs=certificate.public_inputs,
            **caps,
        )


def _recipe(stated: Stated) -> Recipe:
    kind, division = stated.known("recipe", list(Kind)), stated.known("division", list(Division))
    shares = stated.within("shares")
    if foreign := set(shares.values) - set(Stage):
        raise UsageError(f"{shares.where}: {len(foreign)} of these are no stages.")
    shared = {stage: shares.of(stage, float) for stage in Stage if stage in shares.values}
    # Files of before state no weighing: rows counted the same.
    weighing = stated.known("weighing", list(Weighing)) if "weighing" in stated.values else Weighing.ROWS
    numbers = {name: stated.of(name, int) for name in ("drafts", "rounds", "sets")}
    with naming_field(stated.where):
        return Recipe(Kind(kind), Division(division), shared, **numbers, weighing=Weighing(weighing))


def _check_names(demo_set: DemoSet, recipe: Recipe) -> None:
    wanted = {"mechanism": f"recipe {recipe.kind}", "transform": "none", "scheme": recipe.division.value}
    for name, value in wanted.items():
        if getattr(demo_set.certificate, name) != value:
            raise UsageError(f"privacy/{name}: '{value}' must stand here in the file of such a recipe.")


def _written(
    demo_set: DemoSet, stated: Stated, recipe: Recipe, sizes: dict[str, int], measured: MeasuredSizes | None
) -> SynthesisRequest | None:
    """The request of the stage "write", for the units of its role."""
    if Stage.WRITE not in recipe.shares:
        return None
    written = stated.within("written")
    share = recipe.shares[Stage.WRITE] if recipe.division is Division.ROLES else 1.0
    plan = plan_of(demo_set, written, written, share)
    return writing_of(demo_set, written, written, plan, sizes, measured)


# The run that a certificate describes, built anew from what it states; a value that cannot be right is named.


@dataclass(frozen=True)
class Rebuilt:
    """A certificate's run.

    Attributes:
        request: public; where tokens are written its target's epsilon means nothing, since a certificate states a
            claim, not a target.
        event: what the run's certificate has to show.
    """

    request: RunRequest
    event: Composed

    @property
    def staged(self) -> RecipeRequest | None:
        """The request, where the run has stages."""
        return self.request if has_stages(self.request) else None


def rebuilt(demo_set: DemoSet) -> Rebuilt:
    """The run of a demo set's certificate.

    Raises:
        UsageError: a stated value is missing, of the wrong kind or out of range; the message begins with its field.
    """
    stated = Stated(demo_set.certificate.parameters)
    if "recipe" in stated.values:
        request = recipe_of(demo_set, stated)
        with naming_field(stated.where):
            return Rebuilt(request, request.certified_event())
    certificate = demo_set.certificate
    names = {"mechanism": certificate.mechanism, "transform": certificate.transform, "scheme": certificate.scheme}
    named = Stated(names, "privacy")
    plan = plan_of(demo_set, named, stated)
    sizes = sizes_of(demo_set.labels, stated)
    written = writing_of(demo_set, named, stated, plan, sizes, measured_of(stated, sizes))
    with naming_field(stated.where):
        return Rebuilt(written, written.certified_event())
