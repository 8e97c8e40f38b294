"""The plan of a run: the completed spec, the public facts of the data set, and what follows from both.

`plan_for(spec, dataset)` returns a `Plan`, which gives the noise, the privacy event, the claim and the warnings.
Planning reserves nothing, charges nothing and draws no random number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from mechanisms.accounting import Claim, PrivacyTarget, claim, fingerprint
from mechanisms.data.sizes import MeasuredSizes, claim_with_counts, left_after_counts, with_counts
from mechanisms.demos.demo_set import Certificate, DemoSet, StageRecord
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Composed, SequentialComposition
from mechanisms.public_inputs import (
    DECLARED_COUNTS,
    DECLARED_SIZES,
    DECLARED_USERS,
    FILE_FORMAT,
    LABEL_SET,
    MEASURED_SIZES,
    WHETHER_MET,
    WHETHER_SHOWN,
)
from mechanisms.records import Dataset, unit_nouns
from mechanisms.rounding import rounded_up
from mechanisms.runs.completion import FEWEST_FOR_WORDS, MOST_CORRECTED_LABELS, complete
from mechanisms.runs.spec import SCORE, VOTE, WORDS, WRITE, Recipe, RunSpec, stated
from mechanisms.runs.stage import PlannedStage
from mechanisms.runs.stages import stages_in_order
from mechanisms.runs.terms import Events, RunTerms
from mechanisms.runs.work import Work
from mechanisms.sampling import EventOfSteps
from mechanisms.steps import mechanism_class

_MANY_LABELS = (
    "With {} labels a small model answers many texts wrongly, with or without demonstrations. Class prototypes need no "
    "language model: compare them in step 4 of the app, or with `score --prototypes-epsilon`."
)


@dataclass(frozen=True, kw_only=True)
class Plan(RunTerms):
    """The stages of a run with its noise, its event and its claim."""

    @cached_property
    def stages(self) -> dict[str, PlannedStage]:
        """The stages by name, in the order in which they run."""
        return {name: stage(self) for name, stage in stages_in_order().items() if name in self.shares}

    @property
    def work(self) -> Work:
        """The expected work of the run."""
        return sum((stage.work() for stage in self.stages.values()), Work())

    def calibrated(self) -> Self:
        """The same plan with the least noise that meets its target.

        Only the noise of the writing stage is solved for; the noise of other stages follows from epsilon. Stages that
        share units cost less together than the sum of their shares of epsilon, and the writing stage uses the rest.

        Raises an AccountingError if no noise meets the target, or if the accountants disagree.
        """
        if WRITE not in self.stages:
            return self
        compose, spent = self.composed_writing, self.epsilon(WRITE)
        if not self.by_roles and not self.alone:
            compose, spent = self._composed_with_others, left_after_counts(self.spec.epsilon, self.measured)
        mechanism = self.mechanism.calibrate(compose, PrivacyTarget(spent, self.spec.delta))
        own = {each.flag: getattr(of, each.name) for of in (mechanism, self.transform) for each in parameters(of)}
        return replace(self, spec=self.spec.with_(parameters=own))

    def _composed_with_others(self, event: EventOfSteps) -> Composed:
        """The privacy event of all stages if they share units; `event` is that of the writing mechanism."""
        run = self.composed_writing(event)
        others: dict[str, Events] = dict.fromkeys(self.shared_lists, ())
        for stage in self.stages.values():
            if stage.name != WRITE:
                others |= {name: others[name] + events for name, events in stage.charges()}
        return Composed(run.per, tuple((name, (*events, *others[name])) for name, events in run))

    @cached_property
    def event(self) -> Composed:
        """The run's privacy event, without an earlier measurement of sizes."""
        lists: dict[str, Events] = {}
        for stage in self.stages.values():
            for name, events in stage.charges():
                lists[name] = lists.get(name, ()) + events
        per = "role" if self.by_roles else "dataset" if self.by_user else "label"
        return Composed(per, tuple(lists.items()))

    def certified_event(self) -> Composed:
        """The event on the certificate: the measurement of sizes, if there was one, and the run's event."""
        return with_counts(self.event, self.measured)

    def release_claim(self) -> Claim:
        """The claim of the run at its delta, without an earlier measurement of sizes."""
        if self.not_private:
            return Claim(math.inf, self.spec.delta, "none", math.inf, "none")
        return claim(self.event, self.spec.delta)

    def claim(self, certified: Composed | None = None) -> Claim:
        """The claim of the run at its delta, with the measurement of sizes.

        `certified` is the certified event with its lists in any order; None computes it.
        """
        if self.not_private:
            return self.release_claim()
        return claim_with_counts(certified or self.certified_event(), self.spec.delta, self.measured)

    def stage_records(self) -> tuple[StageRecord, ...]:
        """The records of the stages in the demo set, each with its events for one unit; none if the run only writes.

        If labels have different sampling rates, the unit is one of the smallest label, which joins most often.
        """
        if self.alone:
            return ()
        records = []
        for name, stage in self.stages.items():
            event = stage.events[0] if len(stage.events) == 1 else SequentialComposition(stage.events)
            records.append(StageRecord(name, self.unit_share(name), event))
        return tuple(records)

    @property
    def name(self) -> str:
        """The run's name in the certificate and the ledger."""
        return self.spec.mechanism if self.alone else f"recipe {self.spec.recipe}"

    @property
    def transform_name(self) -> str:
        return self.spec.transform if self.alone else "none"

    @property
    def scheme(self) -> str:
        """How units are sampled if the run only writes; otherwise what the stages share, units or epsilon."""
        return str(self.spec.scheme if self.alone else self.spec.split)

    def parameters(self) -> dict[str, Any]:
        """The parameters of the run on its certificate: its spec, and the sizes of labels with their measurement."""
        writes, counted = WRITE in self.stages, self.measured
        return {
            **self.spec.model_dump(mode="json", include=set(stated(writes, self.by_user))),
            **(self._of_writing() if writes else {}),
            "sizes": {label: self.sizes[label] for label in self.labels},
            **({"measured": {"epsilon": counted.epsilon, "failure": counted.failure}} if counted else {}),
        }

    def _of_writing(self) -> dict[str, Any]:
        """The parameters of mechanism and transform, and the sampling of each label that follows from them."""
        sensitivity = self.mechanism.sensitivity(self.sampling.unit_rows)
        rates = {label: self.sampling.rate(self.sizes[label]) for label in self.labels}
        return {
            **{
                each.field: getattr(of, each.name) for of in (self.mechanism, self.transform) for each in parameters(of)
            },
            "sensitivity": sensitivity.bound,
            "sensitivity_norm": sensitivity.norm.value,
            "rate": max(rates.values()),
            "rates": rates,
        }

    def empty_set(
        self, model: str, sha256: str, disclosures: tuple[str, ...] = (), reason: str | None = None
    ) -> DemoSet:
        """The demo set before its first demonstration and its charge. A `reason` marks it as not private.

        Args:
            model: the model's name.
            sha256: the model's digest.
        """
        why = self.not_private or reason
        said = {WHETHER_SHOWN: self.reads_rows, WHETHER_MET: SCORE in self.stages}
        certificate = Certificate(
            private=why is None,
            reason=why,
            claim=self.claim(),
            unit=self.unit,
            mechanism=self.name,
            transform=self.transform_name,
            scheme=self.scheme,
            parameters=self.parameters(),
            event=self.certified_event(),
            public_inputs=(*self.public_inputs, *(each for each, holds in said.items() if holds)),
            disclosures=disclosures,
        )
        stages, wording = self.stage_records(), self.spec.wording
        return DemoSet((), self.labels, self.template, certificate, model, sha256, stages=stages, wording=wording)

    def for_content(self, content: str) -> Self:
        measured = replace(self.measured, content=content) if self.measured else None
        return replace(self, content=content, measured=measured)

    @property
    def guarantee(self) -> str:
        return guarantee(self.claim(), self.by_user)

    def warnings(self) -> Iterator[tuple[str, str]]:
        """Warnings for the curator before anything is spent: a subject and one line each."""
        if self.spec.delta > 1 / sum(self.sizes.values()):
            yield (
                "delta",
                "Delta is larger than 1 / n: it allows one row to be published outright. Choose a smaller one.",
            )
        if self.spec.epsilon >= 5:
            yield "epsilon", f"Epsilon {self.spec.epsilon:g} is a weak guarantee: 5 and more is for tests."
        if len(self.labels) > MOST_CORRECTED_LABELS:
            yield "labels", _MANY_LABELS.format(len(self.labels))
        needed = math.ceil(FEWEST_FOR_WORDS / self.spec.epsilon)
        if (
            VOTE in self.stages
            and WORDS not in self.stages
            and len(self.labels) > 1
            and self.sizes[self.smallest] < needed
        ):
            yield (
                WORDS,
                "Rows do not say what their labels are about: the texts follow the labels' names. With "
                f"{needed:,} {unit_nouns(self.unit)} of each label, or a larger epsilon, they would.",
            )
        for name, stage in self.stages.items():
            yield from ((name, warning) for warning in stage.warnings())


