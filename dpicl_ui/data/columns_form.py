"""Step 1's form for the columns: their meaning, their names in prompts, and the labels that take part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gradio as gr

from dpicl_ui.data.state import Columns, DataState, Rows
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.inputs import PrivateCheckboxGroup, PrivateDropdown
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import MANY_LABELS, Tree, el, notice, panel
from mechanisms.data.columns import MOST_LABELS, ColumnMapping
from mechanisms.data.field_names import LONGEST_FIELD_NAME, NEUTRAL, suggested_answers, suggested_names
from mechanisms.data.label_names import LabelNames, alike, in_capitals, names_in_lines, readable
from mechanisms.data.sources import KIND

# Step 1's question which column is what: the text, its label or its answer, and whose row it is.

_NO_USER = "(every row stands for itself)"
_USER = "If one person can have several rows: protects all rows of a person together."
_PROPOSED_USER = "Proposed: people have several rows here. All rows of a person are protected together, not each alone."
_SAID = {
    Rows.TEXTS: ("Label", ""),
    Rows.ANSWERED: ("Answer", "Private text, like the text itself: never a public label."),
}
"""The title and the remark of the text's column."""


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

    def shown_as(self, rows: Rows) -> dict[Any, Any]:
        """The dropdowns for one kind of row."""
        label, info = _SAID.get(rows, _SAID[Rows.TEXTS])
        return {
            self.text: gr.Dropdown(visible=rows != Rows.RECORDS),
            self.label: gr.Dropdown(label=label, info=info, visible=rows in _SAID),
        }

    def opened(self, columns: list[str], mapping: ColumnMapping, rows: Rows) -> dict[Any, Any]:
        """The dropdowns for another file."""
        label, info = _SAID.get(rows, _SAID[Rows.TEXTS])
        return {
            self.text: gr.Dropdown(choices=columns, value=mapping.text or None, visible=rows != Rows.RECORDS),
            self.label: gr.Dropdown(
                choices=columns, value=mapping.label or None, label=label, info=info, visible=rows in _SAID
            ),
            self.unit: gr.Dropdown(
                choices=[_NO_USER, *columns],
                value=mapping.unit or _NO_USER,
                info=_PROPOSED_USER if mapping.unit else _USER,
            ),
        }

    def mapping(
        self, rows: Rows, text: str | None, label: str | None, unit: str, drop_duplicates: bool
    ) -> ColumnMapping:
        """The choices as a mapping; for answers, the answer's column is in the label's place."""
        label = KIND if rows == Rows.ALONE else label
        return ColumnMapping(text or "", label or "", None if unit == _NO_USER else unit, drop_duplicates)


# Step 1's question what a text and its label, or its answer, are called: what stands before them in every prompt.

MOST_WORDS = 2000
_LENGTH = "Public, like the words above: rows are read, and drafts written, to about this length."
_PUBLIC = (
    "Choose, or type words of your own, such as 'message to a clinic': they tell the model what to write. They are "
    "public: they stand in the prompts and in the export."
)


_ASKED = (
    "The columns' names do not say what {what}: choose below. Otherwise prompts say only {names}, and the model knows "
    "less about what to write."
)
_TITLES = {Rows.TEXTS: "What is the label?", Rows.ANSWERED: "What is the answer?"}


class NameField:
    """A text field for a public name, and usual names that fill it at a click."""

    def __init__(self, title: str, names: Sequence[str], elem_id: str) -> None:
        with gr.Column():
            self.said = gr.Textbox(names[0], label=title, max_length=LONGEST_FIELD_NAME, elem_id=elem_id)
            self.chips = gr.Radio(
                list(names),
                value=names[0],
                label=f"Usual answers to: {title}",
                show_label=False,
                container=False,
                elem_classes="proposals",
                elem_id=f"{elem_id}-chips",
            )

    @property
    def outputs(self) -> list[Any]:
        """Both components."""
        return [self.said, self.chips]

    def proposed(self, name: str, names: Iterable[str], title: str | None) -> dict[Any, Any]:
        """The field with a name, and the proposals in the order that suits the columns; hidden without a title."""
        every, shown = list(dict.fromkeys(names)), bool(title)
        return {
            self.said: gr.Textbox(value=name, label=title, visible=shown),
            self.chips: gr.Radio(choices=every, value=name if name in every else None, visible=shown),
        }

    def chosen(self, name: str) -> dict[Any, Any]:
        """The proposals after a name was typed or chosen."""
        return {self.chips: gr.Radio(value=name)}


