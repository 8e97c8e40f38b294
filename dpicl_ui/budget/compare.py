"""Finished runs side by side: this tab's, and those of run files; each column says no more than a run file holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.budget.compare_cards import Named, column
from dpicl_ui.budget.compare_figure import score_figure
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.ledgers import Ledgers
from dpicl_ui.frame.plot_style import chart
from dpicl_ui.frame.sessions import Session, Sessions, State
from dpicl_ui.frame.tree import Tree, el, notice, panel
from dpicl_ui.frame.uploads import taken
from dpicl_ui.generate.replay import own_run, text_in
from mechanisms.errors import StudioError, UsageError
from mechanisms.runs.run_file import from_lines, summarised

LETTERS = "ABCD"
"""Of the columns, as many as there are."""
_OWN = "This tab's run"
_WHAT = (
    "Up to four runs, as they were released: this tab's last one, and run files (“Save this run” in step 3). Each "
    "epsilon is the run's own; runs on the same rows add up, and scores compare only on the same rows. Files are not "
    "signed: what they say of noisy values is on trust."
)
_FULL = f"{len(LETTERS)} runs stand here: remove one first."


class CompareState(State):
    """The runs that stand side by side in a tab."""

    def __init__(self, session: Session) -> None:
        self.runs: tuple[Named, ...] = ()

    def room(self) -> None:
        """There is a column left.

        Raises:
            UsageError: there is none.
        """
        if len(self.runs) >= len(LETTERS):
            raise UsageError(_FULL)

    def add(self, name: str, text: str) -> None:
        """One more run, out of the text of a run file.

        Raises:
            UsageError: it is none, it stands here already, or there is no room.
        """
        run = summarised(from_lines(text))
        self.room()
        if run in [each.run for each in self.runs]:
            raise UsageError("This run stands here already.")
        self.runs = (*self.runs, Named(name, run))

    def remove(self, place: int) -> None:
        """One less; those behind it move up."""
        self.runs = self.runs[:place] + self.runs[place + 1 :]


class Comparison:
    """Components and handlers of "Compare runs", a fold."""

    def __init__(self, sessions: Sessions, ledgers: Ledgers) -> None:
        self._sessions, self._ledgers = sessions, ledgers
        with gr.Accordion("Compare runs", open=False, elem_classes="card", elem_id="compare"):
            panel(el("p.muted", _WHAT))
            with gr.Row(elem_classes="actions"):
                self.load = gr.UploadButton("Load run files", file_count="multiple", size="sm", elem_id="compare-load")
                self.own = gr.Button("Add this tab's run", size="sm", elem_id="compare-own")
            self.notice = panel(elem_id="compare-notice")
            with gr.Row(elem_classes="side-by-side"):
                self._build_columns()
            self.plot = chart("compare-scores")
        self._wire()

    def _build_columns(self) -> None:
        self._places, self._panels, self._removers = list[gr.Column](), list[gr.HTML](), list[gr.Button]()
        for letter in LETTERS:
            with gr.Column(visible=False, min_width=0, elem_classes="arm", elem_id=f"compare-{letter}") as place:
                self._places.append(place)
                self._panels.append(panel())
                self._removers.append(gr.Button(f"Remove {letter}", size="sm"))

    def _wire(self) -> None:
        shown = [*self._places, *self._panels, self.plot, self.notice]
        guard = guarded(self.notice)
        self.load.upload(guard(self._load), self.load, [*shown, self.load], **PRIVATE)
        self.own.click(guard(self._add_own), None, shown, **PRIVATE)
        for place, button in enumerate(self._removers):
            button.click(guard(self._remover(place)), None, shown, **PRIVATE)

    def _state(self, request: gr.Request) -> CompareState:
        return self._sessions.of(request).of(CompareState)

    def _load(self, uploads: list[str] | None, request: gr.Request) -> Iterator[dict[Any, Any]]:
        """Each file that holds a run gets a column, each other one a line that says why not."""
        yield {self.load: None, self.notice: [el("p.spinner", "Reading the runs …", role="status")]}
        state, refused = self._state(request), list[Tree]()
        for upload in uploads or []:
            try:
                _add(state, upload)
            except StudioError as error:
                refused += notice(f"{Path(upload).name}: {error}")
        yield self._shown(state) | {self.notice: refused}

    def _add_own(self, request: gr.Request) -> dict[Any, Any]:
        state = self._state(request)
        state.add(_OWN, own_run(self._sessions.of(request), self._ledgers.of(request)))
        return self._shown(state)

    def _remover(self, place: int) -> Any:
        def remove(request: gr.Request) -> dict[Any, Any]:
            state = self._state(request)
            state.remove(place)
            return self._shown(state)

        return remove

    def _shown(self, state: CompareState) -> dict[Any, Any]:
        found = dict(zip(LETTERS, state.runs, strict=False))
        shown: dict[Any, Any] = {self.notice: []}
        for letter, place, words in zip(LETTERS, self._places, self._panels, strict=True):
            shown[place] = gr.Column(visible=letter in found)
            shown[words] = column(letter, found[letter]) if letter in found else []
        return shown | {self.plot: score_figure({letter: each.run for letter, each in found.items()})}


def _add(state: CompareState, upload: str) -> None:
    with taken(upload) as path:
        state.room()  # before a file is read for nothing
        state.add(path.name, text_in(path))
