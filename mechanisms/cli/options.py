"""The shared parts of commands: options made from descriptions, options of a file of rows, and output."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from mechanisms import api
from mechanisms.data.headers import suggested_names
from mechanisms.data.label_names import LabelNames, named, read_labels, read_names
from mechanisms.data.table import BACKSLASH, DOUBLED, FLAGS
from mechanisms.discovery import Parameter, parameters
from mechanisms.errors import UsageError, printable
from mechanisms.evaluation.evaluate import Accuracy, MeanRecall
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.listed import default_name
from mechanisms.noise import Randomness, SecureRandomness, SeededRandomness
from mechanisms.records import Dataset
from mechanisms.runs.plan import solved_flag
from mechanisms.runs.spec import FLAGGED, SETTINGS, RunSpec
from mechanisms.settings import PARAMETERS, Setting, Spec
from mechanisms.steps import mechanism_class, mechanism_names, transform_class, transform_names

_Kind = TypeVar("_Kind", bound=Spec)
_UNIT_ROWS = "per_subset"
_SHARED = "parameters of several mechanisms"


def add_settings(
    parser: argparse.ArgumentParser,
    names: Collection[str] = RunSpec.model_fields,
    usual: Mapping[str, Any] | None = None,
) -> None:
    """Add an option for each of some settings of a run; without a value the setting stays open.

    Args:
        names: the fields of `RunSpec` to add.
        usual: default values that differ from those of the fields, for the help texts.
    """
    groups = add_flags(parser, [each for each in FLAGGED if each.name in names], usual)
    if _UNIT_ROWS in names:
        words = "each sampled unit is a row (default)"
        group = groups[SETTINGS[_UNIT_ROWS].group]
        group.add_argument("--unit-rows", dest=_UNIT_ROWS, action="store_const", const=None, help=words)
    if PARAMETERS in names:
        add_parameter_options(parser, _of_steps())


def add_flags(
    parser: argparse.ArgumentParser, settings: Iterable[Setting], usual: Mapping[str, Any] | None = None
) -> dict[StrEnum, argparse._ArgumentGroup]:
    """Add an option for each setting, under the heading of its group.

    Args:
        usual: default values that differ from those of the settings, for the help texts.

    Returns:
        The argument groups, by heading.
    """
    groups: dict[StrEnum, argparse._ArgumentGroup] = {}
    for each in settings:
        group = groups.get(each.group) or groups.setdefault(each.group, parser.add_argument_group(each.group.value))
        group.add_argument(
            f"--{each.flag}",
            dest=each.name,
            choices=each.choices,
            metavar=each.placeholder,
            required=each.required,
            help=each.help((usual or {}).get(each.name)).replace("%", "%%"),
        )
    return groups


def spec_of(options: argparse.Namespace, **usual: Any) -> RunSpec:
    """The spec of a run from its options; see `read_spec`."""
    return read_spec(RunSpec, options, _of_steps(), **usual)


def read_spec(kind: type[_Kind], options: argparse.Namespace, flags: Iterable[str], **usual: Any) -> _Kind:
    """The spec from the options.

    Args:
        options: the options of a parser with `add_flags` and `add_parameter_options`.
        flags: the flags of the mechanisms' parameters.
        usual: values of settings that the options leave open.

    Raises:
        UsageError: a value is out of range, or contradicts another one.
    """
    values = ((each, getattr(options, each.name, None)) for each in kind.flagged())
    said = {each.name: each.parse(value) for each, value in values if value is not None}
    parameters = given(options, flags)
    return kind.of(**usual | said | ({PARAMETERS: parameters} if parameters else {}))


def _of_steps() -> dict[str, dict[str, Parameter]]:
    users = [mechanism_class(name) for name in mechanism_names()]
    return described([*users, *(transform_class(name) for name in transform_names())])


def check_noise(spec: RunSpec, required: bool = False) -> None:
    """Refuse a noise option if calibration solves for it or, if `required`, its absence. Raises a UsageError."""
    solved = solved_flag(spec.mechanism)
    if solved is not None and required != (solved in spec.parameters):
        wanted = "is not calibrated here: give" if required else "is calibrated: leave out"
        raise UsageError(f"'{spec.mechanism}' {wanted} --{solved}.")


def described(
    users: Iterable[Any], own: Callable[[Any], Iterable[Parameter]] = parameters
) -> dict[str, dict[str, Parameter]]:
    """For each flag, the mechanisms and transforms (`users`) that have it, by name, with the parameter's description.

    Args:
        own: returns the parameters of a user that may be given as options.
    """
    flags: dict[str, dict[str, Parameter]] = {}
    for user in users:
        for each in own(user):
            flags.setdefault(each.flag, {})[user.name] = each
    return flags


def add_parameter_options(parser: argparse.ArgumentParser, flags: dict[str, dict[str, Parameter]]) -> None:
    """Add an option for each flag, grouped by user; see `described`. Without a value the user's own default applies."""
    groups: dict[str, Any] = {}
    for flag, users in flags.items():
        title = f"parameters of {next(iter(users))}" if len(users) == 1 else _SHARED
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        [each, *_] = users.values()
        kind: dict[str, Any] = {"type": float, "metavar": "X"}
        if isinstance(each.default, bool):
            kind = {"action": argparse.BooleanOptionalAction}
        elif isinstance(each.default, int):
            kind = {"type": int, "metavar": "N"}
        meanings = {name: f"{each.help} ({each.citation})" for name, each in users.items()}
        words = " ".join(told if len(meanings) == 1 else f"{name}: {told}" for name, told in meanings.items())
        groups[title].add_argument(f"--{flag}", dest=_destination(flag), help=words.replace("%", "%%"), **kind)


