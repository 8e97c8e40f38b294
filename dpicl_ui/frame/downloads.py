"""Files that the browser saves, made in memory: nothing is left on the server."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import gradio as gr

from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.frame.tree import drawn


@dataclass(frozen=True)
class File:
    """What is to be saved: its name, its type, and what is in it."""

    name: str
    media_type: str
    content: bytes


class Downloads(State):
    """How often this tab has downloaded something: a higher count is a new download."""

    count = 0


def sink() -> gr.HTML:
    """A component without a face: what it is given, made by `download`, the browser saves."""
    return drawn("download.js", None, elem_classes="sink")


def download(session: Session, file: File) -> dict[str, Any]:
    """A file for a `sink`."""
    downloads = session.of(Downloads)
    downloads.count += 1
    content = base64.b64encode(file.content).decode("ascii")
    return {"ticket": downloads.count, "name": file.name, "type": file.media_type, "bytes": content}
