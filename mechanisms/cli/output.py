"""What commands print: one JSON object with --json, a short table for people otherwise; progress on standard error."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mechanisms.errors import UsageError, printable


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
