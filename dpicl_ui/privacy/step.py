"""Step 2: how much privacy, and what follows from it before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.controls import control, said
from dpicl_ui.frame.guard import ACCOUNTING, MODEL, PRIVATE, guarded
from dpicl_ui.frame.inputs import File, download, epsilon_slider, number, sink
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import Tree, budget, drawn, el, notice, panel
from dpicl_ui.privacy.cards import CALIBRATING, odds, outcome, refused, stages_in_words
from dpicl_ui.privacy.model_choice import ModelChoice
from dpicl_ui.privacy.noise import Expectation, picture
from dpicl_ui.privacy.settings import ExpertSettings, usual_delta
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import Cap, PrivacyLedger, PrivacyTarget
from mechanisms.errors import StudioError, UsageError
from mechanisms.inference.models import available_models
from mechanisms.runs.plan import settings
from mechanisms.runs.spec import RunSpec

NO_RUN = "No run with these settings yet: change them, or wait until they are calibrated."
"""Why nothing of the plan can be used."""
_LEAD = "Epsilon bounds how much one row or user can change what is released. Smaller is safer."
_PUBLIC = "From what the model expects of such texts alone: no row was read, and nothing is spent."
_CAP = (
    "The cap is the most that all runs on this data set may ever cost together. Raising it is for whoever answers for "
    "the people in the data."
)
_FILE = "settings.yaml"
_SAVED = (
    f"Saved by your browser. synthesize FILE --config {_FILE} asks for the same run, which is charged as one of its "
    "own. The file names your columns and labels, and holds no row."
)


class PrivacyStep:
    """Components and handlers of step 2. `form` are the inputs that `spec` reads."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with app.bar.panel(2):
            with gr.Row(elem_classes="split"):
                with gr.Column(scale=6, min_width=300, elem_classes="card"):
                    panel(el("h2", "How much privacy?"), el("p.lead", _LEAD))
                    self.epsilon = epsilon_slider()
                    self.odds = panel(elem_id="odds")
                    self.shots = control("shots")
                with gr.Column(scale=5, min_width=300, elem_classes="card public"):
                    panel(el("h3", "So noisy would it be"), el("p.muted", _PUBLIC))
                    self.noise = drawn("noise.js", None, elem_id="noise")
            with gr.Row(elem_classes="split"):
                with gr.Column(scale=6, min_width=300, elem_classes="card public"):
                    self.outcome = panel(*CALIBRATING, elem_id="outcome")
                    self.start = gr.Button("Go on to generate", variant="primary", elem_id="accept-privacy")
                with gr.Column(scale=5, min_width=300, elem_classes="card"):
                    self.budget = panel(elem_id="budget")
                    self._build_cap()
            self.models = ModelChoice(app)
            with gr.Accordion("For experts", open=False, elem_classes="card", elem_id="experts"):
                self.stages = panel(elem_id="stages")
                self.expert = ExpertSettings()
                with gr.Row(elem_classes="actions"):
                    self.save = gr.Button("Settings for the command line", size="sm", elem_id="save-settings")
                self.saved = panel(elem_id="settings-notice")
                self.sink = sink()
        self.form = [self.epsilon, self.shots, *self.expert.inputs]
        self._wire()

    def _build_cap(self) -> None:
        with gr.Accordion("Change the cap", open=False):
            panel(el("p.muted", _CAP))
            with gr.Row():
                self.cap_epsilon = gr.Number(10.0, label="Cap on epsilon", elem_id="cap-epsilon", min_width=100)
                self.cap_delta = gr.Number(1e-4, label="Cap on delta", elem_id="cap-delta", min_width=100)
            self.cap_notice = panel(elem_id="cap-notice")
            self.set_cap = gr.Button("Set the cap", size="sm", elem_id="set-cap")

    def _wire(self) -> None:
        self._calibration: dict[str, Any] = {
            "fn": guarded(self.outcome)(self._recalculate),
            "inputs": {*self.form},
            "outputs": [
                self.outcome, self.budget, self.stages, self.noise, self._app.bar.html, *self.expert.inputs,
            ],
            **ACCOUNTING,
            **PRIVATE,
        }  # fmt: skip
        # One calibration at a time; changes made meanwhile are calibrated once, with the last values.
        settled = [self.epsilon.release, self.shots.release, *self.expert.settled]
        gr.on(settled, **self._calibration, trigger_mode="always_last")
        touched: dict[str, Any] = {"inputs": {*self.form}, "outputs": [self._app.bar.html, self.odds], "queue": False}
        gr.on(settled, self._touched, **touched, trigger_mode="always_last", **PRIVATE)
        self._expecting: dict[str, Any] = {
            "fn": guarded(self.outcome)(self._expect),
            "inputs": None,
            "outputs": [self.noise, self.outcome],
            **MODEL,
            **PRIVATE,
        }
        if not self._app.loader.locked:
            self.models.loaded.then(self.timed, None, self.outcome, **PRIVATE).then(**self._expecting)
        cap = [self.cap_epsilon, self.cap_delta]
        self.set_cap.click(guarded(self.cap_notice)(self._set_cap), cap, [self.cap_notice, self.budget], **PRIVATE)
        self.save.click(guarded(self.saved)(self._save), None, [self.sink, self.saved], **PRIVATE)
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
        filled_in = [self.cap_epsilon, self.cap_delta, self.cap_notice, self.odds, *self.expert.outputs]
        filled = confirmed.then(self._fill_in, {*self.form}, filled_in, **PRIVATE)
        calibrated = filled.then(**self._calibration)
        if go_on:
            calibrated.then(**self._accepted)
        calibrated.then(**self._expecting)

    def _fill_in(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        confirmed, state = session.of(DataState).confirmed, session.of(PrivacyState)
        if confirmed is None or state.planned is not None:
            return {self.cap_notice: []}
        dataset = confirmed.dataset
        cap = self._app.ledger(request).snapshot(dataset.name, dataset.unit).cap
        of = dataset.name, dataset.unit, dataset.labels
        before, state.set_for = state.set_for, of
        fresh = {} if before in (None, of) else self.expert.fresh()
        shown = {self.cap_epsilon: cap.epsilon, self.cap_delta: cap.delta, self.cap_notice: []}
        return shown | fresh | self._odds(session, {**values, **{each: each.value for each in fresh if each in values}})

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

    def _odds(self, session: Session, values: Mapping[Any, Any]) -> dict[Any, Any]:
        """What epsilon means; the sentence does not wait for a calibration, which tells what is wrong."""
        confirmed = session.of(DataState).confirmed
        try:
            spec = self.spec(session, values)
        except StudioError:
            return {self.odds: []}
        assert confirmed is not None
        target = PrivacyTarget(spec.epsilon, spec.delta)
        return {self.odds: odds(target, confirmed.dataset.by_user, confirmed.measured is None)}

    def _touched(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        """Close step 3 until the new settings are calibrated, which waits for its turn."""
        session = self._app.session(request)
        state = session.of(PrivacyState)
        try:
            state.outdate(self.spec(session, values))
        except StudioError:  # told by the calibration
            state.forget()
        return self._app.steps(session) | self._odds(session, values)

    def _recalculate(self, values: Mapping[Any, Any], request: gr.Request) -> Iterator[dict[Any, Any]]:
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
            self.noise: self._picture(session),
            **self.expert.left_open(planned.plan),
            **self._app.steps(session),
        }

    def _refused(self, request: gr.Request, error: StudioError) -> dict[Any, Any]:
        session = self._app.session(request)
        return {
            self.outcome: refused(str(error)),
            self.stages: [],
            self.noise: None,
            self.budget: budget_of(session, self._app.ledger(request)),
            **self._app.steps(session),
        }

    def _picture(self, session: Session) -> dict[str, Any] | None:
        plan, expected = session.of(PrivacyState).plan, session.of(Expectation).found
        return picture(plan, expected) if plan and expected and expected.label in plan.labels else None

    def _expect(self, request: gr.Request) -> dict[Any, Any]:
        """Ask the model what it expects of such texts, for the picture."""
        session = self._app.session(request)
        if (confirmed := session.of(DataState).confirmed) is None:
            return {self.noise: None}
        session.of(Expectation).ask(self._app.loader.model(), confirmed.asked, confirmed.dataset.labels[0])
        return {self.noise: self._picture(session)}

    def _set_cap(self, epsilon: float, delta: float, request: gr.Request) -> dict[Any, Any]:
        session, ledger = self._app.session(request), self._app.ledger(request)
        confirmed = session.of(DataState).confirmed
        if confirmed is None:
            raise UsageError("Choose a data set in step 1 first.")
        cap = Cap(float(epsilon or 0), float(delta or 0))
        ledger.set_cap(confirmed.dataset.name, confirmed.dataset.unit, cap)
        return {self.cap_notice: notice("The cap is set.", "good"), self.budget: budget_of(session, ledger)}

    def _save(self, request: gr.Request) -> dict[Any, Any]:
        """The settings of the planned run as a file, for the same run from the command line.

        Raises:
            UsageError: no run is planned, or the command line cannot name one of its labels.
        """
        session = self._app.session(request)
        if (planned := session.of(PrivacyState).planned) is None:
            raise UsageError(NO_RUN)
        confirmed, name = planned.confirmed, self._app.loader.name
        named = name if name in [each.name for each in available_models()] else None
        columns = confirmed.columns
        text = settings(planned.plan, columns.mapping, confirmed.dataset.name, named, columns.file.table.reading)
        file = File(_FILE, "application/yaml", text.encode())
        return {self.sink: download(session, file), self.saved: notice(_SAVED, "good")}

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
