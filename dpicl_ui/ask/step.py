"""The place beside the steps: private answers to questions about the file of step 1."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import gradio as gr

from dpicl_ui.ask.cards import effect_card, history, nearest, promise, refused, reserved, waiting
from dpicl_ui.ask.form import AskForm, AskSettings
from dpicl_ui.ask.state import Answers, AskState, Idle, Open, Order, Prepared
from dpicl_ui.data.state import Columns, DataState, Rows
from dpicl_ui.data.step import DataStep
from dpicl_ui.frame.guard import ACCOUNTING, MODEL, PRIVATE, guarded
from dpicl_ui.frame.job import Passing, Updates, paced, reached
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import Tree, budget, el, notice, panel, spinner
from dpicl_ui.generate.state import GenerateState
from mechanisms.answers.events import AnswerReleased
from mechanisms.answers.odds import THRESHOLDS, ThresholdEffect, threshold_effect_on_example
from mechanisms.answers.request import AnswerRequest
from mechanisms.answers.session import check_terms, open_session
from mechanisms.data.columns import to_dataset
from mechanisms.data.sources import EXAMPLES
from mechanisms.errors import DataError, ReservedOtherwise, StudioError, UsageError
from mechanisms.queries import Retrieval
from mechanisms.records import Dataset, privacy_unit
from mechanisms.rounding import rounded_up

# The offer of "Ask privately": a reservation is prepared, stopped and opened from here.

EMBED: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "embed"}
"""Arguments of handlers that take turns at the embedding model, and at the language model."""
_NOTHING_TO_ANSWER = (
    "Questions are answered from texts with labels or with answers: records, and texts alone, do not answer any of "
    "them."
)


class Offer:
    """Components and handlers of the card. What it may do next is said by `AskState` alone."""

    def __init__(self, app: Services) -> None:
        self._app = app
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
                [*working, asked, spent, self._app.bar.html],
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
            session = self._app.session(request)
            state, columns = session.of(AskState), session.of(DataState).columns
            if columns is None:
                raise UsageError("Choose a file and its columns in step 1 first.")
            wanted = request_of(columns, labels, AskForm.read(*form))
            order = Order(columns, _dataset(columns, name, wanted, public), wanted, anew)
            if not anew:
                self._check_terms(state, order, request)
            ticket = state.prepare(order)
            with state.underway(ticket):
                yield self._busy(spinner("Waiting for the embedding model …"))
                yield from paced(self._learning(state, ticket, order))
                state.prepared(ticket)

        return prepare

    def _check_terms(self, state: AskState, order: Order, request: gr.Request) -> None:
        try:
            check_terms(order.dataset, order.request, self._app.ledger(request))
        except ReservedOtherwise:
            state.refused(order.columns)
            raise

    def _learning(self, state: AskState, ticket: int, order: Order) -> Generator[Updates | Passing]:
        vectors = state.vectors(order.columns, self._app.embedder.embedder())
        labels, records = order.request.labels, order.dataset.records
        for done, total in vectors.learn(each.text for each in records if not labels or each.label in labels):
            state.check(ticket)
            yield reached(self.progress, done, total, f"{done / total:.0%} of the rows read")

    def _open(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
        """Reserve the price in the ledger, and open the questions."""
        session = self._app.session(request)
        state = session.of(AskState)
        stage = state.stage
        if not isinstance(stage, Prepared):
            return
        ticket = stage.ticket
        with state.underway(ticket):
            needed = stage.order.request.retrieval is not Retrieval.LABELS_ONLY
            if needed and not self._app.loader.settled:
                yield self._busy(spinner("Waiting for the language model …"))
            model = self._app.loader.model() if needed else None
            order = state.begin(ticket)
            yield self._busy(spinner("Reserving …"))
            vectors, ledger = state.vectors(order.columns, self._app.embedder.embedder()), self._app.ledger(request)
            asking = open_session(order.dataset, order.request, vectors, model, ledger, anew=order.anew)
            state.opened(ticket, asking)
        yield {
            self.notice: notice(order.columns.left_out(order.request.labels).sentence, "warn"),
            self._asked: [],
            self._spent: budget(asking.opened.budget),
            **self._app.steps(session),
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
        self._app.session(request).of(AskState).stop()
        return gr.Button("Stopping …", interactive=False)


def request_of(columns: Columns, labels: list[str], form: AskForm) -> AnswerRequest:
    """The request that the settings describe for a file; see `AskForm.request`.

    Raises:
        UsageError: its rows have no answers.
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
    columns.check_left_out(wanted.labels)
    return to_dataset(*columns.asked, name.strip(), wanted.labels)


# The place itself.

_QUESTIONS_PUBLIC = "Questions are not protected, and count as public: do not paste in anything from the private rows."


