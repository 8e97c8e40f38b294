"""What the ledger knows a file by."""

from weakref import WeakKeyDictionary

from mechanisms.home import keyed_digest, secret_key
from mechanisms.records import Dataset

_known: WeakKeyDictionary[Dataset, tuple[bytes, str]] = WeakKeyDictionary()


def content_digest(dataset: Dataset) -> str:
    """Keyed digest of a data set's content: comparable on this installation, meaningless elsewhere.

    Every run and every measurement asks for it, and a large file takes a second: once a data set and key is enough.
    """
    key = secret_key()
    if dataset not in _known or _known[dataset][0] != key:
        _known[dataset] = key, keyed_digest(dataset.content(), key)
    return _known[dataset][1]
