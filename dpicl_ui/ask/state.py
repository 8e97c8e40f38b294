"""The state of "Ask privately": the stage of a reservation, the open session, and the answers."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpicl_ui.data.state import Columns, DataState
from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.frame.step_bar import Gate
from mechanisms.answers.events import AnswerReleased, AnswersOpened
from mechanisms.answers.request import AnswerRequest
from mechanisms.answers.session import AnswerSession
from mechanisms.errors import UsageError
from mechanisms.inference import Embedder
from mechanisms.records import Dataset

# Embeddings of a tab's rows: computed a few at a time, so that a page can show progress, and kept in memory only.

_AT_ONCE = 16
"""Texts between two reports: about a tenth of a second."""


class RowVectors:
    """An `Embedder` with a memory: a text's vector depends on that text alone. Private."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self._embedder = embedder
        self._known: dict[str, NDArray[np.float32]] = {}

    def learn(self, texts: Iterable[str]) -> Iterator[tuple[int, int]]:
        """Embed and store new texts, a few at a time; yields how many of how many are done."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            self._known.update(zip(some, self._embedder.embed(some), strict=True))
            yield start + len(some), len(new)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Embedder.embed`; texts that were not learned are embedded and not stored."""
        if len(texts) == 1:  # a question: the time it takes must not tell whether a row says the same
            return self._embedder.embed(texts)
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for i, text in enumerate(texts):
            found[i] = self._known[text] if text in self._known else self._embedder.embed([text])[0]
        return found


# The reservation and its answers.
#
# A reservation is made in three strides, each in a handler of its own: its rows are read (minutes), a model is
# waited for, and the ledger is charged. Between them the curator may stop, choose other data or close the tab. Each
# reservation has a ticket, and every transition shows it: what was overtaken is refused.

_CHANGED = "The data of step 1 has changed. Nothing was charged: reserve again."
_LOST = (
    "The data of step 1 has changed. The ledger keeps the reservation: open the earlier file again to ask questions "
    "from it."
)
_STOPPED = "Stopped. Nothing was charged. To go on, press the button again."
_BUSY = "A reservation is being made: wait for it."


@dataclass(frozen=True, eq=False, repr=False)
class Order:
    """A requested reservation. Private, except for the request.

    Attributes:
        columns: what `dataset` was made from.
        anew: pay again, although the data set has a reservation.
    """

    columns: Columns
    dataset: Dataset
    request: AnswerRequest
    anew: bool


@dataclass(frozen=True, eq=False, repr=False)
class Open:
    """An open reservation and its terms; `changing` while other terms are tried."""

    asking: AnswerSession
    terms: str
    changing: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Idle:
    """No reservation is being made. `open` is the one that was made last, in every state.

    Attributes:
        otherwise: the ledger holds a reservation under other terms, so the next one has to be paid again.
    """

    open: Open | None = None
    otherwise: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Underway:
    """A reservation is being made."""

    open: Open | None
    ticket: int
    order: Order


class Preparing(Underway):
    """The rows of an order are being read. Nothing is charged."""


class Prepared(Underway):
    """The rows are read. Nothing is charged."""


class Opening(Underway):
    """The ledger is being charged: too late to stop."""


Answers = tuple[tuple[AnswersOpened, AnswerReleased], ...]
Stage = Idle | Underway
U = TypeVar("U", bound=Underway)


