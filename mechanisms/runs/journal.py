"""The journal of a run: a run file that grows with each release, so that the run can be resumed after a crash.

It is a run file whose first line has the set before its first demonstration, and the key by which the ledger knows the
run; it has no last line yet. The ledger keeps the first line too, and a resumed run is built from the ledger's copy.
Every other line begins with a seal, a keyed digest of its run, its number and its text, so that an edited file is
refused. A line that a crash has torn is left out. When the run ends, the run file stands in its place.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mechanisms.accounting import PrivacyLedger, new_key
from mechanisms.data.sizes import WHETHER_MET, WHETHER_SHOWN
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.files import atomic_write, derived_key, keyed_digest
from mechanisms.runs.certificate import plan_of
from mechanisms.runs.events import ENDS, RunEvent, RunStarted, TokenReleased
from mechanisms.runs.plan import Plan
from mechanisms.runs.run_file import head_of, key_of, line_of, to_lines, unfinished

_ADDED = {WHETHER_SHOWN, WHETHER_MET}
"""Public inputs that a run adds to its plan's."""


class RunJournal:
    """The file to which a run writes its releases before anybody sees them.

    Attributes:
        path: where it is.
        key: the run's key in the ledger.
        begun: the first event of a run that was cut off; None where it only begins.
        replayed: the events before it was cut off, without its first event; None where it only begins.
    """

    def __init__(
        self,
        path: Path,
        key: str,
        begun: RunStarted | None = None,
        replayed: Sequence[RunEvent] | None = None,
        whole: int = 0,
        lines: int = 0,
        missing: str = "",
    ) -> None:
        self.key, self.replayed = key, replayed
        self.path, self.begun, self._whole, self._lines, self._missing = path, begun, whole, lines, missing
        self._file: int | None = None
        self._events: list[RunEvent] = []
        self._seals, self._head = _Seals(key), ""

    @classmethod
    def new(cls, path: Path, key: str = "") -> RunJournal:
        """The journal of a run that begins; the file is made with its first event.

        Args:
            path: where.
            key: one of `new_key`; "" for any.

        Raises:
            UsageError: there is a file.
        """
        if path.exists():
            raise UsageError(f"'{path}' is there already: go on with its run, or choose another place.")
        return cls(path, key or new_key())

    @classmethod
    def read(cls, path: Path, ledger: PrivacyLedger) -> RunJournal:
        """The journal of a run that was cut off, with what the ledger noted last, should it not have got there.

        Raises:
            UsageError: it cannot be read, is none, was edited, or its run has ended.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"Cannot read '{path}': give the file that the run wrote.") from error
        try:
            # What stands behind the last line break was torn; a text may hold what splitlines() takes for a line's end.
            head, *sealed = content[: content.rfind(b"\n") + 1].decode().split("\n")[:-1] or [""]
        except UnicodeDecodeError as error:
            raise UsageError(f"Cannot read '{path}': it is not text.") from error
        key = key_of(head)
        if head != ledger.reserved_document(key):
            raise UsageError("Line 1 of the run's file was edited: it is not what the ledger reserved this run for.")
        lines = list(_Seals(key).opened(sealed))
        events = unfinished(head, lines)
        missing = [line for line in ledger.newest(key).split("\n") if line and line not in lines]
        try:
            events = unfinished(head, [*lines, *missing])
        except UsageError:  # it does not follow what an older copy holds
            missing = []
        begun = events[0]
        assert isinstance(begun, RunStarted)
        whole = sum(len(line.encode()) + 1 for line in (head, *sealed))
        return cls(path, key, begun, events[1:], whole, len(lines), "".join(f"{line}\n" for line in missing))

    def plan(self, content: str) -> Plan:
        """The plan of a run that was cut off, as the ledger reserved it, for the data set of that content.

        Raises:
            UsageError: its certificate states no run.
        """
        assert self.begun is not None
        plan = plan_of(self.begun.demo_set)
        inputs = tuple(each for each in plan.public_inputs if each not in _ADDED)
        return replace(plan, public_inputs=inputs).for_content(content)

    def head(self, planned: DemoSet) -> str:
        """The file's first line, before anything is charged: the ledger keeps it."""
        self._head = head_of(planned, self.key)
        return self._head

    def begin(self, started: RunStarted) -> None:
        """Open the file, and write the first line of a new run.

        Raises:
            UsageError: the file cannot be written.
        """
        self._events = [started, *(self.replayed or ())]
        if self.begun is not None:
            self._open(os.O_WRONLY | os.O_APPEND)
            self._append(self._missing, durable=True)
        else:
            self._open(os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL)
            self._put(f"{self._head}\n".encode(), durable=True)

    def lines(self, *events: RunEvent) -> str:
        """The lines that `write` writes, without their seals."""
        return "".join(f"{line}\n" for event in events if (line := line_of(event)) is not None)

    def write(self, *events: RunEvent) -> None:
        """Write events that are yielded together; return when they are in the file.

        Durable, but for single tokens: those that a loss of power takes are not drawn again.

        Raises:
            UsageError: the file cannot be written.
        """
        if lines := self.lines(*events):
            self._events += events
            self._append(lines, durable=not all(isinstance(event, TokenReleased) for event in events))

    def end(self, ended: ENDS, ledger: PrivacyLedger, disclosures: tuple[str, ...] = ()) -> None:
        """End the journal: the run file takes its place, and the ledger forgets the journal's lines.

        Args:
            ended, disclosures: see `to_lines`.
            ledger: the run's.

        Raises:
            UsageError: it cannot be written.
            TooLong: it is too long for a run file; the journal stays, and can be gone on with.
            StudioError: the ledger cannot be used; the journal stays, and can be gone on with.
        """
        self._append("", durable=True)
        ledger.forget(self.key)  # all of it is in the file; and without a journal nobody would
        text = to_lines([*self._events, ended], disclosures)
        self.close()
        atomic_write(self.path, text)

    def close(self) -> None:
        """Close the file as it is."""
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
        """Append lines, each with its seal."""
        sealed = []
        for line in text.split("\n")[:-1]:
            self._lines += 1
            sealed.append(self._seals.sealed(self._lines, line))
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


class _Seals:
    """The seals of a journal's lines: digests under a key of this installation."""

    def __init__(self, run: str) -> None:
        self._run, self._key = run, derived_key("journal")

    def _of(self, number: int, line: str) -> str:
        return keyed_digest([self._run, str(number), line], self._key)

    def sealed(self, number: int, line: str) -> str:
        """A line with its seal and its line break; `number` counts from 1, without the first line."""
        return f"{self._of(number, line)} {line}\n"

    def opened(self, sealed: Sequence[str]) -> Iterator[str]:
        """The lines without their seals.

        Raises:
            UsageError: a line is not the one that was sealed at its place.
        """
        for number, each in enumerate(sealed, 1):
            seal, _, line = each.partition(" ")
            if not hmac.compare_digest(seal.encode(), self._of(number, line).encode()):
                raise UsageError(
                    f"Line {number + 1} of the run's file is not the one that was written there on this installation: "
                    "give the file as the run left it."
                )
            yield line


def _unwritable(path: Path) -> UsageError:
    return UsageError(f"Cannot write the run's file '{path}': check its folder, and the room on the disk.")
