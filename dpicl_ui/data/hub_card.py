"""Step 1's other place of a file: a data set of the Hugging Face hub, by its name."""

from __future__ import annotations

import gradio as gr

from dpicl_ui.data.opening import LONGEST_NAME
from dpicl_ui.frame.tree import el, panel
from mechanisms.data.sources import read_hub, repository_of
from mechanisms.data.table import Table

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

    def read(self, said: str) -> tuple[Table, str]:
        """The rows, and what is proposed as the data set's name.

        Raises:
            DataError: see `read_hub`.
        """
        return read_hub(said, self._own), repository_of(said)[:LONGEST_NAME]
