"""Pay-per-query mechanisms: each releases an answer from the answers of shards.

Each module of this package that defines `MECHANISM` is registered.
"""

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
