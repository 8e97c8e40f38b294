"""`synthesize --output-column`: demonstrations that say text to their text, and not only a label."""

from __future__ import annotations

import argparse
from dataclasses import replace

from mechanisms.cli.label_names import label_names
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.sources import KIND, of_kind, read_source
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import Answers, Outputs
from mechanisms.errors import UsageError
from mechanisms.records import PromptTemplate, open_template

_LABEL = "label"
_KIND = "Kind"
_OTHERS = ("answers", "output_tokens", "max_output_tokens")


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Where outputs come from, what they are called and how long they may be."""
    usual = Outputs()
    group = parser.add_argument_group(
        "output", "what is said to a text, where that is text too; without --label-column --labels is one name for all"
    )
    group.add_argument("--output-column", metavar="NAME", help="the column that holds it; private, like the text")
    group.add_argument("--output-field", metavar="NAME", help="how prompts call it (default: the column's name)")
    group.add_argument(
        "--answers",
        choices=[*Answers],
        help="private: written from the rows' outputs, under the same epsilon (default); model: what the model answers "
        "to each released text, free, with no column read",
    )
    group.add_argument(
        "--output-tokens",
        type=int,
        metavar="N",
        help=f"of the T tokens of a demonstration, those that its text leaves to its output (default: {usual.tokens})",
    )
    group.add_argument(
        "--max-output-tokens",
        type=int,
        metavar="N",
        help=f"cap on an output's tokens, of a row's in prompts, and of a model's (default: {usual.max_tokens})",
    )


def outputs_of(options: argparse.Namespace) -> Outputs | None:
    """Where outputs come from, if any are asked for.

    Raises:
        UsageError: a number is out of range, or an option is missing or does not go with another one.
    """
    answers = Answers(options.answers or Answers.PRIVATE)
    if not (options.output_column or options.output_field):
        if given := [name for name in _OTHERS if getattr(options, name) is not None]:
            raise UsageError(f"--{given[0].replace('_', '-')} needs --output-column, or --output-field.")
        return None
    if options.schema is not None:
        raise UsageError("A record has no output beside it: make the output a property of --schema.")
    if answers is Answers.PRIVATE and not options.output_column:
        raise UsageError("Give the column of the private outputs, --output-column, or have the --answers model.")
    if answers is Answers.MODEL and options.output_tokens is not None:
        raise UsageError("A model's answers are not charged for: leave out --output-tokens.")
    _check_kind(options)
    numbers = {"tokens": options.output_tokens, "max_tokens": options.max_output_tokens}
    return Outputs(answers, **{name: value for name, value in numbers.items() if value is not None})


def _check_kind(options: argparse.Namespace) -> None:
    if not options.label_column and "," in options.labels:
        raise UsageError("Without --label-column all rows are of one kind: give --labels one name for it.")


def label_column(options: argparse.Namespace) -> str:
    """The column of the labels, where there are any."""
    return str(options.label_column or _LABEL)


def read_labelled(options: argparse.Namespace) -> tuple[Table, ColumnMapping]:
    """The private rows, and their columns; a file of texts alone has no column that says what they are."""
    table, label = read_source(options.csv), label_column(options)
    alone = table.has_only([options.text_column, options.unit_column])
    if options.label_column == "" or (options.label_column is None and alone):
        _check_kind(options)
        table, label = of_kind(table, options.labels.strip()), KIND
    mapping = ColumnMapping(options.text_column, label, options.unit_column, options.drop_duplicates)
    return table, replace(mapping, label_names=label_names(options))


def read_answered(options: argparse.Namespace) -> tuple[Table, ColumnMapping]:
    """The private rows, and which of their columns are what; a column that nobody writes from is not read as one."""
    table = read_source(options.csv)
    if not options.label_column:
        table = of_kind(table, options.labels.strip())
    output = None if options.answers == Answers.MODEL else options.output_column
    names = label_names(options) if options.label_column else ()
    label = options.label_column or KIND
    return table, ColumnMapping(options.text_column, label, options.unit_column, options.drop_duplicates, output, names)


def open_template_of(options: argparse.Namespace) -> PromptTemplate:
    """How texts and outputs are put to a model."""
    return open_template(
        options.text_field or options.text_column,
        options.label_field or options.label_column or _KIND,
        options.output_field or options.output_column,
    )
