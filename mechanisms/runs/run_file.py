"""A run as a file, format `dpicl-run/2`: JSON Lines of its releases, which replay without data or model.

The first line has the set that the run made, with its certificate. Each following line has one event, in the order in
which events were yielded. The last line states how the run ended. docs/run_files.md describes the format for other
programs.

A resumable run writes a journal while it runs. The journal's first line has the set before its first demonstration and
the ledger's key. Every other line begins with a seal, which is a keyed digest of the run, the line's number and its
text, so that an edited file is refused. The ledger also stores the first line, and a run is resumed only if the
journal's first line equals that copy. A line that a crash left incomplete is dropped. When the run ends, the run file
replaces the journal.
"""

from __future__ import annotations

import functools
import hmac
import json
import operator
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from mechanisms import __version__
from mechanisms.accounting import PrivacyLedger, new_key
from mechanisms.data.disclosures import WHETHER_MET, WHETHER_SHOWN
from mechanisms.demos.demo_set import DemoSet, loads, read_json, to_text
from mechanisms.errors import StudioError, TooLong, UsageError
from mechanisms.files import atomic_write, derived_key, keyed_digest
from mechanisms.records import Demonstration
from mechanisms.runs.certificate import plan_of
from mechanisms.runs.events import (
    ENDS,
    LINE,
    LONGEST_NAME,
    CuratorEvent,
    DemoCompleted,
    DemoCutOff,
    DemoRefused,
    DemoStarted,
    Key,
    OfDemonstration,
    Release,
    RunCompleted,
    RunEvent,
    RunStarted,
    RunStopped,
    SetsCompared,
    StageStarted,
    TokenReleased,
    key_of,
)
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import CALIBRATE, SCORE, VOTE, WORDS, WRITE
from mechanisms.runs.stages import stages_in_order
from mechanisms.runs.stages.score import ScoreReleased
from mechanisms.runs.stages.vote import VotesReleased
from mechanisms.runs.stages.words import WordsReleased
from mechanisms.runs.verification import verify
from mechanisms.steps.mechanism import Norm

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
    begun, ended = (recording[0], recording[-1]) if recording else (None, None)
    if not isinstance(begun, RunStarted) or not isinstance(ended, ENDS):
        raise UsageError("There is no run to save: only one that was completed or stopped can be.")
    told = (line for event in recording if (line := line_of(event)) is not None)
    end = json.dumps({"event": "stopped" if isinstance(ended, RunStopped) else "completed"})
    lines = [_head_of(ended.demo_set.with_disclosures(disclosures)), *told, end]
    text = "\n".join(lines) + "\n"
    if len(text) > LARGEST or len(lines) > MOST_LINES:
        raise TooLong("This run is too long for a run file. Its demonstrations can be exported all the same.")
    return text


def _head_of(made: DemoSet, key: str | None = None) -> str:
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
        _require(bool(re.fullmatch(r"[0-9a-f]{32}", key)), "its run has ended, and cannot be resumed")
    return key


def _unfinished(head: str, lines: Sequence[str]) -> list[RunEvent]:
    """The events of an unfinished run. Their limit is higher than that of a run file from elsewhere."""
    if len(head) + sum(map(len, lines)) > _LARGEST_JOURNAL:
        raise _refused("it is too large")
    with _line(1):
        document = _document(head)
        document.pop(_UNFINISHED)
        history = _History(document)
    return [history.begun, *_checked_events(history, lines)]


def from_lines(text: str) -> list[RunEvent]:
    """The events of a run file, from the first to the last; none has the state of the ledger.

    Raises a UsageError that names the first invalid line and the first error in it.
    """
    lines = text.removesuffix("\n").split("\n")
    if len(text) > LARGEST or len(lines) > MOST_LINES:
        raise _refused("it is too large")
    with _line(1):
        history = _History(_document(lines[0]))
        _require(len(lines) > 1, "the file ends before the run does")
    events = [history.begun, *_checked_events(history, lines[1:-1])]
    with _line(len(lines)):
        end = _event_of(lines[-1])
        _require(isinstance(end, _End), "the file ends before the run does")
        history.end(stopped=end.event == "stopped")
    return [*events, RunStopped(history.made) if end.event == "stopped" else RunCompleted(history.made)]


def _checked_events(history: _History, lines: Sequence[str]) -> Iterator[RunEvent]:
    for number, line in enumerate(lines, 2):
        with _line(number):
            event = _event_of(line)
            _require(not isinstance(event, _End), "the run ends before the file does")
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


def _require(true: bool, otherwise: str) -> None:
    if not true:
        raise UsageError(otherwise)


