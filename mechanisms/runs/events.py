"""The events of a run. A recorded list of them replays the whole screen without a model.

All events are releasable except `PrivateDiagnostics` and `StageProgress`, which are never written to a file. An event
with a field `event` is a line of a run file, and its fields, with their bounds, are all that the line may contain.
"""

from __future__ import annotations

from dataclasses import dataclass as plain
from dataclasses import field
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from mechanisms.accounting import BudgetSnapshot
from mechanisms.demos.demo_set import DemoSet
from mechanisms.records import Demonstration
from mechanisms.runs.terms import RunTerms

LONGEST, MOST = 50_000, 50_000
"""The most characters of a text, and the most items of a list."""
LONGEST_NAME = 500
"""The most characters of a label, which the screen shows in many places."""

Text = Annotated[str, Field(max_length=LONGEST)]
Name = Annotated[str, Field(max_length=LONGEST_NAME)]
Number = Annotated[float, Field(ge=-1e9, le=1e9)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Whole = Annotated[int, Field(ge=1, le=1_000_000)]
Texts = Annotated[tuple[Text, ...], Field(min_length=1, max_length=MOST)]
Numbers = Annotated[tuple[Number, ...], Field(min_length=1, max_length=MOST)]

Key = tuple[str, int]
"""The label and the number of a demonstration that is written token by token."""
LINE = ConfigDict(extra="forbid", allow_inf_nan=False)
"""The validation rules of every event that a file may contain."""


class Release:
    """The base class of the events that stages define in their own files."""

    def lines(self) -> tuple[str, ...]:
        """The event in words, one line each."""
        return ()


@plain(frozen=True)
class RunStarted:
    """A run begins. `demo_set` has its complete claim, but no demonstrations yet.

    The `plan` follows from the set's certificate, and belongs to no data set. `budget` is the ledger's state; it is
    None for a run that charges nothing, and for an event read from a file.
    """

    demo_set: DemoSet
    plan: RunTerms = field(compare=False)
    budget: BudgetSnapshot | None = None


@dataclass(frozen=True, config=LINE)
class StageStarted:
    """A stage begins. It has been charged already, or charges its parts one by one."""

    stage: Name
    event: Literal["stage"] = "stage"


@plain(frozen=True)
class Drafting:
    """The model is about to write drafts of a label; no row is read.

    Attributes:
        number: the label's position among the labels, from 1 to `of`.
        of: the number of labels.
        public: whether the drafts follow from public words only; otherwise also from the run's releases.
    """

    label: str
    number: int
    of: int
    public: bool


@plain(frozen=True)
class StageProgress:
    """The approximate progress of a stage, 0 to 1, for the curator's screen only: it may depend on the number of
    units."""

    stage: str
    done: float


@dataclass(frozen=True, config=LINE)
class DemoStarted:
    """A demonstration has been charged in full and begins. Its opening, and its label's words in the prompt, are public
    or released."""

    label: Name
    number: Whole
    opening: Text = ""
    words: Annotated[tuple[Name, ...], Field(max_length=2)] = ()
    event: Literal["demonstration begun"] = "demonstration begun"


@dataclass(frozen=True, config=LINE)
class TokenReleased:
    """One token has been released.

    Attributes:
        step: the number of the token, from 1.
        text: the demonstration so far, with its opening and this token.
        candidates: the texts of the K candidates.
        chosen: the position of the released token among the candidates.
        scores: the released noisy value of each candidate, in rows; None if only the token may be released.
        values: the values that decided, in rows: the noisy values combined with the public ones; None if there are
            none.
        public: the public distribution over the candidates, in expected rows.
        stop: whether the token ends the demonstration.
        free: whether public text alone decided, so that the token uses nothing of the demonstration's charge.
        trail: the mechanism's releases before the token; see `TokenRelease.trail`.
        token: the token's number in the model's vocabulary, which is needed to resume an interrupted run.
    """

    label: Name
    number: Whole
    step: Whole
    text: Text
    candidates: Texts
    chosen: Count
    scores: Numbers | None
    public: Numbers
    stop: bool
    values: Numbers | None = None
    free: bool = False
    trail: Annotated[tuple[tuple[Number, Number], ...], Field(max_length=100)] = ()
    token: Count | None = None
    event: Literal["token"] = "token"

    @property
    def moved(self) -> bool:
        """Whether the rows, or the noise, preferred another token than the model, by released and public values."""
        if self.values is None:
            return False
        decided, expected = (max(range(len(each)), key=each.__getitem__) for each in (self.values, self.public))
        return decided != expected


@plain(frozen=True)
class PrivateDiagnostics:
    """Values for the curator's screen only: `clean` is the sum of the rows' distributions without noise at a
    demonstration's last released token, in rows, shape (K,)."""

    label: str
    number: int
    step: int
    clean: tuple[float, ...]


@dataclass(frozen=True, config=LINE)
class DemoCompleted:
    """A demonstration is finished."""

    demonstration: Demonstration
    number: Whole
    event: Literal["demonstration"] = "demonstration"


@dataclass(frozen=True, config=LINE)
class DemoRefused:
    """A finished demonstration is refused by rules on public values alone, and is in no ballot and in no set."""

    label: Name
    number: Whole
    reason: Text
    event: Literal["refused"] = "refused"


@dataclass(frozen=True, config=LINE)
class DemoCutOff:
    """A demonstration gets no more private tokens, because its sample was lost when the run was interrupted. If
    `finished`, public text completes it; otherwise it has no tokens and is left out."""

    label: Name
    number: Whole
    finished: bool
    event: Literal["cut off"] = "cut off"


@dataclass(frozen=True, config=LINE)
class SetsCompared:
    """The two sets with which the model reads rows from now on, in addition to a prompt without demonstrations.

    Attributes:
        public: the set from public text only.
        own: the run's own set, which is final now.
    """

    public: Annotated[tuple[Demonstration, ...], Field(max_length=MOST)]
    own: Annotated[tuple[Demonstration, ...], Field(max_length=MOST)]
    event: Literal["sets"] = "sets"


@plain(frozen=True)
class SetSoFar:
    """The run's set, as it is if the run is stopped from now on. It is yielded just before the release that it already
    has."""

    demo_set: DemoSet


@plain(frozen=True)
class RunCompleted:
    """The run has finished."""

    demo_set: DemoSet
    budget: BudgetSnapshot | None = None


@plain(frozen=True)
class RunStopped:
    """The curator stopped the run: its charges stay, and `demo_set` holds what was released."""

    demo_set: DemoSet


@plain(frozen=True)
class RunFailed:
    """The run could not begin or continue; the message says what to do."""

    message: str


OfDemonstration = DemoStarted | TokenReleased | DemoCompleted | DemoRefused | DemoCutOff
"""The public events of demonstrations that are written token by token."""
WritingEvent = OfDemonstration | PrivateDiagnostics
RunEvent = (
    RunStarted
    | StageStarted
    | OfDemonstration
    | Release
    | SetsCompared
    | SetSoFar
    | RunCompleted
    | RunStopped
    | RunFailed
)
"""The events that may be recorded and replayed."""
CuratorEvent = RunEvent | Drafting | StageProgress | PrivateDiagnostics
"""The events for the curator's own screen; a recording begins with `RunStarted`."""
ENDS = RunCompleted | RunStopped
"""The last events of a run that can be saved."""


def key_of(event: OfDemonstration) -> Key:
    label = event.demonstration.label if isinstance(event, DemoCompleted) else event.label
    return label, event.number
