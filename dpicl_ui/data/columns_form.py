"""Step 1's forms for the columns: their meaning, and the labels that take part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gradio as gr

from dpicl_ui.data.state import Columns
from dpicl_ui.frame.inputs import PrivateCheckboxGroup, PrivateDropdown
from dpicl_ui.frame.tree import el, panel
from mechanisms.data.columns import MOST_LABELS, ColumnMapping
from mechanisms.data.label_names import alike

_NO_USER = "(every row stands for itself)"
_USER = "If one person can have several rows: protects all rows of a person together."
_PROPOSED_USER = "Proposed: people have several rows here. All rows of a person are protected together, not each alone."


class ColumnsForm:
    """Which column is what: the text, its label, and whose row it is. `inputs` are the dropdowns in this order."""

    def __init__(self) -> None:
        with gr.Row():
            self.text = PrivateDropdown(label="Text", elem_id="text-column", min_width=140)
            self.label = PrivateDropdown(label="Label", elem_id="label-column", min_width=140)
            self.unit = PrivateDropdown(label="User (optional)", elem_id="unit-column", info=_USER, min_width=200)
        self.inputs: list[Any] = [self.text, self.label, self.unit]

    def opened(self, columns: list[str], mapping: ColumnMapping) -> dict[Any, Any]:
        return {
            self.text: gr.Dropdown(choices=columns, value=mapping.text or None),
            self.label: gr.Dropdown(choices=columns, value=mapping.label or None),
            self.unit: gr.Dropdown(
                choices=[_NO_USER, *columns],
                value=mapping.unit or _NO_USER,
                info=_PROPOSED_USER if mapping.unit else _USER,
            ),
        }

    def mapping(self, text: str | None, label: str | None, unit: str, drop_duplicates: bool) -> ColumnMapping:
        return ColumnMapping(text or "", label or "", None if unit == _NO_USER else unit, drop_duplicates)


_ALIKE = "These labels differ only in case, spaces, forms of characters or invisible characters:"
_NAMES = (
    "One line a label: label = Name. A name takes its label's place from here on: in the prompts, the export and the "
    "figures; test files are read alike."
)
_PROPOSED_NAMES = (
    "Proposed, and in use already: this file's labels are numbers with names, or are written with underscores or "
    "capitals. Change what you like, or empty the box to keep the file's own, and press 'Use these names'. "
)


class LabelChoice:
    """Which labels take part, and what they are called. `outputs` change with the columns."""

    def __init__(self) -> None:
        with gr.Accordion("Choose which labels take part", open=False):
            self.labels = PrivateCheckboxGroup(label="Labels", show_select_all=True, elem_id="labels")
        self.alike = panel(elem_id="labels-alike")
        self.merge = gr.Button("Read them as one", size="sm", visible=False, elem_id="merge-labels")
        with gr.Accordion("Give labels other names in prompts", open=False) as self._naming:
            self.names = gr.Textbox(label="Names", info=_NAMES, lines=4, max_lines=12, elem_id="label-names")
            with gr.Row(elem_classes="actions"):
                self.use = gr.Button("Use these names", size="sm", elem_id="use-names")
            self.problem = panel(elem_id="names-problem")
        self.outputs: list[Any] = [self.labels, self.problem, self.names, self._naming, self.alike, self.merge]

    def offered(self, labels: Iterable[str]) -> tuple[list[str], dict[Any, Any]]:
        """The labels to choose from, up to the limit of a task, all chosen."""
        choices = sorted(labels)[:MOST_LABELS]
        return choices, {self.labels: gr.CheckboxGroup(choices=choices, value=choices), self.problem: []}

    def look_alike(self, columns: Columns) -> dict[Any, Any]:
        """The labels that are probably one, with the offer to read them so."""
        groups = alike(columns.inspection.rows.labels)
        lines = [el("li", " = ".join(f"'{label}'" for label in group)) for group in groups]
        shown = [el("div.notice.warn", el("p", _ALIKE), el("ul.missing", *lines), role="status")] if groups else []
        return {self.alike: shown, self.merge: gr.Button(visible=bool(groups))}

    def named(self, columns: Columns, before: str | None) -> dict[Any, Any]:
        """The names of a column's labels; the box is open if they are proposed. Typed names are kept.

        Args:
            before: the column whose labels the box named.
        """
        names = columns.file.label_names
        if columns.file.labelled_by == before:
            return {}
        lines = (f"{label} = {name}" for label, name in names if "=" not in name and len(label.splitlines()) == 1)
        return {
            self.names: gr.Textbox(value="\n".join(lines), info=(_PROPOSED_NAMES if names else "") + _NAMES),
            self._naming: gr.Accordion(open=bool(names)),
        }
