"""Weight files: their digests, and how many parameters they hold, without a tensor being read."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gguf import GGUFReader
from safetensors import SafetensorError, safe_open

from mechanisms.errors import ModelUnavailable
from mechanisms.home import cache_folder, write_once

_MAGIC = b"GGUF"


@contextmanager
def kept_in(cache: Path) -> Iterator[None]:
    """Tell of a cache that cannot be written, in one line.

    Raises:
        ModelUnavailable: so it is.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(
            f"The model cannot be kept in '{cache}': make room there, or set DPICL_CACHE to another folder."
        ) from error


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remembered_digest(gguf: Path) -> str:
    """As `file_digest`, computed once for a file: remembered by its path, size and time of change.

    Where the cache cannot be written, it is computed each time.
    """
    state = gguf.stat()
    key = hashlib.sha256(f"{gguf}|{state.st_size}|{state.st_mtime_ns}".encode()).hexdigest()[:16]
    note = cache_folder() / f"{gguf.stem}-{key}.sha256"
    if note.exists():
        return note.read_text()
    digest = file_digest(gguf)
    with contextlib.suppress(OSError):
        write_once(note, digest.encode())
    return digest


def conversion_of(gguf: Path) -> Path:
    """The folder in the cache that a GGUF file is converted into; there once that was done.

    Raises:
        ModelUnavailable: it is no GGUF file; another one is not read beyond its first bytes.
    """
    try:
        with gguf.open("rb") as file:
            is_gguf = file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        is_gguf = False
    if not is_gguf:
        raise ModelUnavailable(f"{gguf.name} cannot be read as a GGUF language model.")
    return cache_folder() / f"{gguf.stem}-{remembered_digest(gguf)[:16]}"


def converted_before(folder: Path) -> bool:
    """Whether a folder of `conversion_of` is there, complete."""
    return (folder / "config.json").exists()


def parameters_in_gguf(gguf: Path) -> int:
    """How many numbers a GGUF file's tensors have.

    Raises:
        ModelUnavailable: it is damaged.
    """
    try:
        return sum(int(tensor.n_elements) for tensor in GGUFReader(gguf).tensors)
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise ModelUnavailable(f"{gguf.name} cannot be read as a GGUF language model.") from error


def parameters_in_folder(folder: Path) -> int:
    """How many numbers a folder's safetensors files hold.

    Raises:
        ModelUnavailable: there is none, or a damaged one. Other weight files (pickles) are never read.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelUnavailable(f"The folder '{folder.name}' holds no .safetensors file: other weights are not read.")
    try:
        return sum(_parameters(path) for path in files)
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(f"The weights in '{folder.name}' are damaged.") from error


def _parameters(path: Path) -> int:
    with safe_open(path, framework="np") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
