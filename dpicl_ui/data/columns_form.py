"""Step 1's question which column is what: the text, its label or its answer, and whose row it is."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.data.rows import Rows
from dpicl_ui.frame.choices import PrivateDropdown
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.sources import KIND

_NO_USER = "(every row stands for itself)"
_USER = "If one person can have several rows: protects all rows of a person together."
_PROPOSED = "Proposed: people have several rows here. All rows of a person are protected together, not each alone."
_SAID = {
    Rows.TEXTS: ("Label", ""),
    Rows.ANSWERED: ("Answer", "Private text, like the text itself: never a public label."),
}
"""What is said of a text, where anything is: the title of its column, and a remark."""


class ColumnsForm:
    """The choices, in the order in which handlers take them."""

    def __init__(self) -> None:
        with gr.Row():
            self.text = PrivateDropdown(label="Text", elem_id="text-column")
            self.label = PrivateDropdown(label="Label", elem_id="label-column")
            self.unit = PrivateDropdown(
                label="User (optional)",
                elem_id="unit-column",
                info=_USER,
            )

    @property
    def inputs(self) -> list[gr.Dropdown]:
        """All choices."""
        return [self.text, self.label, self.unit]

    def shown_as(self, rows: Rows) -> dict[Any, Any]:
        """What is asked of such rows."""
        label, info = _SAID.get(rows, _SAID[Rows.TEXTS])
        return {
            self.text: gr.Dropdown(visible=rows != Rows.RECORDS),
            self.label: gr.Dropdown(label=label, info=info, visible=rows in _SAID),
        }

    def opened(self, columns: list[str], mapping: ColumnMapping, rows: Rows) -> dict[Any, Any]:
        """The choices of another file."""
        label, info = _SAID.get(rows, _SAID[Rows.TEXTS])
        return {
            self.text: gr.Dropdown(choices=columns, value=mapping.text, visible=rows != Rows.RECORDS),
            self.label: gr.Dropdown(
                choices=columns, value=mapping.label, label=label, info=info, visible=rows in _SAID
            ),
            self.unit: gr.Dropdown(
                choices=[_NO_USER, *columns],
                value=mapping.unit or _NO_USER,
                info=_PROPOSED if mapping.unit else _USER,
            ),
        }

    def mapping(self, rows: Rows, text: str, label: str, unit: str, drop_duplicates: bool) -> ColumnMapping:
        """The choices as a mapping; an answer stands where a label does."""
        label = KIND if rows == Rows.ALONE else label
        return ColumnMapping(text, label, None if unit == _NO_USER else unit, drop_duplicates)
