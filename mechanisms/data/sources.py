"""Where private rows come from: a file, a data set of the Hugging Face hub, records, a bundled example."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from huggingface_hub import HfApi, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    HTTPError,  # that of whichever HTTP client the library has
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

from mechanisms.data.columns import ColumnMapping
from mechanisms.data.file_format import FileFormat, file_formats, format_of, longest_mark
from mechanisms.data.json_lines import Lines
from mechanisms.data.parquet_file import SUFFIX, read_parquet
from mechanisms.data.raw_file import PACKED, RawFile
from mechanisms.data.reading import USUAL, Reading
from mechanisms.data.record_schema import RecordSchema, dumps
from mechanisms.data.table import MAX_BYTES, Table
from mechanisms.errors import DataError
from mechanisms.files import bundled

# Reading a private file of labelled rows; its first bytes tell the format.

_OLD_OFFICE = b"\xd0\xcf\x11\xe0"


def read_table(file: Path | RawFile, reading: Reading = USUAL) -> Table:
    """The table in a file, with text cells; `Lines` for JSON Lines.

    The first bytes tell the format. A text file has no such mark: its suffix tells, and without one it is CSV.

    Args:
        file: it may be packed with gzip, if it is text.
        reading: what its owner says of it.

    Raises:
        DataError: not readable in its format, without rows, or too large.
        ReadingAsked: it can be read in more than one way.
    """
    raw = RawFile.at(file) if isinstance(file, Path) else file
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


# Reading a data set of the Hugging Face hub by its name, with the readers of files.
#
# No code of a data set is run, and nothing stays on the disk: the hub's library, which would keep files in a cache,
# gives only the address, the token and the list of files; the files go into a temporary folder.

SCHEME = "hf://datasets/"
"""The hub's prefix for the name of a data set."""
_NAME = re.compile(r"([\w.-]+/[\w.-]+)(?:/(.+))?")
_CONVERSION, _MAIN = "refs/convert/parquet", "main"
_PARTS = {_CONVERSION: re.compile(r"/\d{4}\.parquet$"), _MAIN: re.compile(r"(-\d{5}-of-\d{5})?\.\w+(\.gz)?$")}
"""Branches that are searched for splits, in this order, and the ending after a split's name in its files' names."""
_MOST_NAMED = 20
_SECONDS = 10.0
_BLOCK = 2**20
_TOO_MUCH = f"The split is larger than {MAX_BYTES // 2**20} MB: name a smaller split or file, or download a part of it."
_NO_HUB = (
    "The Hugging Face hub cannot be reached, or its answer cannot be read: check the network, HF_ENDPOINT and "
    "HF_HUB_OFFLINE, or download the file and name it instead."
)


@dataclass(frozen=True)
class _File:
    path: str
    size: int


@dataclass(frozen=True)
class _Split:
    """The files of a split at one commit of its repository."""

    repository: str
    commit: str
    files: tuple[_File, ...]


def repository_of(said: str) -> str:
    """The "owner/name" in a name for `read_hub`, in lower case, since the hub ignores case.

    Raises:
        DataError: no such name.
    """
    return _parsed(said)[0].lower()


def read_hub(said: str, own: bool = True, reading: Reading = USUAL) -> Table:
    """One split of a data set, see `hub_files`.

    Args:
        reading: what its owner says of the file.

    Raises:
        DataError: see `hub_files` and `read_table`.
    """
    with hub_files(said, own) as files:
        return read_files(files, reading)


def read_files(files: Sequence[RawFile], reading: Reading = USUAL) -> Table:
    """The table in a file, or in the parts of a Parquet file.

    Raises:
        DataError: see `read_table`.
    """
    if len(files) == 1:
        return read_table(files[0], reading)
    format_in(files[0]).check(reading)
    return read_parquet(*files)


@contextmanager
def hub_files(said: str, own: bool = True) -> Iterator[tuple[RawFile, ...]]:
    """One split of a data set: the hub's Parquet conversion, or a file of the repository if there is none.

    Args:
        said: "owner/name", followed by "/split" or "/configuration/split" if it has several, or by the path of a file;
            `SCHEME` may come first.
        own: use this account's token, and with it private data sets; otherwise public ones alone.

    Yields:
        The file, or the parts of a Parquet file; they lie on the disk until the block ends.

    Raises:
        DataError: no such data set, split or file, not accessible, too large, or no network.
    """
    repository, wanted = _parsed(said)
    token = None if own else False
    with _in_words(repository, own):
        split = _found(repository, wanted, token)
    if sum(file.size for file in split.files) > MAX_BYTES:
        raise DataError(_TOO_MUCH)
    with tempfile.TemporaryDirectory(prefix="dpicl-") as folder:
        with _in_words(repository, own):
            paths = _fetched(split, Path(folder), token)
        yield tuple(map(RawFile.at, paths))


