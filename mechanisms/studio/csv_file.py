"""Reading a private CSV: every bad file gets one clear line, none a traceback."""

from __future__ import annotations

import codecs
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from mechanisms.errors import DataError
from mechanisms.records import Columns, Dataset

MAX_BYTES = 512 * 2**20
_DELIMITERS = ",;\t|"
_BLOCK = 2**20
_AS_TEXT: dict[str, Any] = {"dtype": str, "keep_default_na": False, "index_col": False}
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SPREADSHEET = b"PK\x03\x04"
_UNREADABLE = "This is not a text file: save the table as CSV (UTF-8) and try again."


@dataclass(frozen=True, repr=False)
class Table:
    """A parsed file: string cells, and remarks on how it was read."""

    frame: pd.DataFrame
    remarks: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Column names, in order."""
        return list(self.frame.columns)


def read_table(path: Path) -> Table:
    """Parse a CSV file: UTF-8 (with or without BOM), UTF-16 or Windows-1252; comma, semicolon, tab or bar.

    Raises:
        DataError: binary, empty, without rows, or with rows that do not fit the header.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be opened: check its path and its permissions.") from error
    if size > MAX_BYTES:
        raise DataError(f"The file is larger than {MAX_BYTES // 2**20} MB: split it.")
    try:
        opened = _opener(path)
        with opened() as file:
            encoding, remarks = _encoding(file)
        frame = _parse(opened, encoding)
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be read: check its permissions.") from error
    if frame.empty:
        raise DataError("The file has a header line but no rows.")
    return Table(frame, remarks)


def _opener(path: Path) -> Callable[[], BinaryIO]:
    """Opens the file at its start, as often as needed: it is read block by block, and never held beside its cells."""
    if path.is_file():
        return lambda: path.open("rb")
    piped = path.read_bytes()
    return lambda: io.BytesIO(piped)


def _encoding(file: BinaryIO) -> tuple[str, tuple[str, ...]]:
    """The encoding that the whole file is valid in, and remarks on it."""
    start = file.read(4)
    if start.startswith(_SPREADSHEET):
        raise DataError("This is a spreadsheet or an archive: export the sheet as CSV (UTF-8) and try again.")
    if start.startswith(_UTF16):
        if not _decodes(file, "utf-16"):
            raise DataError(_UNREADABLE)
        return "utf-16", ("Read as UTF-16.",)
    if any(b"\x00" in block for block in _blocks(file)):
        raise DataError(_UNREADABLE)
    if _decodes(file, "utf-8"):
        return "utf-8", ()
    if _decodes(file, "cp1252"):
        return "cp1252", ("Not UTF-8: read as Windows-1252. Check accented letters below.",)
    raise DataError(_UNREADABLE)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    return iter(lambda: file.read(_BLOCK), b"")


def _decodes(file: BinaryIO, encoding: str) -> bool:
    try:
        for _ in codecs.iterdecode(_blocks(file), encoding):
            pass
    except UnicodeDecodeError:
        return False
    return True


def _delimiter(opened: Callable[[], BinaryIO], encoding: str) -> str:
    # pandas reads plain UTF-8 fastest, and drops a BOM itself; here the codec does.
    with io.TextIOWrapper(opened(), "utf-8-sig" if encoding == "utf-8" else encoding, newline="") as text:
        start = next((block for block in iter(lambda: text.read(_BLOCK), "") if block.strip()), "")
    header = next((line for line in start.splitlines() if line.strip()), None)
    if header is None:
        raise DataError("The file is empty: it needs a header line and one row for each record.")
    return max(_DELIMITERS, key=lambda mark: (header.count(mark), -_DELIMITERS.index(mark)))


def _parse(opened: Callable[[], BinaryIO], encoding: str) -> pd.DataFrame:
    delimiter = _delimiter(opened, encoding)
    try:
        with warnings.catch_warnings(), opened() as first, opened() as whole:
            # pandas only warns where a first row is longer than the header, and cuts it off.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            header = pd.read_csv(first, header=None, nrows=1, **_AS_TEXT, sep=delimiter, encoding=encoding)
            frame = pd.read_csv(whole, **_AS_TEXT, sep=delimiter, encoding=encoding)
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, ValueError) as error:
        raise DataError(
            "Some row does not fit the header: check for unbalanced quotes, or cells with unquoted separators."
        ) from error
    # pandas renames columns without a name, or with one that occurs twice: the header itself says so.
    names = [" ".join(str(name).split()) for name in header.iloc[0]]
    if not all(names) or len(set(names)) != len(names):
        raise DataError("The first line must name every column, each name once.")
    frame.columns = pd.Index(names)
    return frame.fillna("")