class FieldNames:
    """The names of a text and of its label; a column's own name is never proposed."""

    def __init__(self) -> None:
        texts, labels = suggested_names("", "")
        self.asked = panel(elem_id="what-asked")
        with gr.Row():
            self.text = NameField("What is one text?", texts, "what-text")
            self.label = NameField(_TITLES[Rows.TEXTS], labels, "what-label")
        # A text field, since Gradio shows an empty number as 0.
        self.words = gr.Textbox(
            label="How long is one text usually, in words? (optional)",
            info=_LENGTH,
            placeholder="for instance 40",
            max_length=6,
            elem_id="text-words",
        )
        panel(el("p.muted", _PUBLIC))

    @property
    def inputs(self) -> list[gr.Textbox]:
        """The fields, text first."""
        return [self.text.said, self.label.said]

    @property
    def outputs(self) -> list[Any]:
        """The components that change with the columns."""
        return [*self.text.outputs, *self.label.outputs, self.asked, self.words]

    def proposed(self, names: tuple[str, str], mapping: ColumnMapping, rows: Rows) -> dict[Any, Any]:
        """The fields with `names` chosen, and the other proposals in the order that suits the columns."""
        texts, others = _suggested(mapping, rows)
        return (
            self.text.proposed(names[0], texts, "What is one text?")
            | self.label.proposed(names[1], others, _TITLES.get(rows))
            | {self.asked: asked(names, rows), self.words: gr.Textbox(visible=rows == Rows.TEXTS)}
        )


def asked(names: tuple[str, str], rows: Rows) -> list[Tree]:
    """The question for names, where the proposed ones are the general "Text" and "Label"."""
    neutral = zip(names, NEUTRAL, ("one text is", "its label is" if rows == Rows.TEXTS else ""), strict=True)
    open_ones = {f"'{usual}'": what for name, usual, what in neutral if name == usual and what}
    said = _ASKED.format(what=" and what ".join(open_ones.values()), names=" and ".join(open_ones))
    return notice(said, "info") if open_ones else []


def first_names(mapping: ColumnMapping, rows: Rows = Rows.TEXTS) -> tuple[str, str]:
    """The proposed names for columns that nobody has named yet.

    Args:
        mapping: with the column of labels or, for texts with answers, of answers.
    """
    texts, others = _suggested(mapping, rows)
    return texts[0], others[0]


def _suggested(mapping: ColumnMapping, rows: Rows) -> tuple[tuple[str, ...], tuple[str, ...]]:
    texts, labels = suggested_names(mapping.text, mapping.label)
    return texts, suggested_answers(mapping.label) if rows == Rows.ANSWERED else labels


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

    @property
    def boxes(self) -> list[gr.Accordion]:
        """The components that only texts have, beside `outputs`."""
        return [self._box]

    def shown_as(self, rows: Rows) -> dict[Any, Any]:
        """The components for one kind of row: only texts have labels."""
        return {box: gr.Accordion(visible=rows == Rows.TEXTS) for box in (self._box, self._naming)}

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
        groups = alike(columns.inspection.rows.labels) if columns.rows is Rows.TEXTS else []
        lines = [el("li", " = ".join(f"'{label}'" for label in group)) for group in groups]
        shown = [el("div.notice.warn", el("p", _ALIKE), el("ul.missing", *lines), role="status")] if groups else []
        return {self.alike: shown, self.merge: gr.Button(visible=bool(groups))}

    def named(self, columns: Columns, before: str | None) -> dict[Any, Any]:
        """The names of a column's labels; the box is open if they are proposed. Typed names are kept.

        Args:
            before: the column whose labels the box named.
        """
        file = columns.file
        if columns.rows is not Rows.TEXTS or file.labelled_by == before:
            return {}
        names = file.label_names
        return {
            self.names: gr.Textbox(value=in_lines(names), info=(_PROPOSED_NAMES if names else "") + _NAMES),
            self._naming: gr.Accordion(open=bool(names), visible=True),
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
    loud = in_capitals([of.get(each, each) for each in labels])
    return in_lines((of[each], each) if each in of else (each, readable(each, loud)) for each in labels)


def in_lines(names: Iterable[tuple[str, str]]) -> str:
    """Labels with their names, as lines that `names_in_lines` reads."""
    return "\n".join(f"{label} = {name}" for label, name in names if "=" not in name and len(label.splitlines()) == 1)
