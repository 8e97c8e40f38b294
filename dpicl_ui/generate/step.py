"""Step 3: the run itself, live, and its replay."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.files import Download, download
from dpicl_ui.frame.handlers import MODEL, PRIVATE, UpdateLimit, on
from dpicl_ui.frame.services import Services, Session
from dpicl_ui.frame.tree import Tree, Updates, budget, drawn, el, notice, panel, visibility
from dpicl_ui.generate.cards import RunPace, finished, forecast, outcome_of_loading, outcome_of_run, time_card
from dpicl_ui.generate.charts import live
from dpicl_ui.generate.kept_runs import KeptRuns
from dpicl_ui.generate.replacing import ReplaceQuestion
from dpicl_ui.generate.replay import (
    FILE_NAME,
    OwnRows,
    Replay,
    loaded,
    own_recording,
    own_run,
    replayed,
    savable,
    screens,
)
from dpicl_ui.generate.runner import Runner
from dpicl_ui.generate.state import GenerateState, Run
from dpicl_ui.generate.unfinished import CutOffCard
from dpicl_ui.privacy.state import PrivacyState
from dpicl_ui.privacy.step import PrivacyStep, budget_of
from mechanisms.accounting import PrivacyLedger
from mechanisms.errors import StudioError
from mechanisms.runs.events import (
    CuratorEvent,
    Drafting,
    PrivateDiagnostics,
    RunFailed,
    RunStarted,
    SetSoFar,
    StageProgress,
    StageStarted,
    TokenReleased,
)
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.view import RunView, fold

_OF_STAGES = 0.5
"""The least seconds between two updates of a stage's bar: drawing slows the model."""

_CURATOR = "Show averages without noise: for your eyes only, and every later export of these data is marked"
_CURATOR_INFO = (
    "None of it is stored. But once you have seen it, your later choices may depend on the data: every later "
    "certificate of this data set says so."
)


