"""The settings of a planned run as a YAML file, which gives the same run on the command line."""

from __future__ import annotations

from typing import Any

import yaml

from mechanisms.data.columns import ColumnMapping
from mechanisms.data.label_names import names_of
from mechanisms.data.table import FLAGS, USUAL, Reading
from mechanisms.errors import UsageError
from mechanisms.runs.plan import Plan, solved_flag
from mechanisms.runs.spec import FLAGGED

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
    """The settings of a planned run as a YAML file for `--config`, which gives the same run on the command line.

    The plan's measured sizes are never written. `model` is None if it is a path on this machine. Raises a UsageError if
    a label begins or ends with a space, which the command line removes.
    """
    if broken := [label for label in plan.labels if label != label.strip()]:
        raise UsageError(f"The command line cannot name the label '{broken[0]}': it strips labels.")
    options: dict[str, Any] = {FLAGS[each].removeprefix("--"): getattr(reading, each) for each in reading.declared}
    of_data: dict[str, Any] = {
        "name": name,
        "labels": list(plan.labels),
        "label-names": dict(names_of(plan.labels, mapping.label_names) or {}),
        "text-column": mapping.text,
        "label-column": mapping.label,
        "unit-column": mapping.unit,
        "drop-duplicates": mapping.drop_duplicates or None,
        "merge-labels": mapping.merge_labels or None,
        "model": model,
    }
    spec = plan.spec.with_(sizes=None, count_epsilon=plan.measured.epsilon) if plan.measured else plan.spec
    of_spec = {each.flag: each.plain_value(getattr(spec, each.name)) for each in FLAGGED}
    options |= {flag: value for flag, value in (of_data | of_spec).items() if value not in (None, {})}
    solved = solved_flag(spec.mechanism)
    options |= {flag: value for flag, value in spec.parameters.items() if flag != solved}
    head = _HEAD + (_MEASURED if plan.measured else "") + (_NO_MODEL if model is None else "")
    written = yaml.safe_dump(options, sort_keys=False, allow_unicode=True)
    if "\x85" in written:  # unescaped, YAML reads it as a line break
        written = yaml.safe_dump(options, sort_keys=False)
    return head + written
