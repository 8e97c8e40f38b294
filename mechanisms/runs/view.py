"""The state of a run's screen as a value: `view = fold(view, event)`. A recording replays it without a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from mechanisms.accounting import BudgetSnapshot
from mechanisms.demos.demo_set import DemoSet
from mechanisms.records import Demonstration, unit_noun
from mechanisms.runs.events import (
    CuratorEvent,
    DemoCompleted,
    DemoCutOff,
    DemoRefused,
    DemoStarted,
    Drafting,
    OfDemonstration,
    PrivateDiagnostics,
    Release,
    RunCompleted,
    RunFailed,
    RunStarted,
    RunStopped,
    SetsCompared,
    SetSoFar,
    StageProgress,
    StageStarted,
    TokenReleased,
    key_of,
)
from mechanisms.runs.spec import WRITE
from mechanisms.runs.stages import in_order
from mechanisms.runs.terms import RunTerms

Recorded = TypeVar("Recorded")


@dataclass(frozen=True)
class DemoInProgress:
    """A demonstration in progress; `private` has the values without noise for its last token, for the curator only."""

    label: str
    number: int
    opening: str = ""
    words: tuple[str, ...] = ()
    released: tuple[TokenReleased, ...] = ()
    private: PrivateDiagnostics | None = None

    @property
    def token(self) -> TokenReleased | None:
        return self.released[-1] if self.released else None

    @property
    def before(self) -> str:
        """The text without its last token."""
        return self.released[-2].text if len(self.released) > 1 else self.opening

    @property
    def text(self) -> str:
        return self.token.text if self.token else self.opening


@dataclass(frozen=True)
class RunView:
    """The state of the live screen.

    Attributes:
        demo_set: the run's set: empty at first, then growing, and final at the end; None before the run begins.
        plan: the run's terms; None before the run begins.
        stage: the name of the running stage.
        done: approximate progress of the running stage, 0 to 1.
        drafting: the drafts that the model is writing; None if it writes none.
        releases: the last release of each stage, by the stage's name.
        writing: demonstrations in progress, oldest first.
        last: the demonstration that was finished last.
        completed, refused, cut_off: events of whole demonstrations, in order.
        tokens: the number of tokens released so far.
        moved: the number of these for which the rows, or the noise, preferred another token than the model.
        budget: the ledger's state; None for a run that charges nothing.
        message: the reason why the run failed.
    """

    phase: Literal["idle", "waiting", "running", "completed", "stopped", "failed"] = "idle"
    demo_set: DemoSet | None = None
    plan: RunTerms | None = None
    stage: str = ""
    done: float = 0.0
    drafting: Drafting | None = None
    releases: Mapping[str, Release] = field(default_factory=dict)
    writing: tuple[DemoInProgress, ...] = ()
    last: DemoInProgress | None = None
    completed: tuple[DemoCompleted, ...] = ()
    refused: tuple[DemoRefused, ...] = ()
    cut_off: tuple[DemoCutOff, ...] = ()
    tokens: int = 0
    moved: int = 0
    budget: BudgetSnapshot | None = None
    message: str = ""

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the run's stages, in the order in which they run."""
        return tuple(in_order(self.plan.shares)) if self.plan else ()

    @property
    def shown(self) -> DemoInProgress | None:
        """The demonstration on the screen, which stays the same until it is finished."""
        return self.writing[0] if self.writing else self.last

    @property
    def ended(self) -> bool:
        return self.phase in ("completed", "stopped")

    @property
    def unit(self) -> str:
        """The word for a unit: "row" or "user"."""
        return unit_noun(self.demo_set.certificate.unit) if self.demo_set else "row"

    @property
    def standing(self) -> tuple[Demonstration, ...]:
        """The current demonstrations of the set; if it has none yet, the finished ones that were not refused."""
        if self.demo_set is not None and self.demo_set.demonstrations:
            return self.demo_set.demonstrations
        refused = {(each.label, each.number) for each in self.refused}
        whole = (each for each in self.completed if (each.demonstration.label, each.number) not in refused)
        return tuple(each.demonstration for each in whole)

    @property
    def progress(self) -> float:
        """The progress of the run, 0 to 1: completed stages, and the progress within the running one."""
        if self.phase == "completed":
            return 1.0
        if self.stage not in self.stages:
            return 0.0
        return (self.stages.index(self.stage) + self.within) / len(self.stages)

    @property
    def within(self) -> float:
        """The progress of the running stage, 0 to 1; for the writing stage, the share of the tokens written so far."""
        if self.stage != WRITE or self.plan is None:
            return self.done
        sampling = self.plan.sampling
        steps = sum(each.token.step for each in self.writing if each.token) / sampling.tokens
        return min(1.0, (len(self.completed) + steps) / (sampling.written * len(self.plan.labels)))

    def draft(self, label: str, number: int) -> DemoInProgress:
        """The demonstration in progress with this label and number."""
        return next(each for each in self.writing if (each.label, each.number) == (label, number))

    def changed(self, label: str, number: int, **values: Any) -> RunView:
        """The view with new values for fields of a demonstration in progress."""
        mine = self.draft(label, number)
        writing = (replace(each, **values) if each is mine else each for each in self.writing)
        return replace(self, writing=tuple(writing))


