"""A recipe: which stages a run has, and what each of them gets of the units or of epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mechanisms.errors import UsageError
from mechanisms.tallies import Weighing


class Stage(StrEnum):
    """What a unit can be asked for, in the order in which a run asks."""

    WRITE = "write"
    """Token by token, as `mechanisms.studio.synthesis` does."""
    VOTE = "vote"
    """Which drafts are like me?"""
    CALIBRATE = "calibrate"
    """Which labels does the model prefer under a set?"""
    CHOOSE = "choose"
    """Which set, read with which correction, serves me best?"""
    SCORE = "score"
    """Is my label found?"""


class Division(StrEnum):
    """What the stages share."""

    ROLES = "roles"
    """Units: each has one role, fixed by a keyed digest, so that stages compose in parallel."""
    EPSILON = "epsilon"
    """Epsilon: every unit takes part in every stage, and the stages compose in sequence."""


class Kind(StrEnum):
    """Where demonstrations come from."""

    TOKENS = "tokens"
    VOTE = "vote"
    BOTH = "both"


_NEEDED = {Kind.TOKENS: {Stage.WRITE}, Kind.VOTE: {Stage.VOTE}, Kind.BOTH: {Stage.WRITE, Stage.VOTE}}
_MOST_DRAFTS, _MOST_ROUNDS, MOST_SETS = 256, 4, 8
_SUM_SLACK = 1e-9


@dataclass(frozen=True)
class Recipe:
    """Public; the presets are "vote on drafts", "token by token" and "both".

    Attributes:
        kind: where demonstrations come from.
        division: what the stages share.
        shares: of each stage that takes part, in (0, 1], at most 1 together. With roles what is left over is nobody's.
        drafts: J, public drafts of each label that stand in a ballot.
        rounds: ballots of the vote; later drafts are written with the winners before in the prompt.
        sets: sets of winners that stand in the choice, beside none and public only.
        weighing: what counts the same where units fit, choose and score.
    """

    kind: Kind
    division: Division
    shares: Mapping[Stage, float]
    drafts: int = 32
    rounds: int = 1
    sets: int = 3
    weighing: Weighing = Weighing.ROWS

    def __post_init__(self) -> None:
        for name, most in (("drafts", _MOST_DRAFTS), ("rounds", _MOST_ROUNDS), ("sets", MOST_SETS - 2)):
            if not 1 <= getattr(self, name) <= most:
                raise UsageError(f"{name} must lie between 1 and {most}.")
        if not all(math.isfinite(share) and 0 < share <= 1 for share in self.shares.values()):
            raise UsageError("Every stage's share must lie in (0, 1]: leave out a stage that gets none.")
        if sum(self.shares.values()) > 1 + _SUM_SLACK:
            raise UsageError("The stages' shares add up to more than 1.")
        if missing := sorted(_NEEDED[self.kind] - set(self.shares)):
            raise UsageError(f"The recipe '{self.kind}' needs a share for the stage '{missing[0]}'.")
        if foreign := sorted({Stage.WRITE, Stage.VOTE} & set(self.shares) - _NEEDED[self.kind]):
            raise UsageError(f"The recipe '{self.kind}' has no stage '{foreign[0]}'.")
        if Stage.CHOOSE in self.shares and Stage.CALIBRATE not in self.shares:
            raise UsageError("The stage 'choose' needs the stage 'calibrate' before it.")

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that take part, in their order."""
        return tuple(stage for stage in Stage if stage in self.shares)
