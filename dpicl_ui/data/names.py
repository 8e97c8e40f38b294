"""Step 1's question what a text and its label are called: the words that stand before them in every prompt."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.frame.tree import el, panel
from mechanisms.studio.data.csv_file import Mapping
from mechanisms.studio.data.field_names import suggested_names

_PUBLIC = (
    "Choose, or type a word of your own: it tells the model what to write. It is public: it stands in the prompts and "
    "in the export."
)


class FieldNames:
    """The two choices; a column's own name is never among them."""

    def __init__(self) -> None:
        texts, labels = suggested_names("", "")
        with gr.Row():
            self.text = gr.Dropdown(
                list(texts), value=texts[0], label="What is one text?", allow_custom_value=True, elem_id="what-text"
            )
            self.label = gr.Dropdown(
                list(labels), value=labels[0], label="What is the label?", allow_custom_value=True, elem_id="what-label"
            )
        panel(el("p.muted", _PUBLIC))

    @property
    def inputs(self) -> list[gr.Dropdown]:
        """The components, text first."""
        return [self.text, self.label]

    def proposed(self, names: tuple[str, str], mapping: Mapping) -> dict[Any, Any]:
        """The choices with `names` chosen, in the order that suits the columns."""
        suggestions = suggested_names(mapping.text, mapping.label)
        return {
            component: gr.Dropdown(choices=list(dict.fromkeys([name, *every])), value=name)
            for component, name, every in zip(self.inputs, names, suggestions, strict=True)
        }


def first_names(mapping: Mapping) -> tuple[str, str]:
    """What is proposed for columns that nobody has named yet."""
    texts, labels = suggested_names(mapping.text, mapping.label)
    return texts[0], labels[0]