def given(options: argparse.Namespace, flags: Iterable[str]) -> dict[str, Any]:
    """The given flags and their values."""
    values = {flag: getattr(options, _destination(flag), None) for flag in flags}
    return {flag: value for flag, value in values.items() if value is not None}


def _destination(flag: str) -> str:
    return "parameter_" + flag.replace("-", "_")


def add_model(parser: argparse._ActionsContainer) -> None:
    """Add the options of a local model."""
    words = "a listed model, a folder, a GGUF file or a hub id (default: %(default)s)"
    parser.add_argument("--model", metavar="NAME", default=default_name(), help=words)
    add_device(parser)


def add_device(parser: argparse._ActionsContainer) -> None:
    """Add the option for the device, which `mechanisms.cli.main.run_command` sets."""
    words = "auto, cpu, cuda, cuda:1 or mps: which device computes (default: DPICL_DEVICE, else auto)"
    parser.add_argument("--device", metavar="NAME", help=words)


FROM_THE_COLUMN = "a usual word that the column's name suggests, never the name itself"
_LABEL_NAMES = "public names for labels of the file: prompts, results and the set know the labels by these alone"


def add_rows(parser: argparse._ActionsContainer) -> None:
    """Add the options of a labelled file: columns, label names, and how the file is read."""
    for role in ("text", "label"):
        words = f"the {role}s (default: %(default)s); a nested field is called as in a.b"
        parser.add_argument(f"--{role}-column", metavar="NAME", default=role, help=words)
    add_label_names(parser)
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="the first line names the columns, or it is a row and columns are called 1, 2, ... (default: it names "
        "them, and one that looks like a row is asked about)",
    )
    parser.add_argument(
        "--skip-lines", dest="skip", type=int, default=0, metavar="N", help="lines above the header, such as a title"
    )
    parser.add_argument(
        "--encoding",
        metavar="NAME[+NAME]",
        help="of the whole file, such as gb18030 or windows-1252; utf-8+windows-1252: each line in the first that fits "
        "(default: UTF-8, or as the file's mark says)",
    )
    parser.add_argument("--separator", metavar="X", help="of cells: one character, or tab (default: as in the header)")
    parser.add_argument(
        "--escape",
        choices=(DOUBLED, BACKSLASH),
        help='how a CSV file writes a quote in a quoted cell, doubled "" or backslash \\" (default: doubled; asked if '
        "a row fits only with backslashes)",
    )
    parser.add_argument("--sheet", metavar="NAME", help="of an Excel file (default: the first)")
    parser.add_argument(
        "--fill-merged",
        action=argparse.BooleanOptionalAction,
        help="each row that a merged cell of an Excel file spans has its value (default: asked)",
    )
    parser.add_argument(
        "--rows", metavar="NAME", help="of a JSON object: the list that holds the rows (default: its only one)"
    )
    parser.add_argument(
        "--merge-labels",
        action="store_true",
        help="read other spellings of a label as the label of the set: another case, spaces, invisible characters, or "
        "1.0 for 1",
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


def check_limit(options: argparse.Namespace) -> None:
    """Refuse a `--limit` below one."""
    if options.limit is not None and options.limit < 1:
        raise UsageError("--limit must be at least 1.")


def add_test_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--test-seed", type=int, help="reproducible and NOT PRIVATE: for tests only")


def randomness_of(options: argparse.Namespace) -> Randomness:
    """The noise that the options ask for: the operating system's, or a test seed's.

    Raises:
        UsageError: the seed is negative.
    """
    if options.test_seed is None:
        return SecureRandomness()
    if options.test_seed < 0:
        raise UsageError("--test-seed must not be negative.")
    return SeededRandomness(options.test_seed)


def loaded(options: argparse.Namespace, path: str | Path, labels: Sequence[str], **more: Any) -> Dataset:
    """A file's rows, read as the options say. Remarks on the file are printed as progress.

    Args:
        more: arguments of `mechanisms.api.load`, which replace those from the options.

    Raises:
        DataError, ReadingQuestion, UsageError: as documented for `mechanisms.api.load`.
    """
    said = {
        "text": options.text_column,
        "label": options.label_column,
        "label_names": label_names(options),
        "merge_labels": options.merge_labels,
        "allow_left_out": options.allow_left_out,
        "tell": progress,
    }
    reading = {name: getattr(options, name) for name in FLAGS}
    return api.load(path, labels, **said | reading | more)


def loaded_private(options: argparse.Namespace, labels: Sequence[str], **more: Any) -> Dataset:
    """The rows of the private file, read as the options of `add_private_rows` say; `loaded` lists the errors."""
    whose = {"user": options.unit_column, "name": options.name, "drop_duplicates": options.drop_duplicates}
    return loaded(options, options.csv, labels, **whose | more)


def labels_of(options: argparse.Namespace) -> tuple[str, ...]:
    """The label set, with label names applied; empty if none was given.

    Raises:
        UsageError: the option is not readable, or two labels would have the same name.
    """
    given = read_labels(options.labels) if options.labels else ()
    return named(given, label_names(options))


def label_names(options: argparse.Namespace) -> LabelNames:
    """The label names in the options.

    Raises:
        UsageError: the option is not readable, or the names are not one to one.
    """
    return read_names(options.label_names) if options.label_names else ()


def field_names(options: argparse.Namespace) -> tuple[str, str]:
    """The names of text and label in prompts: the given ones, or usual words that the columns' names suggest.

    A column's own name is never used, because in a file without a header it may be a private cell.
    """
    texts, labels = suggested_names(options.text_column, options.label_column)
    return options.text_field or texts[0], options.label_field or labels[0]


def check_says_something(text: str) -> None:
    """Refuse a text that is empty or has only white space. Raises a UsageError."""
    if not text.strip():
        raise UsageError("The text is empty: give one that says something.")


_ON_PRIVATE_ROWS = "accuracy without noise on rows of a private data set: for the curator alone"


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option `--json`."""
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def show(options: argparse.Namespace, document: Mapping[str, Any]) -> None:
    """Print a result. Control characters in its texts are escaped in JSON, and replaced by `?` in a table."""
    if options.json:
        show_json(document)
        return
    width = max(len(key) for key in document)
    for key, value in document.items():
        shown = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
        words = f"{shown:.6g}" if isinstance(shown, float) else printable(str(shown))
        print(f"{key.replace('_', ' '):{width}}  {words}")


def show_json(document: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print a result as one line of JSON; see `show`."""
    print(_escaped(json.dumps(document, ensure_ascii=False, allow_nan=False)))


def _escaped(document: str) -> str:
    """The same JSON with escapes for characters that are not printable, which occur only in strings."""
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in document)


