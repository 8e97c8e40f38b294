"""Runs as events for the screen: a planned run begins, or an interrupted one is resumed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import nullcontext, suppress

from dpicl_ui.data.state import ConfirmedData, DataState
from dpicl_ui.frame.model_loader import EmbedderLoader, ModelLoader
from dpicl_ui.frame.services import Session
from dpicl_ui.generate.state import GenerateState, Run, WrittenSet
from dpicl_ui.generate.unfinished import UnfinishedRuns
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.errors import StudioError, UsageError
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.runs.driver import drive
from mechanisms.runs.events import CuratorEvent, RunCompleted, RunStarted, SetSoFar
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import RunSpec


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
            curator: also yield averages without noise, for the owner's screen.
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
        started = ended = False
        if confirmed is not session.of(DataState).confirmed:
            raise UsageError("The data of step 1 has changed: look at step 2, then start again.")
        dataset, data, state = confirmed.dataset, fingerprint(confirmed.dataset), session.of(GenerateState)
        models, stopped = self._models(plan), pressed.stop.is_set
        events = drive(plan, dataset, *models, ledger, stopped=stopped, curator=curator, journal=journal)
        try:
            for event in events:
                if isinstance(event, RunStarted):  # a refused run does not replace the earlier one
                    state.run_of_set = pressed
                    if journal and unfinished:
                        started = True
                        self.at_work.add(journal.key)
                        unfinished.replace(data, journal)
                if isinstance(event, SetSoFar | RunCompleted):
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
                if started:  # a refused run may be running elsewhere
                    self.at_work.discard(journal.key)
                if unfinished and (ended or not journal.path.exists()):  # or another run replaced it
                    with suppress(StudioError):  # a run that can still be resumed will be offered again
                        unfinished.remove(journal.path)

    def _resumed(self, session: Session, journal: RunJournal) -> tuple[ConfirmedData, Plan]:
        confirmed = session.of(DataState).confirmed
        if confirmed is None or journal.started is None:
            raise UsageError("Confirm the data of this run in step 1, then resume it.")
        made = journal.started.demo_set
        if made.model_sha256 != self._loader.model().sha256:
            raise UsageError(f"This run was begun with the model {made.model_id}: load it in step 2, then resume it.")
        return confirmed, journal.plan(fingerprint(confirmed.dataset).content)

    def _models(self, plan: Plan) -> tuple[LanguageModel, Embedder | None]:
        """The models that a run needs; waits until they are loaded."""
        model = self._loader.model()
        from mechanisms.inference.engine.threads import threads_here  # torch takes seconds to import

        threads_here().choose()  # for this run; runs take turns
        return model, self._embedder.embedder() if plan.embeds else None
