"""Reading a data set of the Hugging Face hub by its name: files of rows alone, by the readers of files.

Nothing that comes with a data set is run, and nothing stays on the disk: the hub's library would keep files in a cache,
so that from it come the address, the token and the list of files, and the files go through a folder of their own.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from huggingface_hub import HfApi, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    HTTPError,  # that of whichever HTTP client the library has
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

from mechanisms.data.files import read_table
from mechanisms.data.parquet_file import read_parquet
from mechanisms.data.table import MAX_BYTES, Table
from mechanisms.errors import DataError

SCHEME = "hf://datasets/"
"""What the hub's own programs write before the name of a data set."""
_PARQUET = ".parquet"
_TABLES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", _PARQUET)
_FILES = (*_TABLES, ".json", ".xlsx")
"""A repository has many a JSON file that holds no rows: one is read where it is asked for."""
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
    as_file = PurePosixPath(wanted).suffix.lower() in _FILES
    if not as_file:
        try:
            return _listed(repository, wanted, token, _CONVERSION)
        except RevisionNotFoundError:  # private data sets have none, and some public ones
            pass
    return _listed(repository, wanted, token, _MAIN, as_file)


def _listed(repository: str, wanted: str, token: bool | None, revision: str, as_file: bool = False) -> _Split:
    info = HfApi(token=token).dataset_info(repository, revision=revision, files_metadata=True, timeout=_SECONDS)
    splits: dict[str, list[_File]] = {}
    for each in info.siblings or ():
        name = each.rfilename
        if PurePosixPath(name).suffix.lower() in (_FILES if as_file else _TABLES):
            split = name if as_file else _PARTS[revision].sub("", name)
            splits.setdefault(split, []).append(_File(name, each.size or 0))
    files = sorted(_chosen(repository, wanted, splits), key=lambda file: file.path)
    if len(files) > 1 and any(not file.path.endswith(_PARQUET) for file in files):
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
