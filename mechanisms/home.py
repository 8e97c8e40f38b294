"""The user's data folder: the ledger and the key of digests and signatures live here, readable by the user alone."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path

from mechanisms.errors import StudioError, UsageError

_KEY_BYTES = 32


def data_folder() -> Path:
    """`DPICL_HOME`, or the platform's usual place; created with mode 0700."""
    default = Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share")) / "dpicl-studio"
    folder = Path(os.environ.get("DPICL_HOME", default))
    return _made(folder, 0o700)


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

    Raises:
        UsageError: the key file cannot be written or read.
        StudioError: it is damaged.
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
    """A 32-byte key for one purpose, from the installation's: what becomes known of it tells nothing of the others."""
    return hmac.digest(secret_key(), purpose.encode(), "sha256")


def write_once(path: Path, content: bytes) -> None:
    """Write a file that is complete before it has its name; the first of several processes wins.

    Raises:
        OSError: the folder cannot be written, or the disk is full; then nothing is left there.
    """
    descriptor, partial = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(partial, path)
    finally:
        os.unlink(partial)


def keyed_digest(parts: Iterable[str], key: bytes | None = None) -> str:
    """HMAC-SHA256 of a sequence of strings under the installation's key: comparable here, meaningless elsewhere.

    Args:
        parts: what is digested; where one ends and the next begins counts.
        key: `secret_key()`, where a caller with many digests has read it already.
    """
    digest = hmac.new(key or secret_key(), digestmod=hashlib.sha256)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()
