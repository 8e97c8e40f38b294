"""The state of step 3: the current or last run, and the written set."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from dpicl_ui.data.state import NO_DATA, DataState
from dpicl_ui.frame.services import Session, State, StepStatus
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import Fingerprint
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.runs.events import RunEvent


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One press of Generate or Resume: its stop event, its end, and its releasable events.

    Attributes:
        before: the number of events that a resumed run had released before it was interrupted; they come first.
        tab_closed: set when the tab is closed.
    """

    before: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    tab_closed: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    recording: list[RunEvent] = field(default_factory=list)

    @property
    def again(self) -> bool:
        """Whether the last recorded event is a replayed one."""
        return 0 < len(self.recording) <= self.before


@dataclass(frozen=True, repr=False)
class WrittenSet:
    """A set that was written in this tab, and its private data set."""

    demo_set: DemoSet
    data: Fingerprint


class GenerateState(State):
    """The state of step 3.

    Attributes:
        run_of_set: the last run that began to write. Its set replaces a set that was loaded in step 4.
        looking: whether the screen shows a run that needs no data: a saved one, or one from before a reload.
        presses: the number of runs begun in this tab.
        asked_to_resume: whether the press that the question is about was on Resume.
        key: identifies the tab's finished run (`KeptRuns`); None if the browser stores no key.
    """

    looking = asked_to_resume = False
    presses = 0
    key: str | None = None
    run: Run | None = None
    run_of_set: Run | None = None
    made: WrittenSet | None = None
    _taken: WrittenSet | None = None

    def begin(self, before: int = 0) -> Run:
        """Begin a new run; a stop of another run does not affect it."""
        self.run = run = Run(before)
        self.looking = False
        return run

    def prepare_replay(self) -> None:
        """Prepare the screen for a saved run.

        Raises:
            UsageError: a run is running.
        """
        if self.under_way:
            raise UsageError("A run is already at work: stop it, or wait, before you load another.")
        self.run, self.looking = None, True

    @property
    def under_way(self) -> bool:
        return self.run is not None and not self.run.ended.is_set()

    @property
    def untaken(self) -> bool:
        return self.made is not None and self.made is not self._taken

    def take(self) -> None:
        self._taken = self.made

    def restore(self, run: Run, made: WrittenSet) -> None:
        """Restore a run that had ended before the page was reloaded."""
        run.ended.set()
        self.run = self.run_of_set = run
        self.made, self.looking = made, True

    def stop(self) -> None:
        if self.run is not None:
            self.run.stop.set()

    def close(self) -> None:
        if self.run is not None:
            self.run.tab_closed.set()
        self.stop()


def status(session: Session) -> StepStatus:
    """The status of step 3: open with a calibrated or a shown run, done when a set was written."""
    state = session.of(GenerateState)
    done = state.made is not None
    if state.looking:
        return StepStatus(done=done)
    if session.of(DataState).confirmed is None:
        return StepStatus(NO_DATA, done)
    if session.of(PrivacyState).plan is None:
        return StepStatus("Wait until step 2 has calibrated the noise, or correct the errors that it shows.", done)
    return StepStatus(done=done)
