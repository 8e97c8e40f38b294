"""A run as a file, format `dpicl-run/2`: JSON Lines of its releases, which replay without data or model.

The first line has the set that the run made, with its certificate. Each following line has one event, in the order in
which events were yielded. The last line states how the run ended. docs/run_files.md describes the format for other
programs.

A run that can be resumed writes the same lines, with seals, into a journal (`journal.py`).
"""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from mechanisms import __version__
from mechanisms.demos.demo_set import DemoSet, loads, read_json, to_text
from mechanisms.errors import TooLong, UsageError
from mechanisms.runs.events import (
    ENDS,
    LINE,
    LONGEST_NAME,
    CuratorEvent,
    DemoCompleted,
    DemoCutOff,
    DemoRefused,
    DemoStarted,
    RunCompleted,
    RunEvent,
    RunStarted,
    RunStopped,
    SetsCompared,
    StageStarted,
    TokenReleased,
)
from mechanisms.runs.history import History, require
from mechanisms.runs.stages import stages_in_order
from mechanisms.runs.verification import verify

FORMAT = "dpicl-run/2"
LARGEST = 32 * 2**20
"""The most characters in a run file."""
MOST_LINES = 200_000
_LARGEST_JOURNAL = 2**30
"""The most characters in a journal. It is larger because this installation wrote the journal, and the charged parts of
its run must not be lost."""
_HEAD = {"format", "demo_set", "software"}
_UNFINISHED = "unfinished"
"""The field for the ledger's key in a journal's first line."""


@checked(frozen=True, config=LINE)
class _End:
    event: Literal["completed", "stopped"]


@functools.cache
def _lines() -> TypeAdapter[Any]:
    """The types of lines: the events of demonstrations, and the releases that stages define in their files."""
    releases = [each for stage in stages_in_order().values() for each in stage.releases]
    kinds = (
        StageStarted, DemoStarted, TokenReleased, DemoCompleted, DemoRefused, DemoCutOff, SetsCompared, _End, *releases
    )  # fmt: skip
    names = [name for kind in kinds for name in get_type_hints(kind)["event"].__args__]
    assert len(set(names)) == len(names), "two events have one name in a run file"
    union: Any = functools.reduce(operator.or_, kinds)
    return TypeAdapter(Annotated[union, Field(discriminator="event")])


def line_of(event: Any) -> str | None:
    """An event as a line of a run file, without its line break; None for an event that is never written to a file."""
    if not hasattr(event, "event"):
        return None
    return json.dumps(TypeAdapter(type(event)).dump_python(event, mode="json"), ensure_ascii=False, allow_nan=False)


def _event_of(line: str) -> Any:
    """The event of a line; `_End` for the last line. Raises a UsageError if the line is not valid."""
    _json(line)
    try:
        return _lines().validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(str(part) for part in first["loc"][1:]) or "event"
        raise UsageError(f"{place}: {str(first['msg'])[:1].lower()}{str(first['msg'])[1:]}") from None


def to_lines(recording: Sequence[CuratorEvent], disclosures: tuple[str, ...] = ()) -> str:
    """The text of the run file for a recorded run, from its first event to its last one.

    Args:
        disclosures: reasons why values of the data without noise count as known; added to the certificate's.

    Raises:
        UsageError: the run has not ended or is not private.
        TooLong: the file would exceed the limits for reading it again.
    """
    started, ended = (recording[0], recording[-1]) if recording else (None, None)
    if not isinstance(started, RunStarted) or not isinstance(ended, ENDS):
        raise UsageError("There is no run to save: only one that was completed or stopped can be.")
    told = (line for event in recording if (line := line_of(event)) is not None)
    end = json.dumps({"event": "stopped" if isinstance(ended, RunStopped) else "completed"})
    lines = [head_of(ended.demo_set.with_disclosures(disclosures)), *told, end]
    text = "\n".join(lines) + "\n"
    if len(text) > LARGEST or len(lines) > MOST_LINES:
        raise TooLong("This run is too long for a run file. Its demonstrations can be exported all the same.")
    return text


