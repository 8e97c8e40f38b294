"""Runs as events for the screen: starting, resuming and replacing runs, and finding one after a reload."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Generator, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.data.state import ConfirmedData, DataState
from dpicl_ui.frame.handlers import PRIVATE, on
from dpicl_ui.frame.model_loader import EmbedderLoader, ModelLoader
from dpicl_ui.frame.services import Services, Session
from dpicl_ui.frame.tree import Tree, Updates, drawn, el, notice, panel, spinner
from dpicl_ui.generate.replay import own_recording, replayed
from dpicl_ui.generate.state import GenerateState, Run, WrittenSet
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import Fingerprint, PrivacyLedger, fingerprint, new_key
from mechanisms.errors import StudioError, UsageError
from mechanisms.files import keyed_digest
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.rounding import rounded_up
from mechanisms.runs.driver import drive
from mechanisms.runs.events import CuratorEvent, RunCompleted, RunStarted, SetKept
from mechanisms.runs.plan import Plan
from mechanisms.runs.run_file import RunJournal
from mechanisms.runs.spec import WRITE, RunSpec
from mechanisms.runs.stages import stages_in_order

# The journals of runs: one file for each data set, in a folder beside the owner's ledger.
#
# A file holds the run's releases and nothing else (`mechanisms/runs/run_file.py`). Its name has keyed digests and the
# run's key in the ledger, so that the ledger can forget a run even if its file is damaged.

_FOLDER = "journals"


class UnfinishedRuns:
    """The runs of one ledger that have not ended, by their journals."""

    def __init__(self, ledger: PrivacyLedger) -> None:
        self._ledger, self._folder = ledger, ledger.folder / _FOLDER

    def begin(self, data: Fingerprint) -> RunJournal:
        """The journal of a new run; an older run's journal stays until `replace`.

        Raises:
            UsageError: the folder cannot be made.
        """
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(f"The folder '{self._folder}' cannot be used: check its permissions.") from error
        key = new_key()
        return RunJournal.new(self._folder / f"{_whose(data)}-{_what(data)}-{key}.jsonl", key)

    def replace(self, data: Fingerprint, journal: RunJournal) -> None:
        """Remove the journals of other runs on data of this name; they can no longer be resumed."""
        for path in self._folder.glob(f"{_whose(data)}-*"):
            if path != journal.path:
                self.remove(path)

    def read(self, data: Fingerprint) -> RunJournal:
        """The journal of the run on these data that has not ended.

        Raises:
            UsageError: there is none, or it cannot be read.
        """
        path = next(self.of(data), None)
        if path is None:
            raise UsageError("There is no interrupted run on these data to resume: it has ended or was discarded.")
        return RunJournal.read(path, self._ledger)

    def discard(self, data: Fingerprint) -> None:
        for path in self.of(data):
            self.remove(path)

    def remove(self, path: Path) -> None:
        """Remove a journal, and the ledger's lines for its run.

        Raises:
            UsageError: the folder cannot be written.
            StudioError: the ledger cannot be used; the journal stays.
        """
        self._ledger.forget(_key(path))
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"Cannot remove '{path}': check the permissions of its folder.") from error

    def of(self, data: Fingerprint) -> Iterator[Path]:
        """The journals of unfinished runs on exactly these data."""
        return self._folder.glob(f"{_whose(data)}-{_what(data)}-*")

    def all(self) -> dict[str, str]:
        """The names of the data sets of all unfinished runs, by the runs' keys in the ledger."""
        found = {key: self._ledger.name_of(key) for key in map(_key, sorted(self._folder.glob("*.jsonl")))}
        return {key: name for key, name in found.items() if name}


def _key(journal: Path) -> str:
    return journal.stem.rpartition("-")[2]


def _whose(data: Fingerprint) -> str:
    return keyed_digest(("journal of", data.name, data.unit))[:32]


def _what(data: Fingerprint) -> str:
    return keyed_digest(("journal on", data.content))[:32]


# The planned or resumed run as events for the screen.


