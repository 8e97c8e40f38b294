"""Where private rows come from: a file, or a bundled example."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from mechanisms.asking import Asked
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.file_format import FileFormat, format_of, longest_mark
from mechanisms.data.raw_file import PACKED, RawFile
from mechanisms.data.reading import USUAL, Reading
from mechanisms.data.table import Table
from mechanisms.errors import DataError
from mechanisms.files import bundled

# Reading a private file of labelled rows; its first bytes tell the format.

_OLD_OFFICE = b"\xd0\xcf\x11\xe0"


def read_table(file: str | Path | RawFile, reading: Reading = USUAL) -> Table:
    """The table in a file, with text cells.

    The first bytes tell the format. A text file has no such mark: its suffix tells, and without one it is CSV.

    Args:
        file: it may be packed with gzip, if it is text.
        reading: what its owner says of it.

    Raises:
        DataError: not readable in its format, without rows, or too large.
        ReadingAsked: it can be read in more than one way.
    """
    raw = file if isinstance(file, RawFile) else RawFile.at(Path(file))
    found = format_in(raw)
    found.check(reading)
    return replace(found.read(raw, reading), reading=reading)


def format_in(raw: RawFile) -> FileFormat:
    """The format of a file.

    Raises:
        DataError: it is an old or a protected workbook, or one that is not read out of gzip.
    """
    start = raw.start(max(len(_OLD_OFFICE), longest_mark()))
    if start.startswith(_OLD_OFFICE):
        raise DataError(
            "This is an old or a protected Excel file: save it as .xlsx without a password, or as CSV (UTF-8)."
        )
    found = format_of(start, raw.suffix, otherwise="csv")
    if raw.packed and found.starts:
        raise DataError(f"A file of the kind {found.title} is not read out of gzip: unpack it.")
    return found


def name_of(path: str | Path) -> str:
    """The default name in the ledger: a file's stem."""
    return Path(str(path).removesuffix(PACKED)).stem


# The bundled example data sets, which are fictional.


@dataclass(frozen=True)
class Example:
    """A bundled file and how to read it."""

    title: str
    path: Path
    mapping: ColumnMapping
    fields: tuple[str, str]
    """Names of text and label in prompts."""
    asked: Asked
    """How a model is asked to write such a text."""
    test: Path | None = None
    """Further rows of the same kind, for tests."""


EXAMPLES = (
    Example(
        "Clinic messages by department (fictional)",
        bundled("examples/clinic_messages.csv"),
        ColumnMapping("message", "department", "patient"),
        ("Message", "Department"),
        Asked(
            "message",
            "a patient",
            "a clinic",
            words={
                "Cardiology": "heart trouble",
                "Dermatology": "a skin problem",
                "Orthopedics": "bones and joints",
                "Pediatrics": "a sick child",
            },
        ),
        bundled("examples/clinic_test.csv"),
    ),
    Example(
        "Bank support messages by topic (fictional)",
        bundled("examples/bank_support.csv"),
        ColumnMapping("text", "topic"),
        ("Message", "Topic"),
        Asked(
            "message",
            "a customer",
            "a bank",
            words={
                "Cards": "a bank card",
                "Fraud": "a fraud on the account",
                "Loans": "a loan",
                "Transfers": "a money transfer",
            },
        ),
        bundled("examples/bank_test.csv"),
    ),
)
