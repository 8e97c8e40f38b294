"""Payments of single units for answers, inside one reservation of the ledger.

A unit can pay for a fixed number of answers, each of which costs a fixed (rho, delta). Whether it pays depends on the
unit, the question and earlier releases alone, never on other units. Given all other units, a session is an adaptive
composition of at most that many answers (Feldman and Zrnic 2021; Whitehouse et al. 2023), which the reservation
covers. Counting answers instead of adding rho keeps the filter exact.

The file has keyed digests of units and the number of answers that each paid for: private, for this installation only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.claims import Claim
from mechanisms.accounting.known_rows import Fingerprint
from mechanisms.accounting.ledger import PrivacyLedger, dump_events
from mechanisms.errors import BudgetRefused, ReservedOtherwise
from mechanisms.privacy_events import Composed
from mechanisms.rounding import rounded_up


@dataclass(frozen=True)
class Reservation:
    """The values that are fixed for a reservation.

    `event` bounds the cost of all answers together to a unit, `terms` are the public parameters in a fixed form, and
    `queries` is the number of answers that a unit can pay for. A reservation is for one content, because an edited row
    would be a unit that has paid nothing.
    """

    data: Fingerprint
    mechanism: str
    event: Composed
    claim: Claim
    terms: str
    queries: int


class IndividualFilter:
    """The filter of one reservation; several processes may use it at once."""

    def __init__(self, ledger: PrivacyLedger, run: int, queries: int, continued: bool) -> None:
        self._ledger, self._run = ledger, run
        self.queries, self.continued = queries, continued

    @property
    def answered(self) -> int:
        """Answers charged so far; public."""
        with self._ledger.transaction() as database:
            query = "SELECT asked FROM reservations WHERE run = ?"
            return int(database.execute(query, (self._run,)).fetchone()[0])

    def charge(self, units: Iterable[str]) -> NDArray[np.bool_]:
        """Charge one answer to each of `units` (keyed digests, each once) that can still pay; durable on return.

        Returns whether each paid, shape (units,); private. Units that did not pay take no part in the answer.
        """
        more = "UPDATE SET answers = answers + 1 WHERE answers < ? RETURNING 1"
        query = f"INSERT INTO paid VALUES (?, ?, 1) ON CONFLICT DO {more}"
        with self._ledger.transaction() as database:
            self._count(database)
            paid = [database.execute(query, (self._run, unit, self.queries)).fetchone() is not None for unit in units]
        return np.array(paid, dtype=np.bool_)

    def charge_everybody(self) -> None:
        """Charge one answer to every unit, present or not; durable on return.

        Raises:
            BudgetRefused: all answers of the reservation have been given.
        """
        with self._ledger.transaction() as database:
            if self._count(database) > self.queries:
                raise BudgetRefused(
                    f"All {self.queries} answers of this reservation have been given: make a new reservation, "
                    "which costs its epsilon again."
                )

    def _count(self, database: sqlite3.Connection) -> int:
        query = "UPDATE reservations SET asked = asked + 1 WHERE run = ? RETURNING asked"
        return int(database.execute(query, (self._run,)).fetchone()[0])


def reserve(ledger: PrivacyLedger, reservation: Reservation, anew: bool = False) -> IndividualFilter:
    """The filter of the reservation for the same file and terms, or of a new one, which is charged once; `anew` always
    makes a new one.

    Raises:
        ReservedOtherwise: the data set's reservation is for another file or other terms, and `anew` is not set.
        BudgetRefused: the data set's cap does not allow a new one.
    """
    with ledger.transaction() as database:
        same = None if anew else _continued(database, reservation)
        if same is not None:
            return IndividualFilter(ledger, same, reservation.queries, continued=True)
        run = ledger.admit(
            database, reservation.data, reservation.mechanism, reservation.event, reservation.claim
        ).number
        charges = [(run, name, dump_events(name, events)) for name, events in reservation.event]
        database.executemany("INSERT INTO charges (run, list, event) VALUES (?, ?, ?)", charges)
        database.execute("UPDATE runs SET status = 'finished' WHERE id = ?", (run,))
        row = (run, reservation.data.content, reservation.terms, reservation.queries, 0)
        database.execute("INSERT INTO reservations VALUES (?, ?, ?, ?, ?)", row)
    return IndividualFilter(ledger, run, reservation.queries, continued=False)


def _continued(database: sqlite3.Connection, reservation: Reservation) -> int | None:
    """The run of the reservation to continue; None if the data set has none.

    Raises:
        ReservedOtherwise: the data set's reservations are for another file or other terms.
    """
    query = "SELECT run, digest, terms FROM reservations JOIN runs ON id = run WHERE name = ? AND unit = ?"
    known = database.execute(f"{query} ORDER BY run DESC", (reservation.data.name, reservation.data.unit)).fetchall()
    same = [run for run, digest, terms in known if (digest, terms) == (reservation.data.content, reservation.terms)]
    if not known or same:
        return int(same[0]) if same else None
    if any(digest == reservation.data.content for _, digest, _ in known):
        reason = (
            f"'{reservation.data.name}' has a reservation with other terms "
            "(mechanism, shards, questions, epsilon or labels)"
        )
    else:
        reason = (
            f"The content of the file differs from that of the reservation of '{reservation.data.name}', and an edited "
            "row would count as one that has paid nothing"
        )
    more = rounded_up(reservation.claim.epsilon, 3)
    raise ReservedOtherwise(
        f"{reason}: make a new reservation, which costs epsilon {more} again, or restore the old one."
    )
