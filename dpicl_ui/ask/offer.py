"""The offer of "Ask privately": a reservation is prepared, stopped and opened from here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import gradio as gr

from dpicl_ui.ask.cards import waiting
from dpicl_ui.ask.form import AskForm
from dpicl_ui.ask.state import AskState, Order, Prepared
from dpicl_ui.data.rows import Rows
from dpicl_ui.data.state import Columns, DataState
from dpicl_ui.frame.cards import budget, progress
from dpicl_ui.frame.embedder_loader import EmbedderLoader
from dpicl_ui.frame.guard import MODEL, PRIVATE, guarded
from dpicl_ui.frame.ledgers import Ledgers
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Sessions
from dpicl_ui.frame.step_bar import StepBar
from dpicl_ui.frame.tree import Tree, el, panel
from mechanisms.answers.request import AnswerRequest
from mechanisms.answers.session import check_terms, open_session
from mechanisms.data.columns import to_dataset
from mechanisms.errors import DataError, ReservedOtherwise, UsageError
from mechanisms.queries import Retrieval
from mechanisms.records import Dataset

EMBED: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "embed"}
"""Arguments of handlers that take turns at the embedding model, and at the language model."""
_NOTHING_TO_ANSWER = (
    "Questions are answered from texts with labels or with answers: records, and texts alone, do not answer any of "
    "them."
)
_INTERVAL = 0.3
"""Least seconds between two updates of the progress bar."""


class Offer:
    """Components and handlers of the card. What it may do next is said by `AskState` alone."""

    def __init__(
        self, sessions: Sessions, ledgers: Ledgers, loader: ModelLoader, embedder: EmbedderLoader, bar: StepBar
    ) -> None:
        self._sessions, self._ledgers, self._loader, self._bar = sessions, ledgers, loader, bar
        self._embedder = embedder
        self.outcome = panel(*waiting(), elem_id="ask-outcome")
        self.notice = panel(elem_id="ask-offer-notice")
        self.progress = panel(elem_id="ask-progress")
        self.reserve = gr.Button("Reserve and start", variant="primary", elem_id="ask-reserve")
        self.anew = gr.Button("Pay again: reserve anew", visible=False, elem_id="ask-anew")
        self.stop = gr.Button("Stop", variant="stop", visible=False, elem_id="ask-stop")

    def wire(self, inputs: list[Any], asked: gr.HTML, spent: gr.HTML) -> list[gr.events.Dependency]:
        """Connect to all inputs; gives the events after which a reservation is open, or was not to be had.

        Args:
            inputs: name, labels, whether these are public, threshold, and the form.
            asked: the notice beside the questions, cleared for a new reservation.
            spent: the ledger's card.
        """
        self._asked, self._spent = asked, spent
        working = [self.notice, self.progress, self.reserve, self.anew, self.stop]
        self.stop.click(self._stop, None, self.stop, queue=False, **PRIVATE)
        return [
            button.click(
                guarded(self.notice, self._idle)(self._preparing(anew)), inputs, working, **EMBED, **PRIVATE
            ).then(
                guarded(self.notice, self._idle)(self._open),
                None,
                [*working, asked, spent, self._bar.html],
                **MODEL,
                **PRIVATE,
            )
            for button, anew in ((self.reserve, False), (self.anew, True))
        ]

    def _preparing(self, anew: bool) -> Any:
        def prepare(
            request: gr.Request, name: str, labels: list[str], public: bool, _threshold: float, *form: Any
        ) -> Iterator[dict[Any, Any]]:
            """Embed the rows: minutes for a large file. Nothing is charged yet."""
            session = self._sessions.of(request)
            state, columns = session.of(AskState), session.of(DataState).columns
            if columns is None:
                raise UsageError("Choose a file and its columns in step 1 first.")
            wanted = request_of(columns, labels, AskForm.read(*form))
            order = Order(columns, _dataset(columns, name, wanted, public), wanted, anew)
            if not anew:
                self._check_terms(state, order, request)
            ticket = state.prepare(order)
            try:
                yield self._busy([el("p.spinner", "Waiting for the embedding model …", role="status")])
                yield from self._learning(state, ticket, order)
                state.prepared(ticket)
            except BaseException:  # the tab that is closed included
                state.give_up(ticket)
                raise

        return prepare

    def _check_terms(self, state: AskState, order: Order, request: gr.Request) -> None:
        try:
            check_terms(order.dataset, order.request, self._ledgers.of(request))
        except ReservedOtherwise:
            state.refused(order.columns)
            raise

    def _learning(self, state: AskState, ticket: int, order: Order) -> Iterator[dict[Any, Any]]:
        vectors, shown = state.vectors(order.columns, self._embedder.embedder()), 0.0
        labels, records = order.request.labels, order.dataset.records
        for done, total in vectors.learn(each.text for each in records if not labels or each.label in labels):
            state.check(ticket)
            if time.monotonic() - shown > _INTERVAL:
                shown = time.monotonic()
                yield {self.progress: progress(done, total, f"{done / total:.0%} of the rows read")}

    def _open(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
        """Reserve the price in the ledger, and open the questions."""
        session = self._sessions.of(request)
        state = session.of(AskState)
        stage = state.stage
        if not isinstance(stage, Prepared):
            return
        ticket = stage.ticket
        try:
            needed = stage.order.request.retrieval is not Retrieval.LABELS_ONLY
            if needed and not self._loader.settled:
                yield self._busy([el("p.spinner", "Waiting for the language model …", role="status")])
            model = self._loader.model() if needed else None
            order = state.begin(ticket)
            yield self._busy([el("p.spinner", "Reserving …", role="status")])
            vectors, ledger = state.vectors(order.columns, self._embedder.embedder()), self._ledgers.of(request)
            asking = open_session(order.dataset, order.request, vectors, model, ledger, anew=order.anew)
            state.opened(ticket, asking)
        except BaseException:
            state.give_up(ticket)
            raise
        yield {
            self.notice: [],
            self._asked: [],
            self._spent: budget(asking.opened.budget),
            self._bar.html: self._bar.value(session),
        }

    def _busy(self, shown: list[Tree]) -> dict[Any, Any]:
        return {
            self.notice: [],
            self.progress: shown,
            self.reserve: gr.Button(interactive=False),
            self.anew: gr.Button(interactive=False),
            self.stop: gr.Button("Stop", visible=True, interactive=True),
        }

    def _idle(self) -> dict[Any, Any]:
        return {
            self.progress: [],
            self.reserve: gr.Button(interactive=True),
            self.anew: gr.Button(interactive=True),
            self.stop: gr.Button(visible=False),
        }

    def _stop(self, request: gr.Request) -> Any:
        self._sessions.of(request).of(AskState).stop()
        return gr.Button("Stopping …", interactive=False)


def request_of(columns: Columns, labels: list[str], form: AskForm) -> AnswerRequest:
    """What the settings describe for a file; see `AskForm.request`.

    Raises:
        UsageError: its rows have nothing to answer with.
    """
    if columns.rows in (Rows.RECORDS, Rows.ALONE):
        raise UsageError(_NOTHING_TO_ANSWER)
    return form.request(tuple(sorted(labels)), columns.by_user, columns.file.field_names)


def _dataset(columns: Columns, name: str, wanted: AnswerRequest, public: bool) -> Dataset:
    """The data set that is asked, by its name in the ledger; of votes, under the labels that become public."""
    if not name.strip():
        raise DataError("Give the data set a name in step 1: the ledger keeps what it has spent under it.")
    if wanted.labels and not public:
        raise DataError("Confirm that the label names become public.")
    return to_dataset(*columns.asked, name.strip(), wanted.labels)
