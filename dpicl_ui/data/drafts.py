"""Step 1's free preview: drafts that the model writes from public words alone, and the offer of a better model.

The drafts are written again whenever the words change.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.handlers import FETCH, MODEL, PRIVATE, UNTIL_FREE, guarded, in_one_line, on
from dpicl_ui.frame.inputs import PrivateCheckboxGroup
from dpicl_ui.frame.services import Services, Session, State
from dpicl_ui.frame.tree import Tree, el, in_millions, notice, panel, spinner, visibility
from mechanisms.asking import Wording
from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness
from mechanisms.rounding import duration
from mechanisms.runs.drafts import DRAFT_TOKENS, FEWEST, DraftRequest, preview_drafts
from mechanisms.runs.text import FOREIGN, Gate

_PREVIEWED = 6
_HEAD = "Do your texts sound like this? None of them was read."
_HELP = "The model writes two drafts a label from the wording beside this. Change the words until the drafts fit."
_MORE = "These are {shown} of {all} labels."
_FROM = "These drafts come from a model of {} parameters. "
_BETTER = "A larger one writes better: {}, {} parameters, {} of memory, {} for a run here. "
_NO_BETTER = "A larger one writes better, but none in the list fits here and runs in about five minutes. "
_OWN = "Or give the path of a GGUF file, a folder or a hub id under 'Use another model' in step 2."
_FETCHED = "It is fetched once, its digest is checked, and the drafts are written anew."
_NONE = "(nothing usable: try other words)"
_WAITING = "Waiting for the model …"
_QUIET = 0.6
"""Seconds without a change after which drafts are written."""


@dataclass(frozen=True)
class PreviewRequest:
    """The inputs that determine a preview's drafts; all of them are public."""

    wording: Wording
    labels: tuple[str, ...]


class Preview(State):
    """A tab's preview.

    Attributes:
        wanted: the words to write drafts from.
        shown: the words of the drafts that are shown or being written.
        newest: identifies the newest change.
        offered: the name of the better writer that is shown.
        coming: the name of the better writer that is being fetched or loaded.
    """

    wanted: PreviewRequest | None = None
    shown: PreviewRequest | None = None
    newest: object = None
    offered: str | None = None
    coming: str | None = None

    def want(self, words: PreviewRequest | None) -> None:
        """Set the wanted words. Equal words stay the same object, so a preview at work sees that nothing changed."""
        if words != self.wanted:
            self.wanted = words

    def close(self) -> None:
        self.wanted = None


