"""The output of commands: a JSON object with --json, else a short table; progress goes to standard error."""

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
    """Add the option `--json`."""
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def show(options: argparse.Namespace, document: Mapping[str, Any]) -> None:
    """Print a result; control characters in its texts are escaped in JSON, and `?` in a table."""
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
    """The same JSON with escapes for characters that are not printable, which occur only in strings."""
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in document)


def progress(message: str) -> None:
    """Print a line on standard error."""
    print(message, file=sys.stderr, flush=True)


def check_apart(*places: str | Path | None, but: Iterable[str | Path | None] = ()) -> None:
    """Refuse paths of a command's output files that would overwrite each other or an input file.

    Args:
        places: paths of output files; None for a file that is not written.
        but: paths of input files.

    Raises:
        UsageError: two paths are the same file, also through links.
    """
    read = {os.path.realpath(place) for place in but if place is not None}
    known: set[str] = set()
    for place in places:
        if place is None:
            continue
        if (whole := os.path.realpath(place)) in read:
            raise UsageError(f"'{place}' is an input file: write to another place.")
        if whole in known:
            raise UsageError(f"Two files would be written to '{place}': give each a place of its own.")
        known.add(whole)


# Parts of printed documents: figures, and whether the document is private.


def in_json(each: Accuracy | MeanRecall) -> dict[str, Any]:
    """An accuracy with its interval."""
    return {"accuracy": round(each.value, 4), "interval": [round(bound, 4) for bound in each.interval]}


def not_private(owners: Sequence[str], *sets: str | None) -> dict[str, Any]:
    """The fields that mark a document as not private; empty if its rows are public and all its sets private.

    Args:
        owners: the data sets whose private rows the figures use.
        sets: for each set, why it is not private, if it is not: figures computed from it then depend on its rows.
    """
    reason = _ON_PRIVATE_ROWS if owners else next(filter(None, sets), None)
    return {"private": False, "reason": reason, "curator_only": True} if reason else {}


def told_of_rows(done: int, total: int) -> None:
    """Report the progress of a reading."""
    progress(f"{done} of {total}")


def told_of_owners(owners: Sequence[str], file: str = "test file") -> None:
    """Warn that a file has rows of private data sets, before figures of them are shown.

    Args:
        file: the file's name in the warning.
    """
    if owners:
        names = ", ".join(f"'{name}'" for name in owners)
        progress(
            f"The {file} shares rows with {names}. Its figures have no noise: they are for the curator alone, "
            "promise nothing about those rows, and every later certificate of theirs says that they were shown."
        )
