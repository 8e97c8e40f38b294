"""The sources of a private file, and the proposals for a new one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gradio as gr

from dpicl_ui.data.state import Rows
from dpicl_ui.frame.inputs import drop
from dpicl_ui.frame.tree import el, panel
from mechanisms.data.file_format import formats_in_words
from mechanisms.data.json_lines import Lines
from mechanisms.data.raw_file import PACKED, RawFile
from mechanisms.data.sources import ANSWERED_EXAMPLES, EXAMPLES, RECORD_EXAMPLES, hub_files, repository_of
from mechanisms.data.table import Table

# What is proposed for a file that has just arrived: what its rows are, and what its data set is called.

LONGEST_NAME = 100
"""No name of the hub is longer: a data set is called the same here and on the command line."""
_LABELLED = {"text", "label"}
_SAY_NOTHING = {
    "all", "book", "copy", "csv", "data", "dataset", "default", "dev", "download", "eval", "excel", "export", "file",
    "final", "full", "input", "json", "jsonl", "labeled", "labelled", "list", "master", "new", "output", "parquet",
    "part", "private", "public", "records", "results", "rows", "sample", "sheet", "split", "table", "temp", "test",
    "testing", "text", "texts", "tmp", "train", "training", "untitled", "val", "valid", "validation", "version",
}  # fmt: skip
"""Words of file names that many data sets share."""


def rows_of(table: Table) -> Rows:
    """The kind of a file's rows: records in JSON Lines without a "text" and a "label"; texts alone in one column."""
    if isinstance(table, Lines):
        return Rows.TEXTS if _LABELLED.issubset(table.columns) else Rows.RECORDS
    return Rows.TEXTS if len(table.columns) > 1 else Rows.ALONE


def proposed_name(file: str) -> str:
    """A file's name without its ending; empty if it is a common word.

    The ledger stores costs by name: under "train" one data set would pay for another.
    """
    stem = Path(file.removesuffix(PACKED)).stem
    words = "".join(each if each.isalpha() else " " for each in stem.lower()).split()
    return stem[:LONGEST_NAME] if any(len(word) > 1 and word not in _SAY_NOTHING for word in words) else ""


# Step 1's other place of a file: a data set of the Hugging Face hub, by its name.

_LONGEST = 300
_LEARNS = (
    "The hub learns which data set this server asks for, as with any download. What you do with it stays here, and the "
    "download is removed from the disk as soon as it is read."
)


class HubCard:
    """Components.

    Args:
        own: whoever comes in may read what the token of this account may; others public data sets alone.
    """

    def __init__(self, own: bool) -> None:
        self._own = own
        with gr.Accordion("From the Hugging Face hub", open=False, elem_id="hub"):
            self.said = gr.Textbox(
                label="Name of the data set",
                placeholder="owner/name/split",
                info="owner/name/split; or owner/name/configuration/split, or the path of a file behind owner/name.",
                max_length=_LONGEST,
                elem_id="hub-name",
            )
            self.fetch = gr.Button("Read it", size="sm", elem_id="hub-fetch")
            panel(el("p.muted", _LEARNS))

    @contextmanager
    def files(self, said: str) -> Iterator[tuple[tuple[RawFile, ...], str]]:
        """The files, as long as the block lasts, and what is proposed as the data set's name.

        Raises:
            DataError: see `hub_files`.
        """
        with hub_files(said, self._own) as files:
            yield files, repository_of(said)[:LONGEST_NAME]


# Step 1's first card: where the private file comes from.

_SOURCE = [
    el("h2", "Bring your labelled texts, or records"),
    el(
        "p.lead",
        f"A file ({formats_in_words()}) with one row for each text and, if it has one, a column with its label or "
        "answer, or with a record in each row. It is read into this server's memory, removed from its disk at once, "
        "and forgotten when you close the page.",
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
