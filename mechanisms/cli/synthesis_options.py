"""What `synthesize` writes, and from which rows: labelled texts, outputs or records, in stages or token by token."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechanisms.cli.options import FROM_THE_COLUMN, field_names, label_names, labels_of, reading
from mechanisms.cli.output import progress
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.field_names import suggested_answers
from mechanisms.data.label_names import read_labels
from mechanisms.data.reading import Reading, reading_of
from mechanisms.data.record_schema import RECORD_TEMPLATE, RecordSchema
from mechanisms.data.sources import KIND, RECORD, as_lines, of_kind, read_records, read_table
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import Answers, DemoSet, Outputs, to_text
from mechanisms.errors import UsageError
from mechanisms.files import atomic_write, check_writable, text_of
from mechanisms.records import PromptTemplate, open_template
from mechanisms.runs.defaults import MOST_WRITTEN_LABELS, RECIPE
from mechanisms.runs.recipe import Division, Kind, Stage
from mechanisms.runs.recipe_request import MOST_PROMPTED, MOST_SHOTS, RecipeRequest
from mechanisms.tallies import Weighing

_LINES = ".jsonl"
_LABEL = "label"
_KIND = "Kind"
_OTHERS = ("answers", "output_tokens", "max_output_tokens")
_NO_SCORE = "none"
_OWN = ("drafts", "rounds", "sets", "score", "draft_tokens", "weighing")
"""Options that mean nothing where demonstrations are only written token by token."""


# `--schema`: records of a JSON schema in place of labelled texts.


def add_record_options(parser: argparse.ArgumentParser) -> None:
    """The option that turns rows into records."""
    parser.add_argument(
        "--schema",
        metavar="FILE|JSON",
        help="JSON schema, in a file or as it is: the data are JSON Lines, or have columns named as properties; "
        f"--labels is one name for its records; --out FILE{_LINES} writes them as lines, with the schema and the "
        "certificate beside them",
    )


def schema_of(options: argparse.Namespace) -> RecordSchema | None:
    """The schema, if records are asked for.

    Raises:
        UsageError: it cannot be read or kept, or does not go with another option.
    """
    if options.schema is None:
        if options.out and Path(options.out).suffix == _LINES:
            raise UsageError(f"--out FILE{_LINES} writes records: it needs --schema.")
        return None
    if len(read_labels(options.labels)) > 1:
        raise UsageError("With --schema all rows are records of one kind: give --labels one name for it.")
    if options.min_tokens:
        raise UsageError("A record ends where its schema says: leave out --min-tokens.")
    for path in accompanying_files(options.out).values() if options.out else ():
        check_writable(str(path))
    given = str(options.schema)
    return RecordSchema.read(given if given.startswith("{") else text_of(given))


def read_table_of(options: argparse.Namespace, schema: RecordSchema) -> tuple[Table, ColumnMapping]:
    """The private records, and which columns of their table are what."""
    table = read_records(options.csv, schema, _kind(options), options.unit_column, _reading(options))
    return table, ColumnMapping(RECORD, KIND, options.unit_column, options.drop_duplicates)


def template_of(options: argparse.Namespace) -> PromptTemplate:
    """How records are put to a model."""
    text, label = options.text_field or RECORD_TEMPLATE.text, options.label_field or RECORD_TEMPLATE.label
    instruction = RECORD_TEMPLATE.instruction if options.instruction is None else options.instruction
    return PromptTemplate(instruction, text, label)


def write_records(path: str, demo_set: DemoSet, document: Mapping[str, Any]) -> bool:
    """Write records as lines, their schema and their demo set with its certificate, where that is asked for."""
    if demo_set.schema is None or Path(path).suffix != _LINES:
        return False
    others = accompanying_files(path)
    atomic_write(others["demos"], to_text(dict(document)))  # what is paid for first
    atomic_write(others["schema"], to_text(demo_set.schema.document))
    atomic_write(Path(path), as_lines(each.text for each in demo_set.demonstrations))
    progress(f"The schema is in '{others['schema'].name}', the certificate in '{others['demos'].name}'.")
    return True


def accompanying_files(path: str) -> dict[str, Path]:
    """What is written beside records at a path, and where."""
    if Path(path).suffix != _LINES:
        return {}
    return {what: Path(path).with_suffix(f".{what}.json") for what in ("schema", "demos")}


# `--output-column`: demonstrations that say text to their text, and not only a label.


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Where outputs come from, what they are called and how long they may be."""
    usual = Outputs()
    group = parser.add_argument_group(
        "output", "what is said to a text, where that is text too; without --label-column --labels is one name for all"
    )
    group.add_argument("--output-column", metavar="NAME", help="the column that holds it; private, like the text")
    group.add_argument("--output-field", metavar="NAME", help=f"how prompts call it {FROM_THE_COLUMN}")
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


def _kind(options: argparse.Namespace) -> str:
    """The one name of rows without labels."""
    [kind] = read_labels(options.labels)
    return kind


def _reading(options: argparse.Namespace) -> Reading:
    return reading_of(reading(options), labels_of(options))


def _check_kind(options: argparse.Namespace) -> None:
    if not options.label_column and len(read_labels(options.labels)) > 1:
        raise UsageError("Without --label-column all rows are of one kind: give --labels one name for it.")


def label_column(options: argparse.Namespace) -> str:
    """The column of the labels, where there are any."""
    return str(options.label_column or _LABEL)


