"""Everything public that fixes a run, decided before the data is touched."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from mechanisms.accounting import BudgetSnapshot, Claim, PrivacyTarget, claim
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.sizes import (
    MeasuredSizes,
    check_counted_here,
    claim_with_counts,
    left_after_counts,
    with_counts,
)
from mechanisms.demos.demo_set import MEASURED_SIZES, Answers, DemoSet, Outputs
from mechanisms.demos.findings import StageRecord
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Approximate, Composed, PrivacyEvent
from mechanisms.records import PromptTemplate
from mechanisms.runs.events import RunStarted
from mechanisms.runs.recipe import Stage
from mechanisms.sampling import EventOfSteps, SamplingPlan, Scheme
from mechanisms.steps import NoTransform, TokenMechanism, Transform

DECLARED_COUNTS = "label counts declared public"
DECLARED_USERS = "numbers of users of each label declared public"
DECLARED_SIZES = "upper bounds of label sizes declared public"
LABEL_SET = "label set"
RECORD_SCHEMA = "record schema"
MIN_TOKENS = 8
"""Tokens before a demonstration may end, where nothing else is asked for: small models like to write a title."""
MOST_TRIES = 16
"""Demonstrations that are written for each one that is kept, at most."""
NO_FILE = ""
"""The content of a request that no file is read for: public text, a measurement of speed, a check of a certificate."""
FILE_FORMAT = "how the file divides into rows (encoding mark, line ends, separator, quotes)"


_FREE = "tokens that the schema forces, and public text after the last charged token"
_FREE_NAME = "the output field's name, between a text and its output"
_FREE_ANSWERS = "outputs, which the model writes from released texts"
_MOST_FORCED = 512
"""Forced tokens for which a row has room; the charged part of a record ends where it has no more."""


def declared_counts(by_user: bool) -> str:
    """What a curator declares public whose file's own sizes are used: the rates, and with them the noise, show them."""
    return DECLARED_USERS if by_user else DECLARED_COUNTS