def plan_for(spec: RunSpec, dataset: Dataset, measured: MeasuredSizes | None = None) -> Plan:
    """The plan of a spec for a data set, not yet calibrated. If the run reads no row, only the labels are used.

    The plan uses the data set's labels, its privacy unit, its counts if they are declared public, and its keyed digest,
    so that the run refuses any other data set.

    Args:
        measured: sizes that were measured, and charged, before; None if sizes are declared or not measured yet.

    Raises a UsageError if the spec does not say how large labels are, or the sizes are not those of the labels.
    """
    if spec.public:
        return public_plan(spec, dataset.labels)
    if measured is not None:
        sizes, said = measured.sizes, MEASURED_SIZES
    elif spec.sizes == "counted":
        sizes, said = dataset.counted_sizes(), DECLARED_USERS if dataset.by_user else DECLARED_COUNTS
    elif spec.sizes is not None:
        sizes, said = dict(spec.sizes), DECLARED_SIZES
    elif spec.count_epsilon is not None:  # the smallest possible sizes, until they are measured
        sizes, said = dict.fromkeys(dataset.labels, 1), MEASURED_SIZES
    else:
        raise UsageError(
            "Say how large each label is: counted in the file and declared public, declared in numbers, or measured "
            "with noise for a share of epsilon."
        )
    if set(sizes) != set(dataset.labels):
        raise UsageError("Every public label needs a declared size, and nothing else.")
    return Plan(
        spec=complete(spec, sizes),
        labels=dataset.labels,
        sizes=sizes,
        unit=dataset.unit,
        content=fingerprint(dataset).content,
        measured=measured,
        public_inputs=(LABEL_SET, FILE_FORMAT, said),
    )


