"""What a recipe's run tells the outside world, stage by stage; releasable, except `StageProgress`.

Between `StageStarted` of the stage "write" and the next stage, the events of `mechanisms.runs.events` that
are about single demonstrations and tokens appear as well. A recorded list of these replays a whole screen.
"""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.accounting import BudgetSnapshot
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import Score
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.runs.events import (
    DemoCompleted,
    DemoCutOff,
    DemoStarted,
    PrivateDiagnostics,
    RunFailed,
    TokenReleased,
)
from mechanisms.runs.recipe import Stage


@dataclass(frozen=True)
class Drafting:
    """Public drafts of a label are about to be written: nothing is reserved yet, and no row is read."""

    label: str
    number: int
    of: int


@dataclass(frozen=True)
class RecipeStarted:
    """A run begins; `demo_set` already holds its whole claim, and no demonstration yet."""

    demo_set: DemoSet
    stages: tuple[Stage, ...]
    shots: int
    tokens: int
    budget: BudgetSnapshot | None


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


@dataclass(frozen=True)
class SetKept:
    """The run's set, should it be stopped from here on: told right before each release that stands in it."""

    demo_set: DemoSet


@dataclass(frozen=True)
class RecipeCompleted:
    """All stages are done."""

    demo_set: DemoSet
    budget: BudgetSnapshot | None


@dataclass(frozen=True)
class RecipeStopped:
    """The curator stopped the run: what was charged stays charged, what was released before is in `demo_set`."""

    demo_set: DemoSet


RecipeEvent = (
    RecipeStarted
    | StageStarted
    | DraftsWritten
    | VotesReleased
    | SetsMade
    | PriorsReleased
    | ChoiceReleased
    | ScoreReleased
    | SetKept
    | RecipeCompleted
    | RecipeStopped
    | RunFailed
    | DemoStarted
    | TokenReleased
    | DemoCompleted
    | DemoCutOff
)
"""What may be recorded and replayed."""

CuratorRecipeEvent = RecipeEvent | Drafting | StageProgress | PrivateDiagnostics
"""What the curator's own screen may get; a recording begins with `RecipeStarted`."""