class DraftPreview:
    """The card of the drafts."""

    def __init__(self, app: Services) -> None:
        self._app = app
        panel(el("h3", _HEAD), el("p.muted", _HELP))
        self.drafts = panel(elem_id="draft-preview")
        self.offer = panel(elem_id="better-writer")
        self.better = gr.Button("Write with it", size="sm", visible=visibility(False), elem_id="write-better")
        self.stop = gr.Button("Stop fetching", size="sm", visible=visibility(False), elem_id="stop-better")
        self.stop.click(app.loader.stop_fetching, None, None, queue=False, **PRIVATE)
        self._buttons = [self.better, self.stop]
        self._offers = [self.offer, *self._buttons]

    def follow(self, labels: PrivateCheckboxGroup, *changes: gr.events.Dependency) -> None:
        """Write drafts after these events, and when the user returns to the step; leaving the step ends the preview."""
        bar, newest = self._app.bar.html, {"trigger_mode": "always_last", **PRIVATE}
        events: list[Any] = [bar.focus, *(each.then for each in changes)]
        for changed in events:
            quiet = changed(self._settle, labels, self.drafts, queue=False, **newest)
            written = quiet.then(guarded(self.drafts)(self._write), None, self.drafts, **MODEL, **newest)
            on(written.then, self._offer_if_none_comes, None, self._offers, self.offer)
        fetched = on(self.better.click, self._fetch, None, self._offers, self.offer, **FETCH)
        changed = on(fetched.then, self._change, None, self._offers, self.offer, **MODEL)
        changed.then(guarded(self.drafts)(self._write), None, self.drafts, **MODEL, **PRIVATE)
        for ended in (fetched, changed):
            ended.then(self._said_again, None, self._buttons, **PRIVATE)
        bar.blur(self._leave, None, None, queue=False, **PRIVATE)

    def cleared(self, session: Session) -> dict[Any, Any]:
        """The components' values for another file; a running preview ends."""
        state = session.of(Preview)
        state.wanted = state.shown = None
        return {self.drafts: []}

    def _offer_if_none_comes(self, request: gr.Request) -> dict[Any, Any]:
        none = self._app.session(request).of(Preview).coming is None
        return self._offer(request) if none else {self.offer: gr.skip()}

    def _offer(self, request: gr.Request) -> dict[Any, Any]:
        """The present model's size, and the model that would write better drafts."""
        state, offer = self._app.session(request).of(Preview), self._app.loader.offer()
        state.offered = offer.better.name if offer and offer.better else None
        if offer is None:
            return {self.offer: [], **self._shown(False)}
        told = _FROM.format(in_millions(offer.present))
        if better := offer.better:
            size, memory = in_millions(better.parameters), f"{offer.memory / 1e9:.1f} GB"
            told += _BETTER.format(better.description, size, memory, duration(offer.seconds))
            told += "" if better.available else _FETCHED + " "
        else:
            told += _NO_BETTER
        return {self.offer: [el("p.muted", told + _OWN)], **self._shown(state.offered is not None)}

    def _fetch(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
        """Fetch the model that was offered, even if another would be offered now; drafts and runs go on meanwhile."""
        loader, state = self._app.loader, self._app.session(request).of(Preview)
        if state.offered is None:
            raise UsageError("No better writer is offered here any more: choose a model in step 2.")
        state.coming = name = state.offered
        try:
            for told in loader.fetched(name):
                yield self._coming(told, stops=loader.fetching)
        except Exception as error:
            state.coming = None
            yield self._refused(in_one_line(error), request)
        else:
            yield self._coming(spinner(UNTIL_FREE))

    def _change(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
        """Load the fetched model; the drafts are written again afterwards."""
        loader, state = self._app.loader, self._app.session(request).of(Preview)
        if state.coming is None:
            return
        try:
            for told in loader.changed(state.coming):
                yield self._coming(told)
            refused = loader.refusal or loader.problem or ""
        except Exception as error:
            refused = in_one_line(error)
        state.coming = None
        if not refused:
            state.shown = None
        yield self._refused(refused, request)

    def _shown(self, better: bool, stop: bool = False) -> dict[Any, Any]:
        return {self.better: gr.Button(visible=visibility(better)), self.stop: gr.Button(visible=visibility(stop))}

    def _said_again(self, request: gr.Request) -> dict[Any, Any]:
        """The final values of the components that the previous call hid and showed, sent again (see `visibility`)."""
        state = self._app.session(request).of(Preview)
        return self._shown(state.offered is not None and state.coming is None)

    def _coming(self, trees: list[Tree], stops: bool = False) -> dict[Any, Any]:
        return {self.offer: trees, **self._shown(False, stops)}

    def _refused(self, why: str, request: gr.Request) -> dict[Any, Any]:
        shown = self._offer(request)
        return shown | {self.offer: [*notice(why), *shown[self.offer]]}

    def _settle(self, labels: list[str], request: gr.Request) -> Any:
        """Wait until the words stop changing. This ends a preview of other words, and a wait with older labels."""
        session = self._app.session(request)
        state = session.of(Preview)
        mine = state.newest = object()
        state.want(_words(session, labels))
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
        if words is None:
            state.shown = None
            yield {self.drafts: []}
            return
        model, randomness, shown = self._app.loader.model(), SecureRandomness(), list[Tree]()
        state.shown, written = words, list[str]()
        for label in words.labels[:_PREVIEWED]:
            yield {self.drafts: [*shown, *spinner(f"Writing drafts of {label} …")]}
            drafting = DraftRequest(words.wording, label, words.labels, FEWEST, DRAFT_TOKENS, {})
            drafts = preview_drafts(model, drafting, randomness, lambda: state.wanted is words)
            if state.wanted is not words:  # these drafts were cut off
                state.shown = None
                yield {self.drafts: shown}
                return
            written += drafts
            shown.append(el("div.demo", el("span.chip", label), *(el("p", text) for text in drafts or (_NONE,))))
        if len(shown) < len(words.labels):
            shown.append(el("p.muted", _MORE.format(shown=len(shown), all=len(words.labels))))
        if Gate(model, written).foreign:
            shown[:0] = notice(FOREIGN, "warn")
        yield {self.drafts: shown}


def _words(session: Session, labels: Sequence[str]) -> PreviewRequest | None:
    state = session.of(DataState)
    return PreviewRequest(state.wording, tuple(sorted(labels))) if state.inspected and labels else None
