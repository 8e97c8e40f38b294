"""Files that the browser saves, made from text: nothing is left on the server."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.frame.tree import drawn


class Downloads(State):
    """How often this tab has downloaded something: a higher count is a new download."""

    count = 0


def sink() -> gr.HTML:
    """A component without a face: what it is given, made by `download`, the browser saves."""
    return drawn("download.js", None, elem_classes="sink")


def download(session: Session, name: str, text: str) -> dict[str, Any]:
    """A file for a `sink`."""
    downloads = session.of(Downloads)
    downloads.count += 1
    return {"ticket": downloads.count, "name": name, "text": text}
