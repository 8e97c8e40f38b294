"""The stage "write": demonstrations token by token, each from a sample of the units whose role it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mechanisms.accounting import LedgerRun
from mechanisms.runs.events import CuratorEvent, DemoCompleted
from mechanisms.runs.forecast import Work, written_work
from mechanisms.runs.recipe import Division, Stage
from mechanisms.runs.recipe_request import ALL, Events
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.resume import Journal
from mechanisms.runs.stage import PlannedStage, RunState


@dataclass(frozen=True)
class Write(PlannedStage):
    """Charged with the events of its mechanism, on the sample that its plan draws from the role."""

    name = Stage.WRITE
    place = 10
    title = "Write"
    task_title = "Writing"
    question = "Token by token: what would the {unit}s write next?"
    noun = "the writing"
    wanted = None
    parts = 12
    releases = ()

    @property
    def written(self) -> SynthesisRequest:
        """The request of the writing; a recipe with this stage has one."""
        assert self.request.written is not None
        return self.request.written

    @property
    def events(self) -> Events:
        """Where labels are written with different rates, those of a unit of the smallest label: it joins most often."""
        lists = dict(self.written.event)
        if self.request.by_user:
            return lists[ALL]
        smallest = min(self.request.labels, key=lambda label: self.request.sizes[label])
        return lists[self.written.plan.list_name(smallest, 1)]

    def charges(self) -> tuple[tuple[str, Events], ...]:
        """The event lists of its mechanism, by label or by batch."""
        if self.request.recipe.division is Division.EPSILON:
            return tuple(self.written.event)
        named = {name: f"{self.name} {name}" for name, _ in self.written.event} | {ALL: self.name.value}
        return tuple((named[name], events) for name, events in self.written.event)

    def work(self, together: int) -> Work:
        """An upper bound: see `written_work`."""
        return written_work(self.written, together)

    def task(self) -> str:
        """See `PlannedStage.task`."""
        return "may join in writing demonstrations, token by token."

    def begin(self, state: RunState) -> Writer:
        """See `PlannedStage.begin`."""
        return Writer(state)


class Writer:
    """The step; see `Writing`, which marks each demonstration by itself."""

    def __init__(self, state: RunState) -> None:
        self._state = state

    def events(
        self, run: LedgerRun, replayed: Sequence[CuratorEvent], journal: Journal | None
    ) -> Iterator[Sequence[CuratorEvent]]:
        """See `Step.events`."""
        assert self._state.writing is not None
        for event in self._state.writing.events(lambda *whose: run.snapshot(), run, replayed, journal):
            yield [event]

    def apply(self, event: CuratorEvent) -> None:
        """See `Step.apply`."""
        if isinstance(event, DemoCompleted):
            self._state.completed.append(event)


STAGE = Write
