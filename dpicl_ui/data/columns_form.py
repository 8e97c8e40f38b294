"""Step 1's form for the columns: their meaning, and the labels that take part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gradio as gr

from dpicl_ui.data.state import Columns, DataState
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.inputs import PrivateCheckboxGroup, PrivateDropdown
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import MANY_LABELS, el, panel
from mechanisms.data.columns import MOST_LABELS, ColumnMapping
from mechanisms.data.label_names import LabelNames, alike, names_in_lines, readable

# Step 1's question which column is what: the text, its label, and whose row it is.

_NO_USER = "(every row stands for itself)"
_USER = "If one person can have several rows: protects all rows of a person together."
_PROPOSED_USER = "Proposed: people have several rows here. All rows of a person are protected together, not each alone."


class ColumnsForm:
    """The dropdowns of the columns, in the order in which handlers take them."""

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
        """All dropdowns."""
        return [self.text, self.label, self.unit]

    def opened(self, columns: list[str], mapping: ColumnMapping) -> dict[Any, Any]:
        """The dropdowns for another file."""
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
        """The choices as a mapping."""
        return ColumnMapping(text or "", label or "", None if unit == _NO_USER else unit, drop_duplicates)


# Step 1's question which labels take part, and what they are called in prompts.

_SEARCH = """(query) => {
  const wanted = query.trim().toLowerCase();
  for (const each of document.querySelectorAll("#labels label"))
    each.style.display = each.textContent.toLowerCase().includes(wanted) ? "" : "none";
}"""
"""Runs in the page alone: the search term may be private."""
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
    """Components; `labels` are the labels that take part, by their names."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with gr.Accordion("Choose which labels take part", open=False):
            with gr.Row(visible=False, elem_classes="label-search") as self._tools:
                self._search = gr.Textbox(
                    label="Search labels",
                    placeholder="Search labels",
                    show_label=False,
                    elem_id="search-labels",
                    scale=3,
                )
                self.every = gr.Button("All", size="sm", elem_id="all-labels")
                self.none = gr.Button("None", size="sm", elem_id="no-labels")
            self.labels = PrivateCheckboxGroup(label="Labels", show_label=False, elem_id="labels")
        self.alike = panel(elem_id="labels-alike")
        self.merge = gr.Button("Read them as one", size="sm", visible=False, elem_id="merge-labels")
        with gr.Accordion("Give labels other names in prompts", open=False) as self._naming:
            self.names = gr.Textbox(label="Names", info=_NAMES, lines=4, max_lines=12, elem_id="label-names")
            with gr.Row(elem_classes="actions"):
                propose = gr.Button("Propose names", size="sm", elem_id="propose-names")
                self.use = gr.Button("Use these names", size="sm", elem_id="use-names")
            self.problem = panel(elem_id="names-problem")
        self._search.change(None, self._search, None, js=_SEARCH, **PRIVATE)
        propose.click(guarded(self.problem)(self._propose), None, [self.names, self.problem], **PRIVATE)

    @property
    def outputs(self) -> list[Any]:
        """The components that change with the columns."""
        return [
            self.labels, self._tools, self._search, self.problem, self.names, self._naming, self.alike, self.merge
        ]  # fmt: skip

    def offered(self, labels: Iterable[str]) -> tuple[list[str], dict[Any, Any]]:
        """The labels to choose from, up to the limit of a task, all chosen."""
        choices = sorted(labels)[:MOST_LABELS]
        return choices, {
            self.labels: gr.CheckboxGroup(choices=choices, value=choices),
            self._tools: gr.Row(visible=len(choices) > MANY_LABELS),
            self._search: "",
            self.problem: [],
        }

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
        file = columns.file
        if file.labelled_by == before:
            return {}
        names = file.label_names
        return {
            self.names: gr.Textbox(value=in_lines(names), info=(_PROPOSED_NAMES if names else "") + _NAMES),
            self._naming: gr.Accordion(open=bool(names)),
        }

    def all_of(self, session: Session) -> list[str]:
        """Every label that is offered."""
        columns = session.of(DataState).columns
        return sorted(columns.inspection.counts)[:MOST_LABELS] if columns else []

    def call(self, session: Session, lines: str) -> None:
        """Rename labels.

        Raises:
            UsageError: see `names_in_lines` and `DataState.name_labels`.
        """
        session.of(DataState).name_labels(names_in_lines(lines))

    def merged(self, session: Session) -> None:
        """Read labels that look alike as one.

        Raises:
            UsageError: there is no file.
        """
        session.of(DataState).merge_labels()

    def _propose(self, request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        file = session.of(DataState).file
        return {self.names: proposed_lines(self.all_of(session), file.label_names if file else ()), self.problem: []}


def proposed_lines(labels: Sequence[str], names: LabelNames) -> str:
    """Lines to edit: each label of the file with its name, or with a readable form of the label.

    Args:
        labels: by their names, where they have one.
    """
    of = {name: label for label, name in names}
    return in_lines((of[each], each) if each in of else (each, readable(each)) for each in labels)


def in_lines(names: Iterable[tuple[str, str]]) -> str:
    """Labels with their names, as lines that `names_in_lines` reads."""
    return "\n".join(f"{label} = {name}" for label, name in names if "=" not in name and len(label.splitlines()) == 1)
