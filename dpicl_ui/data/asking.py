"""Step 1's form for the words that ask a model for a text, and the sentence that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import gradio as gr

from dpicl_ui.data.state import Columns
from dpicl_ui.frame.controls import control, pairs_in_lines
from dpicl_ui.frame.tree import Tree, el, panel
from mechanisms.asking import Asked, in_words
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.headers import TEXTS, suggested_names
from mechanisms.runs.spec import RunSpec

_PUBLIC = (
    "All of this is public: it asks the model, and stands in the export. Say what anybody may know of your texts, and "
    "nothing out of them."
)
_WORDS = "One line a label: label = words. A label without a line is called by its name."
_RELATIONS = ("about", "that is", "that expresses", "in", "from", "for")
_OF_LABELS = {"Sentiment": "that is", "Emotion": "that expresses", "Language": "in"}
"""What joins a text with labels of a kind, where it is not "about"."""


class AskingForm:
    """The components; `read` makes their values the words."""

    def __init__(self) -> None:
        with gr.Row():
            self.kind = control("kind", ["text", *map(str.lower, TEXTS)])
            self.writer = control("writer", placeholder="a patient")
            self.reader = control("reader", placeholder="a clinic")
        with gr.Row():
            self.relation = control("relation", _RELATIONS)
            self.words = control("label_words", info=_WORDS, lines=3, max_lines=12, scale=2)
        with gr.Accordion("More: a sentence of your own", open=False):
            self.sentence = control("sentence", show_label=False)
        self.said = panel(elem_id="sentence-said")
        panel(el("p.muted", _PUBLIC))

    @property
    def inputs(self) -> list[Any]:
        """The fields."""
        return [self.kind, self.writer, self.reader, self.relation, self.words, self.sentence]

    @property
    def outputs(self) -> list[Any]:
        """The components that change with the file."""
        return [*self.inputs, self.said]

    @property
    def settled(self) -> list[Any]:
        """Events after which a field has a new value."""
        typed = (self.writer, self.reader, self.words, self.sentence)
        return [
            *(each.input for each in (self.kind, self.relation)),
            *(each.blur for each in self.inputs),
            *(each.submit for each in typed),
        ]

    def read(self, values: Mapping[Any, Any]) -> Asked:
        """The words as they were typed.

        Raises:
            UsageError: one is missing or too long, or a line has no equals sign.
        """
        kind, writer, reader, relation, sentence = (
            " ".join(str(values[each] or "").split())
            for each in (self.kind, self.writer, self.reader, self.relation, self.sentence)
        )
        words = pairs_in_lines(values[self.words] or "")
        own = {label: said for label, said in words.items() if said != in_words(label)}
        return Asked(kind, writer, reader, relation, own, sentence)

    def shown(self, asked: Asked) -> dict[Any, Any]:
        """The fields of another file; the words of its labels come with `labelled`."""
        return {
            self.kind: asked.kind,
            self.writer: asked.writer,
            self.reader: asked.reader,
            self.relation: asked.relation,
            self.sentence: asked.sentence,
        }

    def labelled(self, asked: Asked, labels: Iterable[str]) -> dict[Any, Any]:
        """A line for each of these labels."""
        lines = (f"{label} = {asked.named(label)}" for label in labels if len(label.splitlines()) == 1)
        return {self.words: "\n".join(line for line in lines if line.count("=") == 1)}

    def told(self, asked: Asked, labels: Iterable[str], sent: bool) -> dict[Any, Any]:
        """The sentence for the first label, as the model is asked.

        Args:
            sent: the model plays the reader where there is one.
        """
        first = next(iter(labels), None)
        shown: list[Tree] = []
        if first is not None:
            shown = [el("p", "The model is asked: ", el("strong", f"“{asked.of(first, sent and asked.addressed)}”"))]
        return {self.said: shown}


def first_words(mapping: ColumnMapping, before: Asked | None = None) -> tuple[Asked, str]:
    """The proposed words for columns, and what prompts call a label; never a column's own name.

    Args:
        before: what was said already, but for what one text is and what joins it with its label.
    """
    texts, labels = suggested_names(mapping.text, mapping.label)
    before = before or Asked()
    relation = _OF_LABELS.get(labels[0], RunSpec.model_fields["relation"].default)
    return Asked(texts[0].lower(), before.writer, before.reader, relation, {}, before.sentence), labels[0]


def labels_in(columns: Columns) -> list[str]:
    """The labels of a file in their order on the page."""
    return sorted(columns.inspection.counts)
