"""Runs as events for the screen: the one planned in step 2, or a resumed one."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import gradio as gr

from dpicl_ui.data.state import Confirmed, DataState
from dpicl_ui.frame.guard import PRIVATE, on
from dpicl_ui.frame.model_loader import EmbedderLoader, ModelLoader
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import Updates, el, notice, panel
from dpicl_ui.generate.replay import replayed
from dpicl_ui.generate.state import NO_DATA, GenerateState, Made, Run
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import Fingerprint, PrivacyLedger, fingerprint, new_key
from mechanisms.errors import StudioError, UsageError
from mechanisms.files import keyed_digest
from mechanisms.records import Dataset
from mechanisms.runs.events import CuratorEvent, Drafting, RunCompleted, RunStarted, RunStopped, SetKept
from mechanisms.runs.plan import Plan
from mechanisms.runs.run import run
from mechanisms.runs.run_file import RunJournal
from mechanisms.runs.spec import VOTE, WRITE, RunSpec
from mechanisms.runs.stages import stages_by_place
from mechanisms.runs.view import RunView, fold

# Journals of current runs: one file for each data set, in a folder beside the owner's ledger.
#
# A file holds the run's releases, and nothing else (`mechanisms/runs/run_file.py`). Its name holds keyed digests and
# the ledger's key of the run, so that the ledger can forget a run whose file is damaged.

_FOLDER = "journals"


class Unfinished:
    """The runs of one ledger that have not ended."""

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
        """Drop the journals of other runs under the data set's name, which can no longer be resumed."""
        for path in self._folder.glob(f"{_whose(data)}-*"):
            if path != journal.path:
                self.remove(path)

    def read(self, data: Fingerprint) -> RunJournal:
        """The journal of the run that has not ended.

        Raises:
            UsageError: there is none, or it cannot be read.
        """
        path = next(self.of(data), None)
        if path is None:
            raise UsageError("There is no interrupted run on these data to resume: it has ended or was discarded.")
        return RunJournal.read(path, self._ledger)

    def leave(self, data: Fingerprint) -> None:
        for path in self.of(data):
            self.remove(path)

    def remove(self, path: Path) -> None:
        """Remove a journal, and the lines that the ledger keeps for its run.

        Raises:
            UsageError: the folder cannot be written.
            StudioError: the ledger cannot be used; the journal stays.
        """
        self._ledger.forget(path.stem.rpartition("-")[2])
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"Cannot remove '{path}': check the permissions of its folder.") from error

    def of(self, data: Fingerprint) -> Iterator[Path]:
        """The journals of unfinished runs on exactly these data."""
        return self._folder.glob(f"{_whose(data)}-{_what(data)}-*")


def _whose(data: Fingerprint) -> str:
    return keyed_digest(("journal of", data.name, data.unit))[:32]


def _what(data: Fingerprint) -> str:
    return keyed_digest(("journal on", data.content))[:32]


# The planned or the resumed run as events for the screen; the tab keeps its set.

_STOPPED = "Stopped. No row was read, and nothing is spent."
_STOPPED_AGAIN = "Stopped. No row was read, and the run can still be resumed."


class Runner:
    """Starts runs with the app's models.

    Attributes:
        at_work: the ledger's keys of the current runs that can be resumed.
    """

    def __init__(self, loader: ModelLoader, embedder: EmbedderLoader) -> None:
        self._loader, self._embedder = loader, embedder
        self.at_work: set[str] = set()

    def events(
        self,
        session: Session,
        ledger: PrivacyLedger,
        pressed: Run,
        asked: RunSpec | RunJournal,
        curator: bool,
        unfinished: Unfinished | None = None,
    ) -> Generator[CuratorEvent]:
        """The run's events, including a stop; of a resumed run the replayed ones come first. The tab keeps its set.

        Closing the iterator closes the run and settles the ledger.

        Args:
            asked: what step 2 asks for at the press; or the journal of an interrupted run.
            unfinished: where the journal of a private run is kept; it stays if the run does not come to its end on an
                open page.

        Raises:
            StudioError: the run cannot begin or be resumed; the message says what to do.
        """
        journal: RunJournal | None = None
        if isinstance(asked, RunJournal):
            journal, confirmed, plan = asked, *self._resumed(session, asked)
        else:
            planned = session.of(PrivacyState).calibrate(asked, self._loader.speed)
            confirmed, plan = planned.confirmed, planned.plan
            if unfinished and plan.reads_rows and not plan.not_private:
                journal = unfinished.begin(fingerprint(confirmed.dataset))
        begun = ended = False
        if confirmed is not session.of(DataState).confirmed:
            raise UsageError("The data of step 1 has changed: look at step 2, then start again.")
        data = fingerprint(confirmed.dataset)
        events = self._start(confirmed.dataset, plan, ledger, curator, journal)
        try:
            for event in _kept(session, data, events, pressed):
                if journal and unfinished and isinstance(event, RunStarted):
                    begun = True
                    self.at_work.add(journal.key)
                    unfinished.replace(data, journal)
                yield event
            ended = not pressed.left.is_set()
        finally:
            events.close()
            # torch takes seconds to import: not before the page is served.
            from mechanisms.inference.engine.device import release_freed_memory

            release_freed_memory()  # rows were in it
            if journal is not None:
                journal.close()
                if begun:  # one that was refused may be at work elsewhere
                    self.at_work.discard(journal.key)
                if unfinished and (ended or not journal.path.exists()):  # or another run took its place
                    with suppress(StudioError):  # a run that can still be resumed is offered again
                        unfinished.remove(journal.path)

    def _resumed(self, session: Session, journal: RunJournal) -> tuple[Confirmed, Plan]:
        confirmed = session.of(DataState).confirmed
        if confirmed is None or journal.begun is None:
            raise UsageError("Confirm the data of this run in step 1, then resume it.")
        made = journal.begun.demo_set
        if made.model_sha256 != self._loader.model().sha256:
            raise UsageError(f"This run was begun with the model {made.model_id}: load it in step 2, then resume it.")
        return confirmed, journal.plan(fingerprint(confirmed.dataset).content)

    def _start(
        self, dataset: Dataset, plan: Plan, ledger: PrivacyLedger, curator: bool, journal: RunJournal | None
    ) -> Generator[CuratorEvent]:
        """The run's events; waits for the models. No row is read before the first event is requested."""
        model = self._loader.model()
        embedder = self._embedder.embedder() if VOTE in plan.stages else None
        return run(plan, dataset, model, ledger, curator=curator, journal=journal, embedder=embedder)


