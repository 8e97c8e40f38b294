"""Controls for the settings of a run. Their titles, help, bounds and defaults come from the spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, get_origin

import gradio as gr
from annotated_types import Ge, Le

from mechanisms.errors import UsageError
from mechanisms.runs.spec import SETTINGS, RunSpec

_LEFT_OPEN = "As proposed"
"""The choice that leaves a setting empty; its value is then derived from the labels and their sizes."""


def control(name: str, choices: Sequence[Any] = (), **more: Any) -> Any:
    """The component for a field of `RunSpec`; `fields_from` reads its value.

    A number with two bounds is a slider. Other numbers are typed, so that a field can be left empty: the setting then
    has the value that is derived from the public sizes, or the default. The placeholder shows that value.

    Args:
        choices: for a text, suggestions beside free input; for an enumeration, all its values with their titles.
        more: arguments of the component that replace the usual ones.
    """
    setting = SETTINGS[name]
    field, kinds = setting.field, setting.kinds
    words = {**described(name), **more}
    if kinds == [bool]:
        return gr.Checkbox(field.default, **words)
    if isinstance(kinds[0], type) and issubclass(kinds[0], StrEnum):
        own = [(str(each).capitalize(), each.value) for each in kinds[0]]
        opened = [(_LEFT_OPEN, "")] if field.default is None else []
        return gr.Radio([*opened, *(choices or own)], value=field.default or "", **words)
    bounds = {type(each): each for each in field.metadata}
    if kinds == [int] and field.default is not None and {Ge, Le} <= set(bounds):
        return gr.Slider(bounds[Ge].ge, bounds[Le].le, field.default, step=1, **words)
    if choices:
        return gr.Dropdown(list(choices), value=field.default, allow_custom_value=True, **words)
    return gr.Textbox("", **{"placeholder": in_field(field.default)} | words)


def described(name: str) -> dict[str, Any]:
    """The arguments of the component for a field of `RunSpec`: its title, help text and id."""
    setting = SETTINGS[name]
    title, unit = str(setting.field.title), setting.unit
    named = unit.lower() in title.lower()
    return {
        "label": title if named else f"{title} ({unit})",
        "info": setting.field.description,
        "elem_id": name.replace("_", "-"),
    }


def in_field(value: Any) -> str:
    """A setting's value as a user would type it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={each:g}" for name, each in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value or "")


def fields_from(values: Mapping[str, Any]) -> dict[str, Any]:
    """The controls' values as fields for `RunSpec.of`, without those that are empty or at their default.

    Raises:
        UsageError: a field of "name = words" lines cannot be read.
    """
    found = {}
    for name, value in values.items():
        given = value.strip() if isinstance(value, str) else value
        if given in ("", None) or given == RunSpec.model_fields[name].default:
            continue
        pairs = get_origin(SETTINGS[name].kinds[-1]) is dict
        found[name] = pairs_in_lines(given.replace(",", "\n")) if pairs else given
    return found


def pairs_in_lines(text: str) -> dict[str, str]:
    """Pairs from lines of "name = words"; lines without words are left out.

    Raises:
        UsageError: a line has no equals sign, or a name appears twice.
    """
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, words = map(str.strip, line.rpartition("="))
        if not equals or not name:
            raise UsageError(f"'{line}' has no equals sign: write name = words, one pair a line.")
        if name in found:
            raise UsageError(f"'{name}' is named twice: keep one.")
        found[name] = words
    return {name: words for name, words in found.items() if words}
