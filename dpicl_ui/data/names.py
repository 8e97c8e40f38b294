"""Step 1's question what a text and its label, or its answer, are called: what stands before them in every prompt."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.data.rows import Rows
from dpicl_ui.frame.tree import Tree, el, notice, panel
from mechanisms.data.columns import NEUTRAL, ColumnMapping, suggested_answers, suggested_names

_PUBLIC = (
    "Choose, or type a word of your own: it tells the model what to write. It is public: it stands in the prompts and "
    "in the export."
)


_ASKED = (
    "The columns' names do not say what {what}: choose below. Otherwise prompts say only {names}, and the model knows "
    "less about what to write."
)
_TITLES = {Rows.TEXTS: "What is the label?", Rows.ANSWERED: "What is the answer?"}


class FieldNames:
    """The two choices; a column's own name is never among them."""

    def __init__(self) -> None:
        texts, labels = suggested_names("", "")
        self.asked = panel(elem_id="what-asked")
        with gr.Row():
            self.text = gr.Dropdown(
                list(texts), value=texts[0], label="What is one text?", allow_custom_value=True, elem_id="what-text"
            )
            self.label = gr.Dropdown(
                list(labels),
                value=labels[0],
                label=_TITLES[Rows.TEXTS],
                allow_custom_value=True,
                elem_id="what-label",
            )
        panel(el("p.muted", _PUBLIC))

    @property
    def inputs(self) -> list[gr.Dropdown]:
        """The components, text first."""
        return [self.text, self.label]

    @property
    def outputs(self) -> list[Any]:
        """What changes with the columns."""
        return [*self.inputs, self.asked]

    def proposed(self, names: tuple[str, str], mapping: ColumnMapping, rows: Rows) -> dict[Any, Any]:
        """The choices with `names` chosen, in the order that suits the columns."""
        return {
            component: gr.Dropdown(
                choices=list(dict.fromkeys([name, *every])), value=name, label=title, visible=bool(title)
            )
            for component, name, every, title in zip(
                self.inputs, names, _suggested(mapping, rows), ("What is one text?", _TITLES.get(rows)), strict=True
            )
        } | {self.asked: asked(names, rows)}


def asked(names: tuple[str, str], rows: Rows) -> list[Tree]:
    """The question, where prompts would call something what everything is called."""
    neutral = zip(names, NEUTRAL, ("one text is", "its label is" if rows == Rows.TEXTS else ""), strict=True)
    open_ones = {f"'{usual}'": what for name, usual, what in neutral if name == usual and what}
    said = _ASKED.format(what=" and what ".join(open_ones.values()), names=" and ".join(open_ones))
    return notice(said, "info") if open_ones else []


def first_names(mapping: ColumnMapping, rows: Rows = Rows.TEXTS) -> tuple[str, str]:
    """What is proposed for columns that nobody has named yet.

    Args:
        mapping: with the column of labels or, of such rows, of answers.
    """
    texts, others = _suggested(mapping, rows)
    return texts[0], others[0]


def _suggested(mapping: ColumnMapping, rows: Rows) -> tuple[tuple[str, ...], tuple[str, ...]]:
    texts, labels = suggested_names(mapping.text, mapping.label)
    return texts, suggested_answers(mapping.label) if rows == Rows.ANSWERED else labels