class Runner:
    """Starts runs with the app's models; `at_work` has the ledger's keys of the running ones that have a journal."""

    def __init__(self, loader: ModelLoader, embedder: EmbedderLoader) -> None:
        self._loader, self._embedder = loader, embedder
        self.at_work: set[str] = set()

    def events(
        self,
        session: Session,
        ledger: PrivacyLedger,
        pressed: Run,
        source: RunSpec | RunJournal,
        curator: bool,
        unfinished: UnfinishedRuns | None = None,
    ) -> Generator[CuratorEvent]:
        """The run's events, including a stop; a resumed run's earlier events come first. The tab keeps its set.

        Closing the iterator closes the run and settles the ledger.

        Args:
            session: the tab's session.
            ledger: the ledger that is charged.
            pressed: the press that starts the run.
            source: the spec of step 2, or the journal of an interrupted run.
            curator: also yield clean averages, for the owner's screen.
            unfinished: keeps the journal of a private run; the journal stays if the run does not end on an open page.

        Raises:
            StudioError: the run cannot begin or be resumed; the message says what to do.
        """
        journal: RunJournal | None = None
        if isinstance(source, RunJournal):
            journal, confirmed, plan = source, *self._resumed(session, source)
        else:
            planned = session.of(PrivacyState).calibrate(source, self._loader.speed)
            confirmed, plan = planned.confirmed, planned.plan
            if unfinished and plan.reads_rows and not plan.not_private:
                journal = unfinished.begin(fingerprint(confirmed.dataset))
        begun = ended = False
        if confirmed is not session.of(DataState).confirmed:
            raise UsageError("The data of step 1 has changed: look at step 2, then start again.")
        dataset, data, state = confirmed.dataset, fingerprint(confirmed.dataset), session.of(GenerateState)
        models, stopped = self._models(plan), pressed.stop.is_set
        events = drive(plan, dataset, *models, ledger, stopped=stopped, curator=curator, journal=journal)
        try:
            for event in events:
                if isinstance(event, RunStarted):  # a refused run does not replace the earlier one
                    state.written = pressed
                    if journal and unfinished:
                        begun = True
                        self.at_work.add(journal.key)
                        unfinished.replace(data, journal)
                if isinstance(event, SetKept | RunCompleted):
                    state.made = WrittenSet(event.demo_set, data)
                yield event
            ended = not pressed.tab_closed.is_set()
        finally:
            # On a public Space, the ledger is dropped with the tab, and no page is left that could show an error.
            with suppress(StudioError) if pressed.tab_closed.is_set() else nullcontext():
                events.close()
            # torch takes seconds to import, so the page is served first.
            from mechanisms.inference.engine.memory import release_freed_memory

            release_freed_memory()  # the freed memory held rows
            if journal is not None:
                if begun:  # a refused run may be running elsewhere
                    self.at_work.discard(journal.key)
                if unfinished and (ended or not journal.path.exists()):  # or another run replaced it
                    with suppress(StudioError):  # a run that can still be resumed will be offered again
                        unfinished.remove(journal.path)

    def _resumed(self, session: Session, journal: RunJournal) -> tuple[ConfirmedData, Plan]:
        confirmed = session.of(DataState).confirmed
        if confirmed is None or journal.begun is None:
            raise UsageError("Confirm the data of this run in step 1, then resume it.")
        made = journal.begun.demo_set
        if made.model_sha256 != self._loader.model().sha256:
            raise UsageError(f"This run was begun with the model {made.model_id}: load it in step 2, then resume it.")
        return confirmed, journal.plan(fingerprint(confirmed.dataset).content)

    def _models(self, plan: Plan) -> tuple[LanguageModel, Embedder | None]:
        """The models that a run needs; waits until they are loaded."""
        model = self._loader.model()
        from mechanisms.inference.engine.threads import threads_here  # torch takes seconds to import

        threads_here().choose()  # for this run; runs take turns
        return model, self._embedder.embedder() if plan.embeds else None


# The offer to resume or to discard an interrupted run on the confirmed data.

_WHAT_IT_COSTS = (
    "Its releases are kept and already paid for. If you resume it, it costs no more than planned. "
    "Generate begins a new run instead and discards this one."
)
_AT_WORK = "A run on these data is still running in another tab, or in one that was closed a moment ago."
_LEFT = "The run was discarded and cannot be resumed any more. Its charge stays spent."


_LEFT_RUN = (
    "{} Its charge stays spent. To resume it, choose its file or example again, under the same name: step 3 then "
    "offers to resume it for no more than was planned."
)
_STOPPING = "A run on '{}' is running in another tab, or is being stopped because its page was closed or reloaded."
_CUT_OFF = "A run on '{}' was cut off."


