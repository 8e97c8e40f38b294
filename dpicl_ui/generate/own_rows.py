"""Step 3's card for the curator's eyes: own rows beside the demonstrations, and the nearest row to each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import MODEL, PRIVATE, guarded
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.tree import Tree, el, panel
from dpicl_ui.generate.state import GenerateState
from mechanisms.accounting import fingerprint
from mechanisms.errors import UsageError
from mechanisms.evaluation.own_rows import Beside, Nearest, beside

_TITLE = "Your own rows beside these demonstrations: for your eyes only, and the export will be marked"
_WHY = (
    "Three rows of each label, and the row that is nearest to each demonstration. Nothing of it is kept. Once you have "
    "seen it your later choices may depend on the data, and every later certificate says so."
)
_LONGEST = 600
"""Characters of a row that are shown."""
_NO_SET = "There is nothing to compare yet: write demonstrations first."
_OTHER = "These demonstrations were written from another data set: choose that one in step 1 to compare."


class OwnRows:
    """Components; `compared` fires when rows were shown."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with gr.Accordion(_TITLE, open=False, elem_classes="card private", elem_id="own-rows-card"):
            panel(el("p.muted", _WHY))
            self.show = gr.Button("Show my rows", size="sm", elem_id="own-rows-show")
            self.rows = panel(elem_id="own-rows-shown")
        self.compared = self.show.click(guarded(self.rows)(self._show), None, self.rows, **MODEL, **PRIVATE)

    def _show(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
        session = self._app.session(request)
        made, confirmed = session.of(GenerateState).made, session.of(DataState).confirmed
        if made is None:
            raise UsageError(_NO_SET)
        if confirmed is None or fingerprint(confirmed.dataset) != made.of:
            raise UsageError(_OTHER)
        yield {self.rows: [el("p.spinner", "Embedding rows …", role="status")]}
        shown = list[Tree]()
        for each in beside(made.demo_set, confirmed.dataset, self._app.embedder.embedder(), self._app.ledger(request)):
            shown += label_card(each)
            yield {self.rows: shown}


def label_card(found: Beside) -> list[Tree]:
    """The rows of one label, and each of its demonstrations with the nearest row."""
    return [
        el("div.card-head", el("h3", found.label), el("span.tag.private", "Only on your screen")),
        el("ul", *(el("li", _cut(row)) for row in found.rows)),
        *(_pair(each) for each in found.nearest),
    ]


def _cut(row: str) -> str:
    return row if len(row) <= _LONGEST else f"{row[:_LONGEST]}…"


def _pair(each: Nearest) -> Tree:
    return el(
        "div.demo",
        el("p", each.text),
        el("p.muted", f"Nearest row (cosine similarity {each.similarity:.2f}): {_cut(each.row)}"),
    )
