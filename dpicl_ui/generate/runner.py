"""The run that step 2 has planned, or one that was cut off, as events for the screen; its set is kept in the tab."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress

from dpicl_ui.data.state import Confirmed, DataState
from dpicl_ui.frame.embedder_loader import EmbedderLoader
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Session
from dpicl_ui.generate.recipe_view import RecipeView, reduce_recipe
from dpicl_ui.generate.state import GenerateState, Made, Run
from dpicl_ui.generate.unfinished import Unfinished
from dpicl_ui.privacy.form import PrivacyForm
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import Fingerprint, PrivacyLedger, fingerprint
from mechanisms.errors import StudioError, UsageError
from mechanisms.inference.engine.memory import release_freed_memory
from mechanisms.records import Dataset
from mechanisms.runs.events import CuratorEvent, DemoCompleted, Drafting, RunCompleted, RunStarted, RunStopped, SetKept
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.recipe_request import RunRequest
from mechanisms.runs.run import synthesize

_KEPT_AFTER = DemoCompleted | SetKept | RunCompleted
"""What the set that may be exported changes with."""

_STOPPED = "Stopped. No row was read, and nothing is spent."
_STOPPED_AGAIN = "Stopped. No row was read, and the run can still be gone on with."


class Runner:
    """Starts runs with the app's models.

    Attributes:
        at_work: the ledger's keys of the runs under way that can be gone on with.
    """

    def __init__(self, loader: ModelLoader, embedder: EmbedderLoader) -> None:
        self._loader, self._embedder = loader, embedder
        self.at_work: set[str] = set()

    def events(
        self,
        session: Session,
        ledger: PrivacyLedger,
        pressed: Run,
        form: PrivacyForm,
        curator: bool,
        unfinished: Unfinished | None = None,
    ) -> Generator[CuratorEvent]:
        """The run's events; a stop is one of them. Closing this iterator closes the run and settles the ledger.

        Args:
            unfinished: where a private run is written down; its file stays if the run does not come to an end.

        Raises:
            StudioError: the run cannot begin or go on; its message says what to do.
        """
        planned = session.of(PrivacyState).calibrate(form, self._loader.speed)
        confirmed, request = planned.confirmed, planned.request
        journal = (
            unfinished.begin(fingerprint(confirmed.dataset))
            if unfinished and request.reads_rows and not request.not_private
            else None
        )
        events = self._start(confirmed.dataset, request, ledger, curator, journal)
        yield from self._followed(session, confirmed, events, pressed, journal, unfinished)

    def going_on(
        self,
        session: Session,
        ledger: PrivacyLedger,
        pressed: Run,
        journal: RunJournal,
        curator: bool,
        unfinished: Unfinished,
    ) -> Generator[CuratorEvent]:
        """The same of a run that was cut off: what it told before comes first.

        Raises:
            StudioError: see `events`; or another model is loaded than it was begun with.
        """
        confirmed = session.of(DataState).confirmed
        if confirmed is None or journal.begun is None:
            raise UsageError("Confirm the data of this run in step 1, then go on.")
        made = journal.begun.demo_set
        if made.model_sha256 != self._loader.model().sha256:
            raise UsageError(f"This run was begun with the model {made.model_id}: load it in step 2, then go on.")
        request = journal.request(fingerprint(confirmed.dataset).content)
        events = self._start(confirmed.dataset, request, ledger, curator, journal)
        yield from self._followed(session, confirmed, events, pressed, journal, unfinished)

    def _followed(
        self,
        session: Session,
        confirmed: Confirmed,
        events: Generator[CuratorEvent],
        pressed: Run,
        journal: RunJournal | None,
        unfinished: Unfinished | None,
    ) -> Generator[CuratorEvent]:
        """A run, in whose tab its set is kept; its journal goes when it has ended before somebody's eyes."""
        begun = ended = False
        if confirmed is not session.of(DataState).confirmed:
            raise UsageError("The data of step 1 has changed: look at step 2, then start again.")
        try:
            for event in _kept(session, fingerprint(confirmed.dataset), events, pressed):
                if journal and unfinished and isinstance(event, RunStarted):
                    begun = True
                    self.at_work.add(journal.key)
                    unfinished.replace(fingerprint(confirmed.dataset), journal)
                yield event
            ended = not pressed.left.is_set()
        finally:
            events.close()
            release_freed_memory()  # rows were in it
            if journal is not None:
                journal.close()
                if begun:  # one that was refused may be at work elsewhere
                    self.at_work.discard(journal.key)
                if unfinished and (ended or not journal.path.exists()):  # or another run took its place
                    with suppress(StudioError):  # what can still be gone on with is offered again
                        unfinished.remove(journal.path)

    def _start(
        self, dataset: Dataset, request: RunRequest, ledger: PrivacyLedger, curator: bool, journal: RunJournal | None
    ) -> Generator[CuratorEvent]:
        """The run, which reads no row before its first event is asked for; waits for the models it needs."""
        model = self._loader.model()
        embedder = self._embedder.embedder() if request.stages else None
        return synthesize(dataset, request, model, ledger, curator=curator, journal=journal, embedder=embedder)


def _kept(session: Session, of: Fingerprint, events: Generator[CuratorEvent], pressed: Run) -> Generator[CuratorEvent]:
    """A run's events, until it ends or is stopped; the tab keeps what is made."""
    state, view = session.of(GenerateState), RecipeView()
    for event in events:
        view = reduce_recipe(view, event)
        if isinstance(event, RunStarted):  # one that was refused leaves the run before
            state.written = pressed
        if isinstance(event, _KEPT_AFTER) and (made := view.made) is not None:
            state.made = Made(made, of)
        yield event
        if not pressed.stop.is_set() or isinstance(event, SetKept):  # what it is kept for is told next
            continue
        if isinstance(event, Drafting) and view.run.phase != "running":
            raise UsageError(_STOPPED_AGAIN if pressed.before else _STOPPED)
        if view.run.phase == "running" and view.kept:
            yield RunStopped(view.kept)
            return
