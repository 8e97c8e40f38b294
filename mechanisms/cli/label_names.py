"""`--labels`, and `--label-names`: other names for a file's labels, on every command that reads them."""

from __future__ import annotations

import argparse

from mechanisms.data.label_names import LabelNames, named, read_names


def add_label_names(parser: argparse._ActionsContainer) -> None:
    """The option."""
    parser.add_argument(
        "--label-names",
        metavar="FILE.yaml|LABEL=NAME,...",
        help="public names for labels of the file: prompts, results and the set know the labels by these alone",
    )


def add_labels(parser: argparse._ActionsContainer) -> None:
    """The label set, and names for it."""
    parser.add_argument("--labels", required=True, metavar="A,B,...", help="the public label set")
    add_label_names(parser)


def labels_of(options: argparse.Namespace) -> tuple[str, ...]:
    """The label set, by its names; empty where none was given.

    Raises:
        UsageError: two labels would be called the same.
    """
    given = options.labels.split(",") if options.labels else ()
    return named((label.strip() for label in given), label_names(options))


def label_names(options: argparse.Namespace) -> LabelNames:
    """What was given.

    Raises:
        UsageError: not readable, or not one to one.
    """
    return read_names(options.label_names) if options.label_names else ()
