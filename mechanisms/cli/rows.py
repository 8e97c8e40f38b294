"""Options that say how a file of rows is read: its columns, its labels, and what prompts call them; all public."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mechanisms import api
from mechanisms.cli.output import progress
from mechanisms.data.headers import suggested_names
from mechanisms.data.label_names import LabelNames, named, read_labels, read_names
from mechanisms.errors import UsageError
from mechanisms.records import Dataset

FROM_THE_COLUMN = "a usual word that the column's name suggests, never the name itself"
_LABEL_NAMES = "public names for labels of the file: prompts, results and the set know the labels by these alone"


def add_rows(parser: argparse._ActionsContainer) -> None:
    """Add the options of a labelled file: columns, label names, and how the file is read."""
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--label-column", default="label")
    add_label_names(parser)
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="the first line names the columns, or it is a row and columns are called 1, 2, ... (default: it names "
        "them, and one that looks like a row is asked about)",
    )
    parser.add_argument(
        "--skip-lines", type=int, default=0, metavar="N", help="lines above the header, such as a title"
    )
    parser.add_argument(
        "--encoding",
        metavar="NAME[+NAME]",
        help="of the whole file, such as gb18030 or windows-1252; utf-8+windows-1252: each line in the first that fits "
        "(default: UTF-8, or as the file's mark says)",
    )
    parser.add_argument("--separator", metavar="X", help="of cells: one character, or tab (default: as in the header)")
    parser.add_argument("--sheet", metavar="NAME", help="of an Excel file (default: the first)")
    parser.add_argument(
        "--merge-labels",
        action="store_true",
        help="read labels as one of the set that differ from it only in case, spaces or invisible characters",
    )
    parser.add_argument(
        "--allow-left-out", action="store_true", help="go on where more than one row in twenty takes no part"
    )


def add_private_rows(parser: argparse._ActionsContainer) -> None:
    """Add the options of `add_rows`, the privacy unit, and the data set's name in the ledger."""
    add_rows(parser)
    parser.add_argument("--unit-column", help="user id: the privacy unit becomes all rows of a user")
    parser.add_argument("--name", help="the data set's name in the ledger (default: the file's name)")
    parser.add_argument("--drop-duplicates", action="store_true")


def add_labels(parser: argparse._ActionsContainer, required: bool = True) -> None:
    parser.add_argument(
        "--labels",
        required=required,
        metavar="A,B,...",
        help="the public label set: with commas, where a label with a comma stands in quotes, or as a JSON list",
    )


def add_label_names(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--label-names", metavar="LABEL=NAME,...", help=_LABEL_NAMES)


def loaded(options: argparse.Namespace, path: str | Path, labels: Sequence[str], **more: Any) -> Dataset:
    """A file's rows, as the options say; what is odd about the file is told as progress.

    Args:
        more: arguments of `mechanisms.api.load` in place of those that the options give.

    Raises:
        DataError, ReadingAsked, UsageError: as `mechanisms.api.load` says.
    """
    said = {
        "text": options.text_column,
        "label": options.label_column,
        "label_names": label_names(options),
        "merge_labels": options.merge_labels,
        "allow_left_out": options.allow_left_out,
        "tell": progress,
        "skip": options.skip_lines,
    }
    reading = {name: getattr(options, name) for name in ("header", "encoding", "separator", "sheet")}
    return api.load(path, labels, **said | reading | more)


def loaded_private(options: argparse.Namespace, labels: Sequence[str], **more: Any) -> Dataset:
    """The rows of the private file, as the options of `add_private_rows` say; `loaded` has what is raised."""
    whose = {"user": options.unit_column, "name": options.name, "drop_duplicates": options.drop_duplicates}
    return loaded(options, options.csv, labels, **whose | more)


def labels_of(options: argparse.Namespace) -> tuple[str, ...]:
    """The label set, with label names applied; empty if none was given.

    Raises:
        UsageError: not readable, or two labels would have the same name.
    """
    given = read_labels(options.labels) if options.labels else ()
    return named(given, label_names(options))


def label_names(options: argparse.Namespace) -> LabelNames:
    """The label names in the options.

    Raises:
        UsageError: not readable, or not one to one.
    """
    return read_names(options.label_names) if options.label_names else ()


def field_names(options: argparse.Namespace, text_column: str, label_column: str) -> tuple[str, str]:
    """The names of text and label in prompts: as typed, or usual words that the columns' names suggest.

    Without a header a column's name may be a private cell: it is never taken itself.
    """
    texts, labels = suggested_names(text_column, label_column)
    return options.text_field or texts[0], options.label_field or labels[0]


def check_says_something(text: str) -> None:
    """Refuse a text of nothing but white space.

    Raises:
        UsageError: it is one.
    """
    if not text.strip():
        raise UsageError("The text is empty: give one that says something.")
