"""The settings of a planned run as a file for `--config`: the same run from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from mechanisms.data.columns import ColumnMapping
from mechanisms.data.label_names import names_of
from mechanisms.data.table import FLAGS, USUAL, Reading
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import FLAGGED, RunSpec
from mechanisms.steps import mechanism_class

_HEAD = """\
# Settings of a run of DP-ICL Studio, for the file that they were chosen on:
#     python -m mechanisms synthesize FILE --config SETTINGS --out demos.json
# Names of columns and labels are in here, and no row. It is charged as a run of its own.
"""
_MEASURED = "# The sizes of the labels are measured again, and paid for again: plan as if epsilon were spent twice.\n"
_NO_MODEL = "# Its model has no name of its own here: say which with --model.\n"


def settings(
    plan: Plan, mapping: ColumnMapping, name: str, model: str | None = "embedded", reading: Reading = USUAL
) -> str:
    """The file's text, with every setting that fixes the plan but the data set itself.

    Args:
        plan: its measured sizes are never written out.
        mapping: the columns that it is planned on.
        name: the data set's, in the ledger.
        model: as `--model` takes it; None where that is a place on one machine.
        reading: what the file's owner said of it.

    Raises:
        UsageError: a label has spaces around it, which the command line strips.
    """
    if broken := [label for label in plan.labels if label != label.strip()]:
        raise UsageError(f"The command line cannot name the label '{broken[0]}': it strips labels.")
    options = {FLAGS[each].removeprefix("--"): getattr(reading, each) for each in reading.said}
    options |= dict(_of_data(plan, mapping, name))
    if model is not None:
        options["model"] = model
    spec = plan.spec.with_(sizes=None, count_epsilon=plan.measured.epsilon) if plan.measured else plan.spec
    options |= dict(_of_spec(spec))
    head = _HEAD + (_MEASURED if plan.measured else "") + (_NO_MODEL if model is None else "")
    return head + yaml.dump(options, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Escapes the line break that a reader of YAML takes for another one: as it stands, U+0085 comes back as a space or
    as a line feed. In double quotes it is escaped."""


def _of_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if "\x85" in text else None)


_Dumper.add_representer(str, _of_text)


def _of_data(plan: Plan, mapping: ColumnMapping, name: str) -> Iterator[tuple[str, Any]]:
    yield "name", name
    yield "labels", list(plan.labels)
    if names := names_of(plan.labels, mapping.label_names):
        yield "label-names", dict(names)
    yield "text-column", mapping.text
    yield "label-column", mapping.label
    if mapping.unit is not None:
        yield "unit-column", mapping.unit
    if mapping.drop_duplicates:
        yield "drop-duplicates", True
    if mapping.merge_labels:
        yield "merge-labels", True


def _of_spec(spec: RunSpec) -> Iterator[tuple[str, Any]]:
    for each in FLAGGED:
        value = each.written(getattr(spec, each.name))
        if value not in (None, {}):
            yield each.flag, value
    solved = solved_flag(spec.mechanism)
    yield from ((flag, value) for flag, value in spec.parameters.items() if flag != solved)


def solved_flag(mechanism: str) -> str | None:
    """The flag of the parameter that calibration solves for, without dashes; None for a mechanism without noise."""
    chosen = mechanism_class(mechanism)
    return next((each.flag for each in parameters(chosen) if each.name == chosen.calibrated), None)
