"""Looking back: the controls of a replay, and runs as files, saved and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.frame.downloads import File, download, sink
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import drawn
from dpicl_ui.frame.uploads import taken
from dpicl_ui.frame.visibility import seen
from dpicl_ui.generate.recipe_view import RecipeView, replay_recipe
from dpicl_ui.generate.replay_screen import replay_screen
from dpicl_ui.generate.state import GenerateState
from mechanisms.accounting import PrivacyLedger
from mechanisms.errors import UsageError
from mechanisms.runs.events import RunEvent
from mechanisms.runs.run_file import ENDS, FORMAT, LARGEST, from_lines, to_lines

FILE_NAME = "run.dpicl.jsonl"


class Replay:
    """Components: `bar` moves the screens in the browser alone, `save` and `load` are for files.

    Nothing of it is to be seen before there is a run to look back at, but for `load`.
    """

    def __init__(self) -> None:
        self.bar = drawn("replay.js", None, elem_id="replay")
        with gr.Row(elem_classes="actions"):
            self.save = gr.Button("Save this run", size="sm", visible=seen(False), elem_id="save-run")
            self.load = gr.UploadButton("Load a saved run", size="sm", elem_id="load-run")
        self.sink = sink()

    def under_way(self) -> dict[Any, Any]:
        """What they become when a run begins."""
        return {
            self.bar: None,
            self.save: gr.Button(visible=seen(False)),
            self.load: gr.UploadButton(interactive=False),
        }

    def ended(self, recording: Sequence[RunEvent], savable: bool) -> dict[Any, Any]:
        """What they become with a run to look back at; `savable` where it is this tab's own, and ended well."""
        return {self.bar: replay_screen(recording), self.save: gr.Button(visible=seen(savable))}

    def said_again(self, session: Session) -> dict[Any, Any]:
        """Whether the tab's last run can be saved; see `dpicl_ui.frame.visibility`."""
        return {self.save: gr.Button(visible=seen(savable(replay_recipe(own_recording(session)))))}

    def saved(self, session: Session, ledger: PrivacyLedger) -> dict[Any, Any]:
        """The tab's last run as a file, with the marks that are known by now.

        Raises:
            UsageError: there is none, it has not ended, or it is not private.
        """
        file = File(FILE_NAME, "application/jsonl", own_run(session, ledger).encode())
        session.of(GenerateState).take()
        return {self.sink: download(session, file)}


def savable(view: RecipeView) -> bool:
    """Whether something was kept, and is private: what is not is for its curator's eyes alone."""
    return view.ended and view.made is not None and view.made.certificate.private


def own_run(session: Session, ledger: PrivacyLedger) -> str:
    """The tab's last run as the text of a run file, with the marks that are known by now.

    Raises:
        UsageError: there is none, it has not ended, has left nothing, or is not private.
    """
    recording, made = own_recording(session), session.of(GenerateState).made
    if not recording or made is None:
        raise UsageError("No run of this tab has ended with demonstrations: write some in step 3 first.")
    return to_lines(recording, ledger.rows.marks(made.of))


def own_recording(session: Session) -> Sequence[RunEvent]:
    """The tab's last run; empty where there is none, or it has not ended or left nothing."""
    state = session.of(GenerateState)
    recording = state.written.recording if state.written else []
    ended, made = recording[-1] if recording else None, state.made
    # A run that was stopped at once leaves the set of the one before, whose rows may be others.
    if not isinstance(ended, ENDS) or made is None or ended.demo_set != made.demo_set:
        return []
    return recording


def loaded(upload: str) -> list[RunEvent]:
    """The events in an uploaded run file.

    Raises:
        UsageError: it is none; the message says where.
    """
    with taken(upload) as path:
        return list(from_lines(text_in(path)))


def text_in(path: Path) -> str:
    """The text of a file that may hold a run.

    Raises:
        UsageError: it is too large, or no text.
    """
    if path.stat().st_size > LARGEST:
        raise UsageError(f"This is not a {FORMAT} file: it is too large.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"This is not a {FORMAT} file: it is not text.") from error
