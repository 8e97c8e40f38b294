"""From the name of a place to its private rows: a file, a data set of the hub, records, a bundled example."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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
from mechanisms.data.file_format import file_formats, format_of, longest_mark
from mechanisms.data.json_lines import Lines
from mechanisms.data.parquet_file import SUFFIX, read_parquet
from mechanisms.data.record_schema import RecordSchema, dumps
from mechanisms.data.table import MAX_BYTES, Table, checked_size
from mechanisms.errors import DataError
from mechanisms.files import bundled

# Reading a private file of labelled rows, in any format that people have: what it is shows in its first bytes.

_OLD_OFFICE = b"\xd0\xcf\x11\xe0"


def read_table(path: Path) -> Table:
    """A file as text cells under named columns; `Lines` where it is JSON Lines.

    A file is what its first bytes say. Text has no such mark: it is what its name says, and else CSV.

    Raises:
        DataError: it cannot be read as what it is, has no rows, or is too large.
    """
    checked_size(path)
    start = _start(path)
    if start.startswith(_OLD_OFFICE):
        raise DataError(
            "This is an old or a protected Excel file: save it as .xlsx without a password, or as CSV (UTF-8)."
        )
    return format_of(start, path.suffix, otherwise="csv").read(path)


def _start(path: Path) -> bytes:
    """The first bytes of a file; none of a pipe, which can be read only once."""
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as file:
            return file.read(max(len(_OLD_OFFICE), longest_mark()))
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be read: check its permissions.") from error


# Reading a data set of the Hugging Face hub by its name: files of rows alone, by the readers of files.
#
# Nothing that comes with a data set is run, and nothing stays on the disk: the hub's library would keep files in a
# cache, so that from it come the address, the token and the list of files, and the files go through a folder of
# their own.

SCHEME = "hf://datasets/"
"""What the hub's own programs write before the name of a data set."""
_NAME = re.compile(r"([\w.-]+/[\w.-]+)(?:/(.+))?")
_CONVERSION, _MAIN = "refs/convert/parquet", "main"
_PARTS = {_CONVERSION: re.compile(r"/\d{4}\.parquet$"), _MAIN: re.compile(r"(-\d{5}-of-\d{5})?\.\w+$")}
"""Where splits are looked for, in this order, and what stands behind a split's name in those of its files."""
_MOST_NAMED = 20
_SECONDS = 10.0
_BLOCK = 2**20
_TOO_MUCH = f"That is more than {MAX_BYTES // 2**20} MB: name a smaller split or file, or download it and take a part."
_NO_HUB = (
    "The Hugging Face hub cannot be reached, or does not answer as it should: check the network, HF_ENDPOINT and "
    "HF_HUB_OFFLINE, or download the file and give that."
)


@dataclass(frozen=True)
class _File:
    path: str
    size: int


@dataclass(frozen=True)
class _Split:
    """The files of a split, in one version of their repository."""

    repository: str
    commit: str
    files: tuple[_File, ...]


def repository_of(said: str) -> str:
    """The data set's own name, "owner/name", of what `read_hub` takes; in small letters, since the hub heeds no others.

    Raises:
        DataError: it is no such name.
    """
    return _parsed(said)[0].lower()


