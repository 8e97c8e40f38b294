"""What commands print: one JSON object with --json, a short table for people otherwise; progress on standard error."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mechanisms.errors import UsageError, printable
from mechanisms.evaluation.evaluate import Accuracy, MeanRecall

_ON_PRIVATE_ROWS = "accuracy without noise on rows of a private data set: for the curator alone"


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that every command has."""
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def show(options: argparse.Namespace, document: Mapping[str, Any]) -> None:
    """Print a result; what a terminal would obey in its texts is escaped as JSON, and `?` for people."""
    if options.json:
        show_json(document)
        return
    width = max(len(key) for key in document)
    for key, value in document.items():
        shown = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
        words = f"{shown:.6g}" if isinstance(shown, float) else printable(str(shown))
        print(f"{key.replace('_', ' '):{width}}  {words}")


def show_json(document: Mapping[str, Any]) -> None:
    """Print a result as one JSON object, see `show`."""
    print(_escaped(json.dumps(document, ensure_ascii=False, allow_nan=False)))


def _escaped(document: str) -> str:
    """The same JSON: characters that are not printable stand in its strings alone."""
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in document)


def progress(message: str) -> None:
    """Tell a person how far it is."""
    print(message, file=sys.stderr, flush=True)


def check_apart(*places: str | Path | None, but: Iterable[str | Path | None] = ()) -> None:
    """Refuse two files of one command at one place, where the later would take the earlier one's.

    Args:
        places: what is written; None where a file is not asked for.
        but: what is read, and must not be written over.

    Raises:
        UsageError: two are the same, through links too.
    """
    read = {os.path.realpath(place) for place in but if place is not None}
    known: set[str] = set()
    for place in places:
        if place is None:
            continue
        if (whole := os.path.realpath(place)) in read:
            raise UsageError(f"'{place}' is what is read here: write to another place.")
        if whole in known:
            raise UsageError(f"Two files would be written to '{place}': give each a place of its own.")
        known.add(whole)


# What a document says of figures, and of itself.


def in_json(each: Accuracy | MeanRecall) -> dict[str, Any]:
    """An accuracy with its interval."""
    return {"accuracy": round(each.value, 4), "interval": [round(bound, 4) for bound in each.interval]}


def not_private(owners: Sequence[str], *sets: str | None) -> dict[str, Any]:
    """What a document says of itself; nothing where the rows are nobody's and every set that is used is private.

    Args:
        owners: whose private rows the figures are of.
        sets: of each set why it is not private: what is computed from it follows from its rows, without noise.
    """
    reason = _ON_PRIVATE_ROWS if owners else next(filter(None, sets), None)
    return {"private": False, "reason": reason, "curator_only": True} if reason else {}


def told_of_rows(done: int, total: int) -> None:
    """How far a reading is."""
    progress(f"{done} of {total}")


def told_of_owners(owners: Sequence[str], file: str = "test file") -> None:
    """Whose private rows are among a file's, if anybody's; before figures of them are shown.

    Args:
        file: what it is called.
    """
    if owners:
        names = ", ".join(f"'{name}'" for name in owners)
        progress(
            f"The {file} shares rows with {names}. Its figures have no noise: they are for the curator alone, "
            "promise nothing about those rows, and every later certificate of theirs says that they were shown."
        )
