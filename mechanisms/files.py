"""Files: the user's data folder, what comes with the software, and results that are whole at all times."""

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

# The user's data folder: the ledger and the key of digests and signatures live here, readable by the user alone.

_KEY_BYTES = 32
_SPACE_DISK = Path("/data")
"""Where a Hugging Face Space keeps files over a restart, if its owner has asked for a disk."""


def data_place() -> Path:
    """`DPICL_HOME`, or a Space's persistent disk, or the platform's usual place, whether it is there or not."""
    usual = Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share"))
    kept = _SPACE_DISK if os.environ.get("SPACE_ID") and os.access(_SPACE_DISK, os.W_OK) else usual
    return Path(os.environ.get("DPICL_HOME", kept / "dpicl-studio"))


def data_folder() -> Path:
    """`data_place`, created with mode 0700."""
    return _made(data_place(), 0o700)


def cache_folder() -> Path:
    """`DPICL_CACHE`, or the platform's usual place; holds converted models only, nothing private."""
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
    """The installation's 32-byte key, made on first use, stored with mode 0600.

    A UsageError where the key file cannot be written or read, a StudioError where it is damaged.
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
    """A 32-byte key for one purpose, derived from the installation's: it reveals nothing of other derived keys."""
    return hmac.digest(secret_key(), purpose.encode(), "sha256")


def write_once(path: Path, content: bytes) -> None:
    """Write a file that is complete before it has its name; the first of several processes wins.

    An OSError where the folder cannot be written or the disk is full; then nothing is left there.
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
    """HMAC-SHA256 of strings under a key, or the installation's: comparable on this installation only.

    Where one string ends and the next begins counts.
    """
    digest = hmac.new(key or secret_key(), digestmod=hashlib.sha256)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()


# Files that come with the software: `assets/` of a checkout, which an installation keeps inside this package.

_HERE = Path(__file__).parent
_FOLDER = next(folder for folder in (_HERE / "assets", _HERE.parent / "assets") if folder.is_dir())


def bundled(name: str) -> Path:
    """Where a bundled file lies, e.g. `bundled("examples/clinic_messages.csv")`."""
    return _FOLDER / name


# Files that a user named: a result that is whole at all times, however a run ends, and a text.


def atomic_write(path: Path, content: str | bytes) -> None:
    """Replace the content of a file: readers see the old or the new content, never a part.

    Text is UTF-8 with its own line breaks. A link stays a link. What is not a file (/dev/null), and a file that may be
    written but not replaced (one that a container mounts), is written to. A UsageError where the place cannot be
    written; the old content is still there.
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
        mode = 0o666 if there is None else 0o600  # less what the umask takes
        made = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(made, "wb") as file:
            if there is not None:
                os.fchmod(made, there)  # before anything is in it
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
    """Before a run that costs something: a UsageError where its result cannot be written."""
    folder, there = os.path.dirname(os.path.realpath(path)), os.path.exists(path)
    places = [path] if there and not os.path.isfile(path) else [folder, path] if there else [folder]
    if os.path.isdir(path) or not all(os.access(each, os.W_OK) for each in places):
        raise UsageError(f"Cannot write '{path}': choose another place.")


def text_of(path: str) -> str:
    """Read a text file that the user named; a UsageError where it cannot be read as UTF-8."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read '{path}': give the path of a UTF-8 text file.") from error


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell may not begin with (OWASP, "CSV injection"); the last four are the wide forms of the first four."""


def safe(cell: str) -> str:
    """A cell with a quote before what a spreadsheet would compute."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