def _json(line: str) -> Any:
    try:
        return read_json(line)
    except UsageError:
        raise UsageError("it is not JSON, repeats a field, or is nested too deeply") from None


def _document(line: str) -> Any:
    document = _json(line)
    stated = document.get("format") if isinstance(document, dict) else None
    _require(stated == FORMAT, "its format is another one; a run of an older version is not read: make it anew")
    return document


def _check_made(made: DemoSet) -> None:
    if not made.certificate.private:
        raise UsageError("This run is not private: what it showed is for its curator alone, and has no run file.")
    if any(len(label) > LONGEST_NAME for label in made.labels):
        raise UsageError(f"A run file has room for labels of at most {LONGEST_NAME} characters.")


class _History:
    """Checks whether events can be those of a run: its certificate covers them, their order is possible, and they agree
    with the set. `add` and `end` raise a UsageError with the reason if an event cannot come next."""

    def __init__(self, document: Any) -> None:
        _require(_UNFINISHED not in document, "its run has not ended: it can be resumed, and not be shown yet")
        _require(set(document) == _HEAD, f"it has other fields than {', '.join(sorted(_HEAD))}")
        self.made = loads(to_text(document["demo_set"]))
        _check_made(self.made)
        try:
            self.plan = plan_of(self.made)
        except StudioError as error:
            raise UsageError(f"its certificate is wrong: {error}") from None
        self._stages = list(self.plan.stages)
        self._stage = ""
        self._steps: dict[Key, int] = {}
        self._whole: dict[Key, Demonstration] = {}
        self._finished: dict[Key, bool] = {}
        """For each interrupted demonstration, whether public text finishes it."""
        self._refused: set[Key] = set()
        self._ballots: set[Demonstration] = set()
        self._released: dict[str, Release] = {}
        self._compared: SetsCompared | None = None

    @property
    def begun(self) -> RunStarted:
        nothing = replace(
            self.made,
            demonstrations=(),
            prior=None,
            score=None,
            baselines=None,
            refused=(),
            words=None,
            directions=None,
        )
        return RunStarted(nothing, self.plan)

    def add(self, event: Any) -> None:
        match event:
            case StageStarted(stage):
                done = self._stages.index(self._stage) if self._stage else -1
                _require(self._stages[done + 1 : done + 2] == [stage], "a stage that was not planned next")
                self._stage = stage
            case DemoStarted() | TokenReleased() | DemoCompleted() | DemoRefused() | DemoCutOff():
                _require(self._stage == WRITE, "a demonstration outside the stage that writes")
                self._write(event, key_of(event))
            case SetsCompared():
                self._compare(event)
            case Release():
                at_work = self.plan.stages.get(self._stage)
                if at_work is None or not isinstance(event, at_work.releases):
                    raise UsageError("a release outside its stage")
                _require(self._stage not in self._released, "a release that was told before")
                at_work.check(event)
                self._released[self._stage] = event
                if isinstance(event, VotesReleased):
                    for label, ballot in event.ballots.items():
                        self._ballots |= {Demonstration(text, label) for text in ballot.drafts}
            case _:
                raise UsageError("an event that stands in no file")

    def end(self, stopped: bool) -> None:
        """End the run. Unless it was stopped, nothing may be missing; its set must follow from its events."""
        spec, made = self.plan.spec, self.made.demonstrations
        planned = len(self.plan.labels) * (spec.written or 0) if WRITE in self._stages else 0
        done = len(self._whole) + list(self._finished.values()).count(False)
        released = {*self._stages} - {WRITE} <= {*self._released}
        at_the_end = self._stage == self._stages[-1]
        _require(stopped or (at_the_end and released and done == planned), "the run ends before it is complete")
        if VOTE in self._released:
            _require(set(made) <= self._ballots, "the set has a demonstration that was not in a ballot")
        if self._compared is not None:
            _require(made == self._compared.own, "the set is not the one that rows read under")
        elif VOTE not in self._stages:
            written = {each for key, each in self._whole.items() if key not in self._refused and each.text}
            for label in self.plan.labels:  # public drafts may only fill up a label with too few written texts
                foreign = [each for each in made if each.label == label and each not in written]
                room = spec.shots - sum(each.label == label for each in written)
                _require(len(foreign) <= max(0, room), "the set has a demonstration that was not written")
        words = self._words
        released_words = (words.words_by_label, words.label_directions) if words else (None, None)
        for held, shown in zip((self.made.words, self.made.directions), released_words, strict=True):
            before = stopped and held is None  # it was stopped before the set had a text
            _require(before or held == shown, "the set's words are not those that were released")
        scored = self._released.get(SCORE)
        score = scored.score if isinstance(scored, ScoreReleased) else None
        _require(self.made.score == score, "the set's score is not the one that was released")

    @property
    def _words(self) -> WordsReleased | None:
        released = self._released.get(WORDS)
        return released if isinstance(released, WordsReleased) else None

    def _compare(self, event: SetsCompared) -> None:
        judges = self._stage in (CALIBRATE, SCORE) and self._stage not in self._released
        _require(judges and self._compared is None, "sets that are compared out of their turn")
        for made in (event.public, event.own):
            told = Counter(each.label for each in made)
            few = set(told) <= set(self.plan.labels) and max(told.values(), default=0) <= self.plan.spec.shots
            _require(few, "sets of other labels, or larger than planned")
        _require(VOTE not in self._released or set(event.own) <= self._ballots, "a set that was not in a ballot")
        self._compared = event

    def _write(self, event: OfDemonstration, key: Key) -> None:
        planned = key[0] in self.plan.labels and key[1] <= self.plan.sampling.written
        written = key in self._whole
        match event:
            case DemoStarted():
                _require(planned and key not in self._steps, "a demonstration that was not planned, or begins twice")
                known = self._words.words_by_label[key[0]] if self._words else ()
                _require({*event.words} <= {*known}, "words that were not released of its label")
                self._steps[key] = 0
            case DemoCutOff(finished=finished):
                once = planned and not written and key not in self._finished
                _require(once, "a demonstration that was not planned, or is cut off twice")
                _require(key in self._steps or not finished, "a demonstration is finished that was not begun")
                self._finished[key] = finished
            case TokenReleased():
                in_turn = event.step == self._steps.get(key, -2) + 1 <= self.plan.sampling.tokens
                _require(in_turn and not written and key not in self._finished, "a token out of its turn")
                self._check_token(event)
                self._steps[key] = event.step
            case DemoCompleted():
                _require(key in self._steps and not written, "a demonstration that is not being written")
                _require(self._finished.get(key, True), "a demonstration goes on that was left out")
                self._whole[key] = event.demonstration
            case DemoRefused():
                once = written and key not in self._refused
                _require(once, "a demonstration is refused that is not written, or twice")
                self._refused.add(key)

    def _check_token(self, event: TokenReleased) -> None:
        """Check that the certificate covers a token, and that the token contains only its mechanism's release."""
        plan, count = self.plan, len(event.candidates)
        _require(event.chosen < count == len(event.public), "a token that is no candidate")
        _require(count <= plan.spec.candidates, "more candidates than the certificate's")
        _require(
            len(event.trail) <= plan.mechanism.longest_trail, "more on a token's trail than its mechanism releases"
        )
        for values in (event.scores, event.values):
            if values is not None:
                _require(len(values) == count, "values that are not those of the candidates")
                # A selection mechanism is charged for its winner only, so it may release no values.
                norm = plan.mechanism.sensitivity(plan.sampling.unit_rows).norm
                _require(norm is not Norm.RANGE, "values beside a token that its mechanism releases alone")


