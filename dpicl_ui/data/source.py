"""The sources of a private file, and the proposals for a new one."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from dpicl_ui.frame.inputs import drop
from dpicl_ui.frame.tree import el, panel
from mechanisms.data.sources import EXAMPLES, PACKED, formats_in_words

# What is proposed for a file that has just arrived: what its data set is called.

LONGEST_NAME = 100
"""Characters of a data set's name."""
_SAY_NOTHING = {
    "all", "book", "copy", "csv", "data", "dataset", "default", "dev", "download", "eval", "excel", "export", "file",
    "final", "full", "input", "json", "jsonl", "labeled", "labelled", "list", "master", "new", "output", "parquet",
    "part", "private", "public", "records", "results", "rows", "sample", "sheet", "split", "table", "temp", "test",
    "testing", "text", "texts", "tmp", "train", "training", "untitled", "val", "valid", "validation", "version",
}  # fmt: skip
"""Words of file names that many data sets share."""


def proposed_name(file: str) -> str:
    """A file's name without its ending; empty if it is a common word.

    The ledger stores costs by name: under "train" one data set would pay for another.
    """
    stem = Path(file.removesuffix(PACKED)).stem
    words = "".join(each if each.isalpha() else " " for each in stem.lower()).split()
    return stem[:LONGEST_NAME] if any(len(word) > 1 and word not in _SAY_NOTHING for word in words) else ""


# Step 1's first card: where the private file comes from.

_SOURCE = [
    el("h2", "Bring your labelled texts"),
    el(
        "p.lead",
        f"A file ({formats_in_words()}) with one row for each text, and a column with its label. It is read into this "
        "server's memory, removed from its disk at once, and forgotten when you close the page.",
    ),
]


class SourceCard:
    """Components."""

    def __init__(self) -> None:
        with gr.Column(elem_classes="card"):
            panel(*_SOURCE)
            with gr.Row(elem_classes="source"):
                with gr.Column(min_width=240):
                    self.upload = drop("upload-data", 150)
                with gr.Column(elem_classes="examples", min_width=240):
                    panel(el("p.small-head", "No data at hand? Take an example"))
                    self.examples = [(gr.Button(each.title, size="sm"), each) for each in EXAMPLES]
                    panel(el("p.small-head", "Demonstrations made before?"))
                    self.load_instead = gr.Button("Load an exported set and test it", size="sm", elem_id="load-instead")
                    self.load_run = gr.UploadButton("Look at a saved run again", size="sm", elem_id="look-again")
            self.notice = panel(elem_id="data-notice")
