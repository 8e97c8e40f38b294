"""Uploaded files: read once, then removed from the disk with the folder of their own that Gradio made for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradio.utils import get_upload_folder

from mechanisms.errors import DataError


@contextmanager
def taken(upload: str) -> Iterator[Path]:
    """The uploaded file, which does not outlive the block, however the block ends.

    Raises:
        DataError: it is no upload. The page's request names the path, so it may name any: nothing but a plain file in
            a folder right inside the folder for uploads is read, and nothing but that file is removed.
    """
    path = Path(upload)
    if path.is_symlink() or not path.is_file() or path.resolve().parents[1] != Path(get_upload_folder()).resolve():
        raise DataError("The upload did not arrive: choose the file again.")
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty, or gone
            path.parent.rmdir()
