"""What whole runs are replayed in: a ledger that writes on the tape, a model that one unit sways as far as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from mechanisms.accounting import BudgetSnapshot, Cap, fingerprint
from mechanisms.privacy_events import Composed, PrivacyEvent
from mechanisms.records import Dataset, Record
from mechanisms.runs.events import DemoCompleted, TokenReleased
from mechanisms.runs.plan import Plan
from mechanisms.runs.run import run
from mechanisms.runs.spec import WRITE
from mechanisms.runs.stages import stages_in_order
from tests.replay import price_list
from tests.replay.tape import Charge, Shape, Tape
from tests.runs.running import OWN
from tests.toy_model import ToyModel, ToySession

UNIT, OTHER = "!", "#"
"""In the texts of the unit in question, and of all others."""
LETTERS = range(97, 109)
_RISING = 60.0 * (np.arange(128) - np.mean(LETTERS))
_LETTERS_ALIKE = np.where(np.isin(np.arange(128), LETTERS), 0.0, -50.0)
_PAID = dict.fromkeys((TokenReleased, DemoCompleted), WRITE) | {
    released: name for name, stage in stages_in_order().items() for released in stage.releases
}
"""Which stage pays for what is told."""


class Ledger:
    """A ledger in memory; what is charged stands on the tape, and what was planned is known at the end."""

    def __init__(self, tape: Tape, disclosures: tuple[str, ...] = ()) -> None:
        self.tape, self.planned, self.released = tape, (), frozenset[str]()
        self.before = BudgetSnapshot("d", "record", 0.0, 0.0, "", Cap(1.0, 1e-5), 0)
        self.rows = SimpleNamespace(
            disclosures=lambda data: disclosures, mark=lambda data, why: None, names_that_share=lambda rows: []
        )

    def begin(self, data, mechanism, event: Composed, claimed, key="") -> Ledger:
        self.planned = event.lists
        return self

    def charge(self, name: str, events: tuple[PrivacyEvent, ...], part: str = "") -> None:
        self.tape.charge(name, events, part.partition(" ")[0])

    def earlier_runs(self, data, but=""):
        return []

    def snapshot(self, *_):
        return self.before

    def finish(self) -> None:
        pass


def charged(tape: Tape) -> dict[str, tuple[PrivacyEvent, ...]]:
    """All that each list was charged."""
    lists: dict[str, tuple[PrivacyEvent, ...]] = {}
    for entry in tape.entries:
        if isinstance(entry, Charge):
            lists[entry.name] = lists.get(entry.name, ()) + entry.events
    return lists


def tell_all(events: Iterable[Any], tape: Tape) -> Any:
    """Tell a run's events; the last one."""
    last = None
    for last in events:
        if not isinstance(last, OWN):
            tape.tell(last, _PAID.get(type(last), ""))
    return last


def whole_run(plan: Plan, model: Callable[[Tape], Any], embedder: Any = None) -> Callable[[Dataset, Tape], None]:
    """A run in a world where nothing is clipped; it charges and certifies what the price list says."""
    assert [*price_list.clipped(plan)] == []

    def ran(data: Dataset, tape: Tape) -> None:
        wanted, ledger = plan.for_content(fingerprint(data).content), Ledger(tape)
        last = tell_all(run(wanted, data, model(tape), ledger, tape, embedder=embedder), tape)
        price_list.compare(ledger.planned, price_list.of_run(wanted), "what was reserved")
        price_list.compare(charged(tape).items(), price_list.of_run(wanted), "what was charged")
        price_list.compare(last.demo_set.certificate.event, price_list.with_sizes(wanted), "what is certified")

    return ran


class LeaningSession(ToySession):
    """Rows of the unit are certain of the last letter, those of others of the first; public text cannot tell."""

    def _row(self, tokens):
        text = bytes(tokens).decode("ascii", "replace")
        return _RISING if UNIT in text else -_RISING if OTHER in text else _LETTERS_ALIKE


class Leaning(ToyModel):
    """Tells the tape the shape of every batch; writes side by side as many demonstrations as `busy` rows hold.

    Each of its tokens is a whole sentence, so that every text may end where its tokens do.
    """

    def __init__(self, tape: Tape, busy: int = 10**6) -> None:
        super().__init__(busy=busy)
        self.tape = tape

    def decode(self, tokens) -> str:
        return "".join(f" w{chr(token)}." for token in tokens)

    def open(self, prefix, rows, length, room):
        super().open(prefix, rows, length, room)
        self.tape.add(Shape(len(rows), length, room, tuple(prefix)))
        return LeaningSession([[*prefix, *row] for row in rows], 1.0)


def neighbours(labels: tuple[str, ...], unit: list[Record], others: int, by_user: bool) -> tuple[Dataset, Dataset]:
    """Data sets with and without one unit, which stands last."""
    records = [
        Record(f"The {OTHER} {i} {label}", label, f"user {i}" if by_user else None)
        for i in range(others)
        for label in labels
    ]
    column = "who" if by_user else None
    return Dataset("d", labels, (*records, *unit), column), Dataset("d", labels, tuple(records), column)
