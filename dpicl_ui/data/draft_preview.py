"""Step 1's free preview: drafts from public words alone, to try the names of a text and its label."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState, Rows
from dpicl_ui.frame.guard import MODEL, PRIVATE, guarded
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.frame.tree import Tree, el, panel
from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness
from mechanisms.records import default_template
from mechanisms.runs.defaults import draft_tokens_of_texts
from mechanisms.runs.drafts import preview_drafts
from mechanisms.runs.recipe_request import RecipeRequest

MOST_LABELS = 6
_TITLE = "See what these words make the model write"
_HEAD = "Do your texts sound like this? Nothing of them was read."
_MORE = "These are {shown} of {all} labels."
_NONE = "(nothing of use: other words may help)"
_NOT_YET = "The model is still loading: press again when it is there."
_NO_LABELS = "Choose the column of labels first: drafts are of texts with labels."


class Preview(State):
    """The number of the newest preview of a tab; 0 before the first."""

    number = 0


class DraftPreview:
    """A button and the drafts below it."""

    def __init__(self, app: Services) -> None:
        self._app = app
        self.show = gr.Button(_TITLE, size="sm", elem_id="preview-drafts")
        self.drafts = panel(elem_id="draft-preview")
        self.show.click(guarded(self.drafts)(self._first), None, self.drafts, **MODEL, **PRIVATE)

    def follow(self, *renamed: gr.events.Dependency) -> None:
        """Write the drafts again after these events, once they were asked for; a newer preview ends an older one."""
        for event in renamed:
            again = event.then(self._overtaken, None, self.drafts, queue=False, **PRIVATE)
            again.then(guarded(self.drafts)(self._anew), None, self.drafts, **MODEL, **PRIVATE)

    def cleared(self, session: Session) -> dict[Any, Any]:
        """The components for another file; a preview at work ends."""
        session.of(Preview).number = 0
        return {self.drafts: []}

    def _overtaken(self, request: gr.Request) -> Any:
        state = self._app.session(request).of(Preview)
        if state.number:
            state.number += 1
        return gr.skip()

    def _first(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
        self._app.session(request).of(Preview).number += 1
        yield from self._anew(request)

    def _anew(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
        session = self._app.session(request)
        state, columns = session.of(Preview), session.of(DataState).columns
        if not (number := state.number):
            return
        if columns is None or columns.rows is not Rows.TEXTS:
            raise UsageError(_NO_LABELS)
        if not self._app.loader.ready:
            raise UsageError(_NOT_YET)
        labels = sorted(columns.inspection.counts)
        template = default_template(tuple(labels), *columns.file.field_names)
        tokens = draft_tokens_of_texts(columns.file.words) if columns.file.words else RecipeRequest.tokens
        shown: list[Tree] = [el("p.guarantee", _HEAD)]
        for label in labels[:MOST_LABELS]:
            yield {self.drafts: [*shown, el("p.spinner", f"Writing drafts of {label} …", role="status")]}
            drafts = preview_drafts(self._app.loader.model(), template, label, labels, tokens, SecureRandomness())
            if state.number != number or session.of(DataState).confirmed is not None:
                return
            shown.append(el("div.demo", el("span.chip", label), *(el("p", text) for text in drafts or (_NONE,))))
        if len(labels) > MOST_LABELS:
            shown.append(el("p.muted", _MORE.format(shown=MOST_LABELS, all=len(labels))))
        yield {self.drafts: shown}
