"""Everything public that fixes a recipe's run, decided before the data is touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

from mechanisms.accounting import BudgetSnapshot, Claim, PrivacyTarget, claim
from mechanisms.data.sizes import (
    MeasuredSizes,
    check_counted_here,
    claim_with_counts,
    left_after_counts,
    with_counts,
)
from mechanisms.demos.demo_set import MEASURED_SIZES, DemoSet
from mechanisms.demos.findings import StageRecord
from mechanisms.discovery import defined
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Composed, PrivacyEvent, SequentialComposition
from mechanisms.records import PromptTemplate
from mechanisms.runs.events import RunStarted
from mechanisms.runs.recipe import Division, Recipe, Stage
from mechanisms.runs.request import (
    DECLARED_COUNTS,
    DECLARED_SIZES,
    DECLARED_USERS,
    FILE_FORMAT,
    LABEL_SET,
    SynthesisRequest,
)
from mechanisms.steps import TokenMechanism

STAGES = "mechanisms.runs.stages"
"""The folder of the stages, one a file."""
ALL = "all"
"""The one event list of users where stages share epsilon."""

MOST_SHOTS = 16
"""Demonstrations of each label at most."""

Events = tuple[PrivacyEvent, ...]


@dataclass(frozen=True)
class RecipeRequest:
    """Public configuration of a recipe's run.

    Attributes:
        labels: public label set, in order.
        template: how the task is put to the model.
        recipe: the stages.
        target: the (epsilon, delta) that the run may cost.
        sizes: declared upper bound of the units of each label.
        content: keyed digest of the data set that the run was planned for: it is run on no other.
        by_user: the unit is all records of one user.
        shots: S, demonstrations of each label.
        tokens: T, tokens of a draft.
        max_record_tokens: public cap on the tokens of a private text that the model reads.
        max_unit_records: R, public cap on a user's records that a tally takes.
        written: how the stage "write" writes; its plan's `share` and its target's epsilon are those of the recipe.
        measured: the measurement that `sizes` come from; None where they are declared public.
        public_inputs: what the claim takes as public beyond the parameters.
    """

    labels: tuple[str, ...]
    template: PromptTemplate
    recipe: Recipe
    target: PrivacyTarget
    sizes: Mapping[str, int]
    content: str
    by_user: bool = False
    shots: int = 1
    tokens: int = 40
    max_record_tokens: int = 64
    max_unit_records: int = 3
    written: SynthesisRequest | None = None
    measured: MeasuredSizes | None = None
    public_inputs: tuple[str, ...] = (LABEL_SET, FILE_FORMAT, DECLARED_SIZES)

    def __post_init__(self) -> None:
        if len(self.labels) < 2 or set(self.sizes) != set(self.labels):
            raise UsageError("A recipe needs at least two labels, and every one of them a declared size.")
        for name, low, high in (
            ("shots", 1, MOST_SHOTS),
            ("tokens", 5, 256),
            ("max_record_tokens", 1, 1024),
            ("max_unit_records", 1, 64),
        ):
            if not low <= getattr(self, name) <= high:
                raise UsageError(f"{name.replace('_', ' ')} must lie between {low} and {high}.")
        if self.template.output is not None:
            raise UsageError("Outputs are written token by token: a recipe's ballots and judges know labels alone.")
        check_counted_here(self.measured, self.content)
        left_after_counts(self.target.epsilon, self.measured)
        if (self.written is not None) != (Stage.WRITE in self.recipe.shares):
            raise UsageError("The stage 'write' needs a mechanism and a plan, and nothing else does.")
        if self.written is not None:
            _check_written(self.written)

    @classmethod
    def of(cls, written: SynthesisRequest, recipe: Recipe, tokens: int | None = None) -> RecipeRequest:
        """The request in stages of what would be written token by token: the same task, sizes and target.

        Args:
            written: not calibrated; how the stage "write" writes, where the recipe has it.
            recipe: the stages.
            tokens: of a draft, where not as usual.

        Raises:
            UsageError: a number is out of range, or the stages do not fit together.
        """
        return cls(
            labels=written.labels,
            template=written.template,
            recipe=recipe,
            target=written.target,
            sizes=written.sizes,
            content=written.content,
            by_user=written.by_user,
            shots=written.plan.shots,
            tokens=cls.tokens if tokens is None else tokens,
            max_record_tokens=written.max_record_tokens,
            max_unit_records=written.max_unit_records,
            written=written if Stage.WRITE in recipe.shares else None,
            measured=written.measured,
            public_inputs=written.public_inputs,
        )

    @property
    def name(self) -> str:
        """What certificate and ledger call the run: its recipe."""
        return f"recipe {self.recipe.kind}"

    @property
    def transform_name(self) -> str:
        """The certificate's transform; that of the writing stands among its parameters."""
        return "none"

    @property
    def scheme(self) -> str:
        """What the stages share, as the certificate has it."""
        return self.recipe.division.value

    @property
    def staged(self) -> RecipeRequest:
        """The request itself; None of a run without stages."""
        return self

    @property
    def schema(self) -> None:
        """Records are written token by token alone."""

    @property
    def outputs(self) -> None:
        """So are texts with outputs."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Those that take part, in their order."""
        return self.recipe.stages

    @property
    def reads_rows(self) -> bool:
        """Stages always read private rows."""
        return True

    @property
    def not_private(self) -> None:
        """Stages are always private."""

    @property
    def exported(self) -> int:
        """Demonstrations of each label in the set, at most."""
        return self.shots

    def started(self, demo_set: DemoSet, budget: BudgetSnapshot | None) -> RunStarted:
        """The run's first event."""
        return RunStarted(demo_set, self.shots, self.tokens, budget, self.stages)

    @property
    def spent(self) -> float:
        """What measuring the sizes has cost."""
        return self.measured.epsilon if self.measured else 0.0

    def role(self, stage: Stage) -> float:
        """The share of the units that a stage reads."""
        return self.recipe.shares[stage] if self.recipe.division is Division.ROLES else 1.0

    def epsilon(self, stage: Stage) -> float:
        """What a stage may cost a unit that takes part in it."""
        whole = self.target.epsilon - self.spent
        return whole if self.recipe.division is Division.ROLES else whole * self.recipe.shares[stage]

    def charges(self, stage: Stage) -> tuple[tuple[str, Events], ...]:
        """What a stage costs, by event list: charged before its first release."""
        return _accounted(self, stage).charges()

    @property
    def shared_lists(self) -> tuple[str, ...]:
        """The lists of stages that share epsilon: those of the writing where there is one, else a label each."""
        return tuple(name for name, _ in self.written.event) if self.written else self.labels

    @property
    def event(self) -> Composed:
        """The run's privacy event, without an earlier measurement of sizes."""
        lists: dict[str, Events] = {}
        for stage in self.recipe.stages:
            for name, events in self.charges(stage):
                lists[name] = lists.get(name, ()) + events
        if self.recipe.division is Division.ROLES:
            return Composed("role", tuple(lists.items()))
        return Composed("dataset" if self.by_user else "label", tuple(lists.items()))

    def certified_event(self) -> Composed:
        """The event that the certificate shows: the run's, after the measurement of sizes where there was one."""
        return with_counts(self.event, self.measured)

    def release_claim(self) -> Claim:
        """What the stages claim at the target's delta, without an earlier measurement of sizes."""
        return claim(self.event, self.target.delta)

    def claim(self) -> Claim:
        """What the run costs at the target's delta."""
        return self.claim_of(self.certified_event())

    def claim_of(self, certified: Composed) -> Claim:
        """What a certified event of this run costs; see `SynthesisRequest.claim_of`."""
        return claim_with_counts(certified, self.target.delta, self.measured)

    def stage_records(self) -> tuple[StageRecord, ...]:
        """The stages as the demo set tells them: each with its events for one unit.

        Where labels are written with different rates it is a unit of the smallest label, which joins most often.
        """
        records = []
        for stage in self.recipe.stages:
            dearest = _accounted(self, stage).dearest()
            event = dearest[0] if len(dearest) == 1 else SequentialComposition(dearest)
            records.append(StageRecord(stage.value, self.role(stage), event))
        return tuple(records)

    def apportioned(self) -> Self:
        """The same request, its writing on its share of the units or of epsilon."""
        if (written := self.written) is None:
            return self
        # What counting has cost is part of the target: calibration takes it off again.
        part = PrivacyTarget(self.spent + self.epsilon(Stage.WRITE), self.target.delta)
        plan = replace(written.plan, share=self.role(Stage.WRITE))
        return replace(self, written=replace(written, target=part, plan=plan))

    def calibrated(self) -> Self:
        """The same request, its writing apportioned and with the least noise that its epsilon allows.

        All other noise follows from epsilon alone.

        Raises:
            AccountingError: no noise meets the target, or the accountants disagree.
        """
        ready = self.apportioned()
        return ready if ready.written is None else replace(ready, written=ready.written.calibrated())

    def with_measured_sizes(self, measured: MeasuredSizes) -> RecipeRequest:
        """The same request on sizes that were measured with noise."""
        declared = (DECLARED_COUNTS, DECLARED_USERS, DECLARED_SIZES)
        kept = (each for each in self.public_inputs if each not in declared)
        written = self.written.with_measured_sizes(measured) if self.written else None
        return replace(
            self,
            sizes=measured.sizes,
            measured=measured,
            written=written,
            public_inputs=(*kept, MEASURED_SIZES),
        )

    def for_content(self, content: str) -> RecipeRequest:
        """The same request, for the data set of that content."""
        measured = replace(self.measured, content=content) if self.measured else None
        written = self.written.for_content(content) if self.written else None
        return replace(self, content=content, measured=measured, written=written)

    def parameters(self) -> dict[str, Any]:
        """The certificate's parameters: the recipe, and those of the mechanism that writes, under `written`."""
        recipe = self.recipe
        return {
            "recipe": recipe.kind.value,
            "division": recipe.division.value,
            "shares": {stage.value: recipe.shares[stage] for stage in recipe.stages},
            "target_epsilon": self.target.epsilon,
            "drafts": recipe.drafts,
            "rounds": recipe.rounds,
            "sets": recipe.sets,
            "weighing": recipe.weighing.value,
            "sizes": {label: self.sizes[label] for label in self.labels},
            **({"measured": self.measured.cost} if self.measured else {}),
            "tokens": self.tokens,
            "shots_per_label": self.shots,
            "max_record_tokens": self.max_record_tokens,
            **({"max_unit_records": self.max_unit_records} if self.by_user else {}),
            **({"written": self._written_parameters()} if self.written else {}),
        }

    def _written_parameters(self) -> dict[str, Any]:
        assert self.written is not None
        used = self.written
        return {
            "mechanism": used.mechanism.name,
            "transform": used.transform.name,
            "scheme": used.plan.scheme.value,
            **used.parameters(),
        }


