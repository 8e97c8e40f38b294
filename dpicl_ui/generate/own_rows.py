"""Step 3's card of original rows beside the demonstrations: at once where they are fictional, else behind a switch."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.handlers import MODEL, PRIVATE, guarded
from dpicl_ui.frame.services import Services, Session
from dpicl_ui.frame.tree import Tree, el, panel, private_tag, seen, spinner
from dpicl_ui.generate.state import GenerateState
from mechanisms.accounting import fingerprint
from mechanisms.data.sources import EXAMPLES, read_table
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.own_rows import SHOWN, beside, spread
from mechanisms.records import Dataset

_TITLE = "Your own rows beside these demonstrations: for your eyes only, and the export will be marked"
_WHY = (
    "Three rows of each label, and the row that is nearest to each demonstration. Nothing of it is kept. Once you have "
    "seen it your later choices may depend on the data, and every later certificate says so."
)
_FICTIONAL = "These rows are fictional and come with this program: whoever sees them learns nothing of anybody."
_LONGEST = 600
"""Characters of a row that are shown."""
_NO_SET = "There is nothing to compare yet: write demonstrations first."
_OTHER = "These demonstrations were written from another data set: choose that one in step 1 to compare."


class OwnRows:
    """Components; `compared` fires when private rows were shown."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with gr.Column(elem_classes="card"):
            self.fictional = panel(elem_id="original-rows")
        with gr.Accordion(_TITLE, open=False, elem_classes="card private", elem_id="own-rows-card") as self.private:
            panel(el("p.muted", _WHY))
            self.show = gr.Button("Show my rows", size="sm", elem_id="own-rows-show")
            self.rows = panel(elem_id="own-rows-shown")
        self.outputs = [self.fictional, self.private, self.rows]
        self.compared = self.show.click(guarded(self.rows)(self._show), None, self.rows, **MODEL, **PRIVATE)

    def before(self, session: Session) -> dict[Any, Any]:
        """The components before a run: fictional rows need no switch."""
        confirmed = session.of(DataState).confirmed
        private = confirmed is None or not is_fictional(confirmed.dataset)
        return {self.fictional: [], self.private: gr.Accordion(visible=seen(private)), self.rows: []}

    def after(self, session: Session) -> dict[Any, Any]:
        """The components after a run: fictional rows stand beside what was written."""
        compared = _compared(session)
        shown = original_rows(*compared) if compared and is_fictional(compared[1]) else []
        return self.before(session) | {self.fictional: shown}

    def _show(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
        session = self._app.session(request)
        if session.of(GenerateState).made is None:
            raise UsageError(_NO_SET)
        if (compared := _compared(session)) is None:
            raise UsageError(_OTHER)
        yield {self.rows: spinner("Embedding rows …")}
        shown = list[Tree]()
        for each in beside(*compared, self._app.embedder.embedder(), self._app.ledger(request)):
            nearest = (
                el(
                    "div.demo",
                    el("p", pair.text),
                    el("p.muted", f"Nearest row (cosine similarity {pair.similarity:.2f}): {_cut(pair.row)}"),
                )
                for pair in each.nearest
            )
            head = el("div.card-head", el("h3", each.label), private_tag())
            shown += [head, _listed(each.rows), *nearest]
            yield {self.rows: shown}


def _compared(session: Session) -> tuple[DemoSet, Dataset] | None:
    """The tab's set and its data; None where one of them is not here, or the data are others."""
    made, confirmed = session.of(GenerateState).made, session.of(DataState).confirmed
    if made is None or confirmed is None or fingerprint(confirmed.dataset).content != made.of.content:
        return None
    return made.demo_set, confirmed.dataset


@functools.cache
def _bundled() -> frozenset[tuple[str, str]]:
    """Text and label of every row of the examples."""
    tables = ((each.mapping, read_table(each.path).frame) for each in EXAMPLES)
    return frozenset(row for of, frame in tables for row in zip(frame[of.text], frame[of.label], strict=True))


def is_fictional(dataset: Dataset) -> bool:
    """Whether every row of a data set stands in a bundled example, with its label."""
    return all((each.text, each.label) in _bundled() for each in dataset.records)


def original_rows(made: DemoSet, dataset: Dataset) -> list[Tree]:
    """Some rows of each label beside its demonstrations, without a mark: for fictional rows alone."""
    shown: list[Tree] = [el("h3", "Original beside synthetic"), el("p.muted", _FICTIONAL)]
    for label in made.labels:
        originals = [each for each in dataset.records if each.label == label]
        written = [each.text for each in made.demonstrations if each.label == label]
        if not originals or not written:
            continue
        sides = (
            ("Original rows (fictional)", [each.text for each in spread(originals, SHOWN)]),
            ("Synthetic", written),
        )
        pair = el("div.sides", *(el("div", el("p.small-head", title), _listed(texts)) for title, texts in sides))
        shown += [el("h4", label), pair]
    return shown


def _listed(texts: Iterable[str]) -> Tree:
    return el("ul.texts", *(el("li", _cut(each)) for each in texts))


def _cut(row: str) -> str:
    return row if len(row) <= _LONGEST else f"{row[:_LONGEST]}…"
