"""A run as a file, format `dpicl-run/1`: JSON Lines of its releases, to be replayed without data or model.

The first line has the set that the run made, with its certificate; then comes an event a line, in the order in which
they were told; the last line says how the run ended. docs/run_files.md describes it for other programs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from mechanisms import __version__
from mechanisms.demos.demo_set import DemoSet, loads, read_json, to_text
from mechanisms.errors import StudioError, TooLong, UsageError
from mechanisms.runs.certificate import MOST_DEMONSTRATIONS as MOST_STATED
from mechanisms.runs.certificate import rebuilt
from mechanisms.runs.events import DemoStarted, RunCompleted, RunEvent, RunStarted, RunStopped
from mechanisms.runs.lines import LONGEST_NAME, OfStages, OfTokens, end_line, event_of, in_words, line_of
from mechanisms.runs.run_history import PermittedReleases, RunHistory, require
from mechanisms.runs.verification import verify

FORMAT = "dpicl-run/1"
LARGEST = 32 * 2**20
"""Characters of a file."""
MOST_LINES = 200_000
MOST_DEMONSTRATIONS = 2000
"""That are begun: what a page can show, and more than a file of the largest size has of the usual candidates."""
_LARGEST_JOURNAL = 2**30
"""Characters of a run that has not ended: this installation wrote it, and what it was charged must not be lost."""
_HEAD = {"format", "demo_set", "run", "software"}
_UNFINISHED = "unfinished"
"""The field of the ledger's key, in the first line of a run that has not ended."""
_KEY = re.compile(r"[0-9a-f]{32}")
ENDS = RunCompleted | RunStopped
"""The last events of a run that can be saved."""


def to_lines(recording: Sequence[RunEvent], disclosures: tuple[str, ...] = ()) -> str:
    """A recorded run as the text of a file.

    Args:
        recording: from its first event to its last one.
        disclosures: why clean values of the data count as known by now; they are added to the certificate's.

    Raises:
        UsageError: the run has not ended, or is not private: what it showed is for its curator alone.
        TooLong: it could not be read again.
    """
    begun, ended = (recording[0], recording[-1]) if recording else (None, None)
    if not isinstance(begun, RunStarted) or not isinstance(ended, ENDS):
        raise UsageError("There is no run to save: only one that was completed or stopped can be.")
    made = ended.demo_set.with_disclosures(disclosures)
    _check_made(made)
    told = (line for event in recording if (line := line_of(event)) is not None)
    end = end_line(isinstance(ended, RunStopped))
    lines = [head_of(begun, made), *told, end]
    text = "\n".join(lines) + "\n"
    written = sum(isinstance(event, DemoStarted) for event in recording)
    if len(text) > LARGEST or len(lines) > MOST_LINES or written > MOST_DEMONSTRATIONS:
        raise TooLong("This run is too long for a run file. Its demonstrations can be exported all the same.")
    return text


def head_of(begun: RunStarted, made: DemoSet, key: str | None = None) -> str:
    """The first line of a run file, without its line break; with the ledger's key where the run has not ended.

    Raises:
        UsageError: the run is not private, or its labels are too long.
    """
    _check_made(made)
    shape = OfStages if begun.stages else OfTokens
    head = {
        "format": FORMAT,
        "demo_set": made.to_json(),
        "run": shape.model_validate(begun).model_dump(mode="json"),
        "software": {"name": "dpicl-studio", "version": __version__},
        **({_UNFINISHED: key} if key else {}),
    }
    return json.dumps(head, ensure_ascii=False, allow_nan=False)


def key_of(head: str) -> str:
    """The ledger's key in the first line of a run that has not ended.

    Raises:
        UsageError: it is no such line.
    """
    with _line(1):
        document = _json(head)
        require(isinstance(document, dict) and document.get("format") == FORMAT, "its format is another one")
        key = str(document.get(_UNFINISHED, ""))
        require(bool(_KEY.fullmatch(key)), "its run has ended, and cannot be resumed")
    return key


def unfinished(head: str, lines: Sequence[str]) -> list[RunEvent]:
    """The events of a run that has not ended.

    They may be far more than in a run file from anywhere: as many demonstrations as a certificate may state.

    Args:
        head: the first line.
        lines: the others.

    Raises:
        UsageError: they are no such lines.
    """
    if len(head) + sum(map(len, lines)) > _LARGEST_JOURNAL:
        raise _refused("it is too large")
    with _line(1):
        document = _json(head)
        document.pop(_UNFINISHED)
        history = _head(document, MOST_STATED)
    return [history.begun, *_events(history, lines)]


def _events(history: RunHistory, lines: Sequence[str]) -> Iterator[RunEvent]:
    for number, line in enumerate(lines, 2):
        with _line(number):
            yield _told(history, line)
    if problems := verify(history.made).problems:
        raise _refused(f"its certificate is wrong: {problems[0]}")


def from_lines(text: str) -> list[RunEvent]:
    """The events of a run file, from the first to the last; none tells the ledger's state.

    Raises:
        UsageError: it is no such file, or its certificate does not hold; the message names the line, and the first
            thing that is wrong there.
    """
    if len(text) > LARGEST:
        raise _refused("it is too large")
    lines = text.removesuffix("\n").split("\n")
    if not 2 <= len(lines) <= MOST_LINES:
        raise _refused("it has too few lines, or too many")
    with _line(1):
        history = _head(_json(lines[0]), MOST_DEMONSTRATIONS)
    events = [history.begun, *_events(history, lines[1:-1])]
    with _line(len(lines)):
        events.append(_end(history, lines[-1]))
    return events


@contextmanager
def _line(number: int) -> Iterator[None]:
    """What is wrong is said with the number of its line."""
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


def _head(document: Any, most: int) -> RunHistory:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError("its format is another one")
    require(_UNFINISHED not in document, "its run has not ended: it can be gone on with, and not be shown yet")
    if set(document) != _HEAD:
        raise UsageError(f"it has other fields than {', '.join(sorted(_HEAD))}")
    made = loads(to_text(document["demo_set"]))
    _check_made(made)
    paid = _paid(made)
    begun = paid.begun(made)
    shape = OfStages if begun.stages else OfTokens
    try:
        stated = shape.model_validate_json(json.dumps(document["run"]))
    except ValidationError as error:
        raise UsageError(f"run: {in_words(error)}") from None
    for name, value in shape.model_validate(begun):
        if getattr(stated, name) != value:
            raise UsageError(f"run/{name}: is not what the certificate has paid for")
    return RunHistory(begun, made, paid, most)


def _paid(made: DemoSet) -> PermittedReleases:
    try:
        return PermittedReleases(rebuilt(made))
    except StudioError as error:
        raise UsageError(f"its certificate is wrong: {error}") from None


def _check_made(made: DemoSet) -> None:
    if not made.certificate.private:
        raise UsageError("This run is not private: what it showed is for its curator alone, and has no run file.")
    if any(len(label) > LONGEST_NAME for label in made.labels):
        raise UsageError(f"A run file has room for labels of at most {LONGEST_NAME} characters.")


def _told(history: RunHistory, line: str) -> RunEvent:
    _json(line)
    event = event_of(line)
    if isinstance(event, str):
        raise UsageError("the run ends before the file does")
    history.add(event)
    return event


def _end(history: RunHistory, line: str) -> RunEvent:
    _json(line)
    how = event_of(line)
    if not isinstance(how, str):
        raise UsageError("the file ends before the run does")
    history.end(stopped=how == "stopped")
    return RunStopped(history.made) if how == "stopped" else RunCompleted(history.made, None)
