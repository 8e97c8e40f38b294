"""Uploaded files: read once, then removed from the disk with the folder of their own that Gradio made for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gradio as gr
from gradio.utils import get_upload_folder

from mechanisms.errors import DataError


def drop(elem_id: str, height: int = 140) -> gr.File:
    """A place for a file."""
    return gr.File(show_label=False, height=height, elem_id=elem_id, elem_classes="drop")


@contextmanager
def taken(upload: str) -> Iterator[Path]:
    """The uploaded file, which does not outlive the block, however the block ends.

    Raises:
        DataError: it is no upload. The page's request names the path, so it may name any: nothing but a plain file in
            a folder right inside the folder for uploads is read, and nothing but that file is removed.
    """
    path = Path(upload)
    if not _arrived(path):
        raise DataError("The upload did not arrive: choose the file again.")
    try:
        yield path
    finally:
        _remove(path)


def discard(upload: str) -> None:
    """Remove an uploaded file that nothing will take; whatever else a request names stays."""
    if _arrived(path := Path(upload)):
        _remove(path)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not empty, or gone
        path.parent.rmdir()


def _arrived(path: Path) -> bool:
    try:
        plain = path.is_file() and not path.is_symlink()
        return plain and path.resolve().parent.parent == Path(get_upload_folder()).resolve()
    except (OSError, ValueError):  # no path at all
        return False
