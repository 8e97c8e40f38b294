"""The account of a data set: its cap and what its runs have spent, as values, in words and as a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from mechanisms.accounting.filter import Cap, Spend, Usage, usages
from mechanisms.files import safe
from mechanisms.privacy_events import (
    ZCDP,
    Approximate,
    Composed,
    Gaussian,
    Laplace,
    Poisson,
    PrivacyEvent,
    Pure,
    Repeat,
    SequentialComposition,
)
from mechanisms.rounding import rounded_down, rounded_up


@dataclass(frozen=True)
class BudgetSnapshot:
    """The budget of a data set.

    Attributes:
        name, unit: the data set's name in the ledger, and its privacy unit.
        epsilon, delta: the smallest valid bound on what all runs have spent.
        bound: the name of that bound.
        cap: the most that all runs together may spend.
        runs: the number of runs.
        disclosures: the curator's acts under this name that showed values without noise and cost no epsilon.
    """

    name: str
    unit: str
    epsilon: float
    delta: float
    bound: str
    cap: Cap
    runs: int
    disclosures: tuple[str, ...] = ()

    @property
    def remaining(self) -> float:
        """The remaining epsilon under the cap; 0 if the runs have spent more."""
        return max(0.0, self.cap.epsilon - self.epsilon)

    def to_json(self) -> dict[str, Any]:
        """The budget as JSON values; `disclosures` are called `marks` there."""
        return {"marks" if name == "disclosures" else name: value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class RecordedRun:
    """A run in the ledger.

    Attributes:
        started: the time in ISO 8601.
        event, epsilon, delta: the planned releases of the run, and the claim for them.
        finished: False for a run that is active or was interrupted.
        counted: the cost in the ledger's sum; None if the run released nothing.
    """

    started: str
    mechanism: str
    event: Composed
    epsilon: float
    delta: float
    finished: bool
    counted: Spend | None


@dataclass(frozen=True)
class Account:
    """A data set's budget and its runs, oldest first."""

    snapshot: BudgetSnapshot
    runs: tuple[RecordedRun, ...]


_KINDS = {"label": "labels", "role": "roles"}


def in_words(event: Composed) -> str:
    """The releases of a run in words; equal event lists share one part of the sentence."""
    named: dict[tuple[PrivacyEvent, ...], list[str]] = {}
    for name, events in event:
        named.setdefault(events, []).append(name)
    parts = [(names, ", then ".join(map(_words, events))) for events, names in named.items()]
    if event.per == "dataset" and len(parts) == 1:
        return parts[0][1]
    return "; ".join(f"{_who(names, event)}: {words}" for names, words in parts)


def _who(names: list[str], event: Composed) -> str:
    if len(names) <= 4:  # named one by one
        return ", ".join(names)
    return f"{'each' if len(names) == len(event.lists) else 'others'} of {len(names)} {_KINDS.get(event.per, 'lists')}"


def _words(event: PrivacyEvent) -> str:
    match event:
        case Gaussian(multiplier):
            return f"Gaussian noise of {rounded_down(multiplier, 4)} times the sensitivity"
        case Laplace(scale):
            return f"Laplace noise of {rounded_down(scale, 4)} times the sensitivity"
        case Pure(epsilon, count):
            return f"{'a step' if count == 1 else f'{count} steps'} of epsilon {rounded_up(epsilon, 4)}"
        case ZCDP(rho):
            return f"a release of rho {rounded_up(rho, 4)} (zCDP)"
        case Approximate(delta):
            return f"a failure of probability {rounded_up(delta, 2)}"
        case Poisson(rate, of):
            return f"{_words(of)} on a sample that each unit joins with probability {rounded_up(rate, 3)}"
        case Repeat(count, of):
            return f"{count} times ({_words(of)})"
        case SequentialComposition(of):
            return " and ".join(_words(each) for each in of)


COLUMNS = (
    "started", "data_set", "unit", "run", "releases", "state", "epsilon", "delta", "joint_epsilon", "joint_delta",
    "joint_bound", "cap_epsilon", "cap_delta", "epsilon_left", "known_besides",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A run, with the budget that all runs up to it use of the current cap."""

    run: RecordedRun
    after: Usage


def lines(account: Account) -> list[Line]:
    """The runs of an account, the oldest first, each with the budget used up to it."""
    cap = account.snapshot.cap
    known = iter(usages((run.counted for run in account.runs if run.counted is not None), cap))
    found, after = [], Usage(0.0, 0.0, "no run", True)
    for run in account.runs:
        after = next(known) if run.counted is not None else after
        found.append(Line(run, after))
    return found


def state(run: RecordedRun) -> str:
    """The state of a run in words, and what it means for its cost."""
    if run.counted is None:
        return "nothing was released: costs nothing"
    return "finished" if run.finished else "active or interrupted: counts in full"


def as_csv(account: Account) -> str:
    """The account as a CSV table with the columns `COLUMNS`; no spreadsheet interprets a cell as a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    writer.writerows(_cells(account))
    return out.getvalue()


def _cells(account: Account) -> Iterator[list[str]]:
    snapshot = account.snapshot
    for line in lines(account):
        run, after = line.run, line.after
        words = (run.started, snapshot.name, snapshot.unit, run.mechanism, in_words(run.event), state(run))
        left = max(0.0, snapshot.cap.epsilon - after.epsilon)
        cost = (run.epsilon, run.delta) if run.counted is not None else (0.0, 0.0)
        numbers = (*cost, after.epsilon, after.delta, snapshot.cap.epsilon, snapshot.cap.delta, left)
        shown = [repr(float(each)) for each in numbers]
        yield [*map(safe, words), *shown[:4], after.bound, *shown[4:], safe("; ".join(snapshot.disclosures))]
