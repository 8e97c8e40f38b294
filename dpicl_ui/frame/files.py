"""Uploaded files, each of which is read once and deleted, and files that the browser saves.

An upload is deleted together with the folder that Gradio made for it. Files for the browser are made in memory, so
nothing is left on the server.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.frame.internals import is_upload
from dpicl_ui.frame.tree import drawn
from mechanisms.errors import DataError, UsageError

SAVED = "Saved by your browser. No file is left on the server."


def drop(elem_id: str, height: int = 140) -> gr.File:
    return gr.File(show_label=False, height=height, elem_id=elem_id, elem_classes="drop")


@contextmanager
def taken(upload: str) -> Iterator[Path]:
    """The uploaded file, which is deleted when the block ends.

    Raises:
        DataError: it is not an upload. A request may name any path, so only a plain file in a folder directly inside
            the upload folder is read and deleted.
    """
    path = Path(upload)
    if not is_upload(path):
        raise DataError("The upload did not arrive: choose the file again.")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty, or gone
            path.parent.rmdir()


def text_of(upload: str, largest: int, what: str) -> str:
    """The text of an uploaded file, without a byte order mark; the file is removed.

    Args:
        largest: in bytes.
        what: what the file should hold, with an article: "a demo set".

    Raises:
        DataError: the file is not an upload.
        UsageError: it is too large, or not text.
    """
    with taken(upload) as path:
        if path.stat().st_size > largest:
            raise UsageError(f"This is not {what}: the file is too large.")
        try:
            return path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(f"This is not {what}: the file is not text.") from error


@dataclass(frozen=True)
class Download:
    """A file that the browser saves."""

    name: str
    media_type: str
    content: bytes


_TICKETS = itertools.count(1)
"""A new number starts a new download."""


def sink() -> gr.HTML:
    """An invisible component: the browser saves the file that `download` puts into it."""
    return drawn("download.js", None, elem_classes="sink")


def download(file: Download) -> dict[str, Any]:
    """The value of a `sink` that makes the browser save this file."""
    content = base64.b64encode(file.content).decode("ascii")
    return {"ticket": next(_TICKETS), "name": file.name, "type": file.media_type, "bytes": content}