class AskState(State):
    """The stage belongs to the columns that it was reached with; with others it is `Idle()`."""

    def __init__(self, session: Session) -> None:
        self._data = session.of(DataState)
        self._lock = threading.Lock()
        self._reached: tuple[Columns | None, Stage] = None, Idle()
        self._vectors: tuple[Columns, RowVectors] | None = None
        self._tickets = 0
        self._beats = 0
        self.answers: Answers = ()
        """What was asked in this tab, oldest first; it stays when the data changes, because it was released."""

    @property
    def stage(self) -> Stage:
        """The stage of a reservation on the present data."""
        columns, stage = self._reached
        return stage if columns is self._data.columns else Idle()

    @property
    def open(self) -> Open | None:
        """The open reservation."""
        return self.stage.open

    def prepare(self, order: Order) -> int:
        """Begin a reservation; returns its ticket. It replaces one that is not being charged yet.

        Raises:
            UsageError: the data changed since the order, or a reservation is being charged.
        """
        with self._lock:
            stage = self.stage
            if order.columns is not self._data.columns:
                raise UsageError(_CHANGED)
            if isinstance(stage, Opening):
                raise UsageError(_BUSY)
            self._tickets += 1
            self._reach(order.columns, Preparing(stage.open, self._tickets, order))
            return self._tickets

    def check(self, ticket: int) -> None:
        """Refuse a reservation that was stopped or overtaken.

        Raises:
            UsageError: with the reason.
        """
        self._of(ticket, Preparing)

    def prepared(self, ticket: int) -> None:
        """Store that its rows are read.

        Raises:
            UsageError: it was stopped or replaced.
        """
        with self._lock:
            at = self._of(ticket, Preparing)
            self._reach(at.order.columns, Prepared(at.open, ticket, at.order))

    def begin(self, ticket: int) -> Order:
        """Store that its charge begins; returns the order.

        Raises:
            UsageError: it was stopped or replaced.
        """
        with self._lock:
            at = self._of(ticket, Prepared)
            self._reach(at.order.columns, Opening(at.open, ticket, at.order))
            return at.order

    def opened(self, ticket: int, asking: AnswerSession) -> None:
        """Store that it is charged; questions are paid from it from now on.

        Raises:
            UsageError: the data changed. The ledger keeps the reservation for the old data.
        """
        with self._lock:
            at = self._of(ticket, Opening, _LOST)
            self._reach(at.order.columns, Idle(Open(asking, at.order.request.terms())))

    def give_up(self, ticket: int) -> None:
        """Store that it failed; without effect if it was replaced."""
        with self._lock:
            stage = self.stage
            if isinstance(stage, Underway) and stage.ticket == ticket:
                self._reach(stage.order.columns, Idle(stage.open))

    @contextmanager
    def underway(self, ticket: int) -> Iterator[None]:
        """Give up where the block fails, or is left because the tab is closed."""
        try:
            yield
        except BaseException:
            self.give_up(ticket)
            raise

    def stop(self) -> None:
        """Stop a reservation that is not charged yet."""
        with self._lock:
            stage = self.stage
            if isinstance(stage, Preparing | Prepared):
                self._reach(stage.order.columns, Idle(stage.open))

    def refused(self, columns: Columns) -> None:
        """Store that the ledger has a reservation under other terms; a new one is then offered."""
        with self._lock:
            stage = self.stage
            if columns is self._data.columns and isinstance(stage, Idle):
                self._reach(columns, Idle(stage.open, otherwise=True))

    def reconsider(self) -> None:
        """Try other terms while a reservation is open."""
        with self._lock:
            columns, stage = self._reached
            if stage.open is not None and columns is self._data.columns:
                self._reach(columns, replace(stage, open=replace(stage.open, changing=True)))

    def answered(self, asking: AnswerSession, released: AnswerReleased) -> None:
        """Add an answer."""
        with self._lock:
            self.answers = (*self.answers, (asking.opened, released))

    def vectors(self, columns: Columns, embedder: Embedder) -> RowVectors:
        """The known embeddings of a file's rows; as private as the rows."""
        with self._lock:
            if self._vectors is None or self._vectors[0] is not columns:
                self._vectors = columns, RowVectors(embedder)
            return self._vectors[1]

    def beat(self) -> int:
        """A number that is new in this tab."""
        with self._lock:
            self._beats += 1
            return self._beats

    def close(self) -> None:
        """See `State.close`."""
        self.stop()

    def _reach(self, columns: Columns | None, stage: Stage) -> None:
        self._reached = columns, stage

    def _of(self, ticket: int, kind: type[U], changed: str = _CHANGED) -> U:
        """The stage of a ticket's reservation, if it is the one under way and has come just as far as `kind`."""
        columns, stage = self._reached
        if columns is not self._data.columns:
            raise UsageError(changed)
        if type(stage) is not kind or stage.ticket != ticket:
            raise UsageError(_STOPPED)
        return stage


def gate(session: Session) -> Gate:
    """Open with a file whose columns make sense."""
    if session.of(DataState).columns is None:
        return Gate("Bring a file in step 1 first, and say what its columns mean. Nothing has to be generated.")
    return Gate()