def read_labelled(options: argparse.Namespace) -> tuple[Table, ColumnMapping]:
    """The private rows, and their columns; a file of texts alone has no column that says what they are."""
    table, label = read_table(options.csv, _reading(options)), label_column(options)
    alone = table.has_only([options.text_column, options.unit_column])
    if options.label_column == "" or (options.label_column is None and alone):
        _check_kind(options)
        table, label = of_kind(table, _kind(options)), KIND
    mapping = ColumnMapping(options.text_column, label, options.unit_column, options.drop_duplicates)
    return table, replace(mapping, label_names=label_names(options), merge_labels=options.merge_labels)


def read_answered(options: argparse.Namespace) -> tuple[Table, ColumnMapping]:
    """The private rows, and which of their columns are what; a column that nobody writes from is not read as one."""
    table = read_table(options.csv, _reading(options))
    if not options.label_column:
        table = of_kind(table, _kind(options))
    output = None if options.answers == Answers.MODEL else options.output_column
    names = label_names(options) if options.label_column else ()
    label, merge = options.label_column or KIND, options.merge_labels
    unit, drop = options.unit_column, options.drop_duplicates
    return table, ColumnMapping(options.text_column, label, unit, drop, output, names, merge)


def open_template_of(options: argparse.Namespace) -> PromptTemplate:
    """How texts and outputs are put to a model."""
    text, label = field_names(options, options.text_column, options.label_column or "")
    output = options.output_field or suggested_answers(options.output_column)[0]
    return open_template(text, label if options.label_field or options.label_column else _KIND, output)


# Recipes: where demonstrations come from, and what the stages of a run share.


def add_recipe_options(parser: argparse.ArgumentParser) -> None:
    """Recipe, ballots, sets, and how units or epsilon are shared."""
    group = parser.add_argument_group("recipe", "a run in stages; what is left out is planned from the sizes")
    group.add_argument(
        "--recipe",
        choices=[*Kind],
        help=f"default: {RECIPE}, and vote for more than {MOST_PROMPTED} shots or {MOST_WRITTEN_LABELS} labels; tokens "
        "for what has no stages: "
        f"records, outputs, a single label, --best-of, more than {MOST_SHOTS} shots, a mechanism that is not private",
    )
    group.add_argument("--drafts", type=int, metavar="J", help="public drafts of each label in a ballot")
    group.add_argument("--rounds", type=int, metavar="R", help="ballots; later drafts see the winners before")
    group.add_argument("--sets", type=int, metavar="K", help="sets of winners to choose from, beside none and public")
    group.add_argument(
        "--draft-tokens", type=int, metavar="T", help=f"tokens of a draft (default: {RecipeRequest.tokens})"
    )
    group.add_argument(
        "--split",
        choices=[*Division],
        help="what stages share: units, each with one role (default where they are many), or epsilon",
    )
    group.add_argument("--shares", metavar="write=.5,vote=.2,...", help="of each stage: of the units, or of epsilon")
    group.add_argument(
        "--weighing",
        choices=[*Weighing],
        help="what counts the same where rows fit, choose and score (default: labels where the largest one has more "
        "than twice an even share, else rows)",
    )
    group.add_argument("--score", choices=["private", _NO_SCORE], help="none: leave out the last stage")


def asks_for_stages(options: argparse.Namespace) -> bool:
    """Whether the options ask for a run in stages, whatever is usual."""
    return options.recipe not in (None, Kind.TOKENS) or options.shares is not None or options.split is not None


def check_staged(options: argparse.Namespace, staged: bool) -> None:
    """Refuse what only a run in stages has where there are none, and what none of them knows where there are.

    Raises:
        UsageError: such an option is given.
    """
    if staged and options.best_of != 1:
        raise UsageError("--best-of is for a run without stages: in stages all that is written stands in the ballot.")
    if not staged and (given := [name for name in _OWN if getattr(options, name) is not None]):
        raise UsageError(f"--{given[0].replace('_', '-')} needs --recipe vote or both, or --shares, or --split.")


def asked_of_stages(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of a `RunSpec` that the options fix.

    Raises:
        UsageError: a share is no number, or no stage's; a private score is asked for and has no share.
    """
    shares = None if options.shares is None else _shares(options.shares)
    if options.score == _NO_SCORE and shares is not None and Stage.SCORE in shares:
        raise UsageError("--score none leaves out the stage 'score': leave it out of --shares too.")
    if options.score == "private" and shares is not None and Stage.SCORE not in shares:
        raise UsageError("--score private needs a share for the stage 'score'.")
    return {
        "recipe": options.recipe and Kind(options.recipe),
        "score": options.score != _NO_SCORE,
        "division": options.split and Division(options.split),
        "shares": shares,
        "drafts": options.drafts,
        "rounds": options.rounds,
        "sets": options.sets,
        "weighing": options.weighing and Weighing(options.weighing),
        "draft_tokens": options.draft_tokens,
    }


def _shares(text: str) -> dict[Stage, float]:
    shares: dict[Stage, float] = {}
    try:
        for part in text.split(","):
            name, share = part.split("=")
            stage = Stage(name.strip())
            if stage in shares:
                raise UsageError(f"--shares names the stage '{stage}' twice.")
            shares[stage] = float(share)
    except ValueError as error:
        stages = ", ".join(Stage)
        raise UsageError(f"--shares takes STAGE=SHARE, separated by commas; the stages are {stages}.") from error
    return shares