def fold(view: RunView, event: CuratorEvent) -> RunView:
    """The view after an event."""
    match event:
        case RunStarted(demo_set, plan, budget):
            return RunView("running", demo_set, plan, budget=budget)
        case StageStarted(stage):
            return replace(view, stage=stage, done=0.0, drafting=None)
        case Drafting():
            return replace(view, drafting=event)
        case StageProgress(_, done):
            return replace(view, done=done, drafting=None)
        case SetSoFar(demo_set):
            return replace(view, demo_set=demo_set)
        case SetsCompared(own=own) if view.demo_set is not None:
            return replace(view, demo_set=replace(view.demo_set, demonstrations=own), drafting=None)
        case RunCompleted(demo_set, budget):
            return replace(view, phase="completed", demo_set=demo_set, budget=budget, drafting=None)
        case RunStopped(demo_set):
            return replace(view, phase="stopped", demo_set=demo_set, drafting=None)
        case RunFailed(message):
            return replace(view, phase="failed", message=message, drafting=None)
        case Release():
            return replace(view, releases={**view.releases, view.stage: event}, done=1.0, drafting=None)
    return _written(view, event)


def _written(view: RunView, event: CuratorEvent) -> RunView:
    match event:
        case DemoStarted(label, number, opening, words):
            return replace(view, writing=(*view.writing, DemoInProgress(label, number, opening, words)))
        case TokenReleased(label, number):
            more = replace(view, tokens=view.tokens + 1, moved=view.moved + event.moved)
            return more.changed(label, number, released=(*view.draft(label, number).released, event), private=None)
        case PrivateDiagnostics(label, number):
            return view.changed(label, number, private=event)
        case DemoCompleted(demonstration, number):
            ended = view.draft(demonstration.label, number)
            others = tuple(each for each in view.writing if each is not ended)
            return replace(view, writing=others, last=ended, completed=(*view.completed, event))
        case DemoRefused():
            return replace(view, refused=(*view.refused, event))
        case DemoCutOff(label, number, finished):
            left = tuple(each for each in view.writing if finished or (each.label, each.number) != (label, number))
            return replace(view, writing=left, cut_off=(*view.cut_off, event))
    return view


def one_by_one(events: Iterable[Recorded]) -> list[Recorded]:
    """The events of a recording in an order in which each demonstration is complete before the next begins."""
    recorded = list(events)
    keys = [key_of(event) if isinstance(event, OfDemonstration) else None for event in recorded]
    places = [place for place, key in enumerate(keys) if key]
    begun = {keys[place]: place for place in places if isinstance(recorded[place], DemoStarted)}
    order = sorted(places, key=lambda place: begun.get(keys[place], len(keys)))
    written = [recorded[place] for place in order]
    for place, event in zip(places, written, strict=True):
        recorded[place] = event
    return recorded
