"""What the ledger says of a data set: what was spent of its cap, and over which runs."""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.accounting.filter import Cap, Spend
from mechanisms.privacy_events import Composed


@dataclass(frozen=True)
class BudgetSnapshot:
    """What a data set has spent of its cap, by the smallest valid bound, and over how many runs.

    Attributes:
        marks: what was done under this name that has no cost, such as showing clean values: acts of the curator's, and
            nothing that follows from which rows there are.
    """

    name: str
    unit: str
    epsilon: float
    delta: float
    bound: str
    cap: Cap
    runs: int
    marks: tuple[str, ...] = ()

    @property
    def remaining(self) -> float:
        """Epsilon left under the cap."""
        return max(0.0, self.cap.epsilon - self.epsilon)


@dataclass(frozen=True)
class RecordedRun:
    """A run as the ledger holds it.

    Attributes:
        started: when it was reserved, in ISO 8601.
        mechanism: what it was, for the record.
        event, epsilon, delta: what it planned, and its claim.
        finished: whether it has ended by itself; one that was cut off never does.
        counted: what it costs; None where nothing was released.
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
    """A data set's runs, oldest first, and every cap that it has had, oldest first, each with when it was set."""

    snapshot: BudgetSnapshot
    runs: tuple[RecordedRun, ...]
    caps: tuple[tuple[str, Cap], ...]

    @property
    def spends(self) -> tuple[Spend, ...]:
        """What counts."""
        return tuple(run.counted for run in self.runs if run.counted is not None)
