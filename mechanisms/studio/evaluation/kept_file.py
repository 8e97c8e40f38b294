"""A file of results that is whole at all times, however a run ends."""

from __future__ import annotations

import os
from pathlib import Path

from mechanisms.errors import UsageError


def keep(path: Path, text: str) -> None:
    """Put a text in the place of what a file held: whoever reads it sees one or the other, never a part.

    Raises:
        UsageError: the place cannot be written.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise UsageError(f"Cannot write '{path}': choose another place for --out.") from error
