"""The lines of a run file, one shape for each kind of event: the list of what a run file may hold.

A field that an event gains is in no file until it is named here; the fields of a `StageRelease` stand under their own
names. `PrivateDiagnostics`, `StageProgress` and the ledger's state have no shape.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mechanisms.errors import UsageError
from mechanisms.runs.events import (
    ChoiceReleased,
    DemoCompleted,
    DemoCutOff,
    DemoStarted,
    DraftsWritten,
    PriorsReleased,
    RunEvent,
    ScoreReleased,
    SetsMade,
    StageRelease,
    StageStarted,
    TokenReleased,
    VotesReleased,
)
from mechanisms.runs.recipe import Stage
from mechanisms.runs.stages import stages_by_place
from mechanisms.tallies import Weighing

_LONGEST, _MOST = 50_000, 50_000
"""Characters of a text, and items of a list."""
LONGEST_NAME = 500
"""Characters of a label, or of a set's name: a screen shows them at every place."""

_Text = Annotated[str, Field(max_length=_LONGEST)]
_Name = Annotated[str, Field(max_length=LONGEST_NAME)]
_Number = Annotated[float, Field(ge=-1e9, le=1e9)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Level = Annotated[float, Field(gt=0, lt=1)]
_Count = Annotated[int, Field(ge=0, le=1_000_000)]
_Whole = Annotated[int, Field(ge=1, le=1_000_000)]
_Texts = Annotated[tuple[_Text, ...], Field(min_length=1, max_length=_MOST)]
_Numbers = Annotated[tuple[_Number, ...], Field(min_length=1, max_length=_MOST)]


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, from_attributes=True, allow_inf_nan=False)


class _Demonstration(_Shape):
    text: _Text
    label: _Name
    output: _Text | None


class _Counts(_Shape):
    charged: _Count
    forced: _Count
    rest: _Count


class _Template(_Shape):
    instruction: _Text
    text: _Text
    label: _Text
    output: _Text | None


class _Set(_Shape):
    name: _Name
    demonstrations: Annotated[tuple[_Demonstration, ...], Field(max_length=_MOST)]
    template: _Template


class _Arm(_Shape):
    accuracy: _Share
    interval: tuple[_Share, _Share]


class _Gain(_Shape):
    accuracy: Annotated[float, Field(ge=-1, le=1)]
    interval: tuple[Annotated[float, Field(ge=-1, le=1)], Annotated[float, Field(ge=-1, le=1)]]


class _Score(_Shape):
    arms: Annotated[dict[_Name, _Arm], Field(min_length=1, max_length=100)]
    held_out: bool = Field(validation_alias=AliasChoices("untouched", "held_out"), serialization_alias="untouched")
    level: _Level | None = None
    gains: Annotated[dict[_Name, _Gain], Field(max_length=100)] = {}
    weighing: Weighing = Weighing.ROWS


class OfTokens(_Shape):
    """What a run that writes token by token was to be: see `RunStarted`."""

    shots: _Whole
    tokens: _Whole
    expected_rows: _Whole
    kept: _Whole | None


class OfStages(_Shape):
    """What a recipe's run was to be: see `RunStarted`."""

    stages: Annotated[tuple[Stage, ...], Field(min_length=1, max_length=len(Stage))]
    shots: _Whole
    tokens: _Whole


class _Begun(_Shape):
    event: Literal["demonstration begun"] = "demonstration begun"
    label: _Name
    number: _Whole


class _Token(_Shape):
    event: Literal["token"] = "token"
    label: _Name
    number: _Whole
    step: _Whole
    text: _Text
    candidates: _Texts
    chosen: _Count
    scores: _Numbers | None
    public: _Numbers
    stop: bool
    free: bool
    trail: Annotated[tuple[tuple[_Number, _Number], ...], Field(max_length=100)] = ()
    token: _Count | None = None


class _CutOff(_Shape):
    event: Literal["cut off"] = "cut off"
    label: _Name
    number: _Whole
    finished: bool


class _Completed(_Shape):
    event: Literal["demonstration"] = "demonstration"
    demonstration: _Demonstration
    number: _Whole
    tokens: _Counts | None


class _Stage(_Shape):
    event: Literal["stage"] = "stage"
    stage: Stage


class _Drafts(_Shape):
    event: Literal["drafts"] = "drafts"
    label: _Name
    round: _Whole
    drafts: _Texts