def guess_columns(table: Table) -> tuple[str, str]:
    """The columns that look most like text (longest cells) and label (fewest distinct values)."""
    head = table.frame.head(1000)
    text = max(table.columns, key=lambda name: head[name].str.len().mean())
    others = [name for name in table.columns if name != text] or [text]
    return text, min(others, key=lambda name: head[name].nunique() if head[name].nunique() > 1 else 10**6)


@dataclass(frozen=True, repr=False)
class Mapping:
    """Which column is what, and what to do with duplicates."""

    text: str
    label: str
    unit: str | None = None
    drop_duplicates: bool = False


@dataclass(frozen=True, repr=False)
class Inspection:
    """What the curator should know about a mapped file before going on; private.

    Attributes:
        counts: units of each label (rows, or users where there is a user column), most frequent first: what becomes
            public where sizes are declared.
        problems: one line each; `fatal` says that one of them must be mended first.
        duplicates: rows whose text and label occurred before.
    """

    counts: dict[str, int]
    problems: tuple[str, ...]
    fatal: bool
    duplicates: int


def _mapped(table: Table, mapping: Mapping) -> pd.DataFrame:
    names = [mapping.text, mapping.label, *([mapping.unit] if mapping.unit else [])]
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise DataError(f"There is no column '{missing[0]}': the file has {', '.join(table.columns)}.")
    if len(set(names)) != len(names):
        raise DataError("Choose different columns for text, label and user id.")
    frame = pd.DataFrame({"text": table.frame[mapping.text], "label": table.frame[mapping.label].str.strip()})
    # With a user column a row repeats another only if it is the same user's: otherwise removing one user would bring
    # back rows of others.
    frame["unit"] = table.frame[mapping.unit].str.strip() if mapping.unit else None
    return frame


def _usable(frame: pd.DataFrame, mapping: Mapping) -> pd.DataFrame:
    blank = np.array([not text or text.isspace() for text in frame["text"]], dtype=np.bool_)
    keep = ~blank & (frame["label"] != "")
    if mapping.unit:
        keep &= frame["unit"] != ""
    frame = frame[keep]
    return frame.drop_duplicates() if mapping.drop_duplicates else frame


def inspect(table: Table, mapping: Mapping) -> Inspection:
    """Label counts and problems of a mapped file.

    Raises:
        DataError: a column is missing or chosen twice.
    """
    frame = _mapped(table, mapping)
    filled = _usable(frame, replace(mapping, drop_duplicates=False))
    repeated = filled.duplicated()
    usable = filled[~repeated] if mapping.drop_duplicates else filled
    units = usable.drop_duplicates(["label", "unit"]) if mapping.unit else usable
    counts = {str(label): int(count) for label, count in units["label"].value_counts().items()}
    duplicates = int(repeated.sum())
    problems = []
    empty = len(frame) - len(filled)
    if empty:
        problems.append(f"{empty} rows with an empty cell are left out.")
    if duplicates and not mapping.drop_duplicates:
        problems.append(
            f"{duplicates} rows repeat an earlier row exactly. A person who appears twice is protected less "
            "by a guarantee for single records: drop the repetitions, or name a user column."
        )
    if len(counts) > 50:
        problems.append(f"{len(counts)} different labels: is '{mapping.label}' the label column?")
    fatal = len(counts) < 2
    if not counts:
        problems.append("No row has both a text and a label.")
    elif fatal:
        problems.append("There is only one label: demonstrations need at least two.")
    return Inspection(counts, tuple(problems), fatal, duplicates)


def to_records(table: Table, mapping: Mapping) -> Columns:
    """The usable rows of a mapped file.

    Raises:
        DataError: a column is missing or chosen twice.
    """
    usable = _usable(_mapped(table, mapping), mapping)
    return Columns(*(usable[name].to_numpy(dtype=object) for name in ("text", "label", "unit")))


def to_dataset(table: Table, mapping: Mapping, name: str, labels: tuple[str, ...]) -> Dataset:
    """The private data set of a mapped file under a confirmed public label set.

    A label without rows is no error: one record must not decide whether there is a run.

    Raises:
        DataError: a column is missing.
    """
    return Dataset(name, labels, to_records(table, mapping), mapping.unit)