@dataclass(frozen=True, kw_only=True)
class Request(ABC):
    """Public configuration that token-by-token runs and runs in stages share.

    Attributes:
        labels: public label set, in order.
        template: how the task is put to the model.
        target: the (epsilon, delta) that the run may cost.
        sizes: declared upper bound of the units of each label.
        content: keyed digest of the data set that the run is planned for; the run refuses every other one.
        by_user: the unit is all records of one user; labels then compose in sequence.
        max_record_tokens: public cap on the tokens of a private text that the model reads.
        max_unit_records: public cap on the records of a user that a row or a tally takes.
        measured: the measurement that `sizes` come from; None where they are declared public.
        public_inputs: what the claim takes as public beyond the parameters.
    """

    labels: tuple[str, ...]
    template: PromptTemplate
    target: PrivacyTarget
    sizes: Mapping[str, int]
    content: str
    by_user: bool = False
    max_record_tokens: int = 64
    max_unit_records: int = 3
    measured: MeasuredSizes | None = None
    public_inputs: tuple[str, ...] = (LABEL_SET, FILE_FORMAT, DECLARED_SIZES)

    def __post_init__(self) -> None:
        self._check_ranges(max_record_tokens=(1, 1024), max_unit_records=(1, 64))
        check_counted_here(self.measured, self.content)

    def _check_ranges(self, **ranges: tuple[int, int]) -> None:
        for name, (low, high) in ranges.items():
            if not low <= getattr(self, name) <= high:
                raise UsageError(f"{name.replace('_', ' ')} must lie between {low} and {high}.")

    @property
    @abstractmethod
    def name(self) -> str:
        """The run's name in the certificate and the ledger: a mechanism's or a recipe's."""

    @property
    @abstractmethod
    def transform_name(self) -> str:
        """The certificate's transform."""

    @property
    @abstractmethod
    def scheme(self) -> str:
        """The certificate's scheme: how units are sampled, or what the stages share."""

    @property
    @abstractmethod
    def written(self) -> SynthesisRequest | None:
        """The part that is written token by token."""

    @property
    @abstractmethod
    def event(self) -> Composed:
        """The run's privacy event, without an earlier measurement of sizes."""

    @property
    @abstractmethod
    def exported(self) -> int:
        """Demonstrations of each label in the set, at most."""

    @abstractmethod
    def started(self, demo_set: DemoSet, budget: BudgetSnapshot | None) -> RunStarted:
        """The run's first event."""

    @abstractmethod
    def calibrated(self) -> Self:
        """The same request with the least noise that meets its target.

        Raises:
            AccountingError: no noise meets the target, or the accountants disagree.
            UsageError: measuring the sizes has used up the target.
        """

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The certificate's parameters."""

    @property
    def schema(self) -> RecordSchema | None:
        """The schema of which demonstrations are records; None for texts."""
        return None

    @property
    def outputs(self) -> Outputs | None:
        """How demonstrations get outputs; None where they have labels alone."""
        return None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that take part, in their order; none where demonstrations are charged one by one."""
        return ()

    def stage_records(self) -> tuple[StageRecord, ...]:
        """The stages as the demo set records them."""
        return ()

    @property
    def reads_rows(self) -> bool:
        """Whether the run reads private rows."""
        return True

    @property
    def not_private(self) -> str | None:
        """Why the run promises nothing; None where it does."""
        return None

    def apportioned(self) -> Self:
        """The same request, with its writing on its share of the units or of epsilon."""
        return self

    @property
    def spent(self) -> float:
        """Epsilon that measuring the sizes has cost."""
        return self.measured.epsilon if self.measured else 0.0

    def certified_event(self) -> Composed:
        """The event that the certificate shows: the run's, after the measurement of sizes where there was one."""
        return with_counts(self.event, self.measured)

    def release_claim(self) -> Claim:
        """What the run claims at the target's delta, without an earlier measurement of sizes."""
        if self.not_private:
            return Claim(math.inf, self.target.delta, "none", math.inf, "none")
        return claim(self.event, self.target.delta)

    def claim(self) -> Claim:
        """What the run costs at the target's delta."""
        return self.claim_of(self.certified_event())

    def claim_of(self, certified: Composed) -> Claim:
        """What a certified event of this run costs at the target's delta.

        A run on measured sizes was chosen in view of them: their epsilon, the first event of every list, is added to
        the cost of the others (basic composition).
        """
        if self.not_private:
            return self.release_claim()
        return claim_with_counts(certified, self.target.delta, self.measured)

    def with_measured_sizes(self, measured: MeasuredSizes) -> Self:
        """The same request on sizes that were measured with noise."""
        kept = (each for each in self.public_inputs if each not in (DECLARED_COUNTS, DECLARED_USERS, DECLARED_SIZES))
        return replace(self, sizes=measured.sizes, measured=measured, public_inputs=(*kept, MEASURED_SIZES))

    def for_content(self, content: str) -> Self:
        """The same request, for the data set of that content."""
        measured = replace(self.measured, content=content) if self.measured else None
        return replace(self, content=content, measured=measured)


