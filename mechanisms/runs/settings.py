"""The settings of a run outside the program: each in the words of a command line, and all in a file for `--config`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic.fields import FieldInfo

from mechanisms.data.columns import ColumnMapping
from mechanisms.data.label_names import names_of, read_pairs
from mechanisms.data.table import FLAGS, USUAL, Reading
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import Group, RunSpec, flag_of
from mechanisms.steps import mechanism_class

PARAMETERS = "parameters"
"""The setting without a flag: each parameter of mechanism and transform has its own."""
_PLACEHOLDERS = {int: "N", float: "X", str: "TEXT"}
_LIMITS = (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than"))
_FROM_SIZES = "follows from the labels and from public sizes"


@dataclass(frozen=True)
class Setting:
    """A field of `RunSpec` as people say it."""

    name: str
    field: FieldInfo

    @property
    def flag(self) -> str:
        """On the command line and in a file, without dashes."""
        return flag_of(self.name, self.field)

    @property
    def group(self) -> Group:
        return Group(self._more["group"])

    @property
    def unit(self) -> str:
        """Of its number; empty where there is none."""
        return str(self._more["unit"])

    @property
    def choices(self) -> list[str] | None:
        """All that may be said; None where there is more."""
        [kind, *others] = self.kinds
        if self._more["words"]:
            return list(self._more["words"])
        return (
            [str(each) for each in kind]
            if isinstance(kind, type) and issubclass(kind, StrEnum) and not others
            else None
        )

    @property
    def placeholder(self) -> str | None:
        """For a value in a usage line; None where the choices stand there."""
        if self.choices:
            return None
        return "|".join(
            "|".join(get_args(kind)) if get_origin(kind) is Literal else _placeholder(kind) for kind in self.kinds
        )

    def help(self, usual: str | None = None) -> str:
        """Title, help, bounds and default.

        Args:
            usual: what the default is, where it is not the field's own.
        """
        title = self.field.title or self.name
        limits = " and ".join(
            f"{words} {getattr(each, limit):g}"
            for limit, words in _LIMITS
            for each in self.field.metadata
            if hasattr(each, limit)
        )
        unit = f" {self.unit}" if self.unit and limits else ""
        default = self.written(self.field.default)
        if default is None:
            default = self._more["otherwise"] or _FROM_SIZES
        stated = f"default: {usual or default}" if usual or default not in ("", {}) else ""
        note = "; ".join(each for each in (f"{limits}{unit}", stated) if each)
        return f"{title}{'' if title.endswith('?') else ':'} {self.field.description}{f' ({note})' if note else ''}"

    def written(self, value: Any) -> Any:
        """A value as a file holds it."""
        if isinstance(value, bool):
            return self._more["words"][value]
        return str(value) if isinstance(value, StrEnum) else value

    def read(self, said: str) -> Any:
        """What was said, for `RunSpec.of`, which reads numbers.

        Raises:
            UsageError: it has no pairs where there should be some, or names something twice.
        """
        if bool in self.kinds:
            return bool(self._more["words"].index(said))
        if not any(get_origin(kind) is dict for kind in self.kinds):
            return said
        if any(said in get_args(kind) for kind in self.kinds if get_origin(kind) is Literal):
            return said
        try:
            pairs = [(name.strip(), value.strip()) for name, value in read_pairs(said)]
        except UsageError as error:
            raise UsageError(f"--{self.flag} takes {self.placeholder}.") from error
        if twice := [name for name, _ in pairs if [each for each, _ in pairs].count(name) > 1]:
            raise UsageError(f"--{self.flag} names '{twice[0]}' twice.")
        return dict(pairs)

    @property
    def _more(self) -> dict[str, Any]:
        assert isinstance(self.field.json_schema_extra, dict)
        return dict(self.field.json_schema_extra)

    @cached_property
    def kinds(self) -> Sequence[Any]:
        """The types of what may be said; None, which leaves it open, is not among them."""
        kind = self.field.annotation
        united = get_args(kind) if get_origin(kind) not in (None, dict, Literal) else (kind,)
        return [each for each in united if each is not NoneType]


def _placeholder(kind: Any) -> str:
    if get_origin(kind) is dict:
        value = _PLACEHOLDERS[get_args(kind)[1]]
        return f"A={value},B={value}"
    return _PLACEHOLDERS[kind]


def setting_named(name: str) -> Setting:
    """The setting of a field of `RunSpec`."""
    return Setting(name, RunSpec.model_fields[name])


def flagged() -> list[Setting]:
    """All settings that have a flag of their own, in their order."""
    return [Setting(name, field) for name, field in RunSpec.model_fields.items() if name != PARAMETERS]


# The file.

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
    for each in flagged():
        value = each.written(getattr(spec, each.name))
        if value not in (None, {}):
            yield each.flag, value
    solved = solved_flag(spec.mechanism)
    yield from ((flag, value) for flag, value in spec.parameters.items() if flag != solved)


def solved_flag(mechanism: str) -> str | None:
    """The flag of the parameter that calibration solves for, without dashes; None for a mechanism without noise."""
    chosen = mechanism_class(mechanism)
    return next((each.flag for each in parameters(chosen) if each.name == chosen.calibrated), None)
