"""Choices among names that come out of a private file.

Gradio answers a value that is no longer among the choices with an exception that quotes it beside all of them, and logs
it: labels and column names, before anybody declared them public. Values that a page sends late are left out instead.

(Gradio writes a stub beside every module that defines a component: `*.pyi` is in .gitignore.)
"""

from __future__ import annotations

from typing import Any

import gradio as gr


class PrivateDropdown(gr.Dropdown):
    """A dropdown whose unknown value is no value."""

    is_template = True

    def preprocess(self, payload: Any) -> Any:
        """See `gr.Dropdown.preprocess`."""
        return super().preprocess(payload if payload in [value for _, value in self.choices] else None)


class PrivateCheckboxGroup(gr.CheckboxGroup):
    """Checkboxes whose unknown values are left out."""

    is_template = True

    def preprocess(self, payload: Any) -> Any:
        """See `gr.CheckboxGroup.preprocess`."""
        known = [value for _, value in self.choices]
        return super().preprocess([value for value in payload or [] if value in known])
