"""Everything public that fixes a recipe's run, decided before the data is touched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from typing_extensions import TypeIs

from mechanisms.accounting import BudgetSnapshot, PrivacyTarget
from mechanisms.data.sizes import (
    MeasuredSizes,
    left_after_counts,
)
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import StageRecord
from mechanisms.discovery import defined
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Composed, PrivacyEvent, SequentialComposition
from mechanisms.runs.events import RunStarted
from mechanisms.runs.recipe import Division, Recipe, Stage
from mechanisms.runs.request import Request, SynthesisRequest
from mechanisms.steps import TokenMechanism

STAGES = "mechanisms.runs.stages"
"""The folder of the stages, one a file."""
ALL = "all"
"""The one event list of users where stages share epsilon."""

MOST_SHOTS, MOST_PROMPTED = 50, 16
"""The most demonstrations of each label in stages, and the most of these that are written or read in one prompt."""

Events = tuple[PrivacyEvent, ...]


@dataclass(frozen=True, kw_only=True)
class RecipeRequest(Request):
    """Public configuration of a run in stages; see `Request`.

    Attributes:
        recipe: the stages.
        shots: S, demonstrations of each label.
        tokens: T, tokens of a draft.
        written: how the stage "write" writes; its plan's `share` and its target's epsilon are those of the recipe.
    """

    recipe: Recipe
    shots: int = 1
    tokens: int = 40
    written: SynthesisRequest | None = None

    def __post_init__(self) -> None:
        if len(self.labels) < 2 or set(self.sizes) != set(self.labels):
            raise UsageError("A recipe needs at least two labels, and every one of them a declared size.")
        self._check_ranges(shots=(1, MOST_SHOTS), tokens=(5, 256))
        if self.template.output is not None:
            raise UsageError("Outputs are written token by token: a recipe's ballots and judges know labels alone.")
        super().__post_init__()
        left_after_counts(self.target.epsilon, self.measured)
        if (self.written is not None) != (Stage.WRITE in self.recipe.shares):
            raise UsageError("The stage 'write' needs a mechanism and a plan, and nothing else does.")
        if self.written is not None:
            if self.shots > MOST_PROMPTED:
                raise UsageError(
                    f"At most {MOST_PROMPTED} demonstrations of a label are written token by token in stages: let the "
                    "rows vote on drafts instead, or ask for fewer."
                )
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
        """See `Request.name`."""
        return f"recipe {self.recipe.kind}"

    @property
    def transform_name(self) -> str:
        """See `Request.transform_name`; that of the writing stands among the parameters."""
        return "none"

    @property
    def scheme(self) -> str:
        """See `Request.scheme`."""
        return self.recipe.division.value

    @property
    def stages(self) -> tuple[Stage, ...]:
        """See `Request.stages`."""
        return self.recipe.stages

    @property
    def exported(self) -> int:
        """See `Request.exported`."""
        return self.shots

    def started(self, demo_set: DemoSet, budget: BudgetSnapshot | None) -> RunStarted:
        """See `Request.started`."""
        return RunStarted(demo_set, self.shots, self.tokens, budget, self.stages)

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
        """See `Request.event`."""
        lists: dict[str, Events] = {}
        for stage in self.recipe.stages:
            for name, events in self.charges(stage):
                lists[name] = lists.get(name, ()) + events
        if self.recipe.division is Division.ROLES:
            return Composed("role", tuple(lists.items()))
        return Composed("dataset" if self.by_user else "label", tuple(lists.items()))

    def stage_records(self) -> tuple[StageRecord, ...]:
        """See `Request.stage_records`: each stage with its events for one unit.

        Where labels are written with different rates it is a unit of the smallest label, which joins most often.
        """
        records = []
        for stage in self.recipe.stages:
            dearest = _accounted(self, stage).dearest()
            event = dearest[0] if len(dearest) == 1 else SequentialComposition(dearest)
            records.append(StageRecord(stage.value, self.role(stage), event))
        return tuple(records)

    def apportioned(self) -> Self:
        """See `Request.apportioned`."""
        if (written := self.written) is None:
            return self
        # What counting has cost is part of the target: calibration takes it off again.
        part = PrivacyTarget(self.spent + self.epsilon(Stage.WRITE), self.target.delta)
        plan = replace(written.plan, share=self.role(Stage.WRITE))
        return replace(self, written=replace(written, target=part, plan=plan))

    def calibrated(self) -> Self:
        """See `Request.calibrated`: the noise of the writing is calibrated, all other noise follows from epsilon."""
        ready = self.apportioned()
        return ready if ready.written is None else replace(ready, written=ready.written.calibrated())

    def with_measured_sizes(self, measured: MeasuredSizes) -> Self:
        """See `Request.with_measured_sizes`."""
        written = self.written.with_measured_sizes(measured) if self.written else None
        return replace(super().with_measured_sizes(measured), written=written)

    def for_content(self, content: str) -> Self:
        """See `Request.for_content`."""
        written = self.written.for_content(content) if self.written else None
        return replace(super().for_content(content), written=written)

    def parameters(self) -> dict[str, Any]:
        """See `Request.parameters`: the recipe, and those of the mechanism that writes, under `written`."""
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


def has_stages(request: RunRequest) -> TypeIs[RecipeRequest]:
    """Whether a run has stages; one without them writes token by token alone."""
    return isinstance(request, RecipeRequest)


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
