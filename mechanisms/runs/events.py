"""The events of a run, in order. A recorded list of them replays a whole screen without a model.

Everything here is releasable, except `PrivateDiagnostics` and `StageProgress`: types of their own that reach no file.
Those with a name for `event` are the lines of a run file: their fields, with their bounds, are all that one may hold.
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
"""Characters of a text, and items of a list."""
LONGEST_NAME = 500
"""Characters of a label: a screen shows it at every place."""

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
"""Of every event that a file may hold."""


class Release:
    """The base class of the events that stages define in their own files."""

    def lines(self) -> tuple[str, ...]:
        """The event in words, one line each."""
        return ()


@plain(frozen=True)
class RunStarted:
    """A run begins. `demo_set` already has its whole claim, and no demonstrations.

    The `plan` follows from its certificate, and is for no data set. The ledger's `budget` is None for a run that
    charges nothing, and in a file.
    """

    demo_set: DemoSet
    plan: RunTerms = field(compare=False)
    budget: BudgetSnapshot | None = None


@dataclass(frozen=True, config=LINE)
class StageStarted:
    """A stage begins. It has been charged, or charges its parts one by one."""

    stage: Name
    event: Literal["stage"] = "stage"


@plain(frozen=True)
class Drafting:
    """The model is about to write drafts of a label; no row is read.

    Attributes:
        public: from public words alone; else with what rows have released.
    """

    label: str
    number: int
    of: int
    public: bool


@plain(frozen=True)
class StageProgress:
    """For the curator's screen only: the approximate progress of a stage, 0 to 1, which may depend on the number of
    units."""

    stage: str
    done: float


@dataclass(frozen=True, config=LINE)
class DemoStarted:
    """A demonstration has been charged in full and begins. Its opening, and the words of its label in its prompt, are
    public."""

    label: Name
    number: Whole
    opening: Text = ""
    words: Annotated[tuple[Name, ...], Field(max_length=2)] = ()
    event: Literal["demonstration begun"] = "demonstration begun"


@dataclass(frozen=True, config=LINE)
class TokenReleased:
    """One token has been released.

    Attributes:
        step: 1 .. tokens.
        text: the demonstration so far, its opening and this token included.
        candidates: K texts; `chosen` is the place of the released one.
        scores: the released noisy values, in rows; None where only the token may be released.
        values: what decided, in rows: the noisy values read through the public ones; None where there are none.
        public: the public distribution over the candidates, in expected rows.
        stop: the token ends the demonstration.
        free: public text alone decided, so that it costs nothing of what the demonstration paid.
        trail: what the mechanism released on its way to the token; see `TokenRelease.trail`.
        token: its number in the model's vocabulary, with which a run that was cut off is resumed.
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
        """Whether rows, or noise, preferred another token than the model, by released and public values."""
        if self.values is None:
            return False
        decided, expected = (max(range(len(each)), key=each.__getitem__) for each in (self.values, self.public))
        return decided != expected


@plain(frozen=True)
class PrivateDiagnostics:
    """For the curator's screen only: the sum of the rows' distributions without noise (`clean`) at a demonstration's
    last released token, in rows."""

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
    """A demonstration gets no more private tokens, because its sample was lost when the run was interrupted. Public
    text finishes it, or it is left out if it has no tokens (`finished`)."""

    label: Name
    number: Whole
    finished: bool
    event: Literal["cut off"] = "cut off"


@dataclass(frozen=True, config=LINE)
class SetsCompared:
    """The sets under which rows are read next, beside no demonstrations: one from public text alone, and the run's own,
    which is final from here on."""

    public: Annotated[tuple[Demonstration, ...], Field(max_length=MOST)]
    own: Annotated[tuple[Demonstration, ...], Field(max_length=MOST)]
    event: Literal["sets"] = "sets"


@plain(frozen=True)
class SetKept:
    """The run's set if the run is stopped from here on. It is yielded right before each release in the set."""

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
    | SetKept
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
