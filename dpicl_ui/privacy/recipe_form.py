"""The part of step 2's settings that says which stages a run has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpicl_ui.data.rows import Rows
from dpicl_ui.frame.numbers import number, whole
from mechanisms.runs.recipe import Division, Kind, Stage

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