class _Votes(_Shape):
    event: Literal["votes"] = "votes"
    label: _Name
    round: _Whole
    votes: _Numbers
    winners: Annotated[tuple[_Count, ...], Field(max_length=_MOST)]
    noise: Annotated[float, Field(ge=0, le=1e9)]


class _Sets(_Shape):
    event: Literal["sets"] = "sets"
    sets: Annotated[tuple[_Set, ...], Field(min_length=1, max_length=1000)]


class _Priors(_Shape):
    event: Literal["priors"] = "priors"
    priors: Annotated[
        tuple[tuple[_Name, Annotated[tuple[_Share, ...], Field(max_length=_MOST)]], ...], Field(max_length=1000)
    ]
    noisy: Annotated[tuple[Annotated[tuple[_Number, ...], Field(max_length=_MOST)], ...], Field(max_length=1000)] = ()


class _Choice(_Shape):
    event: Literal["choice"] = "choice"
    among: Annotated[tuple[tuple[_Name, _Name], ...], Field(min_length=1, max_length=10_000)]
    chosen: tuple[_Name, _Name]


class _Scored(_Shape):
    event: Literal["score"] = "score"
    score: _Score


class _End(_Shape):
    event: Literal["completed", "stopped"]


_SHAPES: dict[type[Any], type[_Shape]] = {
    DemoStarted: _Begun,
    TokenReleased: _Token,
    DemoCompleted: _Completed,
    DemoCutOff: _CutOff,
    StageStarted: _Stage,
    DraftsWritten: _Drafts,
    VotesReleased: _Votes,
    SetsMade: _Sets,
    PriorsReleased: _Priors,
    ChoiceReleased: _Choice,
    ScoreReleased: _Scored,
}
_EVENTS = {shape: (kind, TypeAdapter(kind)) for kind, shape in _SHAPES.items()}
_ANY: TypeAdapter[Any] = TypeAdapter(
    Annotated[
        _Begun | _Token | _Completed | _CutOff | _Stage | _Drafts | _Votes | _Sets | _Priors | _Choice | _Scored | _End,
        Field(discriminator="event"),
    ]
)
_LEDGER = (DemoStarted, StageStarted)
"""Events that tell the ledger's state, which is in no file."""


def line_of(event: RunEvent) -> str | None:
    """An event as a line of a run file, without its line break; None for one that no file holds."""
    if isinstance(event, StageRelease):
        told = TypeAdapter(type(event)).dump_python(event, mode="json")
        return json.dumps({"event": event.kind, **told}, separators=(",", ":"))
    shape = _SHAPES.get(type(event))
    return shape.model_validate(event).model_dump_json(by_alias=True) if shape is not None else None


def end_line(stopped: bool) -> str:
    """The last line."""
    return _End(event="stopped" if stopped else "completed").model_dump_json()


def event_of(line: str) -> RunEvent | Literal["completed", "stopped"]:
    """The event that a line holds, or how the run ended.

    Raises:
        UsageError: it is no such line.
    """
    try:
        if own := _own_event(line):
            return own
        read = _ANY.validate_json(line)
    except ValidationError as error:
        raise UsageError(in_words(error)) from None
    if isinstance(read, _End):
        return read.event
    kind, adapter = _EVENTS[type(read)]
    values = read.model_dump(exclude={"event"}) | ({"budget": None} if kind in _LEDGER else {})
    event: RunEvent = adapter.validate_python(values)
    return event


def _own_event(line: str) -> StageRelease | None:
    """An event that stands in a stage's file; None where the line holds another one."""
    if not (kinds := own_releases()):
        return None
    try:
        told = json.loads(line)
        kind = kinds.get(told.pop("event"))
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return None  # which is said in words by the reader of all other lines
    event: StageRelease | None = TypeAdapter(kind).validate_json(json.dumps(told)) if kind is not None else None
    return event


def own_releases() -> dict[str, type[StageRelease]]:
    """The events that stages have of their own, by what a run file calls them."""
    types = (each for stage in stages_by_place().values() for each in stage.releases)
    return {each.kind: each for each in types if issubclass(each, StageRelease)}


def in_words(error: ValidationError) -> str:
    """The first thing that does not fit, and where; names that a hostile file gave its fields are cut short."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = "/".join(str(part)[:40] for part in first["loc"][:6]) or "the line"
    return f"{first['type'].replace('_', ' ')} at {where}"
