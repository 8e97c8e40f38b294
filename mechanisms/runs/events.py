"""What a run tells the outside world, step by step. A recorded list of these replays a whole screen without a model.

Everything here is releasable, except `PrivateDiagnostics` and `StageProgress`: types of their own that reach no export.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mechanisms.accounting import BudgetSnapshot
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import Score
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.runs.recipe import Stage


@dataclass(frozen=True)
class RunStarted:
    """A run begins; `demo_set` already holds its whole claim, and no demonstration yet.

    Attributes:
        shots: demonstrations of each label that are written, or that stand in a set.
        tokens: of a demonstration, or of a draft, at most.
        budget: the ledger's state; None for a run that charges nothing, and in a file.
        stages: in their order; none for a run that writes token by token and charges each demonstration by itself.
        expected_rows: of the step of a token; None for a run in stages, whose certificate has it.
        kept: how many of a label's `shots` will be in the set; None where all.
    """

    demo_set: DemoSet
    shots: int
    tokens: int
    budget: BudgetSnapshot | None
    stages: tuple[Stage, ...] = ()
    expected_rows: int | None = None
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


# Events of stages. Those of single demonstrations come between the beginning of the stage "write" and the next one.


@dataclass(frozen=True)
class Drafting:
    """Public drafts of a label are about to be written: nothing is reserved yet, and no row is read."""

    label: str
    number: int
    of: int


@dataclass(frozen=True)
class StageStarted:
    """A stage has been charged in full and begins."""

    stage: Stage
    budget: BudgetSnapshot | None


@dataclass(frozen=True)
class StageProgress:
    """For the curator's screen only: roughly how far a stage is, 0 to 1. It may follow how many units there are."""

    stage: Stage
    done: float


@dataclass(frozen=True)
class DraftsWritten:
    """The ballot of a label: public drafts, and those written privately before, all releasable."""

    label: str
    round: int
    drafts: tuple[str, ...]


@dataclass(frozen=True)
class VotesReleased:
    """A label's noisy votes on its ballot.

    Attributes:
        votes: noisy votes of each draft of the ballot.
        winners: positions of the winners, best first.
        noise: standard deviation of the noise on each.
    """

    label: str
    round: int
    votes: tuple[float, ...]
    winners: tuple[int, ...]
    noise: float


@dataclass(frozen=True)
class CandidateSet:
    """A set that can be chosen, and the words in which it is put to the model; "none" has no demonstrations."""

    name: str
    demonstrations: tuple[Demonstration, ...]
    template: PromptTemplate


@dataclass(frozen=True)
class SetsMade:
    """The sets that stand in the choice, in their public order."""

    sets: tuple[CandidateSet, ...]


@dataclass(frozen=True)
class PriorsReleased:
    """How much the model prefers each label under a set: noisy mean probabilities, in the order of the labels.

    Attributes:
        priors: of each set, as shares.
        noisy: the noisy sums behind them, one measurement each, from which the correction is fitted.
    """

    priors: tuple[tuple[str, tuple[float, ...]], ...]
    noisy: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class ChoiceReleased:
    """The set that serves best, and the correction that it is read with; nothing more of the comparison is known.

    Attributes:
        among: names of the sets, each with a correction.
        chosen: one of them.
    """

    among: tuple[tuple[str, str], ...]
    chosen: tuple[str, str]


@dataclass(frozen=True)
class ScoreReleased:
    """How often the labels of the scorers' rows are found."""

    score: Score


class StageRelease:
    """What a stage releases by an event of its own: in the stage's file, a frozen dataclass that is one of these.

    Its fields are public: numbers, texts, and tuples of them; a run file has them under their names.

    Attributes:
        kind: what a run file calls it; no other event is called so.
        title: what a list of the moments of a run calls it.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    __pydantic_config__: ClassVar[dict[str, Any]] = {"strict": True, "extra": "forbid", "allow_inf_nan": False}

    def lines(self) -> tuple[str, ...]:
        """What a person is told of it, a line each."""
        raise NotImplementedError


@dataclass(frozen=True)
class SetKept:
    """The run's set, should it be stopped from here on: told right before each release that stands in it."""

    demo_set: DemoSet


@dataclass(frozen=True)
class RunCompleted:
    """All that was planned is done."""

    demo_set: DemoSet
    budget: BudgetSnapshot | None


@dataclass(frozen=True)
class RunStopped:
    """The curator stopped the run: what was charged stays charged, what was released before is in `demo_set`."""

    demo_set: DemoSet


@dataclass(frozen=True)
class RunFailed:
    """The run could not begin or go on; the message says what to do."""

    message: str


WritingEvent = DemoStarted | TokenReleased | DemoCompleted | DemoCutOff | PrivateDiagnostics
"""What is told of demonstrations being written, whoever pays for them."""

RunEvent = (
    RunStarted
    | DemoStarted
    | TokenReleased
    | DemoCompleted
    | DemoCutOff
    | StageStarted
    | DraftsWritten
    | VotesReleased
    | SetsMade
    | PriorsReleased
    | ChoiceReleased
    | ScoreReleased
    | StageRelease
    | SetKept
    | RunCompleted
    | RunStopped
    | RunFailed
)
"""What may be recorded and replayed."""

CuratorEvent = RunEvent | Drafting | StageProgress | PrivateDiagnostics
"""What the curator's own screen may get; a recording begins with `RunStarted`."""
