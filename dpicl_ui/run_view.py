"""What the generation screen shows, as a value: `view = reduce(view, event)`.

A recorded list of `SynthesisEvent`s replays the whole screen without a model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from mechanisms.accounting import BudgetSnapshot
from mechanisms.records import Demonstration
from mechanisms.studio.demo_set import DemoSet
from mechanisms.studio.events import (
    CuratorEvent,
    DemoCompleted,
    DemoStarted,
    PrivateDiagnostics,
    RunCompleted,
    RunFailed,
    RunStarted,
    RunStopped,
    SynthesisEvent,
    TokenReleased,
)

Phase = Literal["idle", "waiting", "running", "completed", "stopped", "failed"]


@dataclass(frozen=True)
class RunView:
    """The state of the generation screen.

    Attributes:
        demo_set: the run's set: empty while it runs, final once it ended.
        shots, tokens, rows: demonstrations a label, tokens a demonstration, expected rows of a step.
        label, number: the demonstration in progress; number 0 before the first.
        before: its text without the last token.
        token: the last released token.
        clean: the clean sum behind that token, curator's screen only; None in every replay.
        writing: the demonstration of `token` is not whole yet.
        finished: whole demonstrations, in order.
        released: tokens released so far in the whole run.
        budget: the ledger's state, None for a run that charges nothing.
        message: why a run failed.
    """

    phase: Phase = "idle"
    demo_set: DemoSet | None = None
    shots: int = 1
    tokens: int = 1
    rows: int = 1
    label: str = ""
    number: int = 0
    before: str = ""
    token: TokenReleased | None = None
    clean: tuple[float, ...] | None = None
    writing: bool = False
    finished: tuple[Demonstration, ...] = ()
    released: int = 0
    budget: BudgetSnapshot | None = None
    message: str = ""

    @property
    def text(self) -> str:
        """The demonstration in progress, the last token included."""
        return self.token.text if self.token else ""

    @property
    def planned(self) -> int:
        """Demonstrations in the whole run."""
        return self.shots * len(self.demo_set.labels) if self.demo_set else 0

    @property
    def progress(self) -> float:
        """Share of the run that is done, 0 to 1: finished demonstrations and tokens of the one in progress."""
        if self.phase == "completed":
            return 1.0
        step = self.token.step / self.tokens if self.token and self.writing else 0.0
        return min(1.0, (len(self.finished) + step) / self.planned) if self.planned else 0.0


def reduce(view: RunView, event: CuratorEvent) -> RunView:
    """The view after one more event."""
    match event:
        case RunStarted():
            return RunView(
                phase="running",
                demo_set=event.demo_set,
                shots=event.shots,
                tokens=event.tokens,
                rows=event.expected_rows,
                budget=event.budget,
            )
        case DemoStarted():
            started = replace(view, label=event.label, number=event.number, budget=event.budget, writing=True)
            return replace(started, before="", token=None, clean=None)
        case TokenReleased():
            return replace(view, before=view.text, token=event, clean=None, released=view.released + 1)
        case PrivateDiagnostics():
            return replace(view, clean=event.clean)
        case DemoCompleted():
            return replace(view, finished=(*view.finished, event.demonstration), writing=False)
        case RunCompleted():
            return replace(view, phase="completed", demo_set=event.demo_set, budget=event.budget)
        case RunStopped():
            return replace(view, phase="stopped", demo_set=event.demo_set)
        case RunFailed():
            return replace(view, phase="failed", message=event.message)


def replay(events: Iterable[SynthesisEvent]) -> RunView:
    """The screen after recorded events."""
    view = RunView()
    for event in events:
        view = reduce(view, event)
    return view


def up_to_token(events: Iterable[SynthesisEvent], count: int) -> list[SynthesisEvent]:
    """The beginning of a recording, up to and with its `count`-th released token."""
    kept: list[SynthesisEvent] = []
    for event in events:
        if isinstance(event, TokenReleased):
            count -= 1
        if count < 0 or (count == 0 and not isinstance(event, TokenReleased)):
            break
        kept.append(event)
    return kept
