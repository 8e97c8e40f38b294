"""The journal of a run that can be resumed: a run file with seals, written while the run goes on.

Its first line has the set before its first demonstration and the ledger's key. Every other line begins with a seal,
which is a keyed digest of the run, the line's number and its text, so that an edited file is refused. The ledger also
stores the first line, and a run is resumed only if the journal's first line equals that copy. A line that a crash left
incomplete is dropped. When the run ends, the run file replaces the journal.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mechanisms.accounting import PrivacyLedger, new_key
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.files import atomic_write, derived_key, keyed_digest
from mechanisms.public_inputs import WHETHER_MET, WHETHER_SHOWN
from mechanisms.runs.certificate import plan_of
from mechanisms.runs.events import ENDS, CuratorEvent, RunEvent, RunStarted, TokenReleased
from mechanisms.runs.plan import Plan
from mechanisms.runs.run_file import head_of, key_in, line_of, to_lines, unfinished


class RunJournal:
    """The file to which a run writes its releases before it yields them. Raises a UsageError if it cannot be written.

    Attributes:
        started: the first event of an interrupted run; None for a new run.
        replayed: the other events of an interrupted run; None for a new run.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        self.started: RunStarted | None = None
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
            events = unfinished(head, [*lines, *missing])
        except UsageError:  # the file is an older copy, which the ledger's last lines do not continue
            events, missing = unfinished(head, lines), []
        started = events[0]
        assert isinstance(started, RunStarted)
        journal.started, journal.replayed, journal._lines = started, events[1:], len(lines)
        journal._whole = sum(len(line.encode()) + 1 for line in (head, *sealed))
        journal._missing = "".join(f"{line}\n" for line in missing)
        return journal

    @property
    def known(self) -> int:
        """The number of events of an interrupted run; 0 for a new run."""
        return 1 + len(self.replayed or ()) if self.started is not None else 0

    def plan(self, content: str) -> Plan:
        """The plan of an interrupted run, as the ledger reserved it, for the data set with the given content digest."""
        assert self.started is not None
        plan = plan_of(self.started.demo_set)
        added = {WHETHER_SHOWN, WHETHER_MET}  # the run adds these itself
        inputs = tuple(each for each in plan.public_inputs if each not in added)
        return replace(plan, public_inputs=inputs).for_content(content)

    def head(self, planned: DemoSet) -> str:
        """The first line of the file before anything is charged, which the ledger stores."""
        self._head = head_of(planned, self.key)
        return self._head

    def begin(self, started: RunStarted) -> None:
        self._events = [started, *(self.replayed or ())]
        if self.started is not None:
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