class RunJournal:
    """The file to which a run writes its releases before it yields them. Raises a UsageError if it cannot be written.

    Attributes:
        begun: the first event of an interrupted run; None for a new run.
        replayed: the other events of an interrupted run; None for a new run.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        self.begun: RunStarted | None = None
        self.replayed: Sequence[RunEvent] | None = None
        self._whole, self._lines, self._missing, self._head = 0, 0, "", ""
        self._file: int | None = None
        self._events: list[CuratorEvent] = []
        self._key = derived_key("journal")

    @classmethod
    def new(cls, path: Path, key: str = "") -> RunJournal:
        """The journal of a new run. Its file is created with the first event.

        `key` comes from `new_key`, which is also used if it is empty. Raises a UsageError if the file exists already.
        """
        if path.exists():
            raise UsageError(f"'{path}' is there already: go on with its run, or choose another place.")
        return cls(path, key or new_key())

    @classmethod
    def read(cls, path: Path, ledger: PrivacyLedger) -> RunJournal:
        """The journal of an interrupted run, completed by the ledger's last lines if it lacks them.

        Raises a UsageError if the file cannot be read, was edited, or is not the journal of a run in this ledger.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"Cannot read '{path}': give the file that the run wrote.") from error
        try:
            # Text after the last line break is an incomplete line. Not splitlines(): it would also split at characters
            # that may occur inside a text.
            head, *sealed = content[: content.rfind(b"\n") + 1].decode().split("\n")[:-1] or [""]
        except UnicodeDecodeError as error:
            raise UsageError(f"Cannot read '{path}': it is not text.") from error
        key = key_in(head)
        if head != ledger.reserved_document(key):
            raise UsageError("Line 1 of the run's file was edited: it is not what the ledger reserved this run for.")
        journal = cls(path, key)
        lines = list(journal._opened(sealed))
        missing = [line for line in ledger.newest(key).split("\n") if line and line not in lines]
        try:
            events = _unfinished(head, [*lines, *missing])
        except UsageError:  # the file is an older copy, which the ledger's last lines do not continue
            events, missing = _unfinished(head, lines), []
        begun = events[0]
        assert isinstance(begun, RunStarted)
        journal.begun, journal.replayed, journal._lines = begun, events[1:], len(lines)
        journal._whole = sum(len(line.encode()) + 1 for line in (head, *sealed))
        journal._missing = "".join(f"{line}\n" for line in missing)
        return journal

    def plan(self, content: str) -> Plan:
        """The plan of an interrupted run, as the ledger reserved it, for the data set with the given content digest."""
        assert self.begun is not None
        plan = plan_of(self.begun.demo_set)
        added = {WHETHER_SHOWN, WHETHER_MET}  # the run adds these itself
        inputs = tuple(each for each in plan.public_inputs if each not in added)
        return replace(plan, public_inputs=inputs).for_content(content)

    def head(self, planned: DemoSet) -> str:
        """The first line of the file before anything is charged, which the ledger stores."""
        self._head = _head_of(planned, self.key)
        return self._head

    def begin(self, started: RunStarted) -> None:
        self._events = [started, *(self.replayed or ())]
        if self.begun is not None:
            self._open(os.O_WRONLY | os.O_APPEND)
            self._append(self._missing, durable=True)
        else:
            self._open(os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL)
            self._put(f"{self._head}\n".encode(), durable=True)

    def lines(self, *events: CuratorEvent) -> str:
        """The lines that `write` writes, without their seals."""
        return "".join(f"{line}\n" for event in events if (line := line_of(event)) is not None)

    def write(self, *events: CuratorEvent) -> None:
        """Write events that are yielded together; returns when they are in the file.

        The write is flushed to the disk unless all events are tokens. A token that a power failure loses is not drawn
        again.
        """
        if lines := self.lines(*events):
            self._events += events
            self._append(lines, durable=not all(isinstance(event, TokenReleased) for event in events))

    def end(self, ended: ENDS, ledger: PrivacyLedger, disclosures: tuple[str, ...] = ()) -> None:
        """Replace the journal by the run file, and remove its lines from the ledger.

        If this raises a TooLong, or a StudioError of the ledger, the journal remains and the run can be resumed.
        """
        self._append("", durable=True)
        ledger.forget(self.key)  # the file has all lines; once the journal is gone, nothing else would remove them
        text = to_lines([*self._events, ended], disclosures)
        self.close()
        atomic_write(self.path, text)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self, flags: int) -> None:
        try:
            self._file = os.open(self.path, flags, 0o600)
            os.ftruncate(self._file, self._whole)
        except OSError as error:
            raise _unwritable(self.path) from error

    def _append(self, text: str, durable: bool) -> None:
        sealed = []
        for line in text.split("\n")[:-1]:
            self._lines += 1
            sealed.append(self._sealed(self._lines, line))
        self._put("".join(sealed).encode(), durable)

    def _put(self, content: bytes, durable: bool) -> None:
        assert self._file is not None
        try:
            while content:
                content = content[os.write(self._file, content) :]
            if durable:
                os.fsync(self._file)
        except OSError as error:
            raise _unwritable(self.path) from error

    def _sealed(self, number: int, line: str) -> str:
        """A line with its seal in front: a digest under a key of this installation.

        `number` is the line's position; it counts from 1 and leaves out the first line.
        """
        return f"{keyed_digest([self.key, str(number), line], self._key)} {line}\n"

    def _opened(self, sealed: Sequence[str]) -> Iterator[str]:
        """The lines without their seals. Raises a UsageError if a line is not the one sealed at its position."""
        for number, each in enumerate(sealed, 1):
            line = each.partition(" ")[2]
            if not hmac.compare_digest(f"{each}\n".encode(), self._sealed(number, line).encode()):
                raise UsageError(
                    f"Line {number + 1} of the run's file is not the one that was written there on this installation: "
                    "give the file as the run left it."
                )
            yield line


def _unwritable(path: Path) -> UsageError:
    return UsageError(f"Cannot write the run's file '{path}': check its folder, and the room on the disk.")
