"""A result file that is whole at all times, however a run ends."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from mechanisms.errors import UsageError


def keep(path: Path, content: str | bytes) -> None:
    """Put a content in the place of what a file held: whoever reads it sees one or the other, never a part.

    Text is UTF-8, with the line breaks that it has. A link stays one, and what is no file (/dev/null) is written to.

    Raises:
        UsageError: the place cannot be written; what the file held is still there.
    """
    content = content.encode() if isinstance(content, str) else content
    whole = Path(os.path.realpath(path))
    partial = whole.with_name(f"{whole.name}.partial")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if whole.exists():
            shutil.copymode(whole, partial)
        os.replace(partial, whole)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise UsageError(f"Cannot write '{path}': choose another place for --out.") from error
