"""The settings of step 2 as one value, and the request that they describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpicl_ui.data.state import Rows
from dpicl_ui.frame import parameters
from dpicl_ui.frame.inputs import number, whole
from mechanisms.accounting import PrivacyTarget
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.sizes import MeasuredSizes, left_after_counts
from mechanisms.demos.demo_set import Answers, Outputs
from mechanisms.discovery import Parameter
from mechanisms.records import Dataset, PromptTemplate, open_template
from mechanisms.runs.defaults import LABELLED, RECORDS, UNLABELLED, Lengths
from mechanisms.runs.recipe import Division, Kind, Stage
from mechanisms.runs.spec import RunSpec
from mechanisms.sampling import Scheme
from mechanisms.steps import (
    NoTransform,
    TokenMechanism,
    Transform,
    mechanism_class,
    mechanism_names,
    transform_class,
    transform_names,
)

# The part of step 2's settings that says which stages a run has.

BY_TOKEN = {
    Rows.RECORDS: "Records are written token by token: the votes on drafts know no schemas.",
    Rows.ALONE: "Texts of one kind are written token by token: the votes on drafts ask which label a row has.",
    Rows.ANSWERED: "Texts with answers are written token by token: the votes on drafts know no answers.",
}
"""Why there is no choice where rows have no labels."""


@dataclass(frozen=True)
class Stages:
    """The stages as an expert sets them; public.

    Attributes:
        tokens: of a draft.
        shares: of every `Stage`, in order; 0 leaves it out.
    """

    division: str
    drafts: int
    rounds: int
    sets: int
    tokens: int
    shares: tuple[float, ...]


@dataclass(frozen=True)
class RecipeForm:
    """Which preset, and its stages; public.

    Attributes:
        kind: where demonstrations come from; "tokens" is a run without stages.
        score: the last stage takes part.
        stages: what an expert set; None for the planner's proposal.
    """

    kind: str
    score: bool
    stages: Stages | None = None

    @classmethod
    def read(cls, *values: Any) -> RecipeForm:
        """The form from its components' values: kind, no score, by hand, division, drafts, rounds, sets, tokens, and
        the shares of all stages in percent.

        Raises:
            UsageError: a number is missing or not a number.
        """
        kind, no_score, by_hand, division, drafts, rounds, sets, tokens, *shares = values
        if not by_hand:
            return cls(str(kind), not no_score)
        stages = Stages(
            str(division),
            whole("The number of drafts", drafts),
            whole("The number of rounds", rounds),
            whole("The number of sets", sets),
            whole("The longest draft", tokens),
            tuple(number(f"The share of '{stage}'", share) / 100 for stage, share in zip(Stage, shares, strict=True)),
        )
        return cls(str(kind), not no_score, stages)

    @property
    def in_stages(self) -> bool:
        """Whether this is a recipe; else the whole run is written token by token."""
        return self.kind != Kind.TOKENS

    def asked(self) -> dict[str, Any]:
        """The fields of a `RunSpec` that these settings fix.

        Raises:
            UsageError: a value is unknown.
        """
        kind, own = Kind(self.kind), self.stages
        if own is None or not self.in_stages:
            return {"recipe": kind, "score": self.score}
        hidden = hidden_stages(kind, self.score)
        return {
            "recipe": kind,
            "score": self.score,
            "division": Division(own.division),
            "shares": {
                stage: share for stage, share in zip(Stage, own.shares, strict=True) if share and stage not in hidden
            },
            "drafts": own.drafts,
            "rounds": own.rounds,
            "sets": own.sets,
            "draft_tokens": own.tokens,
        }


def hidden_stages(kind: Kind, score: bool) -> set[Stage]:
    """Stages that a preset does not have; their shares are not asked for."""
    unscored = set() if score else {Stage.SCORE}
    return unscored | ({Stage.WRITE} if kind is Kind.VOTE else {Stage.VOTE} if kind is Kind.TOKENS else set())


# All settings of step 2.


def private_mechanisms() -> list[type[TokenMechanism]]:
    """The mechanisms that a curator may choose from; baselines do not look at the data, or do not protect it."""
    every = [mechanism_class(name) for name in mechanism_names()]
    return [each for each in every if each.uses_private_rows and not each.not_private]


def transforms() -> list[type[Transform]]:
    """The transforms that a curator may choose from, the one that does nothing first."""
    return [transform_class(name) for name in transform_names()]


def described() -> list[tuple[type[Any], Parameter]]:
    """The parameters that the form asks for, each with its owner: the order of `PrivacyForm.parameters`.

    The one that `calibrate` solves for is shown among the results instead.
    """
    every = parameters.described([*private_mechanisms(), *transforms()])
    return [(owner, each) for owner, each in every if each.name != getattr(owner, "calibrated", None)]


@dataclass(frozen=True)
class PrivacyForm:
    """Everything that step 2 asks for; public.

    Attributes:
        best_of: demonstrations that are written for each one that is kept; in stages all are.
        label_name: what prompts call the label or, where rows have answers, the answer.
        answers: who writes answers, where rows have any.
        answer_tokens: the tokens of a demonstration that are kept for its answer, where rows write it.
        parameters: values of all mechanisms' and transforms' parameters, in the order of `described`.
        recipe: which stages the run has.
    """

    epsilon: float
    delta: float
    mechanism: str
    scheme: str
    unit_rows: bool
    subsets: int
    per_subset: int
    tokens: int
    shots: int
    best_of: int
    candidates: int
    max_record_tokens: int
    instruction: str
    text_name: str
    label_name: str
    answers: str
    answer_tokens: int
    transform: str
    parameters: tuple[float, ...]
    recipe: RecipeForm

    @classmethod
    def read(cls, *values: Any) -> PrivacyForm:
        """The form from its components' values, in the order of the fields.

        Raises:
            UsageError: a number is missing or not a number.
        """
        epsilon, delta, mechanism, scheme, unit_rows, subsets, per_subset, tokens, shots, *rest = values
        best_of, candidates, length, instruction, text_name, label_name, answers, answer_tokens, transform, *own = rest
        asked = described()
        return cls(
            number("Epsilon", epsilon),
            number("Delta", delta),
            str(mechanism),
            str(scheme),
            bool(unit_rows),
            whole("M", subsets),
            whole("N", per_subset),
            whole("The number of tokens", tokens),
            whole("The number of demonstrations", shots),
            whole("The number to keep the best of", best_of),
            whole("The number of candidates", candidates),
            whole("The cap on a record's tokens", length),
            str(instruction or "").strip(),
            str(text_name or ""),
            str(label_name or ""),
            str(answers),
            whole("The number of tokens for the answer", answer_tokens),
            str(transform),
            parameters.numbers(asked, own[: len(asked)]),
            RecipeForm.read(*own[len(asked) :]),
        )

    def chosen_mechanism(self) -> TokenMechanism:
        """The mechanism, not yet calibrated.

        Raises:
            UsageError: a parameter is out of range.
        """
        return parameters.made(mechanism_class(self.mechanism), described(), self.parameters)

    def chosen_transform(self) -> Transform:
        """The transform; none in front of a mechanism that takes none, where the form hides the choice.

        Raises:
            UsageError: a parameter is out of range.
        """
        if not mechanism_class(self.mechanism).takes_transform:
            return NoTransform()
        return parameters.made(transform_class(self.transform), described(), self.parameters)

    def epsilon_left(self, measured: MeasuredSizes | None) -> float:
        """What the run may cost, less what measuring the sizes has cost.

        Raises:
            UsageError: nothing is left.
        """
        return left_after_counts(self.epsilon, measured, "a larger one")

    def template(self, answered: bool = False) -> PromptTemplate:
        """How the task is put to the model; `answered` where texts have answers, whose name stands for the label's.

        Raises:
            UsageError: a field has no name.
        """
        text, name = self.text_name.strip(), self.label_name.strip()
        if answered:
            return PromptTemplate(self.instruction, text, open_template().label, name)
        return PromptTemplate(self.instruction, text, name)

    def spec(
        self, dataset: Dataset, measured: MeasuredSizes | None = None, schema: RecordSchema | None = None
    ) -> RunSpec:
        """What these settings ask for, for a data set whose label counts were measured or else declared public.

        Raises:
            UsageError: a value is out of range.
        """
        self.epsilon_left(measured)
        outputs = None if dataset.outputs is None else Outputs(Answers(self.answers), self.answer_tokens)
        return RunSpec(
            target=PrivacyTarget(self.epsilon, self.delta),
            sizes=measured or "counted",
            template=self.template(answered=outputs is not None),
            shots=self.shots,
            mechanism=self.chosen_mechanism(),
            transform=self.chosen_transform(),
            scheme=Scheme(self.scheme),
            subsets=self.subsets,
            per_subset=1 if self.unit_rows else self.per_subset,
            unit_rows=self.unit_rows,
            tokens=self.tokens,
            best_of=1 if self.recipe.in_stages else self.best_of,
            candidates=self.candidates,
            max_record_tokens=self.max_record_tokens,
            schema=schema,
            outputs=outputs,
            **self.recipe.asked(),
        )


# What step 2's settings are called, and what they are at first, for each kind of row.


@dataclass(frozen=True)
class RowSettings:
    """For one kind of row.

    Attributes:
        shots, tokens, label_name: titles of how many are written, how long they may be, and what a label or an answer
            is called.
        lengths: how long both may be where nobody says otherwise.
    """

    shots: str = "Demonstrations"
    tokens: str = "Longest demonstration (tokens)"
    label_name: str = "Name of the label field"
    lengths: Lengths = UNLABELLED


ROW_SETTINGS = {
    Rows.TEXTS: RowSettings("Demonstrations for each label", lengths=LABELLED),
    Rows.RECORDS: RowSettings("Records to write", "Tokens of a record that your rows decide, at most", lengths=RECORDS),
    Rows.ANSWERED: RowSettings(
        tokens="Longest demonstration, with its answer (tokens)", label_name="Name of the answer field"
    ),
    Rows.ALONE: RowSettings(),
}