class CutOffCard:
    """The card of an interrupted run, with all its handlers except the one that resumes the run (`GenerateStep`)."""

    def __init__(self, app: Services, runner: Runner) -> None:
        self._app, self._runner = app, runner
        with gr.Column(elem_classes="card", elem_id="cut-off", visible=False) as self.body:
            self.words = panel(elem_id="cut-off-words")
            with gr.Row(elem_classes="actions"):
                self.go_on = gr.Button("Resume", variant="primary", elem_id="go-on")
                self.discard = gr.Button("Discard", elem_id="leave-run")
        self.outputs = [self.body, self.words, self.go_on, self.discard]

    def wire(self, where: gr.HTML) -> None:
        self._where = where
        on(self.discard.click, self._discard, None, [*self.outputs, where], where)

    def _discard(self, request: gr.Request) -> Updates:
        self._needed_runs(request).discard(_data(self._app.session(request)))
        return self.shown(request) | {self._where: notice(_LEFT, "info")}

    def follow(self, *events: gr.events.Dependency) -> None:
        for each in events:
            each.then(self.shown, None, self.outputs, **PRIVATE)

    def announce(self, where: gr.HTML, loaded: Any, *events: gr.events.Dependency) -> None:
        """When a page is loaded, show which runs were interrupted, until their data are confirmed."""
        for each in (loaded, *(each.then for each in events)):
            each(self.notices_elsewhere, None, where, **PRIVATE)

    def notices_elsewhere(self, request: gr.Request) -> list[Tree]:
        """Notices of the unfinished runs on other data; the card shows those on the confirmed data."""
        session, unfinished = self._app.session(request), self.unfinished(request)
        if unfinished is None:
            return []
        on_card = {*map(_key, unfinished.of(_data(session)))} if session.of(DataState).confirmed else set()
        told: list[Tree] = []
        for key, name in unfinished.all().items():
            if key not in on_card:
                front = _STOPPING if key in self._runner.at_work else _CUT_OFF
                told += notice(_LEFT_RUN.format(front.format(name)), "info")
        return told

    def journal(self, request: gr.Request) -> tuple[RunJournal, UnfinishedRuns]:
        """The interrupted run's journal, and the unfinished runs that it belongs to.

        Raises:
            UsageError: there is no interrupted run, or its journal cannot be read.
        """
        unfinished = self._needed_runs(request)
        return unfinished.read(_data(self._app.session(request))), unfinished

    def unfinished(self, request: gr.Request) -> UnfinishedRuns | None:
        """The unfinished runs of a tab's ledger; None if the ledger ends with the tab."""
        return UnfinishedRuns(self._app.ledger(request)) if self._app.ledgers.lasting else None

    def _needed_runs(self, request: gr.Request) -> UnfinishedRuns:
        if (unfinished := self.unfinished(request)) is None:
            raise UsageError("This server stores nothing after a page is closed, so no run can be resumed.")
        return unfinished

    def hidden(self) -> Updates:
        return {self.body: gr.Column(visible=False)}

    def shown(self, request: gr.Request) -> Updates:
        session, unfinished = self._app.session(request), self.unfinished(request)
        if (
            unfinished is None
            or session.of(DataState).confirmed is None
            or not any(unfinished.of(data := _data(session)))
        ):
            return self.hidden()
        try:
            journal = unfinished.read(data)
            at_work, readable = journal.key in self._runner.at_work, True
            words = [el("p", _AT_WORK if at_work else in_words(journal))]
        except StudioError as error:
            at_work, readable, words = False, False, notice(str(error), "warn")
        return {
            self.body: gr.Column(visible=True),
            self.words: words,
            self.go_on: gr.Button(visible=readable),
            self.discard: gr.Button(visible=not at_work),
        }


def in_words(journal: RunJournal) -> str:
    assert journal.begun is not None
    view = replayed([journal.begun, *(journal.replayed or ())])
    if view.stage == WRITE:
        whole, planned = len(view.completed), view.plan.sampling.written * len(view.plan.labels) if view.plan else 0
        far = f"{whole} of {planned} demonstrations {'was' if whole == 1 else 'were'} complete."
    elif view.stage:
        far = f"It had reached {stages_in_order()[view.stage].noun}."
    else:
        far = "It had only begun."
    return f"A run on these data was cut off. {far} {_WHAT_IT_COSTS}"


def _data(session: Session) -> Fingerprint:
    return fingerprint(session.of(DataState).needed.dataset)


# Before a run: whether it may replace a finished set that nobody exported or saved.

_KEPT_NOWHERE = (
    "The finished set of this page was neither exported nor saved. The next run replaces it, with its score and replay."
)
_COSTS_AGAIN = "Its cost stays spent, and another run costs its epsilon again{price}."
_RESUMING = "Its cost stays spent; the resumed run costs no more than was planned."


