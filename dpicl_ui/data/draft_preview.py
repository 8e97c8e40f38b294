"""Step 1's free preview: drafts from public words alone, beside the words, anew whenever these have changed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.handlers import MODEL, PRIVATE, guarded
from dpicl_ui.frame.inputs import PrivateCheckboxGroup
from dpicl_ui.frame.services import Services, Session, State
from dpicl_ui.frame.tree import Tree, el, panel, spinner
from mechanisms.asking import Asked
from mechanisms.noise import SecureRandomness
from mechanisms.runs.drafts import FEWEST, Drafts, preview_drafts
from mechanisms.runs.spec import RunSpec

MOST_LABELS = 6
_HEAD = "Do your texts sound like this? Nothing of them was read."
_HELP = "The model writes two drafts a label from the words beside them. Change the words until they fit."
_MORE = "These are {shown} of {all} labels."
_NONE = "(nothing of use: other words may help)"
_WAITING = "Waiting for the model …"
_TOKENS: int = RunSpec.model_fields["draft_tokens"].default
_QUIET = 0.6
"""Seconds without a change after which drafts are written."""


@dataclass(frozen=True)
class Words:
    """What drafts follow from, all public."""

    asked: Asked
    labels: tuple[str, ...]


class Preview(State):
    """The words that a tab wants to see drafts of, those whose drafts it sees or is about to, and who asked last."""

    wanted: Words | None = None
    shown: Words | None = None
    newest: object = None

    def close(self) -> None:
        self.wanted = None


class DraftPreview:
    """The card of the drafts."""

    def __init__(self, app: Services) -> None:
        self._app = app
        panel(el("h3", _HEAD), el("p.muted", _HELP))
        self.drafts = panel(elem_id="draft-preview")

    def follow(self, labels: PrivateCheckboxGroup, *changes: gr.events.Dependency) -> None:
        """Write drafts after these, and when somebody comes back to the step; who leaves it ends them."""
        bar, newest = self._app.bar.html, {"trigger_mode": "always_last", **PRIVATE}
        events: list[Any] = [bar.focus, *(each.then for each in changes)]
        for changed in events:
            quiet = changed(self._settle, labels, self.drafts, queue=False, **newest)
            quiet.then(guarded(self.drafts)(self._write), None, self.drafts, **MODEL, **newest)
        bar.blur(self._leave, None, None, queue=False, **PRIVATE)

    def cleared(self, session: Session) -> dict[Any, Any]:
        """The components for another file; a preview at work ends."""
        state = session.of(Preview)
        state.wanted = state.shown = None
        return {self.drafts: []}

    def _settle(self, labels: list[str], request: gr.Request) -> Any:
        """Wait until the words stand still. A preview of other words ends, and so does a wait with older labels."""
        session = self._app.session(request)
        state = session.of(Preview)
        mine = state.newest = object()
        state.wanted = _words(session, labels)
        while True:
            time.sleep(_QUIET)
            if state.newest is not mine:
                return gr.skip()
            if (now := _words(session, labels)) == state.wanted or state.wanted is None:
                break
            state.wanted = now
        return gr.skip() if state.wanted in (None, state.shown) else spinner(_WAITING)

    def _leave(self, request: gr.Request) -> None:
        self._app.session(request).of(Preview).wanted = None

    def _write(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
        state = self._app.session(request).of(Preview)
        words = state.wanted
        if words == state.shown:
            return
        state.shown = words
        if words is None:
            yield {self.drafts: []}
            return
        model, randomness, shown = self._app.loader.model(), SecureRandomness(), list[Tree]()
        for label in words.labels[:MOST_LABELS]:
            yield {self.drafts: [*shown, *spinner(f"Writing drafts of {label} …")]}
            wanted = Drafts(words.asked, label, words.labels, FEWEST, _TOKENS, {})
            drafts = preview_drafts(model, wanted, randomness, lambda: state.wanted == words)
            if state.wanted != words:
                state.shown = None
                yield {self.drafts: shown}
                return
            shown.append(el("div.demo", el("span.chip", label), *(el("p", text) for text in drafts or (_NONE,))))
        if len(shown) < len(words.labels):
            shown.append(el("p.muted", _MORE.format(shown=len(shown), all=len(words.labels))))
        yield {self.drafts: shown}


def _words(session: Session, labels: Sequence[str]) -> Words | None:
    state = session.of(DataState)
    return Words(state.asked, tuple(sorted(labels))) if state.columns and labels else None
