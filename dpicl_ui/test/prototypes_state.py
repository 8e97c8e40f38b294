"""What step 4 remembers of class prototypes: the release under way, and what was released for each data set."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, field

from dpicl_ui.data.state import Confirmed, DataState
from dpicl_ui.frame.sessions import Session, State
from mechanisms.accounting import fingerprint
from mechanisms.errors import UsageError
from mechanisms.evaluation.prototypes import ClassPrototypes, PrototypesRequest
from mechanisms.records import Dataset

_BUSY = "Class prototypes are being made: wait for them."
_THERE = "The class prototypes of this data set are there already: nothing was charged."


@dataclass(frozen=True, eq=False, repr=False)
class Order:
    """A release that was asked for, on the data set that was there then; private but for the request."""

    confirmed: Confirmed
    request: PrototypesRequest
    stop: threading.Event = field(default_factory=threading.Event)


class PrototypesState(State):
    """A release belongs to a data set's name, unit, labels and content, and is there whenever these are confirmed."""

    def __init__(self, session: Session) -> None:
        self._data = session.of(DataState)
        self._lock = threading.Lock()
        self._released: dict[Hashable, ClassPrototypes] = {}
        self._ordered: Order | None = None
        self._under_way: Order | None = None

    @property
    def released(self) -> ClassPrototypes | None:
        """The prototypes of the confirmed data set."""
        confirmed = self._data.confirmed
        return self._released.get(_key(confirmed.dataset)) if confirmed else None

    @property
    def busy(self) -> bool:
        """Whether a release is under way."""
        return self._under_way is not None

    def order(self, confirmed: Confirmed, request: PrototypesRequest) -> None:
        """Ask for a release; one that was asked for and has not begun gives way to it.

        Raises:
            UsageError: the prototypes are there already, or are being made.
        """
        with self._lock:
            if self._under_way is not None:
                raise UsageError(_BUSY)
            if _key(confirmed.dataset) in self._released:
                raise UsageError(_THERE)
            self._ordered = Order(confirmed, request)

    def begin(self) -> Order | None:
        """Take up the order; None where there is none, or where it was taken up before."""
        with self._lock:
            self._ordered, order = None, self._ordered
            if order is not None:
                self._under_way = order
            return order

    def keep(self, order: Order, released: ClassPrototypes) -> None:
        """They are released, and paid for: never again in this tab."""
        with self._lock:
            self._released[_key(order.confirmed.dataset)] = released

    def done(self) -> None:
        """The release under way has ended, well or badly."""
        with self._lock:
            self._under_way = None

    def stop(self) -> None:
        """End the release that was asked for, or is under way."""
        with self._lock:
            for order in (self._ordered, self._under_way):
                if order is not None:
                    order.stop.set()

    def close(self) -> None:
        """See `State.close`."""
        self.stop()


def _key(dataset: Dataset) -> Hashable:
    return dataset.name, dataset.unit, dataset.labels, fingerprint(dataset).content