def _parsed(said: str) -> tuple[str, str]:
    match = _NAME.fullmatch(said.strip().removeprefix(SCHEME).strip("/"))
    if match is None:
        raise DataError(
            "Name a data set of the hub as owner/name, followed by /split or /configuration/split if it has several."
        )
    return match[1], match[2] or ""


def _found(repository: str, wanted: str, token: bool | None) -> _Split:
    as_file = _holds_rows(wanted, doubtful=True)
    if not as_file:
        try:
            return _listed(repository, wanted, token, _CONVERSION)
        except RevisionNotFoundError:  # private data sets and some public ones have no conversion
            pass
    return _listed(repository, wanted, token, _MAIN, as_file)


def _holds_rows(name: str, doubtful: bool) -> bool:
    """Whether a file is to be read; a repository has many a JSON file that holds no rows, which has to be named."""
    suffix = PurePosixPath(name.lower().removesuffix(PACKED)).suffix
    return any(suffix in (*each.suffixes, *(each.doubtful if doubtful else ())) for each in file_formats())


def _listed(repository: str, wanted: str, token: bool | None, revision: str, as_file: bool = False) -> _Split:
    info = HfApi(token=token).dataset_info(repository, revision=revision, files_metadata=True, timeout=_SECONDS)
    splits: dict[str, list[_File]] = {}
    for each in info.siblings or ():
        name = each.rfilename
        if _holds_rows(name, doubtful=as_file):
            split = name if as_file else _PARTS[revision].sub("", name)
            splits.setdefault(split, []).append(_File(name, each.size or 0))
    files = sorted(_chosen(repository, wanted, splits), key=lambda file: file.path)
    if len(files) > 1 and any(not file.path.endswith(SUFFIX) for file in files):
        raise DataError(f"Several files have that name: ask for one of {_names([file.path for file in files])}.")
    return _Split(repository, info.sha or revision, tuple(files))


def _chosen(repository: str, wanted: str, splits: dict[str, list[_File]]) -> list[_File]:
    """The files of the split named `wanted`: its whole name, or the part before or after the last slash."""
    whole = [name for name in splits if wanted == name]
    fitting = whole or [name for name in splits if wanted in ("", *name.rpartition("/")[::2])]
    if len(fitting) == 1:
        return splits[fitting[0]]
    if not splits:
        raise DataError(f"The data set '{repository}' has no file that can be read here: CSV, JSON Lines or Parquet.")
    said = f"no '{wanted}'" if not fitting else f"more than one '{wanted}'" if wanted else "more than one split"
    raise DataError(
        f"The data set '{repository}' has {said}: ask for {repository}/NAME, where NAME is one of these: "
        f"{_names(fitting or splits)}."
    )


def _names(names: Sequence[str] | dict[str, list[_File]]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:_MOST_NAMED]) + (", and more" if len(listed) > _MOST_NAMED else "")


def _fetched(split: _Split, folder: Path, token: bool | None) -> list[Path]:
    """Download the files under numbers as names: their own names could lead to other places on this disk."""
    room, paths = MAX_BYTES, []
    for number, file in enumerate(split.files):
        paths.append(folder / f"{number}{''.join(PurePosixPath(file.path.lower()).suffixes[-2:])}")
        url = hf_hub_url(split.repository, file.path, repo_type="dataset", revision=split.commit)
        asked = get_session().stream("GET", url, headers=build_hf_headers(token=token), timeout=_SECONDS)
        with asked as response, paths[-1].open("wb") as written:
            hf_raise_for_status(response)
            for block in response.iter_bytes(_BLOCK):
                room -= len(block)
                if room < 0:  # the sizes in the list may be wrong
                    raise DataError(_TOO_MUCH)
                written.write(block)
    return paths


