"""Test rows that come with the app, for a set that was written from a bundled example."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path

from mechanisms.data.sources import EXAMPLES, read_table


def bundled_rows_for(labels: Collection[str]) -> Path | None:
    """The bundled test file with exactly these labels, if there is one."""
    return next(
        (each.test for each in EXAMPLES if each.test and _labels(each.test, each.mapping.label) == set(labels)), None
    )


@cache
def _labels(path: Path, column: str) -> frozenset[str]:
    return frozenset(read_table(path).frame[column])
