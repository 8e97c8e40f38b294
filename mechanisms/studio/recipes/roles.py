"""The units of each stage: all of them, or those whose role it is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mechanisms.home import derived_key
from mechanisms.noise import Floats
from mechanisms.records import Columns, Dataset
from mechanisms.sampling import copy_numbers, role_place
from mechanisms.studio.recipes.recipe import Division, Recipe, Stage


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