def head_of(made: DemoSet, key: str | None = None) -> str:
    """The first line of a run file, with the ledger's key if the run has not ended."""
    _check_made(made)
    head = {
        "format": FORMAT,
        "demo_set": made.to_json(),
        "software": {"name": "dpicl-studio", "version": __version__},
        **({_UNFINISHED: key} if key else {}),
    }
    return json.dumps(head, ensure_ascii=False, allow_nan=False)


def key_in(head: str) -> str:
    """The ledger's key in a journal's first line. Raises a UsageError if the line is not that of a journal."""
    with _line(1):
        key = str(_document(head).get(_UNFINISHED, ""))
        require(bool(re.fullmatch(r"[0-9a-f]{32}", key)), "its run has ended, and cannot be resumed")
    return key


def unfinished(head: str, lines: Sequence[str]) -> list[RunEvent]:
    """The events of an unfinished run. Their limit is higher than that of a run file from elsewhere."""
    if len(head) + sum(map(len, lines)) > _LARGEST_JOURNAL:
        raise _refused("it is too large")
    with _line(1):
        document = _document(head)
        document.pop(_UNFINISHED)
        history = _history(document)
    return [history.started, *_checked_events(history, lines)]


def from_lines(text: str) -> list[RunEvent]:
    """The events of a run file, from the first to the last; none has the state of the ledger.

    Raises a UsageError that names the first invalid line and the first error in it.
    """
    lines = text.removesuffix("\n").split("\n")
    if len(text) > LARGEST or len(lines) > MOST_LINES:
        raise _refused("it is too large")
    with _line(1):
        history = _history(_document(lines[0]))
        require(len(lines) > 1, "the file ends before the run does")
    events = [history.started, *_checked_events(history, lines[1:-1])]
    with _line(len(lines)):
        end = _event_of(lines[-1])
        require(isinstance(end, _End), "the file ends before the run does")
        history.end(stopped=end.event == "stopped")
    return [*events, RunStopped(history.made) if end.event == "stopped" else RunCompleted(history.made)]


def _checked_events(history: History, lines: Sequence[str]) -> Iterator[RunEvent]:
    for number, line in enumerate(lines, 2):
        with _line(number):
            event = _event_of(line)
            require(not isinstance(event, _End), "the run ends before the file does")
            history.add(event)
            yield event
    if problems := verify(history.made).problems:
        raise _refused(f"its certificate is wrong: {problems[0]}")


@contextmanager
def _line(number: int) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise _refused(f"line {number}: {error}") from None


def _refused(why: str) -> UsageError:
    return UsageError(f"This is not a {FORMAT} file: {why.removesuffix('.')}.")


def _json(line: str) -> Any:
    try:
        return read_json(line)
    except UsageError:
        raise UsageError("it is not JSON, repeats a field, or is nested too deeply") from None


def _document(line: str) -> Any:
    document = _json(line)
    stated = document.get("format") if isinstance(document, dict) else None
    require(stated == FORMAT, "its format is another one; a run of an older version is not read: make it anew")
    return document


def _check_made(made: DemoSet) -> None:
    if not made.certificate.private:
        raise UsageError("This run is not private: what it showed is for its curator alone, and has no run file.")
    if any(len(label) > LONGEST_NAME for label in made.labels):
        raise UsageError(f"A run file has room for labels of at most {LONGEST_NAME} characters.")


def _history(document: Any) -> History:
    """The checks of a file's events, for its first line."""
    require(_UNFINISHED not in document, "its run has not ended: it can be resumed, and not be shown yet")
    require(set(document) == _HEAD, f"it has other fields than {', '.join(sorted(_HEAD))}")
    made = loads(to_text(document["demo_set"]))
    _check_made(made)
    return History(made)
