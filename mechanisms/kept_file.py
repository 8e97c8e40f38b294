"""Files that a user named: a result that is whole at all times, however a run ends, and a text."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from mechanisms.errors import UsageError

_AS_ASKED = 0o666
"""A new file's mode, less what the umask takes."""
_DEVICES = ("/dev/", "/proc/")


def keep(path: Path, content: str | bytes) -> None:
    """Put a content in the place of what a file held: whoever reads it sees one or the other, never a part.

    Text is UTF-8, with the line breaks that it has. A link stays one, and what is no file (/dev/null) is written to. So
    is a file that may be written and not replaced: one that a container mounts by itself.

    Raises:
        UsageError: the place cannot be written; what the file held is still there.
    """
    content = content.encode() if isinstance(content, str) else content
    whole = Path(os.path.realpath(path))
    try:
        if path.exists() and (not path.is_file() or str(path.absolute()).startswith(_DEVICES)):
            path.write_bytes(content)
        else:
            _put(whole, content)
    except OSError as error:
        raise UsageError(f"Cannot write '{path}': choose another place.") from error


def _put(whole: Path, content: bytes) -> None:
    there = stat.S_IMODE(whole.stat().st_mode) if whole.exists() else None
    partial = whole.with_name(f".dpicl-{secrets.token_hex(8)}")
    try:
        made = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _AS_ASKED if there is None else 0o600)
        with open(made, "wb") as file:
            if there is not None:
                os.fchmod(made, there)  # before anything is in it
            file.write(content)
            file.flush()
            os.fsync(made)
        _into_place(partial, whole, content)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _into_place(partial: Path, whole: Path, content: bytes) -> None:
    try:
        os.replace(partial, whole)
    except OSError:
        if not whole.exists():
            raise
        whole.write_bytes(content)


def check_writable(path: str) -> None:
    """Find out before a run that costs something whether its result can be written.

    Raises:
        UsageError: the place cannot be written.
    """
    folder, there = os.path.dirname(os.path.realpath(path)), os.path.exists(path)
    places = [path] if there and not os.path.isfile(path) else [folder, path] if there else [folder]
    if os.path.isdir(path) or not all(os.access(each, os.W_OK) for each in places):
        raise UsageError(f"Cannot write '{path}': choose another place.")


def text_of(path: str) -> str:
    """Read a text file that the user named.

    Raises:
        UsageError: it cannot be read as UTF-8.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read '{path}': give the path of a UTF-8 text file.") from error
