"""Step 2: how much privacy, and what follows from it before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.controls import control, said
from dpicl_ui.frame.guard import ACCOUNTING, PRIVATE, guarded
from dpicl_ui.frame.inputs import epsilon_slider, number
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import Tree, budget, el, notice, panel
from dpicl_ui.privacy.cards import CALIBRATING, outcome, refused, stages_in_words
from dpicl_ui.privacy.model_choice import ModelChoice
from dpicl_ui.privacy.settings import NO_RUN, ExpertSettings, Odds, SettingsFile, usual_delta
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.errors import StudioError, UsageError
from mechanisms.runs.spec import RunSpec


class PrivacyStep:
    """Components and handlers of step 2. `form` are the inputs that `spec` reads."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with app.bar.panel(2), gr.Row(elem_classes="split"):
            with gr.Column(scale=6, min_width=300):
                self._build_settings()
            with gr.Column(scale=5, min_width=300, elem_classes="aside"):
                with gr.Column(elem_classes="card public"):
                    self.outcome = panel(*CALIBRATING, elem_id="outcome")
                    self.start = gr.Button("Go on to generate", variant="primary", elem_id="accept-privacy")
                    self.settings = SettingsFile(app)
                with gr.Column(elem_classes="card"):
                    self.budget = panel(elem_id="budget")
                    self._build_cap()
        self.form = [self.epsilon, self.shots, *self.expert.inputs]
        self._wire()

    def _build_settings(self) -> None:
        with gr.Column(elem_classes="card"):
            panel(
                el("h2", "How much privacy?"),
                el("p.lead", "Epsilon bounds how much one row or user can change what is released. Smaller is safer."),
            )
            self.epsilon = epsilon_slider()
            self.odds = Odds(self._app)
        with gr.Column(elem_classes="card"):
            panel(el("h3", "What to write"))
            self.shots = control("shots")
            self.stages = panel(elem_id="stages")
        self.models = ModelChoice(self._app)
        with gr.Accordion("For experts", open=False, elem_classes="card", elem_id="experts"):
            self.expert = ExpertSettings()

    def _build_cap(self) -> None:
        with gr.Accordion("Change the cap", open=False):
            panel(
                el(
                    "p.muted",
                    "The cap is the most that all runs on this data set may ever cost together. Raising it is for "
                    "whoever answers for the people in the data.",
                )
            )
            with gr.Row():
                self.cap_epsilon = gr.Number(10.0, label="Cap on epsilon", elem_id="cap-epsilon")
                self.cap_delta = gr.Number(1e-4, label="Cap on delta", elem_id="cap-delta")
            self.cap_notice = panel(elem_id="cap-notice")
            self.set_cap = gr.Button("Set the cap", size="sm", elem_id="set-cap")

    def _wire(self) -> None:
        self._calibration: dict[str, Any] = {
            "fn": guarded(self.outcome)(self._recalculate),
            "inputs": {*self.form},
            "outputs": [self.outcome, self.budget, self.stages, self._app.bar.html, *self.expert.inputs],
            **ACCOUNTING,
            **PRIVATE,
        }
        # One calibration at a time; changes made meanwhile are calibrated once, with the last values.
        settled = [self.epsilon.release, self.shots.release, *self.expert.settled]
        gr.on(settled, **self._calibration, trigger_mode="always_last")
        touched: dict[str, Any] = {"inputs": {*self.form}, "outputs": self._app.bar.html, "queue": False, **PRIVATE}
        gr.on(settled, self._touched, **touched, trigger_mode="always_last")
        self.odds.wire(self.epsilon, self.expert.fields["delta"])
        if not self._app.loader.locked:
            self.models.loaded.then(self.timed, None, self.outcome, **PRIVATE)
        self.set_cap.click(
            guarded(self.cap_notice)(self._set_cap),
            [self.cap_epsilon, self.cap_delta],
            [self.cap_notice, self.budget],
            **PRIVATE,
        )
        self._accepted: dict[str, Any] = {
            "fn": guarded(self.outcome)(self._accept),
            "inputs": None,
            "outputs": [self.outcome, self._app.bar.html],
            **PRIVATE,
        }
        self.start.click(**self._accepted)

    def follow(self, confirmed: gr.events.Dependency, go_on: bool = False) -> None:
        """Show the settings of the data set that step 1 confirmed, then calibrate them.

        Args:
            go_on: move on to step 3 with the plan.
        """
        filled_in = [self.cap_epsilon, self.cap_delta, self.cap_notice, *self.expert.outputs]
        filled = confirmed.then(self._fill_in, None, filled_in, **PRIVATE)
        calibrated = filled.then(**self._calibration)
        self.odds.follow(filled)
        if go_on:
            calibrated.then(**self._accepted)

    def _fill_in(self, request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        confirmed, state = session.of(DataState).confirmed, session.of(PrivacyState)
        if confirmed is None or state.planned is not None:
            return {self.cap_notice: []}
        dataset = confirmed.dataset
        cap = self._app.ledger(request).snapshot(dataset.name, dataset.unit).cap
        of = dataset.name, dataset.unit, dataset.labels
        before, state.set_for = state.set_for, of
        return {
            self.cap_epsilon: cap.epsilon,
            self.cap_delta: cap.delta,
            self.cap_notice: [],
            **({} if before in (None, of) else self.expert.fresh()),
        }

    def spec(self, session: Session, values: Mapping[Any, Any]) -> RunSpec:
        """What the form asks for, of the confirmed data set.

        Args:
            values: of the components of `form`.

        Raises:
            UsageError: no data set is confirmed, or a value is missing, no number or out of range.
        """
        confirmed = session.of(DataState).confirmed
        if confirmed is None:
            raise UsageError("Choose a data set in step 1 first.")
        asked = said({"shots": values[self.shots]}) | self.expert.asked(values)
        usual = {"epsilon": number("Epsilon", values[self.epsilon]), "delta": usual_delta(confirmed)}
        return RunSpec.of(**confirmed.settled | usual | asked)

    def _touched(self, values: Mapping[Any, Any], request: gr.Request) -> Any:
        """Close step 3 until the new settings are calibrated, which waits for its turn."""
        session = self._app.session(request)
        state = session.of(PrivacyState)
        try:
            state.outdate(self.spec(session, values))
        except StudioError:  # told by the calibration
            state.forget()
        return self._app.bar.value(session)

    def _recalculate(self, values: Mapping[Any, Any], request: gr.Request) -> Iterator[dict[Any, Any]]:
        """Calibrate the settings and show what follows."""
        session = self._app.session(request)
        yield {self.outcome: CALIBRATING}
        state = session.of(PrivacyState)
        if session.of(DataState).confirmed is None:
            return
        try:
            spec = self.spec(session, values)
        except StudioError as error:
            state.forget()
            yield self._refused(request, error)
            return
        try:
            planned = state.look(spec, self._app.loader.speed)
        except StudioError as error:
            yield self._refused(request, error)
            return
        if planned is None:  # overtaken: what overtook it says more
            return
        yield {
            self.outcome: outcome(planned),
            self.stages: stages_in_words(planned.plan),
            self.budget: budget_of(session, self._app.ledger(request)),
            **self.expert.left_open(planned.plan),
            **self._app.steps(session),
        }

    def _refused(self, request: gr.Request, error: StudioError) -> dict[Any, Any]:
        session = self._app.session(request)
        return {
            self.outcome: refused(str(error)),
            self.stages: [],
            self.budget: budget_of(session, self._app.ledger(request)),
            **self._app.steps(session),
        }

    def _set_cap(self, epsilon: float, delta: float, request: gr.Request) -> dict[Any, Any]:
        session, ledger = self._app.session(request), self._app.ledger(request)
        confirmed = session.of(DataState).confirmed
        if confirmed is None:
            raise UsageError("Choose a data set in step 1 first.")
        cap = Cap(float(epsilon or 0), float(delta or 0))
        ledger.set_cap(confirmed.dataset.name, confirmed.dataset.unit, cap)
        return {self.cap_notice: notice("The cap is set.", "good"), self.budget: budget_of(session, ledger)}

    def _accept(self, request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        if session.of(PrivacyState).planned is None:
            raise UsageError(NO_RUN)
        return self._app.steps(session, 3)

    def timed(self, request: gr.Request) -> Any:
        """The card of a run that was calibrated with another model, or before any was there, now with its duration."""
        planned = self._app.session(request).of(PrivacyState).time(self._app.loader.speed)
        return outcome(planned) if planned else gr.skip()


def budget_of(session: Session, ledger: PrivacyLedger) -> list[Tree]:
    """The ledger's state of the confirmed data set, with what the planned run would add."""
    confirmed, planned = session.of(DataState).confirmed, session.of(PrivacyState).planned
    if confirmed is None:
        return []
    name, unit = confirmed.dataset.name, confirmed.dataset.unit
    snapshot = ledger.snapshot(name, unit)
    if planned is None:
        return budget(snapshot, None, confirmed.warnings)
    repeats = ledger.repeats(name, unit, planned.plan.event, planned.plan.release_claim())
    return budget(snapshot, planned.charge, confirmed.warnings, repeats)
