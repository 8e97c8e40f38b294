"""Step 1's free preview: drafts from public words alone, to try the words of a text and its label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import MODEL, PRIVATE, guarded
from dpicl_ui.frame.inputs import PrivateCheckboxGroup
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.frame.tree import Tree, el, panel
from mechanisms.asking import Asked
from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness
from mechanisms.runs.drafts import FEWEST, Drafts, gate_of, preview_drafts
from mechanisms.runs.spec import RunSpec

MOST_LABELS = 6
_TITLE = "See what these words make the model write"
_HEAD = "Do your texts sound like this? Nothing of them was read."
_MORE = "These are {shown} of {all} labels."
_NONE = "(nothing of use: other words may help)"
_NOT_YET = "The model is still loading: press again when it is there."
_WAITING = "Waiting for the model …"
_NO_LABELS = "Choose the column of labels first: drafts are of texts with labels."
_TOKENS: int = RunSpec.model_fields["draft_tokens"].default


@dataclass(frozen=True)
class Words:
    """What drafts follow from, all public."""

    asked: Asked
    labels: tuple[str, ...]


class Preview(State):
    """The words that a tab wants to see drafts of, and those whose drafts it sees or is about to."""

    wanted: Words | None = None
    shown: Words | None = None


class DraftPreview:
    """A button and the drafts below it."""

    def __init__(self, app: Services) -> None:
        self._app = app
        self.show = gr.Button(_TITLE, size="sm", elem_id="preview-drafts")
        self.drafts = panel(elem_id="draft-preview")

    def follow(self, labels: PrivateCheckboxGroup, *renamed: gr.events.Dependency) -> None:
        """Write drafts of the chosen labels where that is asked for, and again after these events; a newer preview
        ends an older one."""
        events = [self.show.click(guarded(self.drafts)(self._asked), labels, self.drafts, **PRIVATE)]
        # Outside the model's queue, so that a preview at work hears that a newer one waits.
        events += [each.then(self._renamed, labels, None, queue=False, **PRIVATE) for each in renamed]
        for event in events:
            event.then(guarded(self.drafts)(self._write), None, self.drafts, **MODEL, **PRIVATE)

    def cleared(self, session: Session) -> dict[Any, Any]:
        """The components for another file; a preview at work ends."""
        state = session.of(Preview)
        state.wanted = state.shown = None
        return {self.drafts: []}

    def _asked(self, labels: list[str], request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        words = _words(session, labels)
        if words is None:
            raise UsageError(_NO_LABELS)
        if not self._app.loader.ready:
            raise UsageError(_NOT_YET)
        state = session.of(Preview)
        state.wanted, state.shown = words, None
        return {self.drafts: [el("p.spinner", _WAITING, role="status")]}

    def _renamed(self, labels: list[str], request: gr.Request) -> None:
        session = self._app.session(request)
        if (state := session.of(Preview)).wanted is not None:
            state.wanted = _words(session, labels)

    def _write(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
        session = self._app.session(request)
        state, data = session.of(Preview), session.of(DataState)
        words, before = state.wanted, data.confirmed
        if words == state.shown:
            return
        state.shown = words
        if words is None:
            yield {self.drafts: []}
            return
        model, randomness = self._app.loader.model(), SecureRandomness()
        shown: list[Tree] = [el("p.guarantee", _HEAD)]
        gate = None
        for label in words.labels[:MOST_LABELS]:
            yield {self.drafts: [*shown, el("p.spinner", f"Writing drafts of {label} …", role="status")]}
            gate = gate or gate_of(model, words.asked, label, randomness)
            wanted = Drafts(words.asked, label, words.labels, FEWEST, _TOKENS, {})
            drafts = preview_drafts(model, wanted, gate, randomness)
            if state.wanted != words:
                state.shown = None
                if state.wanted is None:
                    yield {self.drafts: []}
                return
            shown.append(el("div.demo", el("span.chip", label), *(el("p", text) for text in drafts or (_NONE,))))
            if data.confirmed is not before:  # the model has more to do now
                break
        if (told := len(shown) - 1) < len(words.labels):
            shown.append(el("p.muted", _MORE.format(shown=told, all=len(words.labels))))
        yield {self.drafts: shown}


def _words(session: Session, labels: list[str]) -> Words | None:
    state = session.of(DataState)
    if state.columns is None or not labels:
        return None
    return Words(state.asked, tuple(sorted(labels)))