@contextmanager
def _in_words(repository: str, own: bool) -> Iterator[None]:
    """Turn errors of the hub and of the network into one-line errors."""
    with_token = "put a token that may read it into HF_TOKEN" if own else "this server reads public data sets alone"
    try:
        yield
    except GatedRepoError as error:
        raise DataError(
            f"The data set '{repository}' is gated: ask for access on its page of the hub, and {with_token}."
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise DataError(
            f"The hub shows no data set '{repository}': check the name; if it is private, {with_token}."
        ) from error
    except (HTTPError, ConnectionError, ValueError, LookupError, TypeError) as error:
        raise DataError(_NO_HUB) from error
    except OSError as error:
        raise DataError(
            "The temporary folder has no room for the data set while it is read: free space there."
        ) from error


# Private rows by a path or by the name of a data set on the Hugging Face hub.

_SCHEME_OF_A_PATH = SCHEME.replace("//", "/")


def read_source(said: str | Path, reading: Reading = USUAL) -> Table:
    """The table of a file (`read_table`) or, for a name with `SCHEME`, of a data set (`read_hub`).

    Raises:
        DataError: see these functions.
    """
    said = _as_said(said)
    return read_hub(said, reading=reading) if said.startswith(SCHEME) else read_table(Path(said), reading)


def name_of(said: str | Path) -> str:
    """The default name in the ledger: a file's stem, or a data set's name without its split.

    Under the name of a split, such as "train", several data sets would share one ledger entry.
    """
    said = _as_said(said)
    return repository_of(said) if said.startswith(SCHEME) else Path(said.removesuffix(PACKED)).stem


def _as_said(place: str | Path) -> str:
    """The text of a path, with the double slash after the scheme restored."""
    if isinstance(place, Path) and place.as_posix().startswith(_SCHEME_OF_A_PATH):
        return SCHEME + place.as_posix().removeprefix(_SCHEME_OF_A_PATH)
    return str(place)


# Private structured records: objects, or rows with a schema's properties as columns, each turned into a record's text.

RECORD, KIND = " record", " kind"
"""Columns added to the file's, whose names never begin with a space."""
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def as_records(table: Table, schema: RecordSchema, kind: str, user: str | None = None) -> Table:
    """The table with two more columns: `RECORD`, each row's record text, and `KIND`, the same public label everywhere.

    A row without any property of the schema has an empty text.

    Raises:
        DataError: no row has a property of the schema, or the user column is one of them, which no model may read.
    """
    if user in {" ".join(name.split()) for name in schema.document["properties"]}:
        raise DataError("The user column must not reach the model: leave it out of the schema.")
    rows: Iterable[Mapping[str, Any]] = table.objects if isinstance(table, Lines) else _of_cells(table, schema)
    records = [schema.canonical(each) for each in rows]
    if not any(records):
        raise DataError("No row has any of the schema's properties: rename the columns or keys to match the schema.")
    beside = {RECORD: records}
    if isinstance(table, Lines):
        rare = (name for name in schema.document["properties"] if name not in table.columns)
        beside = {name: table.cells(name) for name in rare} | beside
    return of_kind(table.beside(beside), kind)


def of_kind(table: Table, kind: str) -> Table:
    """The table with a column `KIND` that holds the same public label in every row."""
    return table.beside({KIND: [kind] * len(table.frame)})


def read_records(
    said: str | Path, schema: RecordSchema, kind: str, user: str | None = None, reading: Reading = USUAL
) -> Table:
    """Read a file and apply `as_records`.

    Raises:
        DataError: not readable, or see `as_records`.
    """
    return as_records(read_source(said, reading), schema, kind, user)


def as_lines(texts: Iterable[str]) -> str:
    """Records as the text of a file of JSON Lines."""
    return "".join(f"{text}\n" for text in texts)


def _of_cells(table: Table, schema: RecordSchema) -> Iterator[Mapping[str, Any]]:
    properties = schema.document["properties"]
    names = [name for name in table.columns if name in properties]
    for row in table.frame[names].itertuples(index=False, name=None):
        yield {name: _value(cell, properties[name]) for name, cell in zip(names, row, strict=True) if cell.strip()}


def _value(cell: str, schema: Mapping[str, Any]) -> Any:
    """A cell as a value for the schema: parsed as JSON unless the schema expects a string or the cell is no JSON."""
    if schema.get("type") == "string" or (set(map(type, schema.get("enum", ()))) == {str}):
        return cell
    if schema.get("type") == "boolean" and (said := _WORDS.get(cell.strip().lower())) is not None:
        return said
    try:
        value = json.loads(cell)
        dumps(value).encode()
    except (ValueError, RecursionError):
        return cell
    return value


# The bundled example data sets, which are fictional.


@dataclass(frozen=True)
class Example:
    """A bundled file and how to read it."""

    title: str
    path: Path
    mapping: ColumnMapping
    fields: tuple[str, str]
    """Names of text and label in prompts."""
    test: Path | None = None
    """Further rows of the same kind, for tests."""


EXAMPLES = (
    Example(
        "Clinic messages by department (fictional)",
        bundled("examples/clinic_messages.csv"),
        ColumnMapping("message", "department", "patient"),
        ("Message", "Department"),
        bundled("examples/clinic_test.csv"),
    ),
    Example(
        "Bank support messages by topic (fictional)",
        bundled("examples/bank_support.csv"),
        ColumnMapping("text", "topic"),
        ("Message", "Topic"),
        bundled("examples/bank_test.csv"),
    ),
)


@dataclass(frozen=True)
class AnsweredExample(Example):
    """A bundled file of texts with answers, which take the label's place in the mapping; `kind` names a row."""

    kind: str = field(kw_only=True)


ANSWERED_EXAMPLES = (
    AnsweredExample(
        "Shop messages and the item that each is about (fictional)",
        bundled("examples/shop_requests.csv"),
        ColumnMapping("message", "item"),
        ("Message", "Item"),
        kind="Shop message",
    ),
)


@dataclass(frozen=True)
class RecordExample:
    """A bundled file of records with its schema; `kind` names a record."""

    title: str
    path: Path
    schema: Path
    kind: str


RECORD_EXAMPLES = (
    RecordExample(
        "Appointment requests as records (fictional)",
        bundled("examples/appointment_requests.jsonl"),
        bundled("examples/appointment_request.schema.json"),
        "Appointment request",
    ),
)
