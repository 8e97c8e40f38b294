"""What the ledger knows a data set by: its name, its privacy unit, and keyed digests of what it says.

Digests are comparable on this installation and meaningless elsewhere. They are private and reach no export.
"""

from __future__ import annotations

import hmac
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from mechanisms.files import keyed_digest, secret_key
from mechanisms.records import Dataset

Digests = NDArray[np.uint64]
"""Keyed digests of 64 bits, sorted, each once: two of a million by a million are equal by chance once in 2e7 times."""


_FEWEST_WORDS = 4
"""Words from which on a cell of another column is a text: dates, numbers and categories recur in many files."""
_FEWEST_LETTERS = 12
"""The same in characters, for scripts without spaces."""
_NO_LETTER = re.compile(r"[\W_]+")


@dataclass(frozen=True, repr=False, eq=False)
class Fingerprint:
    """A data set as the ledger identifies it; private, except for its name and its unit.

    Attributes:
        name: the curator's name for it.
        unit: its privacy unit, see `mechanisms.records.privacy_unit`.
        content: keyed digest of the whole content.
        said: keyed digest of the same without labels, which a file may spell in other ways and name otherwise; "" where
            it is not known.
        rows: keyed digests of its texts, of cells that read like a text in the file's other columns, and of its users
            where there is a user column. Two files with a digest in common share a row or a user, whatever their names
            and parts.
    """

    name: str
    unit: str
    content: str
    rows: Digests = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    said: str = ""


_known: WeakKeyDictionary[Dataset, tuple[bytes, Fingerprint]] = WeakKeyDictionary()


def fingerprint(dataset: Dataset) -> Fingerprint:
    """The fingerprint of a data set under the present key.

    It is computed once for each data set and key: every run needs it, and a large file takes seconds.
    """
    key = secret_key()
    if dataset not in _known or _known[dataset][0] != key:
        texts = text_digests((record.text for record in dataset.records), key)
        others = (cell for column in dataset.witnesses for cell in column if cell and _reads_like_a_text(cell))
        users = {record.unit or "" for record in dataset.records} if dataset.by_user else set()
        rows = np.unique(np.concatenate([texts, text_digests(others, key), _digests("user", users, key)]))
        content = keyed_digest(dataset.content(), key)
        said = keyed_digest(_said(dataset), key)
        _known[dataset] = key, Fingerprint(dataset.name, dataset.unit, content, rows, said)
    return _known[dataset][1]


def _said(dataset: Dataset) -> Iterator[str]:
    yield "without labels"
    for record in dataset.records:
        yield from (record.text, record.unit or "")


def rows_among(dataset: Dataset, known: Digests) -> list[bool]:
    """For each row, whether its text, another cell that reads like a text, or its user is in `known`."""
    key = secret_key()
    found = []
    for i, record in enumerate(dataset.records):
        cells = [cell for column in dataset.witnesses if (cell := column[i]) and _reads_like_a_text(cell)]
        users = [record.unit or ""] if dataset.by_user else []
        own = np.concatenate([text_digests([record.text, *cells], key), _digests("user", users, key)])
        found.append(share_any(np.unique(own), known))
    return found


def text_digests(texts: Iterable[str], key: bytes | None = None) -> Digests:
    """Keyed digests of texts. Only letters and digits count: not case, spaces or punctuation."""
    return _digests("text", filter(None, map(_letters, texts)), key or secret_key())


def _reads_like_a_text(cell: str) -> bool:
    return len(cell.split()) >= _FEWEST_WORDS or (not cell.isascii() and len(cell) >= _FEWEST_LETTERS)


def _letters(text: str) -> str:
    plain = text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text.casefold())
    return _NO_LETTER.sub("", plain) or plain.strip()


def _digests(kind: str, values: Iterable[str], key: bytes) -> Digests:
    prefix = f"row\x1f{kind}\x1f".encode()
    found = (hmac.digest(key, prefix + value.encode(), "sha256")[:8] for value in values)
    return np.unique(np.frombuffer(b"".join(found), dtype=np.uint64))


def share_any(one: Digests, other: Digests) -> bool:
    """Whether two files have a text or a user in common."""
    return bool(np.isin(one, other, assume_unique=True).any())
