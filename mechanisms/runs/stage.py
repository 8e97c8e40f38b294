"""The interface of a stage: its cost, its work, its texts for people, and its behaviour in a run.

A new stage is one file in `mechanisms/runs/stages/`. The file defines a `PlannedStage`, which depends only on public
values, the `RunningStage` that reads private rows, and the events that the stage releases. The `RunState` stores the
releases, so that later stages can use them. What the set may consist of depends on more than one stage: `state.py`,
`history.py` and `verification.py` therefore know the stages that write, vote, calibrate and score.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from mechanisms.accounting import LedgerRun
from mechanisms.errors import UsageError
from mechanisms.privacy_events import PrivacyEvent
from mechanisms.runs.events import CuratorEvent, Key, Release, SetsCompared
from mechanisms.runs.state import RunState
from mechanisms.runs.terms import EventLists, RunTerms
from mechanisms.runs.work import Work


@dataclass(frozen=True)
class PlannedStage(ABC):
    """One stage of a planned run.

    Attributes:
        name: the stage's name in shares, certificates and journals; also the name of its file.
        order: its sort key: a run executes its stages in ascending order.
        title: one word for the list of stages on the screen.
        question: the question that the stage asks about the data, with "{unit}" for a row or a user.
        noun: the stage in a sentence, as in "it had got as far as the vote".
        role_units: the number of units that its role should have; None: all units that the other roles leave.
        parts: its weight if stages share epsilon: its share is `parts` over the sum of all stages' parts.
        releases: types of the events that the stage marks as released, each once, all of them public.
        charges_itself: whether the stage charges its parts one by one, each before its first release.
        usual: whether a run has the stage by default; otherwise only if the stage gets a share.
    """

    plan: RunTerms

    name: ClassVar[str]
    order: ClassVar[float]
    title: ClassVar[str]
    question: ClassVar[str]
    noun: ClassVar[str]
    role_units: ClassVar[int | None]
    parts: ClassVar[int]
    releases: ClassVar[tuple[type[Release], ...]]
    charges_itself: ClassVar[bool] = False
    usual: ClassVar[bool] = True

    @property
    @abstractmethod
    def events(self) -> tuple[PrivacyEvent, ...]:
        """The privacy events of a unit that takes part; if units differ, those of the highest cost."""

    def charges(self) -> EventLists:
        """The event lists to which the stage's events are charged: its own, or those that all stages share."""
        if self.plan.by_roles:
            return ((self.name, self.events),)
        return tuple((name, self.events) for name in self.plan.shared_lists)

    @abstractmethod
    def work(self) -> Work:
        """The expected work for the models, from public numbers."""

    def warnings(self) -> Iterator[str]:
        """Warnings for the curator, shown before anything is spent; one line each."""
        return iter(())

    @abstractmethod
    def task(self) -> str:
        """A predicate that says what the stage's units do, for a sentence whose subject they are."""

    def check(self, event: Any) -> None:
        """Refuse a release that was not paid for or does not fit the plan, because files can come from anywhere.

        `event` has a type in `releases`. Raises a UsageError.
        """
        assert isinstance(event, self.releases)

    def begin(self, state: RunState) -> RunningStage:
        """The running stage, which has read nothing yet. Raises a UsageError if the model is too small for it."""
        return OneRelease(self, state)

    def ask(self, state: RunState) -> Iterator[CuratorEvent]:
        """The events of a stage that reads its units once: public events and progress, and the release at the end."""
        raise NotImplementedError

    def take(self, state: RunState, event: Any) -> None:
        """Update the state with the release."""
        raise NotImplementedError


class RunningStage(Protocol):
    """A stage in a run. Its state depends only on the events passed to `apply`, new ones or a journal's."""

    def ask(self, run: LedgerRun | None) -> Iterator[Sequence[CuratorEvent]]:
        """The stage's remaining events; the events of one list are released together.

        The caller has charged the stage, unless the stage charges itself: it then uses `run`, its run in the ledger.
        `run` is None if nothing is charged.
        """

    def apply(self, event: CuratorEvent) -> None:
        """Update the state with an event of this stage; ignore other events. Raises a UsageError if the event cannot
        belong to this run."""


def check_certified_noise(stated: float, certified: float) -> None:
    """Refuse a noise deviation that differs from the certificate's by more than a rounding error."""
    if not math.isclose(stated, certified, rel_tol=1e-9):
        raise UsageError("noise that is not the certificate's")


def part_of(key: Key) -> str:
    """The ledger's name for a demonstration's part of the run."""
    return f"write {key[0]} {key[1]}"


class OneRelease:
    """A stage in a run that reads its units once and makes one release."""

    def __init__(self, stage: PlannedStage, state: RunState) -> None:
        self._stage, self._state = stage, state
        self._done = False

    def ask(self, run: LedgerRun | None) -> Iterator[Sequence[CuratorEvent]]:
        if not self._done:
            yield from ([event] for event in self._stage.ask(self._state))

    def apply(self, event: CuratorEvent) -> None:
        if isinstance(event, SetsCompared):
            self._state.compared = event
        if isinstance(event, self._stage.releases):
            self._done = True
            self._stage.take(self._state, event)
