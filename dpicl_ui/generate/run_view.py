"""What the generation screen shows, as a value: `view = reduce(view, event)`.

A recorded list of `RunEvent`s replays the whole screen without a model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from mechanisms.accounting import BudgetSnapshot
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.records import Demonstration
from mechanisms.runs.certificate import rebuilt
from mechanisms.runs.events import (
    CuratorEvent,
    DemoCompleted,
    DemoCutOff,
    DemoStarted,
    PrivateDiagnostics,
    RunCompleted,
    RunFailed,
    RunStarted,
    RunStopped,
    TokenReleased,
)
from mechanisms.steps import TokenMechanism

Recorded = TypeVar("Recorded")
Phase = Literal["idle", "waiting", "running", "completed", "stopped", "failed"]


@dataclass(frozen=True)
class Draft:
    """A demonstration in progress.

    Attributes:
        released: its tokens so far.
        private: what is behind the last of them, curator's screen only; None in every replay.
    """

    label: str
    number: int
    released: tuple[TokenReleased, ...] = ()
    private: PrivateDiagnostics | None = None

    @property
    def token(self) -> TokenReleased | None:
        """The last released token."""
        return self.released[-1] if self.released else None

    @property
    def before(self) -> str:
        """Its text without the last token."""
        return self.released[-2].text if len(self.released) > 1 else ""

    @property
    def clean(self) -> tuple[float, ...] | None:
        """The clean sum behind the last token."""
        return self.private.clean if self.private else None

    @property
    def text(self) -> str:
        """Its text, the last token included."""
        return self.token.text if self.token else ""


@dataclass(frozen=True)
class RunView:
    """The state of the generation screen.

    Attributes:
        demo_set: the run's set: empty while tokens are written, as far as it stands in a recipe, final in the end.
        shots, tokens, rows: demonstrations a label, tokens a demonstration, expected rows of a step.
        kept: demonstrations a label in the set; None where all that are written.
        drafts: the demonstrations that are being written side by side, oldest first.
        last: the draft that was finished last.
        completed: what was told of whole demonstrations, in order.
        cut_off: what became of those that a crash cut off.
        released: tokens released so far in the whole run.
        budget: the ledger's state, None for a run that charges nothing.
        mechanism: that writes, as the certificate describes it; None where nothing is written token by token.
        message: why a run failed, or what it waits for.
        waited: the share of that which is there, 0 to 1.
    """

    phase: Phase = "idle"
    demo_set: DemoSet | None = None
    shots: int = 1
    tokens: int = 1
    rows: int = 1
    kept: int | None = None
    drafts: tuple[Draft, ...] = ()
    last: Draft | None = None
    completed: tuple[DemoCompleted, ...] = ()
    cut_off: tuple[DemoCutOff, ...] = ()
    released: int = 0
    budget: BudgetSnapshot | None = None
    mechanism: TokenMechanism | None = None
    message: str = ""
    waited: float = 0.0

    @property
    def finished(self) -> tuple[Demonstration, ...]:
        """Whole demonstrations, in order."""
        return tuple(each.demonstration for each in self.completed)

    @property
    def partly_forced(self) -> bool:
        """Some tokens are written without a draw: what a schema forces, or the name of the answer's field."""
        made = self.demo_set
        return made is not None and (made.schema is not None or made.template.output is not None)

    @property
    def shown(self) -> Draft | None:
        """The draft whose tokens are on the screen: one of those in progress, the same until it is whole."""
        return self.drafts[0] if self.drafts else self.last

    @property
    def planned(self) -> int:
        """Demonstrations in the whole run."""
        return self.shots * len(self.demo_set.labels) if self.demo_set else 0

    @property
    def progress(self) -> float:
        """Share of the run that is done, 0 to 1: finished demonstrations and tokens of the one in progress; before
        it, share of what it waits for."""
        if self.phase in ("completed", "waiting"):
            return 1.0 if self.phase == "completed" else self.waited
        steps = sum(draft.token.step for draft in self.drafts if draft.token) / self.tokens
        return min(1.0, (len(self.finished) + steps) / self.planned) if self.planned else 0.0

    def changed(self, label: str, number: int, **values: Any) -> RunView:
        """The view with other values in one of its drafts."""
        drafts = (
            replace(draft, **values) if (draft.label, draft.number) == (label, number) else draft
            for draft in self.drafts
        )
        return replace(self, drafts=tuple(drafts))

    def draft(self, label: str, number: int) -> Draft:
        """One of the drafts in progress."""
        return next(draft for draft in self.drafts if (draft.label, draft.number) == (label, number))


def reduce(view: RunView, event: CuratorEvent) -> RunView:
    """The view after one more event."""
    match event:
        case RunStarted():
            return _begun(event)
        case DemoStarted():
            return replace(view, drafts=(*view.drafts, Draft(event.label, event.number)), budget=event.budget)
        case TokenReleased():
            told = (*view.draft(event.label, event.number).released, event)
            more = replace(view, released=view.released + 1)
            return more.changed(event.label, event.number, released=told, private=None)
        case PrivateDiagnostics():
            return view.changed(event.label, event.number, private=event)
        case DemoCompleted():
            ended = view.draft(event.demonstration.label, event.number)
            others = tuple(draft for draft in view.drafts if draft is not ended)
            return replace(view, drafts=others, last=ended, completed=(*view.completed, event))
        case DemoCutOff():
            others = tuple(each for each in view.drafts if (each.label, each.number) != (event.label, event.number))
            drafts = view.drafts if event.finished else others
            return replace(view, drafts=drafts, cut_off=(*view.cut_off, event))
    return _ended(view, event)


def _begun(event: RunStarted) -> RunView:
    # In stages what is written may be longer, or more, than the drafts: it is shown by its own parameters.
    written = event.demo_set.certificate.parameters.get("written", {}) if event.stages else {}
    return RunView(
        phase="running",
        demo_set=event.demo_set,
        shots=written.get("shots_per_label", event.shots),
        tokens=written.get("tokens", event.tokens),
        rows=event.expected_rows or written.get("subsets", 1),
        kept=event.kept,
        budget=event.budget,
        mechanism=mechanism_of(event.demo_set),
    )


def _ended(view: RunView, event: CuratorEvent) -> RunView:
    match event:
        case RunCompleted():
            return replace(view, phase="completed", demo_set=event.demo_set, budget=event.budget)
        case RunStopped():
            return replace(view, phase="stopped", demo_set=event.demo_set)
        case RunFailed():
            return replace(view, phase="failed", message=event.message)
    return view


def mechanism_of(demo_set: DemoSet) -> TokenMechanism | None:
    """What the tokens of a set are written with, by its certificate; None where it writes none, or is not known."""
    try:
        written = rebuilt(demo_set).request.written
    except UsageError:
        return None
    return written.mechanism if written else None


def _whose(event: object) -> tuple[str, int] | None:
    """The demonstration that an event is about."""
    match event:
        case DemoStarted() | TokenReleased() | DemoCutOff():
            return event.label, event.number
        case DemoCompleted():
            return event.demonstration.label, event.number
        case _:
            return None


def one_by_one(events: Iterable[Recorded]) -> list[Recorded]:
    """A recording as if demonstrations that were written side by side had been written one after the other."""
    recorded = list(events)
    order = {_whose(event): place for place, event in enumerate(recorded) if isinstance(event, DemoStarted)}
    places = [place for place, event in enumerate(recorded) if _whose(event)]
    written = sorted((recorded[place] for place in places), key=lambda event: order.get(_whose(event), len(recorded)))
    for place, event in zip(places, written, strict=True):
        recorded[place] = event
    return recorded