class AskStep:
    """Components and handlers of "Ask privately"."""

    def __init__(
        self,
        app: Services,
        data: DataStep,
    ) -> None:
        self._app = app
        self._effects: tuple[ThresholdEffect, ...] = ()
        with app.bar.panel(6), gr.Row(elem_classes="split"):
            with gr.Column(scale=6, min_width=300):
                with gr.Column(visible=False) as self.asking:
                    self._build_question()
                with gr.Column() as self.setup:
                    self.settings = AskSettings()
                with gr.Column(elem_classes="card"):
                    self._build_threshold()
            with gr.Column(scale=5, min_width=300, elem_classes="aside"):
                with gr.Column(elem_classes="card public", visible=False) as self.open_card:
                    self.reserved = panel(elem_id="ask-reserved")
                    self.change = gr.Button("Change the terms", size="sm", elem_id="ask-change")
                with gr.Column(elem_classes="card public") as self.offer_card:
                    self.offer = Offer(app)
                with gr.Column(elem_classes="card"):
                    self.budget = panel(elem_id="ask-budget")
            self.beat = gr.HTML(0, html_template="<div></div>", apply_default_css=False, elem_classes="sink")
        self._wire(data)
        self._wire_look()

    def _build_question(self) -> None:
        with gr.Column(elem_classes="card"):
            panel(el("h2", "Your question"))
            with gr.Row(elem_classes="ask"):
                self.question = gr.Textbox(
                    show_label=False, placeholder="Type a question or a text", lines=2, scale=5, elem_id="ask-question"
                )  # fmt: skip
                self.ask = gr.Button("Ask", variant="primary", scale=1, min_width=120, elem_id="ask-privately")
            panel(el("p.muted", _QUESTIONS_PUBLIC))
            self.notice = panel(elem_id="ask-notice")
        with gr.Column(elem_classes="card public"):
            self.answers = panel(*history(()), elem_id="ask-answers")

    def _build_threshold(self) -> None:
        panel(
            el("h3", "How near must a row be to take part?"),
            el("p.muted", "A row that is at least this similar to a question takes part in its answer, and pays."),
        )
        self.threshold = gr.Slider(
            min(THRESHOLDS), max(THRESHOLDS), 0.3, step=0.1, label="Similarity, from", elem_id="ask-threshold"
        )
        self.effect = panel(elem_id="ask-effect")

    def _wire(self, data: DataStep) -> None:
        settings = self.settings
        inputs = [data.name, data.labels, settings.labels_public, self.threshold, *settings.form]
        shown = [self.offer.outcome, self.budget, self.offer.reserve, self.effect, settings.labels]
        recalculation: dict[str, Any] = {
            "inputs": inputs,
            **ACCOUNTING,
            "trigger_mode": "always_last",
            **PRIVATE,
        }
        gr.on(settings.settled, guarded(self.offer.outcome)(self._recalculate), outputs=shown, **recalculation)
        self.threshold.release(guarded(self.offer.outcome)(self._recalculate), outputs=shown, **recalculation)
        # Step 1's own box is the same promise; the bar changes whenever the file or its columns do.
        data.public.labels_public.change(
            lambda public: public, data.public.labels_public, settings.labels_public, **PRIVATE
        )
        gr.on(
            [self._app.bar.html.change, data.facts.change, data.name.change],
            guarded(self.offer.outcome)(self._recalculate),
            outputs=shown,
            **recalculation,
        )
        self._app.bar.html.expand(guarded(self.effect)(self._expanded), inputs, shown, **EMBED, **PRIVATE)
        for event in [*data.changing, *self.offer.wire(inputs, self.notice, self.budget)]:
            event.then(self._beat, None, self.beat, **PRIVATE)
        self.change.click(self._reconsider, None, self.beat, **PRIVATE)
        self._wire_question()

    def _wire_look(self) -> None:
        """Which cards are there, and what they say of the state, is the output of one listener alone, `_look`.

        The page never has two of its calls under way: what triggers it meanwhile is sent once more when the answer has
        come (`always_last`), and the server reads one at a time. So its answers arrive in the order in which they read
        the state, and no late one hides the question box. Every event that may change the state is followed by a new
        `beat`, which is never the same twice, so the page cannot miss it; that alone triggers `_look`. So the last
        reading comes after the last change, and what it says stays.
        """
        places = [
            self.asking, self.setup, self.open_card, self.offer_card, self.offer.anew, self.reserved, self.answers
        ]  # fmt: skip
        self.beat.change(
            guarded(self.reserved)(self._look),
            None,
            places,
            trigger_mode="always_last",
            concurrency_limit=1,
            **PRIVATE,
        )

    def _beat(self, request: gr.Request) -> int:
        return self._app.session(request).of(AskState).beat()

    def _wire_question(self) -> None:
        asked: dict[str, Any] = {
            "fn": guarded(self.notice, lambda: {self.ask: gr.Button(interactive=True)})(self._ask),
            "inputs": [self.question, self.threshold],
            "outputs": [self.notice, self.ask, self.question, self.beat, self._app.bar.html],
            **MODEL,
            **PRIVATE,
        }
        self.ask.click(**asked)
        self.question.submit(**asked)

    def _recalculate(
        self, request: gr.Request, name: str, labels: list[str], _public: bool, threshold: float, *form: Any
    ) -> dict[Any, Any]:
        """The promise and the cost of the settings."""
        session = self._app.session(request)
        columns, opened = session.of(DataState).columns, session.of(AskState).open
        if columns is None:
            return {self.offer.outcome: waiting(), self.budget: [], self.offer.reserve: gr.Button(interactive=False)}
        effect = nearest(self._effects, threshold) if self._effects else None
        names = [el("span.chip", label) for label in sorted(labels)]
        update = {self.effect: self._effect(threshold, form), self.settings.labels: [el("p.chips", *names)]}
        try:
            wanted = request_of(columns, labels, AskForm.read(*form))
        except StudioError as error:
            closed = {self.offer.outcome: refused(str(error)), self.offer.reserve: gr.Button(interactive=False)}
            return update | closed | {self.budget: self._budget(columns, request, name, None)}
        cost = wanted.claim().epsilon
        paid = opened is not None and wanted.terms() == opened.terms
        return update | {
            self.offer.outcome: promise(wanted, effect, session.of(GenerateState).made, public_rows(session)),
            self.budget: self._budget(columns, request, name, None if paid else cost),
            self.offer.reserve: gr.Button(f"Reserve epsilon {rounded_up(cost, 3)} and start", interactive=True),
        }

    def _budget(self, columns: Columns, request: gr.Request, name: str, planned: float | None) -> list[Tree]:
        if not name.strip():
            return []
        return budget(self._app.ledger(request).snapshot(name.strip(), privacy_unit(columns.mapping.unit)), planned)

    def _effect(self, threshold: float, form: tuple[Any, ...]) -> list[Tree]:
        if not self._effects:
            return []
        try:
            queries = AskForm.read(*form).queries
        except UsageError:  # said elsewhere
            return []
        return effect_card(self._effects, threshold, queries, EXAMPLES[0].title)

    def _look(self, request: gr.Request) -> dict[Any, Any]:
        """The cards for the present state: settings and offer, or reservation and questions."""
        state = self._app.session(request).of(AskState)
        stage, answers = state.stage, state.answers
        reservation = stage.open
        opened = reservation is not None
        offered = reservation is None or reservation.changing
        again = opened or (isinstance(stage, Idle) and stage.otherwise)
        return {
            self.asking: gr.Column(visible=opened),
            self.open_card: gr.Column(visible=opened),
            self.setup: gr.Column(visible=offered),
            self.offer_card: gr.Column(visible=offered),
            self.offer.anew: gr.Button(visible=again),
            self.answers: history(answers),
            self.reserved: reserved(reservation.asking.opened, _under(reservation, answers)) if reservation else [],
        }

    def _expanded(self, request: gr.Request, *values: Any) -> Iterator[dict[Any, Any]]:
        """Compute the effect of thresholds on the example, once for all tabs, when the place is opened."""
        yield self._recalculate(request, *values)
        if not self._effects:
            yield {self.effect: spinner("Trying thresholds on the bundled example …")}
            self._effects = threshold_effect_on_example(EXAMPLES[0], self._app.embedder.embedder())
            yield self._recalculate(request, *values)

    def _reconsider(self, request: gr.Request) -> int:
        self._app.session(request).of(AskState).reconsider()
        return self._beat(request)

    def _ask(self, question: str, threshold: float, request: gr.Request) -> Iterator[dict[Any, Any]]:
        session = self._app.session(request)
        state = session.of(AskState)
        if (reservation := state.open) is None:
            raise UsageError("The data of step 1 has changed: reserve its price first.")
        if not (question or "").strip():
            raise UsageError("Type a question first.")
        yield {
            self.notice: spinner("The rows near it pay, then the groups answer …"),
            self.ask: gr.Button(interactive=False),
        }
        released = reservation.asking.ask(question.strip(), float(threshold))
        state.answered(reservation.asking, released)
        yield {
            self.notice: [],
            self.question: "",
            self.beat: state.beat(),
            **self._app.steps(session),
        }


def public_rows(session: Session) -> int | None:
    """The number of rows, if it is public; a number of users never is."""
    confirmed = session.of(DataState).confirmed
    if confirmed is None or confirmed.columns.by_user:
        return None
    return sum(confirmed.sizes.values())


def _under(reservation: Open, answers: Answers) -> list[AnswerReleased]:
    """The answers that a reservation has paid for."""
    return [released for of, released in answers if of is reservation.asking.opened]
