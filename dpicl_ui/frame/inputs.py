"""Numbers as people type them, choices among private names, and the slider for epsilon.

A page may send a value that is no longer among the choices. Gradio raises and logs an exception that quotes the value
and all choices: labels and column names that nobody has declared public yet. The components here drop such a value.
Gradio writes a stub beside every module that defines a component: `*.pyi` is in .gitignore.
"""

from __future__ import annotations

import math
from typing import Any

import gradio as gr

from dpicl_ui.assets import asset
from mechanisms.errors import UsageError


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
