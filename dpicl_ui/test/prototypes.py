"""The part of step 4 without a language model: class prototypes are charged, released and measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import gradio as gr

from dpicl_ui.data.state import Confirmed, DataState
from dpicl_ui.frame.guard import ACCOUNTING, MODEL, PRIVATE, guarded, on
from dpicl_ui.frame.inputs import number
from dpicl_ui.frame.job import JobControls, Order, Passing
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import Tree, Updates, budget, el, notice, panel, progress, spinner
from dpicl_ui.test.measure import FileMeasurement
from dpicl_ui.test.state import PrototypesState, TestState, Wanted
from mechanisms.accounting import BudgetSnapshot, Claim, PrivacyLedger, PrivacyTarget, Usage
from mechanisms.errors import StudioError, UsageError
from mechanisms.evaluation.evaluate import ClassPrototypes, Progress, PrototypesRequest, release_prototypes
from mechanisms.records import RECORD, unit_in_words
from mechanisms.rounding import rounded_up

# What the card of class prototypes says: what they are, what they cost, and that they are paid for.

_ABOUT = (
    "An embedding model places every text; a label's prototype is the mean place of your rows with that label, "
    "released once with noise, and a test row gets the label of the nearest one."
)
_WAITING: list[Tree] = [el("p.muted", "This needs the private rows: confirm a data set in step 1 first.")]
_USERS = " One row of each user counts."
_NO_ROOM = "The cap does not allow it: choose a smaller epsilon."


def price(unit: str, claimed: Claim, after: Usage, now: BudgetSnapshot) -> list[Tree]:
    cost = f"epsilon {rounded_up(claimed.epsilon, 3)} at delta {claimed.delta:g} for {unit_in_words(unit)}"
    then = f"The budget then stands at {rounded_up(after.epsilon, 3)} of {now.cap.epsilon:g}." if after.allowed else ""
    once = "charged once, before any row is read, and spent even if it is stopped."
    users = "" if unit == RECORD else _USERS
    return [
        el("p", el("strong", f"It costs {cost}"), f", {once} {then}{users}".rstrip()),
        *notice("" if after.allowed else _NO_ROOM, "bad"),
        *budget(now, claimed.epsilon),
    ]


def paid(released: ClassPrototypes, now: BudgetSnapshot) -> list[Tree]:
    claimed = released.claim
    cost = f"Released with epsilon {rounded_up(claimed.epsilon, 3)} at delta {claimed.delta:g}."
    kept = "Kept while this page is open, and not paid for again; it stands beside the other figures above."
    return [el("p", el("strong", cost), f" {kept}"), *budget(now)]


# Paying, releasing and measuring.

_EPSILON = 0.5
_NO_DATA = "Choose a data set in step 1 and confirm it first."
_NO_FILE = "Upload a labelled test file first: there would be nothing to measure. Nothing was charged."
_OTHER_LABELS = "The set under test has labels that the data set of step 1 has not. Nothing was charged."
_CHANGED = "The data of step 1 has changed. Nothing was charged: look at the price, then press again."
_NOT_BEGUN = "Stopped. Nothing was charged."
_STOPPED = "Stopped. It had been charged, so what it costs stays spent."
_TRY = "Try it"


class PrototypesOffer:
    """Components and handlers; made inside the card that shows them, after the measurement that shows the figures."""

    def __init__(self, app: Services, measurement: FileMeasurement) -> None:
        self._app, self._measurement = app, measurement
        panel(el("p.muted", _ABOUT))
        self.epsilon = gr.Number(
            _EPSILON, label="Epsilon", info="Less is more private, and noisier.", elem_id="prototypes-epsilon"
        )
        self.cost = panel(*_WAITING, elem_id="prototypes-cost")
        self.notice = panel(elem_id="prototypes-notice")
        ids = ("prototypes-start", "prototypes-stop", "prototypes-progress")
        self.job = JobControls(app, PrototypesState, _TRY, ids, startable=False)
        self._wire()

    def _wire(self) -> None:
        self._look_up: dict[str, Any] = {
            "fn": guarded(self.cost)(self._look),
            "inputs": self.epsilon,
            "outputs": [self.cost, self.job.start],
            "trigger_mode": "always_last",
            **ACCOUNTING,
            **PRIVATE,
        }
        gr.on([self._app.bar.html.change, self.epsilon.blur, self.epsilon.submit], **self._look_up)
        measured, shown = self._measurement, [self.notice, *self.job.outputs]
        ordered = on(self.job.start.click, self._order, self.epsilon, shown, self.notice)
        released = on(ordered.then, self._release, None, shown, self.notice, self.job.idle, **MODEL)
        shown = [measured.test_notice, *measured.about_the_set]
        self.follow(on(released.then, measured.add_prototypes, None, shown, measured.test_notice, **MODEL))

    def follow(self, ended: gr.events.Dependency) -> None:
        ended.then(**self._look_up)

    def _look(self, epsilon: Any, request: gr.Request) -> Updates:
        session, ledger = self._app.session(request), self._app.ledger(request)
        confirmed, state = session.of(DataState).confirmed, session.of(PrototypesState)
        if confirmed is None:
            return {self.cost: _WAITING, self.job.start: gr.Button(_TRY, interactive=False)}
        name, unit = confirmed.dataset.name, confirmed.dataset.unit
        now = ledger.snapshot(name, unit)
        if (released := state.released) is not None:
            return {self.cost: paid(released, now), self.job.start: gr.Button("Released", interactive=False)}
        try:
            wanted = _request(confirmed, epsilon)
            claimed = wanted.claim()
            after = ledger.forecast(name, unit, wanted.event, claimed)
        except StudioError as error:
            return {self.cost: notice(str(error)), self.job.start: gr.Button(_TRY, interactive=False)}
        words = f"{_TRY} for epsilon {rounded_up(claimed.epsilon, 3)}"
        free = after.allowed and not state.busy
        return {self.cost: price(unit, claimed, after, now), self.job.start: gr.Button(words, interactive=free)}

    def _order(self, epsilon: Any, request: gr.Request) -> Updates:
        session = self._app.session(request)
        confirmed, test = session.of(DataState).confirmed, session.of(TestState)
        if confirmed is None:
            raise UsageError(_NO_DATA)
        tested = test.classifying
        if test.table is None:
            raise UsageError(_NO_FILE)
        if not set(tested.labels) <= set(confirmed.dataset.labels):
            raise UsageError(_OTHER_LABELS)
        session.of(PrototypesState).order(Wanted(confirmed, _request(confirmed, epsilon)))
        return {self.notice: [], **self.job.working([])}

    def _release(self, request: gr.Request) -> Iterator[Updates]:
        """Charge the ledger, read the rows, and release; closing the tab stops it."""
        session, ledger = self._app.session(request), self._app.ledger(request)
        yield from self.job.run(request, lambda order: self._reading(session, order, ledger))

    def _reading(self, session: Session, order: Order[Wanted], ledger: PrivacyLedger) -> Iterator[Updates]:
        yield {self.job.bar: spinner("Waiting for the embedding model …")}
        wanted, embedder, passing = order.wanted, self._app.embedder.embedder(), Passing()
        order.check(_NOT_BEGUN)
        if wanted.confirmed is not session.of(DataState).confirmed:
            raise UsageError(_CHANGED)
        with closing(release_prototypes(wanted.confirmed.dataset, wanted.request, embedder, ledger)) as events:
            for event in events:
                match event:
                    case Progress(done, total):
                        order.check(_STOPPED)
                        if passing.shown():
                            share = done / total if total else 1.0
                            yield {self.job.bar: progress(done, total, f"{share:.0%} of the rows read")}
                    case ClassPrototypes():
                        session.of(PrototypesState).keep(wanted, event)
        yield {self.notice: notice("The class prototypes are released.", "good")}


def _request(confirmed: Confirmed, epsilon: Any) -> PrototypesRequest:
    """A release at a delta that follows from the data set's public sizes."""
    target = PrivacyTarget(number("Epsilon", epsilon), confirmed.usual_delta)
    return PrototypesRequest(target, len(confirmed.sizes))
