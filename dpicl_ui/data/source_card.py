"""Step 1's first card: where the private file comes from."""

from __future__ import annotations

import gradio as gr

from dpicl_ui.data.hub_card import HubCard
from dpicl_ui.frame.tree import el, panel
from dpicl_ui.frame.uploads import drop
from mechanisms.data.sources import ANSWERED_EXAMPLES, EXAMPLES, FORMATS, RECORD_EXAMPLES

_SOURCE = [
    el("h2", "Bring your labelled texts, or records"),
    el(
        "p.lead",
        f"A file ({FORMATS}) with one row for each text and, if it has one, a column with its label or answer, or "
        "with a record in each row. It is read into this server's memory, removed from its disk at once, and forgotten "
        "when you close the page.",
    ),
]


class SourceCard:
    """Components.

    Args:
        own: see `HubCard`.
    """

    def __init__(self, own: bool) -> None:
        with gr.Column(elem_classes="card"):
            panel(*_SOURCE)
            with gr.Row(elem_classes="source"):
                with gr.Column(min_width=240):
                    self.upload = drop("upload-data", 150)
                    self.hub = HubCard(own)
                with gr.Column(elem_classes="examples", min_width=240):
                    panel(el("p.small-head", "No data at hand? Take an example"))
                    self.examples = [
                        (gr.Button(each.title, size="sm"), each) for each in (*EXAMPLES, *ANSWERED_EXAMPLES)
                    ]
                    self.record_examples = [(gr.Button(each.title, size="sm"), each) for each in RECORD_EXAMPLES]
                    panel(el("p.small-head", "Demonstrations made before?"))
                    self.load_instead = gr.Button("Load an exported set and test it", size="sm", elem_id="load-instead")
                    self.load_run = gr.UploadButton("Look at a saved run again", size="sm", elem_id="look-again")
            self.notice = panel(elem_id="data-notice")
