"""The user's data folder: the ledger and the key of its digests live here, readable by the user alone."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from pathlib import Path


def data_folder() -> Path:
    """`DPICL_HOME`, or the platform's usual place; created with mode 0700."""
    default = Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share")) / "dpicl-studio"
    folder = Path(os.environ.get("DPICL_HOME", default))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def cache_folder() -> Path:
    """`DPICL_CACHE`, or the platform's usual place; holds converted models only, nothing private."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dpicl-studio"
    folder = Path(os.environ.get("DPICL_CACHE", default))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def secret_key() -> bytes:
    """The installation's 32-byte key, made on first use, stored with mode 0600."""
    path = data_folder() / "key"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(32))
    return path.read_bytes()


def keyed_digest(parts: Iterable[str]) -> str:
    """HMAC-SHA256 of a sequence of strings under the installation's key: comparable here, meaningless elsewhere."""
    digest = hmac.new(secret_key(), digestmod=hashlib.sha256)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()