def _kept(session: Session, of: Fingerprint, events: Generator[CuratorEvent], pressed: Run) -> Generator[CuratorEvent]:
    """A run's events until it ends or is stopped; the tab keeps its set."""
    state, view = session.of(GenerateState), RunView()
    for event in events:
        view = fold(view, event)
        if isinstance(event, RunStarted):  # one that was refused leaves the run before
            state.written = pressed
        if isinstance(event, SetKept | RunCompleted):
            state.made = Made(event.demo_set, of)
        yield event
        if not pressed.stop.is_set() or isinstance(event, SetKept):  # what it is kept for is told next
            continue
        if isinstance(event, Drafting) and view.phase != "running":
            raise UsageError(_STOPPED_AGAIN if pressed.before else _STOPPED)
        if view.phase == "running" and view.demo_set:
            yield RunStopped(view.demo_set)
            return


# The offer to resume or to discard an interrupted run on the confirmed data.

_WHAT_IT_COSTS = (
    "What it released is kept and already paid for. Resumed, the run costs no more than planned. "
    "Generate begins a new run instead and drops this one."
)
_AT_WORK = "A run on these data is still under way in another tab, or in one that was closed a moment ago."
_LEFT = "The run was discarded and can no longer be resumed. What it was charged stays charged."


class CutOffCard:
    """Components, and all handlers except the one that resumes the run, which is the step's."""

    def __init__(self, app: Services, runner: Runner) -> None:
        self._app, self._runner = app, runner
        with gr.Column(elem_classes="card", elem_id="cut-off", visible=False) as self.body:
            self.words = panel(elem_id="cut-off-words")
            with gr.Row(elem_classes="actions"):
                self.go_on = gr.Button("Resume", elem_id="go-on")
                self.leave = gr.Button("Discard", elem_id="leave-run")
        self.outputs = [self.body, self.words, self.go_on, self.leave]

    def wire(self, where: gr.HTML) -> None:
        self._where = where
        on(self.leave.click, self._leave, None, [*self.outputs, where], where)

    def _leave(self, request: gr.Request) -> Updates:
        self._place(request).leave(_data(self._app.session(request)))
        return self.shown(request) | {self._where: notice(_LEFT, "info")}

    def follow(self, *events: gr.events.Dependency) -> None:
        for each in events:
            each.then(self.shown, None, self.outputs, **PRIVATE)

    def journal(self, request: gr.Request) -> tuple[RunJournal, Unfinished]:
        """The interrupted run, and where its journal is.

        Raises:
            UsageError: there is none, or none that can be read.
        """
        place = self._place(request)
        return place.read(_data(self._app.session(request))), place

    def place(self, request: gr.Request) -> Unfinished | None:
        """The journals of a tab's runs; None if the tab's ledger ends with the tab."""
        return Unfinished(self._app.ledger(request)) if self._app.ledgers.lasting else None

    def _place(self, request: gr.Request) -> Unfinished:
        if (place := self.place(request)) is None:
            raise UsageError("This server keeps nothing after a page is closed, so no run can be resumed.")
        return place

    def hidden(self) -> Updates:
        return {self.body: gr.Column(visible=False)}

    def shown(self, request: gr.Request) -> Updates:
        session, place = self._app.session(request), self.place(request)
        if place is None or session.of(DataState).confirmed is None or not any(place.of(data := _data(session))):
            return self.hidden()
        try:
            journal = place.read(data)
            at_work, readable = journal.key in self._runner.at_work, True
            words = [el("p", _AT_WORK if at_work else in_words(journal))]
        except StudioError as error:
            at_work, readable, words = False, False, notice(str(error), "warn")
        return {
            self.body: gr.Column(visible=True),
            self.words: words,
            self.go_on: gr.Button(visible=readable),
            self.leave: gr.Button(visible=not at_work),
        }


def in_words(journal: RunJournal) -> str:
    assert journal.begun is not None
    view = replayed([journal.begun, *(journal.replayed or ())])
    if view.stage == WRITE:
        whole, planned = len(view.completed), view.plan.sampling.shots * len(view.plan.labels) if view.plan else 0
        far = f"{whole} of {planned} demonstrations {'was' if whole == 1 else 'were'} whole."
    elif view.stage:
        far = f"It had got as far as {stages_by_place()[view.stage].noun}."
    else:
        far = "It had only begun."
    return f"A run on these data was cut off. {far} {_WHAT_IT_COSTS}"


def _data(session: Session) -> Fingerprint:
    confirmed = session.of(DataState).confirmed
    if confirmed is None:
        raise UsageError(NO_DATA)
    return fingerprint(confirmed.dataset)
