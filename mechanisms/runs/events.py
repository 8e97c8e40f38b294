"""What a run tells the outside world, step by step. A recorded list of these replays a whole screen without a model.

Everything here is releasable, except `PrivateDiagnostics`, which is a type of its own so that it can reach no export.
"""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.accounting import BudgetSnapshot
from mechanisms.demos.demo_set import DemoSet
from mechanisms.records import Demonstration


@dataclass(frozen=True)
class RunStarted:
    """A run begins; `demo_set` already holds its whole claim, and no demonstration yet.

    Attributes:
        kept: how many of a label's `shots` will be in the set; None where all.
    """

    demo_set: DemoSet
    shots: int
    tokens: int
    expected_rows: int
    budget: BudgetSnapshot | None
    kept: int | None = None


@dataclass(frozen=True)
class DemoStarted:
    """A demonstration has been charged in full and begins."""

    label: str
    number: int
    budget: BudgetSnapshot | None


@dataclass(frozen=True)
class TokenReleased:
    """One token has been released.

    Attributes:
        step: 1 .. tokens; tokens that a schema forces are not counted.
        text: the demonstration so far, this token included.
        candidates: the K candidate tokens as text.
        chosen: position of the released token among them.
        scores: the noisy values that decided, in rows; None where only the token may be released.
        public: the public distribution over the candidates, in expected rows.
        stop: the token ends the demonstration.
        free: public text alone decided, so that it costs nothing of what the demonstration paid.
        trail: what the mechanism released on its way to the token; see `TokenRelease.trail`.
        token: its number in the model's vocabulary, with which a run that was cut off is gone on with.
    """

    label: str
    number: int
    step: int
    text: str
    candidates: tuple[str, ...]
    chosen: int
    scores: tuple[float, ...] | None
    public: tuple[float, ...]
    stop: bool
    free: bool = False
    trail: tuple[tuple[float, float], ...] = ()
    token: int | None = None


@dataclass(frozen=True)
class PrivateDiagnostics:
    """For the curator's screen only: what is behind a demonstration's last released token, without noise.

    Attributes:
        clean: the sum of the rows' distributions, in rows.
        clipped: mean of the rows before and after they were clipped; None where the mechanism clips none.
    """

    label: str
    number: int
    step: int
    clean: tuple[float, ...]
    clipped: tuple[tuple[float, ...], tuple[float, ...]] | None = None


@dataclass(frozen=True)
class TokenCounts:
    """Tokens of a structured demonstration by who decided them.

    Attributes:
        charged: the mechanism; at most the plan's T.
        forced: the schema alone.
        rest: public text or the schema, after the last charged token.
    """

    charged: int
    forced: int
    rest: int


@dataclass(frozen=True)
class DemoCompleted:
    """A demonstration is done.

    Attributes:
        tokens: where it is a structured record.
    """

    demonstration: Demonstration
    number: int
    tokens: TokenCounts | None = None


@dataclass(frozen=True)
class DemoCutOff:
    """A demonstration that can get no more private tokens: its sample was gone when the run went on.

    Attributes:
        finished: public text alone brings it to its end; else it is left out, since nothing of it is there.
    """

    label: str
    number: int
    finished: bool


@dataclass(frozen=True)
class RunCompleted:
    """All demonstrations are done."""

    demo_set: DemoSet
    budget: BudgetSnapshot | None


@dataclass(frozen=True)
class RunStopped:
    """The curator stopped the run: what was charged stays charged, whole demonstrations are kept."""

    demo_set: DemoSet


@dataclass(frozen=True)
class RunFailed:
    """The run could not begin or go on; the message says what to do."""

    message: str


WritingEvent = DemoStarted | TokenReleased | DemoCompleted | DemoCutOff | PrivateDiagnostics
"""What is told of demonstrations being written, whoever pays for them."""

SynthesisEvent = (
    RunStarted | DemoStarted | TokenReleased | DemoCompleted | DemoCutOff | RunCompleted | RunStopped | RunFailed
)
"""What may be recorded and replayed."""

CuratorEvent = SynthesisEvent | PrivateDiagnostics
"""What the curator's own screen may get."""
