"""Inputs and outputs of the page: numbers, choices, settings, the epsilon slider, uploads and downloads."""

from __future__ import annotations

import base64
import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, get_origin

import gradio as gr
from annotated_types import Ge, Le

from dpicl_ui.assets import asset
from dpicl_ui.frame.internals import is_upload
from dpicl_ui.frame.tree import drawn
from mechanisms.errors import DataError, UsageError
from mechanisms.runs.spec import SETTINGS, RunSpec

# Numbers as people type them into a form.


def number(name: str, value: Any) -> float:
    """A component's value as a number; raises a `UsageError` if it is not a finite number."""
    try:
        given = float(value)
    except (TypeError, ValueError, OverflowError):
        given = math.nan
    if not math.isfinite(given):
        raise UsageError(f"{name} needs a number.")
    return given


def whole_number(name: str, value: Any) -> int:
    """A component's value as a whole number; raises a `UsageError` if it is not one."""
    given = number(name, value)
    if given != int(given):
        raise UsageError(f"{name} must be a whole number.")
    return int(given)


# Choices among names that come out of a private file.
#
# A page may send a value that is no longer among the choices. Gradio raises and logs an exception that quotes the value
# and all choices: labels and column names that nobody has declared public yet. These components drop such a value.
#
# (Gradio writes a stub beside every module that defines a component: `*.pyi` is in .gitignore.)


class PrivateDropdown(gr.Dropdown):
    """A dropdown that treats an unknown value as no value."""

    is_template = True

    def preprocess(self, payload: Any) -> Any:
        return super().preprocess(payload if payload in [value for _, value in self.choices] else None)


class PrivateCheckboxGroup(gr.CheckboxGroup):
    """Checkboxes that drop unknown values."""

    is_template = True

    def preprocess(self, payload: Any) -> Any:
        known = [value for _, value in self.choices]
        return super().preprocess([value for value in payload or [] if value in known])


# A logarithmic slider for epsilon, between better privacy and better accuracy.

_TEMPLATE = """
<div class="epsilon">
  <div class="epsilon-value"><label for="epsilon-number">epsilon</label>
    <input id="epsilon-number" type="number" min="0.1" max="10" step="any" inputmode="decimal">
    <span class="epsilon-word"></span></div>
  <input type="range" min="0" max="200" step="1" aria-label="Epsilon, logarithmic from 0.1 to 10">
  <div class="epsilon-ticks"><span>0.1</span><span>0.3</span><span>1</span><span>3</span><span>10</span></div>
  <div class="epsilon-ends"><span>better privacy</span><span>better accuracy</span></div>
</div>
"""


def epsilon_slider() -> gr.HTML:
    """A slider whose value is epsilon; it fires `release` when the user settles on a new value."""
    return gr.HTML(
        1.0, html_template=_TEMPLATE, js_on_load=asset("epsilon.js"), apply_default_css=False, elem_id="epsilon"
    )


# Uploaded files: each is read once and then deleted, together with the folder that Gradio made for it.


def drop(elem_id: str, height: int = 140) -> gr.File:
    return gr.File(show_label=False, height=height, elem_id=elem_id, elem_classes="drop")


@contextmanager
def taken(upload: str) -> Iterator[Path]:
    """The uploaded file, which is deleted when the block ends.

    Raises:
        DataError: it is not an upload. A request may name any path, so only a plain file in a folder directly inside
            the upload folder is read and deleted.
    """
    path = Path(upload)
    if not is_upload(path):
        raise DataError("The upload did not arrive: choose the file again.")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty, or gone
            path.parent.rmdir()


def text_of(upload: str, largest: int, what: str) -> str:
    """The text of an uploaded file, without a byte order mark; the file is removed.

    Args:
        largest: in bytes.
        what: what the file should hold, with an article: "a demo set".

    Raises:
        DataError: the file is not an upload.
        UsageError: it is too large, or not text.
    """
    with taken(upload) as path:
        if path.stat().st_size > largest:
            raise UsageError(f"This is not {what}: the file is too large.")
        try:
            return path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(f"This is not {what}: the file is not text.") from error


# Files that the browser saves. They are made in memory, so nothing is left on the server.


@dataclass(frozen=True)
class Download:
    """A file that the browser saves."""

    name: str
    media_type: str
    content: bytes


_TICKETS = itertools.count(1)
"""A new number starts a new download."""


def sink() -> gr.HTML:
    """An invisible component: the browser saves the file that `download` puts into it."""
    return drawn("download.js", None, elem_classes="sink")


def download(file: Download) -> dict[str, Any]:
    """The value of a `sink` that makes the browser save this file."""
    content = base64.b64encode(file.content).decode("ascii")
    return {"ticket": next(_TICKETS), "name": file.name, "type": file.media_type, "bytes": content}


# Controls for the settings of a run. Their titles, help, bounds and defaults come from the spec.

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
