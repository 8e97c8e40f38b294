"""What every single unit has paid for answers, inside one reservation of the ledger.

A unit can pay for a fixed number of answers, each of which costs a fixed (rho, delta). Whether it pays depends on the
unit, the question and earlier releases alone, never on other units. Given everybody else, a session is then an adaptive
composition of at most that many answers (Feldman and Zrnic 2021; Whitehouse et al. 2023), so that the reservation
covers it. Counting answers instead of adding rho keeps the filter exact.

On disk are keyed digests of units and how many answers each paid for: private, for this installation alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.claims import Claim
from mechanisms.accounting.fingerprint import Fingerprint
from mechanisms.accounting.ledger import PrivacyLedger
from mechanisms.errors import BudgetRefused, ReservedOtherwise
from mechanisms.privacy_events import Composed

_PAY = """
INSERT INTO paid VALUES (?, ?, 1)
ON CONFLICT DO UPDATE SET answers = answers + 1 WHERE answers < ? RETURNING 1
"""


@dataclass(frozen=True)
class Reservation:
    """What is reserved: everything that has to stay fixed while the reservation lasts.

    Attributes:
        data: the file: an edited row would be a unit that has paid nothing.
        mechanism: for the record.
        event, claim: what all answers together cost a unit at most.
        terms: the public parameters behind it, in a fixed form.
        queries: answers that a unit can pay for.
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
    def asked(self) -> int:
        """Answers charged so far; public."""
        with self._ledger.transaction() as database:
            query = "SELECT asked FROM reservations WHERE run = ?"
            return int(database.execute(query, (self._run,)).fetchone()[0])

    def charge(self, units: Iterable[str]) -> NDArray[np.bool_]:
        """Charge one answer to each of `units` (keyed digests, each once) that can still pay; durable on return.

        Returns:
            Who paid, shape (units,): the others take no part in the answer. Private.
        """
        with self._ledger.transaction() as database:
            self._count(database)
            paid = [database.execute(_PAY, (self._run, unit, self.queries)).fetchone() is not None for unit in units]
        return np.array(paid, dtype=np.bool_)

    def charge_everybody(self) -> None:
        """Charge one answer to every unit that there is or could be; durable on return.

        Raises:
            BudgetRefused: all answers of the reservation have been given.
        """
        with self._ledger.transaction() as database:
            if self._count(database) > self.queries:
                raise BudgetRefused(
                    f"All {self.queries} answers of this reservation have been given: reserve anew, which costs its "
                    "epsilon once more."
                )

    def _count(self, database: sqlite3.Connection) -> int:
        query = "UPDATE reservations SET asked = asked + 1 WHERE run = ? RETURNING asked"
        return int(database.execute(query, (self._run,)).fetchone()[0])


def reserve(ledger: PrivacyLedger, wanted: Reservation, anew: bool = False) -> IndividualFilter:
    """Go on with the reservation of the same file and terms, or make one and charge it to the ledger, once and whole.

    Args:
        ledger: where it is kept.
        wanted: what is needed.
        anew: make a new reservation although the data set has one.

    Raises:
        ReservedOtherwise: the data set's reservation is for another file or other terms, and `anew` is not set.
        BudgetRefused: the data set's cap does not allow a new one.
    """
    with ledger.transaction() as database:
        same = None if anew else _continued(database, wanted)
        if same is not None:
            return IndividualFilter(ledger, same, wanted.queries, continued=True)
        run = ledger.admit(database, wanted.data, wanted.mechanism, wanted.event, wanted.claim)
        ledger.spend_all(database, run, wanted.event)
        row = (run.number, wanted.data.content, wanted.terms, wanted.queries, 0)
        database.execute("INSERT INTO reservations VALUES (?, ?, ?, ?, ?)", row)
    return IndividualFilter(ledger, run.number, wanted.queries, continued=False)


def check_reservation(ledger: PrivacyLedger, wanted: Reservation) -> None:
    """Refuse what `reserve` would refuse unless it makes a new reservation; reserves nothing.

    Raises:
        ReservedOtherwise: the data set's reservation is for another file or other terms.
    """
    with ledger.transaction() as database:
        _continued(database, wanted)


def _continued(database: sqlite3.Connection, wanted: Reservation) -> int | None:
    """The run of the reservation to go on with; None where the data set has none at all."""
    query = "SELECT run, digest, terms FROM reservations JOIN runs ON id = run WHERE name = ? AND unit = ?"
    known = database.execute(f"{query} ORDER BY run DESC", (wanted.data.name, wanted.data.unit)).fetchall()
    same = [run for run, digest, terms in known if (digest, terms) == (wanted.data.content, wanted.terms)]
    if known and not same:
        raise ReservedOtherwise(_explanation(wanted, any(digest == wanted.data.content for _, digest, _ in known)))
    return int(same[0]) if same else None


def _explanation(wanted: Reservation, same_file: bool) -> str:
    name = wanted.data.name
    if same_file:
        reason = f"'{name}' has a reservation with other terms (mechanism, shards, questions, epsilon or labels)"
    else:
        reason = (
            f"The file differs from the one that '{name}' has a reservation for, and an edited row would count "
            "as one that has paid nothing"
        )
    return f"{reason}: reserve anew, which costs epsilon {wanted.claim.epsilon:.3g} more, or go back to what it was."