class ReplaceQuestion:
    """The question before a run. It handles every press; a new value of `begun` then begins the run.

    Whether to ask is decided at once, while the run waits for the model's queue. A press and its run therefore have
    separate listeners, and a number that is new in this tab triggers the second one.
    """

    def __init__(self, app: Services) -> None:
        self._app = app
        # Not "hidden": a column that is "hidden" from the start is in the page anyway.
        with gr.Column(visible=False, elem_id="replacing", elem_classes="replacing") as self.body:
            self.words = panel(elem_id="replacing-words")
            with gr.Row(elem_classes="actions"):
                self.yes = gr.Button("Yes, replace it", size="sm", elem_id="replace-set")
                self.no = gr.Button("Keep it", size="sm", elem_id="keep-set")
        self.begun = gr.HTML(0, html_template="<div></div>", apply_default_css=False, elem_classes="sink")

    def wire(self, start: gr.Button, go_on: gr.Button, where: gr.HTML) -> None:
        """Let these buttons ask first; `where` shows progress and errors."""
        self._where = where
        shown = [self.body, self.words, self.begun, where]

        def presser(resume: bool) -> Any:
            def press(request: gr.Request) -> Updates:
                return self.pressed(self._app.session(request), resume)

            return press

        for button, handler in ((start, presser(False)), (go_on, presser(True)), (self.yes, self.agreed)):
            on(button.click, handler, None, shown, where, queue=False)
        self.no.click(self.hidden, None, self.body, queue=False, **PRIVATE)

    def hidden(self) -> Updates:
        """The components' values without a question."""
        return {self.body: gr.Column(visible=False)}

    def pressed(self, session: Session, resume: bool) -> Updates:
        """Begin a run, or ask first, with a warning of what would be lost and what the run costs.

        Raises:
            UsageError: no data set is confirmed.
        """
        _ = session.of(DataState).needed  # step 3 is also open for a run that is only shown
        state = session.of(GenerateState)
        state.resume = resume
        if state.under_way or not state.untaken:
            return self._begin(state)
        planned = session.of(PrivacyState).planned
        charge = planned.charge if planned else 0.0
        price = f" ({rounded_up(charge, 3)})" if 0 < charge < math.inf else ""
        cost = _RESUMING if resume else _COSTS_AGAIN.format(price=price)
        return {self.body: gr.Column(visible=True), self.words: notice(f"{_KEPT_NOWHERE} {cost}", "warn")}

    def agreed(self, request: gr.Request) -> Updates:
        """Begin the run that the question was about."""
        return self._begin(self._app.session(request).of(GenerateState))

    def _begin(self, state: GenerateState) -> Updates:
        state.presses += 1
        return self.hidden() | {self._where: spinner("Waiting for the model …"), self.begun: state.presses}


# Finished runs that a reloaded page shows again. They stay in memory, on a server whose ledger outlives its pages.
#
# A run is found by a random key that the browser stores with its tab. It consists of the releases, the data set's name
# and the keyed digest of its content, and nothing else that follows from its rows.

MOST_RUNS = 20
"""The most runs that a server keeps; the oldest are dropped."""
_KEY = re.compile(r"[0-9a-f]{32}")
_SHOWN_AGAIN = (
    "This page was reloaded. Its last finished run is shown again, and its set can be tested and exported. The data "
    "are no longer here: choose them in step 1 before you write another set."
)


class KeptRuns:
    """The finished runs of a server, the oldest first; `found` fires after a page has looked for its run."""

    found: gr.events.Dependency

    def __init__(self, app: Services) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._runs: dict[str, tuple[Run, WrittenSet]] = {}
        self.key = drawn("tab_key.js", None, elem_id="tab-key", elem_classes="sink")

    def wire(self, where: gr.HTML, outputs: list[Any], finished: Any) -> None:
        """Look for a run when the page has sent its key; `finished(session, ledger, move)` returns its updates."""

        def find(key: Any, request: gr.Request) -> Updates:
            session, ledger = self._app.session(request), self._app.ledger(request)
            if not self.know(session, key) or not self.restore(session):
                return {where: gr.skip()}
            shown: Updates = finished(session, ledger, session.of(DataState).file is None)
            return shown | {where: notice(_SHOWN_AGAIN, "info")}

        self.found = on(self.key.input, find, self.key, outputs, where)

    def know(self, session: Session, key: object) -> bool:
        """Set the key that the browser stores for a tab; returns whether it is valid."""
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            return False
        session.of(GenerateState).key = key
        return True

    def keep(self, session: Session) -> None:
        """Keep a tab's finished run if its set is private and the ledger outlives the page."""
        state = session.of(GenerateState)
        if not self._app.ledgers.lasting or state.key is None or state.written is None or state.made is None:
            return
        if own_recording(session) and state.made.demo_set.certificate.private:
            of = Fingerprint(state.made.data.name, state.made.data.unit, state.made.data.content)
            with self._lock:
                self._runs.pop(state.key, None)
                self._runs[state.key] = state.written, WrittenSet(state.made.demo_set, of)
                while len(self._runs) > MOST_RUNS:
                    del self._runs[next(iter(self._runs))]

    def drop(self, session: Session) -> None:
        """Drop a tab's run, because a new one replaces it."""
        with self._lock:
            self._runs.pop(session.of(GenerateState).key or "", None)

    def restore(self, session: Session) -> bool:
        """Restore the kept run of a tab that has none; returns whether there was one."""
        state = session.of(GenerateState)
        with self._lock:
            kept = self._runs.get(state.key or "")
        if kept is None or state.run is not None or state.made is not None:
            return False
        state.restore(*kept)
        return True