def read_hub(said: str, own: bool = True) -> Table:
    """One split of a data set: the hub's Parquet conversion, or where there is none, a file of the repository.

    Args:
        said: "owner/name", with "/split" or "/configuration/split" behind it where it has several, or with the path of
            a file; `SCHEME` may stand before it.
        own: whoever asks may see what the token of this account lets it see; else public data sets alone.

    Raises:
        DataError: no such data set, split or file, not accessible, too large, no network; or see `read_table`.
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
        return read_parquet(*paths) if len(paths) > 1 else read_table(paths[0])


def _parsed(said: str) -> tuple[str, str]:
    match = _NAME.fullmatch(said.strip().removeprefix(SCHEME).strip("/"))
    if match is None:
        raise DataError(
            "Name a data set of the hub as owner/name, with /split or /configuration/split behind it if it has several."
        )
    return match[1], match[2] or ""


def _found(repository: str, wanted: str, token: bool | None) -> _Split:
    as_file = _holds_rows(wanted, doubtful=True)
    if not as_file:
        try:
            return _listed(repository, wanted, token, _CONVERSION)
        except RevisionNotFoundError:  # private data sets have none, and some public ones
            pass
    return _listed(repository, wanted, token, _MAIN, as_file)


def _holds_rows(name: str, doubtful: bool) -> bool:
    """Whether a file is to be read; a repository has many a JSON file that holds no rows, which has to be named."""
    suffix = PurePosixPath(name).suffix.lower()
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
        raise DataError(f"There are several files of that name, name one: {_names([file.path for file in files])}.")
    return _Split(repository, info.sha or revision, tuple(files))


def _chosen(repository: str, wanted: str, splits: dict[str, list[_File]]) -> list[_File]:
    """The one split that is meant: by its whole name, by what stands behind the last bar, or by what stands before."""
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
    """The files as they are read here: what they are called elsewhere leads to no place on this disk."""
    room, paths = MAX_BYTES, []
    for number, file in enumerate(split.files):
        paths.append(folder / f"{number}{PurePosixPath(file.path).suffix.lower()}")
        url = hf_hub_url(split.repository, file.path, repo_type="dataset", revision=split.commit)
        asked = get_session().stream("GET", url, headers=build_hf_headers(token=token), timeout=_SECONDS)
        with asked as response, paths[-1].open("wb") as written:
            hf_raise_for_status(response)
            for block in response.iter_bytes(_BLOCK):
                room -= len(block)
                if room < 0:  # whatever was said of their sizes
                    raise DataError(_TOO_MUCH)
                written.write(block)
    return paths


@contextmanager
def _in_words(repository: str, own: bool) -> Iterator[None]:
    """Faults of the hub, or on the way to it, as one line each."""
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
            "The data set finds no room in the temporary folder while it is read: make room there."
        ) from error


# Private rows by what a person calls their place: the path of a file, or a data set of the Hugging Face hub.

_SCHEME_OF_A_PATH = SCHEME.replace("//", "/")


def read_source(said: str | Path) -> Table:
    """A file as `read_table` reads it, or, with `SCHEME` before its name, a data set as `read_hub` does.

    Raises:
        DataError: see there.
    """
    said = _as_said(said)
    return read_hub(said) if said.startswith(SCHEME) else read_table(Path(said))


def name_of(said: str | Path) -> str:
    """What the ledger calls it unless it is told: a file's name, or the data set's, whichever split of it is read.

    The ledger keeps what was spent by name: under "train" one data set would pay for another.
    """
    said = _as_said(said)
    return repository_of(said) if said.startswith(SCHEME) else Path(said).stem


def _as_said(place: str | Path) -> str:
    """A place as a person writes it: a path has a single slash left of those behind a scheme."""
    if isinstance(place, Path) and place.as_posix().startswith(_SCHEME_OF_A_PATH):
        return SCHEME + place.as_posix().removeprefix(_SCHEME_OF_A_PATH)
    return str(place)


# Private structured records: objects, or rows whose columns are a schema's properties, each as a record's text.

RECORD, KIND = " record", " kind"
"""Columns that are put beside the file's; no name of a file's begins with a space."""
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def as_records(table: Table, schema: RecordSchema, kind: str, user: str | None = None) -> Table:
    """A file as a table in which `RECORD` is each row's text by the schema, and `KIND` the same public label.

    The file's own columns, or properties, stay beside them. A row without any property of the schema has no text.

    Raises:
        DataError: it has none of the schema's properties, or the column of the users is one of them, which no model
            is to read.
    """
    if user in {" ".join(name.split()) for name in schema.document["properties"]}:
        raise DataError("The user column says whose row it is: leave it out of the schema.")
    rows: Iterable[Mapping[str, Any]] = table.objects if isinstance(table, Lines) else _of_cells(table, schema)
    records = [schema.canonical(each) for each in rows]
    if not any(records):
        raise DataError("No row has any of the schema's properties: name columns, or keys, as the schema does.")
    beside = {RECORD: records}
    if isinstance(table, Lines):
        rare = (name for name in schema.document["properties"] if name not in table.columns)
        beside = {name: table.cells(name) for name in rare} | beside
    return of_kind(table.beside(beside), kind)


def of_kind(table: Table, kind: str) -> Table:
    """The table of rows without a label: in `KIND` all have the same public one."""
    return table.beside({KIND: [kind] * len(table.frame)})


def read_records(said: str | Path, schema: RecordSchema, kind: str, user: str | None = None) -> Table:
    """A file as `as_records` gives it.

    Raises:
        DataError: it cannot be read, or see `as_records`.
    """
    return as_records(read_source(said), schema, kind, user)


def as_lines(texts: Iterable[str]) -> str:
    """Records as the text of a file of JSON Lines."""
    return "".join(f"{text}\n" for text in texts)


def _of_cells(table: Table, schema: RecordSchema) -> Iterator[Mapping[str, Any]]:
    properties = schema.document["properties"]
    names = [name for name in table.columns if name in properties]
    for row in table.frame[names].itertuples(index=False, name=None):
        yield {name: _value(cell, properties[name]) for name, cell in zip(names, row, strict=True) if cell.strip()}


def _value(cell: str, schema: Mapping[str, Any]) -> Any:
    """A cell as the schema would have it: as JSON where that is no text, and as it stands where it is none."""
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


# The bundled example data sets: fictional, so that anybody can try the app without data of their own.


@dataclass(frozen=True)
class Example:
    """A bundled file and how to read it."""

    title: str
    path: Path
    mapping: ColumnMapping
    fields: tuple[str, str]
    """How prompts call the text and the label."""
    test: Path | None = None
    """Other rows of the same kind, which wrote nothing."""


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
    """A bundled file of texts with answers, which stand in the mapping where labels do, and what a row is called."""

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
    """A bundled file of records, its schema, and what one of them is called."""

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
