"""The terms of a run: all public values that define it, and the share, cost and units of each stage.

A stage uses only the terms; the plan (`plan.py`) adds what follows from all stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mechanisms.data.columns import MOST_LABELS
from mechanisms.data.sizes import MeasuredSizes, left_after_counts
from mechanisms.errors import UsageError
from mechanisms.privacy_events import ALL, Approximate, Composed, PrivacyEvent
from mechanisms.public_inputs import DECLARED_SIZES, FILE_FORMAT, LABEL_SET
from mechanisms.records import RECORD, PromptTemplate
from mechanisms.runs.spec import OPENINGS, VOTE, WORDS, WRITE, RunSpec, Split
from mechanisms.sampling import EventOfSteps, SamplingPlan
from mechanisms.steps import TokenMechanism, Transform

NO_FILE = ""
"""The content of a plan that belongs to no file: for public text, a measurement of speed or a certificate's check."""

Events = tuple[PrivacyEvent, ...]
EventLists = tuple[tuple[str, Events], ...]


@dataclass(frozen=True, kw_only=True)
class RunTerms:
    """All public values that define a run.

    Attributes:
        spec: the completed spec; once the plan is calibrated, its parameters include the mechanism's noise.
        labels: the label set.
        sizes: the declared or measured number of units of each label; an upper bound if declared.
        unit: the privacy unit: `RECORD`, or the user column's.
        content: keyed digest of the data set for which the run is planned; the run refuses any other one.
        measured: the measurement that gave the sizes; None if they are declared public.
        public_inputs: what the claim takes as public in addition to the parameters.
    """

    spec: RunSpec
    labels: tuple[str, ...]
    sizes: Mapping[str, int]
    unit: str = RECORD
    content: str = NO_FILE
    measured: MeasuredSizes | None = None
    public_inputs: tuple[str, ...] = (LABEL_SET, FILE_FORMAT, DECLARED_SIZES)

    def __post_init__(self) -> None:
        if not self.labels or set(self.sizes) != set(self.labels):
            raise UsageError("Every public label needs a declared size, and there must be at least one label.")
        if len(self.labels) > MOST_LABELS:
            raise UsageError(f"At most {MOST_LABELS} labels take part: leave some out, or merge some.")
        if foreign := [label for label in self.spec.label_words if label not in self.labels]:
            raise UsageError(f"There is no label '{foreign[0]}' to name: name labels of the label set.")
        if len(self.labels) < 2 and (foreign := sorted(set(self.spec.shares or ()) - {WRITE, OPENINGS, VOTE})):
            raise UsageError(f"With a single label there is nothing to tell apart: leave out the stage '{foreign[0]}'.")
        if self.measured and self.measured.content != self.content:
            raise UsageError("The label sizes were measured on another file: measure this file's.")
        left_after_counts(self.spec.epsilon, self.measured)

    @property
    def by_user(self) -> bool:
        """Whether the unit is all rows of a user."""
        return self.unit != RECORD

    @property
    def template(self) -> PromptTemplate:
        return self.spec.template(self.labels)

    @property
    def smallest(self) -> str:
        """The label with the fewest units, each of which joins most often."""
        return min(self.labels, key=lambda label: self.sizes[label])

    @property
    def shares(self) -> Mapping[str, float]:
        """Each stage's share of the units or of epsilon."""
        assert self.spec.shares is not None
        return self.spec.shares

    @property
    def alone(self) -> bool:
        """Whether the run only writes token by token, with all units."""
        return set(self.shares) == {WRITE} and not self.by_roles

    @property
    def by_roles(self) -> bool:
        """Whether each unit takes part in one stage."""
        return self.spec.split is Split.ROLES

    def unit_share(self, stage: str) -> float:
        """The share of the units that a stage reads."""
        return self.shares[stage] if self.by_roles else 1.0

    def epsilon(self, stage: str) -> float:
        """An upper bound on the epsilon that a stage costs a unit that takes part in it."""
        whole = left_after_counts(self.spec.epsilon, self.measured)
        return whole if self.by_roles else whole * self.shares[stage]

    def units(self, stage: str) -> float:
        """The expected number of units that a stage reads, from the public sizes; a user counts once for each label."""
        return self.unit_share(stage) * sum(self.sizes.values())

    def rows(self, stage: str) -> float:
        """The estimated number of rows of these units, for a forecast. A user's number of rows is private, so the
        estimate is the middle between one and the cap."""
        return self.units(stage) * ((1 + self.spec.max_unit_records) / 2 if self.by_user else 1)

    @cached_property
    def sampling(self) -> SamplingPlan:
        """How units are sampled for each token."""
        return self.spec.sampling(self.unit_share(WRITE) if WRITE in self.shares else 1.0)

    @cached_property
    def mechanism(self) -> TokenMechanism:
        """The mechanism that writes. Raises a UsageError if it has no sound accounting under this sampling."""
        return self.spec.made_mechanism.for_plan(self.sampling)

    @cached_property
    def transform(self) -> Transform:
        return self.spec.made_transform

    @property
    def signal_to_noise(self) -> float | None:
        """The signal-to-noise ratio of a token; None if no row takes part in a token."""
        writes = WRITE in self.shares and self.mechanism.uses_private_rows
        return self.mechanism.signal_to_noise(self.sampling) if writes else None

    def capacity(self, label: str) -> int:
        """The number of rows in a label's batch; public."""
        return self.sampling.capacity(self.sizes[label], self.spec.delta)[0]

    def composed_writing(self, event: EventOfSteps) -> Composed:
        """The privacy event of the writing stage; `event` is that of its mechanism."""
        sizes = {label: self.sizes[label] for label in self.labels}
        run = self.sampling.compose(event, sizes, self.spec.delta, not self.by_user)
        if self.measured is None:
            return run
        failure = Approximate(self.measured.failure)
        return Composed(run.per, tuple((name, (*events, failure)) for name, events in run))

    @property
    def reads_rows(self) -> bool:
        """Whether the run reads private rows at all."""
        return set(self.shares) != {WRITE} or self.mechanism.uses_private_rows

    @property
    def embeds(self) -> bool:
        """Whether a stage reads rows with the embedding model."""
        return not {WORDS, VOTE}.isdisjoint(self.shares)

    @property
    def not_private(self) -> str | None:
        """The reason why the run has no privacy guarantee; None if it has one."""
        return self.mechanism.not_private if WRITE in self.shares else None

    @property
    def shared_lists(self) -> tuple[str, ...]:
        """The names of the event lists of stages that share epsilon: one for each label, or a single one for users, who
        may have several labels."""
        return (ALL,) if self.by_user else self.labels