class GenerateStep:
    """Components and handlers of step 3."""

    def __init__(self, app: Services, privacy: PrivacyStep) -> None:
        self._app, self._privacy, self._runner = app, privacy, Runner(app.loader, app.embedder)
        with app.bar.panel(3), gr.Row(elem_classes="split"):
            with gr.Column(scale=7, min_width=300):
                self.cut_off = CutOffCard(app, self._runner.at_work)
                self._build_run()
            with gr.Column(scale=4, min_width=300, elem_classes="aside"):
                with gr.Column(elem_classes="card public"):
                    self.finished = panel(*finished(RunView()), elem_id="finished")
                    self.test = gr.Button("Test them", variant="primary", elem_id="go-test", visible=visibility(False))
                    self.export = gr.Button("Export", variant="primary", elem_id="go-export", visible=visibility(False))
                with gr.Column(elem_classes="card"):
                    self.budget = panel(elem_id="run-budget")
        self._wire(privacy)

    def _build_run(self) -> None:
        with gr.Column(elem_classes="card"):
            with gr.Row(elem_classes="actions"):
                self.start = gr.Button("Generate", variant="primary", elem_id="generate")
                self.stop = gr.Button("Stop", variant="stop", elem_id="stop", interactive=False)
            self.replacing = ReplaceQuestion(self._app)
            self.notice = panel(elem_id="run-notice")
            self.kept = KeptRuns(self._app)
            self.time = panel(elem_id="run-time")
            self.stages = panel(elem_id="run-stages")
            self.openings = panel(elem_id="openings")
            self.words = panel(elem_id="words")
            self.screen = drawn("live.js", live(RunView()), elem_id="live")
            self.votes = panel(elem_id="votes")
            self.replay = Replay()
        with gr.Column(elem_classes="card public"):
            self.score = panel(elem_id="own-score")
        self._shows = (self.stages, self.openings, self.words, self.screen, self.votes, self.score)
        self.own_rows = OwnRows(self._app)
        with gr.Column(elem_classes="card private switch"):
            self.curator = gr.Checkbox(label=_CURATOR, info=_CURATOR_INFO, elem_id="curator")

    def _wire(self, privacy: PrivacyStep) -> None:
        outputs = [
            *self._shows, self.time, self.finished, self.budget, self.notice, self.start, self.stop, self.test,
            self.export, self.curator, self.replay.bar, self.replay.save, self._app.bar.html,
            self.cut_off.body, self.replacing.body, *self.own_rows.outputs,
        ]  # fmt: skip
        form = {self.curator, self.replacing.press, *privacy.form}
        once = {"trigger_mode": "once", **MODEL}
        press = self.replacing.press.change
        pressed = on(press, self._pressed, form, outputs, self.notice, self._buttons, **once)
        self.replacing.wire(self.start, self.cut_off.go_on, self.notice)
        self.kept.wire(self.notice, outputs, self._again)
        self.ended = (pressed, self.kept.found)
        self.cut_off.wire(self.notice)
        self.cut_off.follow(*self.ended)
        for each in self.ended:
            each.then(self._said_again, None, [self.start, self.test, self.export, self.replay.save], **PRIVATE)
            privacy.check_after(each.then(self._show_budget, None, privacy.budget, **PRIVATE).then)
        self.stop.click(self._stop, None, self.stop, queue=False, **PRIVATE)
        on(self.replay.save.click, self._save, None, [self.replay.sink, self.notice], self.notice)
        self._loaded = outputs
        self.cut_off.follow(privacy.start.click(self._show_budget, None, self.budget, **PRIVATE))
        for button, step in ((self.test, 4), (self.export, 5)):
            button.click(self._app.bar_after(step), None, self._app.bar.html, **PRIVATE)

    def _show_budget(self, request: gr.Request) -> Any:
        return budget_of(self._app, request)

    def _stop(self, request: gr.Request) -> Any:
        self._app.session(request).of(GenerateState).stop()
        return gr.Button("Stopping …", interactive=False)

    def _save(self, request: gr.Request) -> Updates:
        session = self._app.session(request)
        file = Download(FILE_NAME, "application/jsonl", own_run(session, self._app.ledger(request)).encode())
        session.of(GenerateState).take()
        said = notice("Saved by your browser: the releases, and nothing else.", "good")
        return {self.replay.sink: download(file), self.notice: said}

    def loads(self, button: gr.UploadButton, where: gr.HTML) -> None:
        """Make a button show the run of an uploaded file, and move to this step; `where` shows errors."""

        def load(upload: str | None, request: gr.Request) -> Iterator[Updates]:
            if upload is None:
                yield {button: None, where: []}
                return
            yield {button: None, where: [el("p.spinner", "Reading the run …", role="status")]}
            yield {where: []} | self._looked_at(upload, request)

        on(button.upload, load, button, list(dict.fromkeys([*self._loaded, button, where])), where)

    def _looked_at(self, upload: str, request: gr.Request) -> Updates:
        events, session = loaded(upload), self._app.session(request)
        session.of(GenerateState).prepare_replay()
        view = replayed(events)
        return {
            **self._screens(view),
            **self.replay.ended(events, savable=False),
            self.finished: finished(view),
            self.time: [],
            self.notice: notice(*outcome_of_loading(view)),
            **self._leads_on(False),
            **self._app.steps(session, 3),
            **self.own_rows.before(session),
            **self.replacing.hidden(),
        }

    def _leads_on(self, made: bool) -> Updates:
        return {each: gr.Button(visible=visibility(made)) for each in (self.test, self.export)}

    def _again(self, session: Session, ledger: PrivacyLedger, move: bool) -> Updates:
        """The screen at the end of the tab's last finished run."""
        recording = own_recording(session)
        view = replayed(recording)
        shown = self._ended(session, ledger, view) | self.replay.ended(recording, savable(view)) | {self.time: []}
        return shown | (self._app.steps(session, 3) if move else {})

    def _said_again(self, request: gr.Request) -> Updates:
        """The final values of the components that the previous call hid and showed, sent again (see `visibility`)."""
        session = self._app.session(request)
        again = {self.replay.save: gr.Button(visible=visibility(savable(replayed(own_recording(session)))))}
        return self._next_step(session.of(GenerateState).made is not None) | again

    def _next_step(self, made: bool) -> Updates:
        """The main buttons' values: as soon as there is a set, Test and Export are the primary buttons."""
        start = (
            gr.Button("Write another set", variant="secondary") if made else gr.Button("Generate", variant="primary")
        )
        return {self.start: start, **self._leads_on(made)}

    def _pressed(self, values: Mapping[Any, Any], request: gr.Request) -> Iterator[Updates]:
        session, ledger = self._app.session(request), self._app.ledger(request)
        state, curator = session.of(GenerateState), values[self.curator]
        _ = session.of(DataState).needed  # step 3 is also open for a saved run, which stays on the screen
        unfinished = self.cut_off.unfinished(request)
        source: RunSpec | RunJournal
        if self.replacing.resumes(values[self.replacing.press]):
            source = journal = self.cut_off.journal(request)
            run = state.begin(journal.known)
        else:
            source, run = self._privacy.spec(session, values), state.begin()
        stream = self._runner.events(session, ledger, run, source, curator, unfinished)
        yield from self._followed(session, ledger, run, stream, curator)

    def _followed(
        self, session: Session, ledger: PrivacyLedger, run: Run, stream: Generator[CuratorEvent], curator: bool
    ) -> Iterator[Updates]:
        """The screen during a run and at its end; a resumed run's earlier events are shown at once."""
        view, plan = RunView("waiting"), session.of(PrivacyState).plan
        tokens, bars = UpdateLimit(), UpdateLimit(_OF_STAGES)
        foreseen = forecast(plan, self._app.loader.speed) if plan and not run.before else {}  # not for a resumed run
        pace = RunPace(time.monotonic(), foreseen)
        try:
            yield self._begun(session)
            with closing(stream) as events:
                for event in events:
                    self._record(session, run, event)
                    view, now = fold(view, event), time.monotonic()
                    if isinstance(event, StageStarted) and view.budget is not None:
                        view = _with_budget(session, ledger, view)
                    if run.again:
                        pace = replace(pace, since=now, before=view.progress)
                    if _passed_over(run, event, curator):
                        continue
                    frequent = not run.again and isinstance(event, TokenReleased | PrivateDiagnostics | StageProgress)
                    if frequent and not (bars if isinstance(event, StageProgress) else tokens).due():
                        continue
                    yield self._shown(view, whole=not frequent) | {self.time: time_card(pace, view, now)}
        except StudioError as error:
            view = fold(view, RunFailed(str(error)))
        finally:
            run.ended.set()
        now = time.monotonic()
        yield self._left(session, ledger, run, view, time_card(pace, view, now))

    def _record(self, session: Session, run: Run, event: CuratorEvent) -> None:
        if not isinstance(event, PrivateDiagnostics | StageProgress | Drafting):
            run.recording.append(event)
        if isinstance(event, RunStarted):
            self.kept.drop(session)

    def _left(self, session: Session, ledger: PrivacyLedger, run: Run, view: RunView, took: list[Tree]) -> Updates:
        """The screen after a run; if it never began, the earlier run stays on the screen."""
        if not run.recording and own_recording(session):
            return self._again(session, ledger, move=False) | {self.notice: notice(*outcome_of_run(view))}
        self.kept.keep(session)
        return self._ended(session, ledger, view) | self.replay.ended(run.recording, savable(view)) | {self.time: took}

    def _begun(self, session: Session) -> Updates:
        return self._screens(RunView("running" if self._app.loader.ready else "waiting")) | {
            self.notice: [],
            self.time: [],
            self.start: gr.Button(interactive=False),
            self.stop: gr.Button("Stop", interactive=True),
            self.curator: gr.Checkbox(interactive=False),
            **self._leads_on(False),
            **self.replay.under_way(),
            **self.own_rows.before(session),
            **self.cut_off.hidden(),
            **self.replacing.hidden(),
        }

    def _screens(self, view: RunView) -> Updates:
        return dict(zip(self._shows, screens(view).values(), strict=True))

    def _shown(self, view: RunView, whole: bool) -> Updates:
        update = self._screens(view)
        if whole:
            update[self.finished] = finished(view)
            if view.budget is not None:  # before the charge, the budget of step 2 is right
                update[self.budget] = budget(view.budget)
        return update

    def _ended(self, session: Session, ledger: PrivacyLedger, view: RunView) -> Updates:
        view = _with_budget(session, ledger, view)
        made = view.demo_set is not None and bool(view.demo_set.demonstrations)
        message, kind = outcome_of_run(view)
        return self._shown(view, whole=True) | {
            self.notice: notice(message, kind),
            **self._app.steps(session),
            **self._next_step(made),
            **self.own_rows.after(session),
        }

    def _buttons(self) -> Updates:
        return {
            self.start: gr.Button(interactive=True),
            self.stop: gr.Button("Stop", interactive=False),
            self.curator: gr.Checkbox(interactive=True),
        }


def _with_budget(session: Session, ledger: PrivacyLedger, view: RunView) -> RunView:
    confirmed = session.of(DataState).confirmed
    if confirmed is None:
        return view
    return replace(view, budget=ledger.snapshot(confirmed.dataset.name, confirmed.dataset.unit))


def _passed_over(run: Run, event: CuratorEvent, curator: bool) -> bool:
    """Whether an event is not drawn by itself.

    These are a resumed run's earlier events except the last one, and events that another event follows at once.
    """
    if run.again:
        return len(run.recording) < run.before
    return isinstance(event, SetSoFar) or (curator and isinstance(event, TokenReleased))
