"""The events of a run, in order. A recorded list of them replays a whole screen without a model.

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
    """For the curator's screen only: the values under a demonstration's last released token, without noise.

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
    """Token counts of a structured demonstration, by how the tokens were decided.

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
    """A demonstration is finished.

    Attributes:
        tokens: where it is a structured record.
    """

    demonstration: Demonstration
    number: int
    tokens: TokenCounts | None = None


@dataclass(frozen=True)
class DemoCutOff:
    """A demonstration that gets no more private tokens: its sample was lost when the run was interrupted.

    Attributes:
        finished: public text alone brings it to its end; else it is left out, since nothing of it is there.
    """

    label: str
    number: int
    finished: bool


# Events of stages. Those of single demonstrations come between the beginning of the stage "write" and the next one.


@dataclass(frozen=True)
class Drafting:
    """The model is about to write public drafts of a label; nothing is reserved and no row is read."""

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
    """For the curator's screen only: a stage's approximate progress, 0 to 1. It may depend on the number of units."""

    stage: Stage
    done: float


@dataclass(frozen=True)
class DraftsWritten:
    """The ballot of a label: public drafts, and demonstrations that were written before; all releasable."""

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
    """A set that can be chosen, with its wording of the task; "none" has no demonstrations."""

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
    """The chosen set and its correction; nothing else of the comparison is released.

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
    """The base of events that a stage defines in its own file, as frozen dataclasses.

    Their fields are public: numbers, texts, and tuples of them. A run file stores them under their names.

    Attributes:
        kind: the event's name in a run file, used by no other event.
        title: its title in the list of a run's moments.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    __pydantic_config__: ClassVar[dict[str, Any]] = {"strict": True, "extra": "forbid", "allow_inf_nan": False}

    def lines(self) -> tuple[str, ...]:
        """The event in words, one line each."""
        raise NotImplementedError


@dataclass(frozen=True)
class SetKept:
    """The run's set if the run is stopped from here on; yielded right before each release that the set holds."""

    demo_set: DemoSet


@dataclass(frozen=True)
class RunCompleted:
    """The run has finished."""

    demo_set: DemoSet
    budget: BudgetSnapshot | None


@dataclass(frozen=True)
class RunStopped:
    """The curator stopped the run: its charges stay, and `demo_set` holds what was released."""

    demo_set: DemoSet


@dataclass(frozen=True)
class RunFailed:
    """The run could not begin or continue; the message says what to do."""

    message: str


WritingEvent = DemoStarted | TokenReleased | DemoCompleted | DemoCutOff | PrivateDiagnostics
"""The events of demonstrations that are written token by token."""

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
"""The events that may be recorded and replayed."""

CuratorEvent = RunEvent | Drafting | StageProgress | PrivateDiagnostics
"""The events for the curator's own screen; a recording begins with `RunStarted`."""
