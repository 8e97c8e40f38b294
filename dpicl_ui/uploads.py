"""Uploaded files: read once, then removed from the disk with their temporary folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def taken(upload: str) -> Iterator[Path]:
    """The uploaded file, which does not outlive the block, however the block ends."""
    path = Path(upload)
    try:
        yield path
    finally:
        # Gradio puts every upload into a folder of its own, named after the content's hash.
        shutil.rmtree(path.parent, ignore_errors=True)
