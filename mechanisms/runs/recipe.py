"""A recipe: which stages a run has, and what each of them gets of the units or of epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from mechanisms.errors import UsageError
from mechanisms.files import derived_key
from mechanisms.noise import Floats
from mechanisms.records import Columns, Dataset
from mechanisms.runs.stages import stage_names, stages_by_place
from mechanisms.sampling import copy_numbers, role_place
from mechanisms.tallies import Weighing


class Stage(StrEnum):
    """What a unit can be asked for: these, and whatever else has a file in `mechanisms/runs/stages/`."""

    _ignore_ = "_names _file"

    WRITE = "write"
    """Token by token, as `mechanisms.runs.run` does."""
    VOTE = "vote"
    """Which drafts are like me?"""
    CALIBRATE = "calibrate"
    """Which labels does the model prefer under a set?"""
    CHOOSE = "choose"
    """Which set, read with which correction, serves me best?"""
    SCORE = "score"
    """Is my label found?"""
    _names = vars()
    for _file in stage_names():
        if _file.upper() not in _names:
            _names[_file.upper()] = _file


def in_order() -> tuple[Stage, ...]:
    """All stages, in the order in which a run asks."""
    return tuple(map(Stage, stages_by_place()))


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
        return tuple(stage for stage in in_order() if stage in self.shares)


# The units of each stage: all of them, or those whose role it is.


def divide(dataset: Dataset, recipe: Recipe) -> Mapping[Stage, Dataset]:
    """What each stage may read.

    With roles the parts are disjoint in their units, and no unit's part depends on who else is there. They carry no
    witnesses: only the whole data set has a fingerprint and a ledger. What the shares leave over is in no part.

    Args:
        dataset: private, and whole: a record's role depends on how many rows before say the same.
        recipe: public.
    """
    if recipe.division is Division.EPSILON:
        return dict.fromkeys(recipe.stages, dataset)
    rows = Columns.of(dataset.records)
    places = _places(rows, dataset.by_user)
    parts = {}
    for stage, (low, high) in intervals(recipe).items():
        mine = (low <= places) & (places < high)
        parts[stage] = Dataset(dataset.name, dataset.labels, rows.of_rows(mine), dataset.user_column)
    return parts


def intervals(recipe: Recipe) -> dict[Stage, tuple[float, float]]:
    """The places [low, high) in [0, 1) of each stage: in their order from 0, but for the scorers.

    These have the last ones, so that nobody who scored writes or votes later because another share has changed.
    """
    end = 1.0 - recipe.shares.get(Stage.SCORE, 0.0)
    found: dict[Stage, tuple[float, float]] = {}
    low = 0.0
    for stage in recipe.stages:
        if stage is Stage.SCORE:
            found[stage] = (end, 1.0)
        else:
            # Shares that add up to a rounding error more than 1 must not give anybody two roles.
            high = min(end, low + recipe.shares[stage])
            found[stage] = (low, high)
            low = high
    return found


def _places(rows: Columns, by_user: bool) -> Floats:
    """Every row's place: its user's, or its own."""
    key = derived_key("roles")
    if by_user:
        of_user = {user: role_place(key, [user]) for user in dict.fromkeys(rows.units)}
        return np.fromiter(map(of_user.__getitem__, rows.units), np.float64, len(rows))
    copies = copy_numbers(zip(rows.texts, rows.labels, strict=True))
    identities = zip(rows.texts, rows.labels, map(str, copies), strict=True)
    return np.fromiter((role_place(key, identity) for identity in identities), np.float64, len(rows))