@dataclass(frozen=True, kw_only=True)
class SynthesisRequest(Request):
    """Public configuration of a run that writes token by token, or of the stage that does; see `Request`.

    Attributes:
        plan: who joins a step.
        mechanism: how a token is released; calibrated for the run by `calibrated`.
        transform: what is done to each private row before the mechanism sees it.
        candidates: K, how many tokens of the public distribution may be released at a step.
        min_tokens: a demonstration has no end before it has so many.
        kept: demonstrations of each label in the set, of the plan's `shots` that are written and charged; None: all.
        schema: what demonstrations are records of; then T counts the tokens that are charged, and no other.
        outputs: how demonstrations come by outputs, where the template has a field for them; T counts the charged
            tokens of both fields.
    """

    plan: SamplingPlan
    mechanism: TokenMechanism
    transform: Transform = field(default_factory=NoTransform)
    candidates: int = 16
    min_tokens: int = 0
    kept: int | None = None
    schema: RecordSchema | None = None
    outputs: Outputs | None = None

    def __post_init__(self) -> None:
        if not self.labels or set(self.sizes) != set(self.labels):
            raise UsageError("Every public label needs a declared size, and there must be at least one label.")
        if empty := [label for label, size in self.sizes.items() if size < 1]:
            raise UsageError(
                f"The label '{empty[0]}' has a declared size of 0, or no row: check its spelling, leave it out, or "
                "declare its size."
            )
        self._check_outputs()
        of_text = self.plan.tokens - (self.outputs.charged if self.outputs else 0)
        self._check_ranges(candidates=(2, 1000), min_tokens=(0, of_text))
        super().__post_init__()
        if self.schema is not None and self.min_tokens:
            raise UsageError("A record ends where its schema says: leave out the least number of tokens.")
        if self.transform.name != "none" and not self.mechanism.takes_transform:
            raise UsageError(
                f"'{self.mechanism.name}' works on logits: the transform '{self.transform.name}' needs a mechanism "
                "on probabilities, such as gaussian."
            )
        if self.kept is not None:
            self._check_kept(self.kept)
        object.__setattr__(self, "mechanism", self.mechanism.for_plan(self.plan))

    def _check_outputs(self) -> None:
        if (self.outputs is None) != (self.template.output is None):
            raise UsageError("A name for the output field, and where outputs come from, are given both or neither.")
        if self.outputs is None:
            return
        if self.schema is not None:
            raise UsageError("A record of a schema has no output beside it: make the output one of its properties.")
        if self.outputs.charged >= self.plan.tokens:
            raise UsageError(
                f"Of {self.plan.tokens} tokens {self.outputs.charged} are the output's, and none is left for the text: "
                "give a demonstration more tokens, or its output fewer."
            )

    def _check_kept(self, kept: int) -> None:
        if not 1 <= kept < self.plan.shots <= MOST_TRIES * kept:
            raise UsageError(f"For each demonstration that is kept more than 1 and at most {MOST_TRIES} are written.")
        if len(self.labels) < 2:
            raise UsageError("Which of several is best is how surely the model finds its label: that takes two labels.")

    def best_of(self, tries: int) -> SynthesisRequest:
        """The same request with so many demonstrations written, and charged, for each one that is kept.

        Raises:
            UsageError: fewer than 1, or too many.
        """
        if not 1 <= tries <= MOST_TRIES:
            raise UsageError(f"Keep the best of 1 to {MOST_TRIES}.")
        if tries == 1:
            return self
        return replace(self, plan=replace(self.plan, shots=tries * self.plan.shots), kept=self.plan.shots)

    @property
    def name(self) -> str:
        """See `Request.name`: its mechanism's."""
        return self.mechanism.name

    @property
    def transform_name(self) -> str:
        """See `Request.transform_name`."""
        return self.transform.name

    @property
    def scheme(self) -> str:
        """See `Request.scheme`."""
        return self.plan.scheme.value

    @property
    def written(self) -> SynthesisRequest:
        """The request itself: all of the run is written token by token."""
        return self

    @property
    def reads_rows(self) -> bool:
        """See `Request.reads_rows`."""
        return self.mechanism.uses_private_rows

    @property
    def signal_to_noise(self) -> float:
        """Of the step of a token; see `TokenMechanism.signal_to_noise`."""
        return self.mechanism.signal_to_noise(self.plan)

    @property
    def not_private(self) -> str | None:
        """See `Request.not_private`."""
        return self.mechanism.not_private

    def started(self, demo_set: DemoSet, budget: BudgetSnapshot | None) -> RunStarted:
        """See `Request.started`."""
        plan = self.plan
        return RunStarted(demo_set, plan.shots, plan.tokens, budget, expected_rows=plan.subsets, kept=self.kept)

    @property
    def exported(self) -> int:
        """See `Request.exported`."""
        return self.plan.shots if self.kept is None else self.kept

    @property
    def records_per_row(self) -> int:
        """Whole records for which a row of the batch has room."""
        per_unit = self.max_unit_records if self.by_user else 1
        return per_unit * self.plan.per_subset

    @property
    def room(self) -> int:
        """Tokens that may be appended to a row of the batch: those that are charged, and those that are forced."""
        # A token has at least one byte, but for one that a tokenizer may put in front.
        fixed = 1 + len(f"\n{self.template.output}:".encode()) if self.outputs and self.outputs.charged else 0
        return self.plan.tokens + min(self.schema.fixed_bytes if self.schema else fixed, _MOST_FORCED)

    @property
    def answered_by_model(self) -> bool:
        """Whether a model gives each released text its output."""
        return self.outputs is not None and self.outputs.answers is Answers.MODEL

    @property
    def event(self) -> Composed:
        """See `Request.event`."""
        return self.compose(self.mechanism.event)

    def compose(self, event: EventOfSteps) -> Composed:
        """The run's privacy event, had its mechanism the given one."""
        sizes = {label: self.sizes[label] for label in self.labels}
        run = self.plan.compose(event, sizes, self.target.delta, not self.by_user)
        if self.measured is None:
            return run
        failure = Approximate(self.measured.failure)
        return Composed(run.per, tuple((name, (*events, failure)) for name, events in run))

    def calibrated(self) -> Self:
        """See `Request.calibrated`."""
        target = PrivacyTarget(left_after_counts(self.target.epsilon, self.measured), self.target.delta)
        return replace(self, mechanism=self.mechanism.calibrate(self.compose, target))

    def capacity(self, label: str) -> int:
        """Rows of the batch for a label."""
        return self.plan.capacity(self.sizes[label], self.target.delta)[0]

    def charge(self, label: str, number: int) -> tuple[str, tuple[PrivacyEvent, ...]]:
        """What a demonstration costs, and in which event list, before its first token.

        Failure probabilities of a list are charged with its first demonstration. With users in disjoint batches, who
        have one batch a label each, so is everything.
        """
        planned = dict(self.event)
        name = "all" if self.by_user else self.plan.list_name(label, number)
        disjoint = self.plan.scheme is Scheme.DISJOINT
        events: tuple[PrivacyEvent, ...] = ()
        if number == 1 or not (self.by_user and disjoint):
            events = self.plan.demonstration_events(self.mechanism.event, self.plan.rate(self.sizes[label]))
        first = (disjoint and not self.by_user) or (number == 1 and (not self.by_user or label == self.labels[0]))
        failures = tuple(event for event in planned[name] if isinstance(event, Approximate))
        return name, events + (failures if first else ())

    def parameters(self) -> dict[str, Any]:
        """See `Request.parameters`: mechanism, sampling, sizes and candidates."""
        described = ((used, each) for used in (self.mechanism, self.transform) for each in parameters(used))
        own = {each.flag.replace("-", "_"): getattr(used, each.name) for used, each in described}
        rates = {label: self.plan.rate(self.sizes[label]) for label in self.labels}
        sensitivity = self.mechanism.sensitivity(self.plan.unit_rows)
        return own | {
            "sensitivity": sensitivity.bound,
            "sensitivity_norm": sensitivity.norm.value,
            "unit_rows": self.plan.unit_rows,
            "subsets": self.plan.subsets,
            "per_subset": self.plan.per_subset,
            **({"share": self.plan.share} if self.plan.share != 1 else {}),
            "rate": max(rates.values()),
            "rates": rates,
            "sizes": {label: self.sizes[label] for label in self.labels},
            **({"measured": self.measured.cost} if self.measured else {}),
            "tokens": self.plan.tokens,
            "shots_per_label": self.plan.shots,
            **({"kept_per_label": self.kept} if self.kept is not None else {}),
            "candidates": self.candidates,
            "max_record_tokens": self.max_record_tokens,
            **({"max_unit_records": self.max_unit_records} if self.by_user else {}),
            **({"min_tokens": self.min_tokens} if self.min_tokens else {}),
            **({"schema_sha256": self.schema.digest, "free_tokens": _FREE} if self.schema else {}),
            **self._output_parameters(),
        }

    def _output_parameters(self) -> dict[str, Any]:
        if self.outputs is None:
            return {}
        free = _FREE_ANSWERS if self.answered_by_model else _FREE_NAME
        return {"outputs": self.outputs.parameters(), "free_tokens": free}
