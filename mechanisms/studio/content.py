"""What the ledger knows a file by."""

from mechanisms.home import keyed_digest
from mechanisms.records import Dataset


def content_digest(dataset: Dataset) -> str:
    """Keyed digest of a data set's content: comparable on this installation, meaningless elsewhere."""
    return keyed_digest(dataset.content())
