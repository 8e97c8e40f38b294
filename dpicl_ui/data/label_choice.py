"""Step 1's question which labels take part, and what they are called in prompts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gradio as gr

from dpicl_ui.data.rows import Rows
from dpicl_ui.data.state import Columns, DataState
from dpicl_ui.frame.cards import MANY_LABELS
from dpicl_ui.frame.choices import PrivateCheckboxGroup
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.sessions import Session, Sessions
from dpicl_ui.frame.tree import panel
from mechanisms.data.columns import MOST_LABELS
from mechanisms.data.label_names import LabelNames, in_capitals, names_in_lines, readable

_SEARCH = """(query) => {
  const wanted = query.trim().toLowerCase();
  for (const each of document.querySelectorAll("#labels label"))
    each.style.display = each.textContent.toLowerCase().includes(wanted) ? "" : "none";
}"""
"""In the page alone: what is searched for among private names is nobody else's."""
_NAMES = (
    "One line a label: label = Name. A name takes its label's place from here on: in the prompts, the export and the "
    "figures; test files are read alike."
)
_PROPOSED = (
    "Proposed, and in use already: this file's labels are written with underscores or capitals. Change what you like, "
    "or empty the box to keep the file's own, and press 'Use these names'. "
)


class LabelChoice:
    """Components: `labels` are the ones that take part, by their names."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        with gr.Accordion("Choose which labels take part", open=False) as self._box:
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
        """What changes with the columns."""
        return [self.labels, self._tools, self._search, self.problem, self.names, self._naming]

    @property
    def boxes(self) -> list[gr.Accordion]:
        """What only texts have, beside `outputs`."""
        return [self._box]

    def shown_as(self, rows: Rows) -> dict[Any, Any]:
        """Only texts have labels."""
        return {box: gr.Accordion(visible=rows == Rows.TEXTS) for box in (self._box, self._naming)}

    def offered(self, labels: Iterable[str]) -> tuple[list[str], dict[Any, Any]]:
        """As many labels as a task can have, all chosen."""
        choices = sorted(labels)[:MOST_LABELS]
        return choices, {
            self.labels: gr.CheckboxGroup(choices=choices, value=choices),
            self._tools: gr.Row(visible=len(choices) > MANY_LABELS),
            self._search: "",
            self.problem: [],
        }

    def named(self, columns: Columns, before: str | None) -> dict[Any, Any]:
        """The names of a column's labels, open to the eye where they are proposed; what was typed stays.

        Args:
            before: the column whose labels the box named.
        """
        file = columns.file
        if columns.rows is not Rows.TEXTS or file.labelled_by == before:
            return {}
        names = file.label_names
        return {
            self.names: gr.Textbox(value=in_lines(names), info=(_PROPOSED if names else "") + _NAMES),
            self._naming: gr.Accordion(open=bool(names), visible=True),
        }

    def all_of(self, session: Session) -> list[str]:
        """Every label that is offered."""
        columns = session.of(DataState).columns
        return sorted(columns.inspection.counts)[:MOST_LABELS] if columns else []

    def call(self, session: Session, lines: str) -> None:
        """Take names for labels.

        Raises:
            UsageError: see `names_in_lines` and `DataState.name_labels`.
        """
        session.of(DataState).name_labels(names_in_lines(lines))

    def _propose(self, request: gr.Request) -> dict[Any, Any]:
        session = self._sessions.of(request)
        file = session.of(DataState).file
        return {self.names: proposed_lines(self.all_of(session), file.label_names if file else ()), self.problem: []}


def proposed_lines(labels: Sequence[str], names: LabelNames) -> str:
    """Lines to edit: each label of the file with its name, or with what it says in words.

    Args:
        labels: by their names, where they have one.
    """
    of = {name: label for label, name in names}
    loud = in_capitals([of.get(each, each) for each in labels])
    return in_lines((of[each], each) if each in of else (each, readable(each, loud)) for each in labels)


def in_lines(names: Iterable[tuple[str, str]]) -> str:
    """Labels with their names, as lines that can be read again."""
    return "\n".join(f"{label} = {name}" for label, name in names if "=" not in name and len(label.splitlines()) == 1)
