"""Step 3: the run itself, live, and its replay."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import gradio as gr

from dpicl_ui.assets import asset
from dpicl_ui.data.state import DataState
from dpicl_ui.frame.cards import budget
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.ledgers import Ledgers
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Session, Sessions
from dpicl_ui.frame.step_bar import StepBar
from dpicl_ui.frame.tree import notice, panel
from dpicl_ui.generate.cards import finished, outcome_of_run
from dpicl_ui.generate.live_chart import live
from dpicl_ui.generate.run_view import RunView, reduce, replay, up_to_token
from dpicl_ui.generate.state import GenerateState, Made, Run
from dpicl_ui.privacy.form import PrivacyForm
from dpicl_ui.privacy.state import PrivacyState
from dpicl_ui.privacy.step import PrivacyStep, budget_of
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.errors import StudioError, UsageError
from mechanisms.studio.synthesis.events import (
    CuratorEvent,
    DemoCompleted,
    PrivateDiagnostics,
    RunFailed,
    RunStopped,
    TokenReleased,
)
from mechanisms.studio.synthesis.synthesize import synthesize

_INTERVAL = 0.08
"""Least seconds between two updates of the screen: 12 a second."""

_CURATOR = "Show clean averages: for your eyes only, and the export will be marked"
_CURATOR_INFO = (
    "Adds what the records say without noise. Nothing of it is kept, but once you have seen it your later choices are "
    "no longer independent of the data, and the certificate says so."
)


class GenerateStep:
    """Components and handlers of step 3."""

    def __init__(
        self, sessions: Sessions, ledgers: Ledgers, loader: ModelLoader, bar: StepBar, privacy: PrivacyStep
    ) -> None:
        self._sessions, self._ledgers, self._loader, self._bar = sessions, ledgers, loader, bar
        with bar.panel(3), gr.Row(elem_classes="split"):
            with gr.Column(scale=7, min_width=300):
                with gr.Column(elem_classes="card"):
                    with gr.Row(elem_classes="actions"):
                        self.start = gr.Button("Generate", variant="primary", elem_id="generate")
                        self.stop = gr.Button("Stop", variant="stop", elem_id="stop", interactive=False)
                    self.notice = panel(elem_id="run-notice")
                    self.screen = gr.HTML(
                        value=live(RunView()),
                        html_template="<div></div>",
                        js_on_load=asset("live.js"),
                        apply_default_css=False,
                        elem_id="live",
                    )
                    self.scrub = gr.Slider(
                        1,
                        2,
                        1,
                        step=1,
                        visible=False,
                        label="Look back, token by token",
                        info="Replayed from what was released; clean values are not kept.",
                        elem_id="scrub",
                    )
                with gr.Column(elem_classes="card private switch"):
                    self.curator = gr.Checkbox(label=_CURATOR, info=_CURATOR_INFO, elem_id="curator")
            with gr.Column(scale=4, min_width=300, elem_classes="aside"):
                with gr.Column(elem_classes="card public"):
                    self.finished = panel(*finished(RunView()), elem_id="finished")
                    self.test = gr.Button("Test them", elem_id="go-test", visible=False)
                    self.export = gr.Button("Export", elem_id="go-export", visible=False)
                with gr.Column(elem_classes="card"):
                    self.budget = panel(elem_id="run-budget")
        self._wire(privacy)

    def _wire(self, privacy: PrivacyStep) -> None:
        outputs = [
            self.screen, self.finished, self.budget, self.notice, self.start, self.stop, self.scrub, self.test,
            self.export, self.curator, self._bar.html,
        ]  # fmt: skip
        self.ended = self.start.click(
            guarded(self.notice, self._buttons)(self._run),
            [self.curator, *privacy.form],
            outputs,
            concurrency_limit=1,
            concurrency_id="model",
            **PRIVATE,
        )
        self.stop.click(self._stop, None, self.stop, queue=False, **PRIVATE)
        self.scrub.input(
            self._look_back, self.scrub, self.screen, trigger_mode="always_last", concurrency_limit=4, **PRIVATE
        )
        privacy.start.click(self._show_budget, None, self.budget, **PRIVATE)
        for button, step in ((self.test, 4), (self.export, 5)):
            button.click(self._mover(step), None, self._bar.html, **PRIVATE)

    def _mover(self, step: int) -> Any:
        def move(request: gr.Request) -> Any:
            return self._bar.value(self._sessions.of(request), step)

        return move

    def _show_budget(self, request: gr.Request) -> Any:
        return budget_of(self._sessions.of(request), self._ledgers.of(request))

    def _stop(self, request: gr.Request) -> Any:
        self._sessions.of(request).of(GenerateState).stop()
        return gr.Button("Stopping …", interactive=False)

    def _look_back(self, token: float, request: gr.Request) -> Any:
        run = self._sessions.of(request).of(GenerateState).run
        if run is None or not run.recording:
            return gr.skip()
        return live(replay(up_to_token(run.recording, int(token))))

    def _run(self, request: gr.Request, curator: bool, *form: Any) -> Iterator[dict[Any, Any]]:
        session, ledger = self._sessions.of(request), self._ledgers.of(request)
        run = session.of(GenerateState).begin()
        yield {
            self.screen: live(RunView(phase="waiting" if not self._loader.ready else "running")),
            self.notice: [],
            self.start: gr.Button(interactive=False),
            self.stop: gr.Button("Stop", interactive=True),
            self.scrub: gr.Slider(visible=False),
            self.curator: gr.Checkbox(interactive=False),
        }
        view = RunView()
        try:
            shown = 0.0
            with closing(self._events(session, ledger, run, PrivacyForm.read(*form), curator)) as events:
                for event in events:
                    if not isinstance(event, PrivateDiagnostics):
                        run.recording.append(event)
                    view = reduce(view, event)
                    if isinstance(event, TokenReleased) and curator:
                        continue  # its clean values follow at once
                    token = isinstance(event, TokenReleased | PrivateDiagnostics)
                    if token and time.monotonic() - shown < _INTERVAL:
                        continue
                    shown = time.monotonic()
                    yield self._shown(view, whole=not token)
        except StudioError as error:
            view = reduce(view, RunFailed(str(error)))
        yield self._ended(session, ledger, view)

    def _events(
        self, session: Session, ledger: PrivacyLedger, pressed: Run, form: PrivacyForm, curator: bool
    ) -> Generator[CuratorEvent]:
        """The run's events; a stop is one of them. Closing this iterator closes the run and settles the ledger."""
        planned = session.of(PrivacyState).calibrate(form, self._loader.speed)
        model = self._loader.model()
        if planned.confirmed is not session.of(DataState).confirmed:
            raise UsageError("The data of step 1 has changed: look at step 2, then start again.")
        state, dataset = session.of(GenerateState), planned.confirmed.dataset
        state.written = pressed
        view = RunView()
        of = fingerprint(dataset)
        run = synthesize(dataset, planned.preview.request, model, ledger, curator=curator)
        try:
            for event in run:
                view = reduce(view, event)
                if view.demo_set and isinstance(event, DemoCompleted):
                    state.made = Made(view.demo_set.with_demonstrations(view.finished), of)
                yield event
                if pressed.stop.is_set() and view.demo_set and view.phase == "running":
                    yield RunStopped(view.demo_set.with_demonstrations(view.finished))
                    return
        finally:
            run.close()

    def _shown(self, view: RunView, whole: bool) -> dict[Any, Any]:
        update: dict[Any, Any] = {self.screen: live(view)}
        if whole:
            update[self.finished] = finished(view)
            update[self.budget] = budget(view.budget) if view.budget else []
        return update

    def _ended(self, session: Session, ledger: PrivacyLedger, view: RunView) -> dict[Any, Any]:
        if (confirmed := session.of(DataState).confirmed) is not None:
            view = replace(view, budget=ledger.snapshot(confirmed.dataset.name, confirmed.dataset.unit))
        some = bool(view.finished)
        message, kind = outcome_of_run(view)
        return self._shown(view, whole=True) | {
            self.notice: notice(message, kind),
            self.scrub: gr.Slider(maximum=max(2, view.released), value=view.released, visible=view.released > 1),
            self.test: gr.Button(visible=some),
            self.export: gr.Button(visible=some),
            self._bar.html: self._bar.value(session),
        }

    def _buttons(self) -> dict[Any, Any]:
        return {
            self.start: gr.Button(interactive=True),
            self.stop: gr.Button("Stop", interactive=False),
            self.curator: gr.Checkbox(interactive=True),
        }