def public_plan(spec: RunSpec, labels: tuple[str, ...]) -> Plan:
    """The plan of a run that reads no row: it writes from public text alone."""
    spec = spec.with_(
        mechanism="public", transform="none", parameters={}, recipe=Recipe.TOKENS, shares=None, split=None
    )
    sizes = dict.fromkeys(labels, 1)
    return Plan(spec=complete(spec, sizes), labels=labels, sizes=sizes)


def guarantee(claim: Claim, by_user: bool) -> str:
    """The privacy guarantee of a claim in words, for the owner of the data."""
    if math.isinf(claim.epsilon):
        return "No guarantee: what is written shows the private file's own text. It is for your screen only."
    whose = "all rows of any one user" if by_user else "any one row"
    if claim.epsilon == 0:
        return "The private file is not looked at: nothing about it can show."
    factor = math.exp(claim.epsilon)
    times = f"{math.ceil(factor):,}" if 100 <= factor < 1e6 else rounded_up(factor, 3)
    return (
        f"Whatever an attacker knows, adding or removing {whose} changes the probability of any released result, "
        f"other than what was declared public, by at most a factor of {times} (epsilon "
        f"{rounded_up(claim.epsilon, 4)}), apart from a failure probability of {rounded_up(claim.delta, 2)} (delta)."
    )


def suggested_delta(size: int) -> float:
    """A delta well below 1 / n for a public size n: the largest power of ten that is at most 1 / (10 n) and at most
    1e-5."""
    return min(1e-5, 10.0 ** -math.ceil(math.log10(10 * size)))


def solved_flag(mechanism: str) -> str | None:
    """The flag (without dashes) of the parameter that calibration solves for; None for a mechanism without noise."""
    chosen = mechanism_class(mechanism)
    return next((each.flag for each in parameters(chosen) if each.name == chosen.calibrated), None)
