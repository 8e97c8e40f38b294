"""Pay-per-query answers: how shards' answers become a private release. One mechanism a file, found by `MECHANISM`."""

from mechanisms.queries.mechanism import (
    QueryMechanism,
    QueryRelease,
    presence_histogram,
    query_mechanism_class,
    query_mechanism_names,
)
from mechanisms.queries.retrieval import Retrieval, nearest_by_shard

__all__ = [
    "QueryMechanism", "QueryRelease", "Retrieval", "nearest_by_shard", "presence_histogram", "query_mechanism_class",
    "query_mechanism_names",
]  # fmt: skip