def progress(message: str) -> None:
    """Print a line on standard error."""
    print(message, file=sys.stderr, flush=True)


def model_progress(name: str, stages: bool = True) -> Callable[[str], None]:
    """A function that prints the progress of loading a model: each tenth of a fetch or a conversion, once, and the
    other stages if `stages`."""
    told = ""

    def tell(stage: str) -> None:
        nonlocal told
        done, percent = stage.partition(", ")[::2]
        if (now := f"{done}{percent[:-2]}") != told and (percent or stages):
            told = now
            progress(f"{name}: {stage}")

    return tell


def load_model(name: str | None) -> LanguageModel:
    """Load the named model, or the default one for None, and print the progress of a fetch or a conversion."""
    name = name or default_name()
    return api.load_model(name, model_progress(name, stages=False))


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


def in_json(figure: Accuracy | MeanRecall) -> dict[str, Any]:
    """An accuracy with its interval."""
    return {"accuracy": round(figure.value, 4), "interval": [round(bound, 4) for bound in figure.interval]}


def not_private(owners: Sequence[str], *sets: str | None) -> dict[str, Any]:
    """The fields that mark a document as not private; empty if its rows are public and all its sets private.

    Args:
        owners: the data sets whose private rows the figures use.
        sets: for each set, the reason why it is not private, so that figures computed from it depend on its rows; None
            if it is private.
    """
    reason = _ON_PRIVATE_ROWS if owners else next(filter(None, sets), None)
    return {"private": False, "reason": reason, "curator_only": True} if reason else {}


def report_rows(done: int, total: int) -> None:
    """Report the progress of a reading."""
    progress(f"{done} of {total}")


def warn_of_owners(owners: Sequence[str], file: str = "test file") -> None:
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