RunRequest = SynthesisRequest | RecipeRequest
"""What fixes a run: token by token, or in stages."""

_T = TypeVar("_T")


def by_kind(request: RunRequest, tokens: Callable[[SynthesisRequest], _T], staged: Callable[[RecipeRequest], _T]) -> _T:
    """What one of two functions makes of a request, by whether its run has stages."""
    return staged(request) if isinstance(request, RecipeRequest) else tokens(request)


def writes_in_stages(mechanism: TokenMechanism | type[TokenMechanism]) -> bool:
    """Whether a recipe may write with it: it reads private rows, and protects them."""
    return mechanism.uses_private_rows and not mechanism.not_private


def _check_written(written: SynthesisRequest) -> None:
    if not writes_in_stages(written.mechanism):
        raise UsageError(f"A recipe does not write with '{written.mechanism.name}': choose a private mechanism.")
    if written.kept is not None:
        raise UsageError("In stages all that is written stands in the ballot or the choice: keep all of it.")


class Accounted(Protocol):
    """What a request needs of its stages, which are files of their own (`mechanisms/runs/stages/`)."""

    def charges(self) -> tuple[tuple[str, Events], ...]:
        """See `RecipeRequest.charges`."""
        ...

    def dearest(self) -> Events:
        """The events of the unit that pays most."""
        ...


def _accounted(request: RecipeRequest, stage: Stage) -> Accounted:
    found: Accounted = defined(STAGES, "STAGE")[stage](request)
    return found
