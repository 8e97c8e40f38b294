"""Files: the user's data folder, bundled files, and results that are complete at all times."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mechanisms.errors import StudioError, UsageError

_KEY_BYTES = 32
_SPACE_DISK = Path("/data")
"""The persistent disk of a Hugging Face Space, if its owner has requested one."""


def data_place() -> Path:
    """`DPICL_HOME`, a Space's persistent disk, or the platform's usual folder; it need not exist."""
    usual = Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share"))
    kept = _SPACE_DISK if os.environ.get("SPACE_ID") and os.access(_SPACE_DISK, os.W_OK) else usual
    return Path(os.environ.get("DPICL_HOME", kept / "dpicl-studio"))


def data_folder() -> Path:
    """`data_place`, created with mode 0700."""
    return _made(data_place(), 0o700)


def cache_folder() -> Path:
    """`DPICL_CACHE`, or the platform's usual folder; it has only converted models, nothing private."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dpicl-studio"
    folder = Path(os.environ.get("DPICL_CACHE", default))
    return _made(folder, 0o755)


def _made(folder: Path, mode: int) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=mode)
    except OSError as error:
        raise UsageError(f"The folder '{folder}' cannot be used: set DPICL_HOME and DPICL_CACHE to others.") from error
    return folder


def secret_key() -> bytes:
    """The installation's 32-byte key, created on first use, stored with mode 0600.

    Raises `UsageError` if the key file cannot be written or read, `StudioError` if it is damaged.
    """
    path = data_folder() / "key"
    try:
        if not path.exists():
            write_once(path, secrets.token_bytes(_KEY_BYTES))
        key = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"The key file '{path}' cannot be used: check the folder's permissions and the room on the disk."
        ) from error
    if len(key) != _KEY_BYTES:
        raise StudioError(f"The key file '{path}' is damaged: restore it, or start with an empty data folder.")
    return key


def derived_key(purpose: str) -> bytes:
    """A 32-byte key for one purpose, derived from the installation's key; it reveals nothing of other derived keys."""
    return hmac.digest(secret_key(), purpose.encode(), "sha256")


def write_once(path: Path, content: bytes) -> None:
    """Write a file that is complete before it gets its name; the first of several processes wins.

    Raises `OSError`, and leaves no file, if the folder cannot be written or the disk is full.
    """
    descriptor, partial = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(partial, path)
    finally:
        os.unlink(partial)


def keyed_digest(parts: Iterable[str], key: bytes | None = None) -> str:
    """HMAC-SHA256 of strings under a key, by default the installation's; comparable only on this installation.

    The boundaries between strings count.
    """
    digest = hmac.new(key or secret_key(), digestmod=hashlib.sha256)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()


_HERE = Path(__file__).parent
_FOLDER = next(folder for folder in (_HERE / "assets", _HERE.parent / "assets") if folder.is_dir())


def bundled(name: str) -> Path:
    """The path of a bundled file, e.g. `bundled("examples/clinic_messages.csv")`."""
    return _FOLDER / name


def atomic_write(path: Path, content: str | bytes) -> None:
    """Replace the content of a file: readers see either the old or the new content, never a part.

    Text is UTF-8 with its own line breaks. A link stays a link. A device (/dev/null), or a file that can be written but
    not replaced (mounted by a container), is written to directly. Raises `UsageError`, with the old content unchanged,
    if the file cannot be written.
    """
    content = content.encode() if isinstance(content, str) else content
    whole = Path(os.path.realpath(path))
    try:
        if path.exists() and (not path.is_file() or str(path.absolute()).startswith(("/dev/", "/proc/"))):
            path.write_bytes(content)
        else:
            _put(whole, content)
    except OSError as error:
        raise UsageError(f"Cannot write '{path}': choose another place.") from error


def _put(whole: Path, content: bytes) -> None:
    there = stat.S_IMODE(whole.stat().st_mode) if whole.exists() else None
    partial = whole.with_name(f".dpicl-{secrets.token_hex(8)}")
    try:
        mode = 0o666 if there is None else 0o600  # minus the umask
        made = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(made, "wb") as file:
            if there is not None:
                os.fchmod(made, there)  # before it has any content
            file.write(content)
            file.flush()
            os.fsync(made)
        try:
            os.replace(partial, whole)
        except OSError:
            if not whole.exists():
                raise
            whole.write_bytes(content)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def check_writable(path: str) -> None:
    """Check, before a run that is charged, that its result can be written; `UsageError` if not."""
    folder, there = os.path.dirname(os.path.realpath(path)), os.path.exists(path)
    places = [path] if there and not os.path.isfile(path) else [folder, path] if there else [folder]
    if os.path.isdir(path) or not all(os.access(each, os.W_OK) for each in places):
        raise UsageError(f"Cannot write '{path}': choose another place.")


def text_of(path: str) -> str:
    """The text of a file named by the user; `UsageError` if it cannot be read as UTF-8."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read '{path}': give the path of a UTF-8 text file.") from error


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Characters with which a cell may not begin (OWASP, "CSV injection"); the last four are the wide forms of the first
four."""


def safe(cell: str) -> str:
    """A cell with a leading quote if a spreadsheet would interpret it as a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
