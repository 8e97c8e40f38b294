"""Sources of private rows: a file, with a format recognised by its first bytes, or a bundled example."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, cast

from mechanisms.asking import Wording
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.table import FLAGS, MAX_BYTES, UNPACKED, USUAL, Reading, Table
from mechanisms.discovery import defined
from mechanisms.errors import DataError, UsageError
from mechanisms.files import bundled

_GZIP = b"\x1f\x8b"
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_LONGEST_MARK = 16
PACKED = ".gz"
_BLOCK = 2**20


@dataclass(frozen=True, repr=False)
class RawFile:
    """An unparsed file, at a path or in memory, which can be opened several times; private."""

    name: str
    content: Path | bytes
    packed: bool = False
    """Whether it is gzip."""

    @classmethod
    def at(cls, path: Path) -> RawFile:
        """The file at a path. A pipe can be read only once, so its bytes are kept.

        Raises:
            DataError: not accessible, too large (packed or unpacked), or damaged gzip.
        """
        try:
            if path.stat().st_size > MAX_BYTES:
                raise DataError(f"The file is larger than {MAX_BYTES // 2**20} MB: split it.")
            file = cls(path.name, path if path.is_file() else path.read_bytes())
        except OSError as error:
            raise DataError(f"The file '{path.name}' cannot be opened: check its path and its permissions.") from error
        if file.start(len(_GZIP)) != _GZIP:
            return file
        file, unpacked = replace(file, packed=True), 0
        try:
            with file.opened() as opened:
                while block := opened.read(_BLOCK):
                    unpacked += len(block)
                    if unpacked > MAX_BYTES:
                        raise DataError(UNPACKED)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError("The gzip file is damaged: pack it again, or unpack it.") from error
        return file

    @property
    def suffix(self) -> str:
        """The suffix of the name in lower case, without that of gzip."""
        name = self.name.lower()
        return PurePosixPath(name.removesuffix(PACKED) if self.packed else name).suffix

    def opened(self) -> IO[bytes]:
        """The unpacked bytes, from the start."""
        source = io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content
        try:
            if self.packed:
                return cast(IO[bytes], gzip.open(source))
            return source if isinstance(source, io.BytesIO) else source.open("rb")
        except OSError as error:
            raise DataError(f"The file '{self.name}' cannot be read: check its permissions.") from error

    def start(self, length: int) -> bytes:
        with self.opened() as file:
            return file.read(length)

    def first_lines(self, size: int) -> RawFile:
        """The complete lines among the first bytes of a text file."""
        head = self.start(size)
        return RawFile(f"start{self.suffix}", head if len(head) < size else head[: head.rfind(b"\n") + 1] or head)

    def in_memory(self) -> RawFile:
        """The same file, independent of its place on the disk."""
        content = self.content if isinstance(self.content, bytes) else self.content.read_bytes()
        return replace(self, content=content)


@dataclass(frozen=True)
class FileFormat:
    """A file format of private rows: a module of this package defines it as `READER`.

    Attributes:
        suffixes: the suffixes of such files' names, which identify files without a mark.
        read: reads the rows, each by itself: no row affects how another is read.
        takes: the fields of a `Reading` that apply to such a file.
        starts: the first bytes of every such file, which identify it under any name; empty for text.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    read: Callable[[RawFile, Reading], Table]
    takes: tuple[str, ...] = ()
    starts: bytes = b""


def file_formats() -> list[FileFormat]:
    found = defined("mechanisms.data", "READER")
    return [found[name] for name in sorted(found)]


def formats_in_words() -> str:
    *most, last = (each.title for each in file_formats())
    return f"{', '.join(most)} or {last}"


def format_in(raw: RawFile) -> FileFormat:
    """The format of a file, by its first bytes. Text has no such mark: its suffix decides, and without a known one it
    is CSV."""
    start = raw.start(_LONGEST_MARK)
    if start.startswith(_OLD_OFFICE):
        raise DataError(
            "This is an old or a protected Excel file: save it as .xlsx without a password, or as CSV (UTF-8)."
        )
    texts = [each for each in file_formats() if not each.starts]
    marked = [each for each in file_formats() if each.starts and start.startswith(each.starts)]
    if marked and raw.packed:
        raise DataError(f"A file of the kind {marked[0].title} cannot be read inside gzip: unpack it.")
    named = [each for each in texts if raw.suffix in each.suffixes]
    return [*marked, *named, *(each for each in texts if each.name == "csv")][0]


def read_table(file: str | Path | RawFile, reading: Reading = USUAL) -> Table:
    """The table in a file, with text cells. Text may be packed with gzip.

    Raises:
        DataError: the file is not readable in its format, has no rows, or is too large.
        ReadingQuestion: the file can be read in several ways.
        UsageError: a declared property does not exist in the format.
    """
    raw = file if isinstance(file, RawFile) else RawFile.at(Path(file))
    found = format_in(raw)
    if foreign := [name for name in reading.declared if name not in found.takes]:
        raise UsageError(f"A file of the kind {found.title} has no {foreign[0]} to set: leave out {FLAGS[foreign[0]]}.")
    return replace(found.read(raw, reading), reading=reading)


def name_of(path: str | Path) -> str:
    """The default name of a file in the ledger."""
    return Path(str(path).removesuffix(PACKED)).stem


@dataclass(frozen=True)
class Example:
    """A bundled file and how to read it: `fields` name text and label in prompts; `test` is the file of test rows."""

    title: str
    path: Path
    mapping: ColumnMapping
    fields: tuple[str, str]
    wording: Wording
    test: Path


_CLINIC = {
    "Cardiology": "heart trouble", "Dermatology": "a skin problem", "Orthopedics": "bones and joints",
    "Pediatrics": "a sick child",
}  # fmt: skip
_BANK = {
    "Cards": "a bank card", "Fraud": "a fraud on the account", "Loans": "a loan", "Transfers": "a money transfer",
}  # fmt: skip
DESK = Example(
    "Internet provider's messages by queue (fictional)",
    bundled("examples/desk_messages.csv"),
    ColumnMapping("message", "queue", "customer"),
    ("Message", "Queue"),
    Wording("message", "a customer", "an internet provider"),
    bundled("examples/desk_test.csv"),
)
"""Its labels are called "Queue 1" to "Queue 4": only rows show their topics."""
CLINIC = Example(
    "Clinic messages by department (fictional)",
    bundled("examples/clinic_messages.csv"),
    ColumnMapping("message", "department", "patient"),
    ("Message", "Department"),
    Wording("message", "a patient", "a clinic", words=_CLINIC),
    bundled("examples/clinic_test.csv"),
)
BANK = Example(
    "Bank support messages by topic (fictional)",
    bundled("examples/bank_support.csv"),
    ColumnMapping("text", "topic"),
    ("Message", "Topic"),
    Wording("message", "a customer", "a bank", words=_BANK),
    bundled("examples/bank_test.csv"),
)
EXAMPLES = (DESK, CLINIC, BANK)
"""The app's first page opens the first one."""
