"""The roles of units in a run: which stage each unit takes part in, by its keyed place.

With roles, no unit is in two parts, and a unit's part does not depend on the other units.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mechanisms.accounting import EarlierRun, Fingerprint, PrivacyLedger
from mechanisms.data.sizes import COUNTING
from mechanisms.files import derived_key
from mechanisms.noise import Floats
from mechanisms.records import Columns, Dataset
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import SCORE
from mechanisms.sampling import copy_numbers, role_place


def divide(dataset: Dataset, plan: Plan) -> Mapping[str, Dataset]:
    """The rows that each stage may read. Among equal rows, a row's role depends on how many of them precede it.

    With roles, no unit is in two parts, and a unit's part does not depend on the other units. If the shares sum to less
    than 1, the remaining units are in no part. Only the whole data set has a fingerprint and a ledger.
    """
    return divided(dataset, plan.shares) if plan.by_roles else dict.fromkeys(plan.stages, dataset)


def divided(dataset: Dataset, shares: Mapping[str, float]) -> dict[str, Dataset]:
    """The rows of each role, for shares in the order of the stages."""
    rows = Columns.of(dataset.records)
    places = _places(rows, dataset.by_user)
    parts = {}
    for stage, (low, high) in intervals(shares).items():
        mine = (low <= places) & (places < high)
        parts[stage] = Dataset(dataset.name, dataset.labels, rows.of_rows(mine), dataset.user_column)
    return parts


def intervals(shares: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """The interval [low, high) in [0, 1) of each stage. Intervals start at 0, in the order of the stages.

    The scoring stage is the exception: its interval is the last one, up to 1. So a unit that scored in one run does not
    write or vote in a later run because another share has changed.
    """
    end = 1.0 - shares.get(SCORE, 0.0)
    found: dict[str, tuple[float, float]] = {}
    low = 0.0
    for stage, share in shares.items():
        if stage == SCORE:
            found[stage] = (end, 1.0)
        else:
            # Rounding may bring the sum of the shares slightly above 1; no unit may get two roles from that.
            high = min(end, low + share)
            found[stage] = (low, high)
            low = high
    return found


def _places(rows: Columns, by_user: bool) -> Floats:
    """Each row's place in [0, 1), shape (rows,): its user's place if the unit is a user, else its own."""
    key = derived_key("roles")
    if by_user:
        of_user = {user: role_place(key, [user]) for user in dict.fromkeys(rows.users)}
        return np.fromiter(map(of_user.__getitem__, rows.users), np.float64, len(rows))
    copies = copy_numbers(zip(rows.texts, rows.labels, strict=True))
    identities = zip(rows.texts, rows.labels, map(str, copies), strict=True)
    return np.fromiter((role_place(key, identity) for identity in identities), np.float64, len(rows))


def earlier_runs(data: Fingerprint, ledger: PrivacyLedger, but: str = "") -> list[EarlierRun]:
    """Earlier runs in the ledger, except measurements of label counts, in which rows have no roles.

    `but` is the ledger's key of a run to leave out.
    """
    return [run for run in ledger.earlier_runs(data, but) if not run.mechanism.startswith(COUNTING)]
