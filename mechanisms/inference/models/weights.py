"""Weight files: where they lie, their digests and their numbers of parameters, without reading a tensor."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gguf import GGUFReader
from safetensors import SafetensorError, safe_open

from mechanisms.errors import ModelUnavailable
from mechanisms.files import cache_folder, write_once


def files_in_wheel(wheel: str, name_holds: str) -> list[Path]:
    """The files of a PyPI wheel with a string in their name, sorted by name; none if it is not installed.

    They are found through the wheel's metadata: the package is never imported.
    """
    try:
        files = importlib.metadata.files(wheel) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(Path(str(file.locate())) for file in files if name_holds in file.name)


_MAGIC = b"GGUF"


@contextmanager
def kept_in(cache: Path) -> Iterator[None]:
    """Turn an error of the cache into a one-line `ModelUnavailable`."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(
            f"The model cannot be stored in '{cache}': make room there, or set DPICL_CACHE to another folder."
        ) from error


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remembered_digest(gguf: Path) -> str:
    """Like `file_digest`, but cached by the file's path, size and time of change.

    If the cache cannot be written, it is computed each time.
    """
    state = gguf.stat()
    key = hashlib.sha256(f"{gguf}|{state.st_size}|{state.st_mtime_ns}".encode()).hexdigest()[:16]
    note = cache_folder() / f"{gguf.stem}-{key}.sha256"
    if note.exists():
        return note.read_text()
    digest = file_digest(gguf)
    with suppress(OSError):
        write_once(note, digest.encode())
    return digest


def conversion_of(gguf: Path) -> Path:
    """The cache folder for the conversion of a GGUF file; other files are refused by their first bytes."""
    try:
        with gguf.open("rb") as file:
            is_gguf = file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        is_gguf = False
    if not is_gguf:
        raise ModelUnavailable(f"{gguf.name} cannot be read as a GGUF language model.")
    return cache_folder() / f"{gguf.stem}-{remembered_digest(gguf)[:16]}"


def converted_before(folder: Path) -> bool:
    """Whether a folder of `conversion_of` exists and is complete."""
    return (folder / "config.json").exists()


def parameters_in_gguf(gguf: Path) -> int:
    try:
        return sum(int(tensor.n_elements) for tensor in GGUFReader(gguf).tensors)
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise ModelUnavailable(f"{gguf.name} cannot be read as a GGUF language model.") from error


def has_weights(folder: Path) -> bool:
    """Whether a folder has all of its safetensors files: a fetch may have stopped between two."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return any(folder.glob("*.safetensors"))
    try:
        return all((folder / file).exists() for file in json.loads(index.read_bytes())["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ModelUnavailable(
            f"The weights in '{folder}' are damaged: remove that folder, and load the model again to fetch them."
        ) from error


def parameters_in_folder(folder: Path) -> int:
    """The number of parameters in a folder's safetensors files. Other weight files (pickles) are never read."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelUnavailable(f"The folder '{folder.name}' has no .safetensors file, and other weights are not read.")
    try:
        total = 0
        for path in files:
            with safe_open(path, framework="np") as file:
                total += sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(f"The weights in '{folder.name}' are damaged.") from error
    return total


def source_digest(source: Path | str, model: Any) -> str:
    """SHA-256 of the weights' source: of the digests of a folder's weight files, or of a hub id and its revision."""
    if isinstance(source, Path):
        parts = [file_digest(path) for path in sorted(source.glob("*.safetensors"))]
        return hashlib.sha256("".join(parts).encode()).hexdigest()
    revision = getattr(model.config, "_commit_hash", None) or "unknown"
    return hashlib.sha256(f"{source}@{revision}".encode()).hexdigest()
