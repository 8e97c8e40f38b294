"""From a name to a loaded model: a listed one, a local folder, a GGUF file, or a hub id."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.utils import logging as hub_logging
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference.engine.device import (
    CPU,
    CUDA,
    Device,
    chosen_device,
    prepare,
)
from mechanisms.inference.engine.eight_bits import eight_bits_work, round_to_eight_bits
from mechanisms.inference.engine.limits import available_memory
from mechanisms.inference.engine.memory import release_freed_memory
from mechanisms.inference.engine.threads import computing, threads_here
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.models.conversion import converted
from mechanisms.inference.models.fetching import fetch
from mechanisms.inference.models.listed import (
    EMBEDDED,
    ModelListing,
    available_models,
    default_name,
    file_of,
    located,
    no_model,
    published_parameters,
)
from mechanisms.inference.models.refusal import refuse_by_config, refuse_by_test
from mechanisms.inference.models.weights import (
    conversion_of,
    converted_before,
    has_weights,
    parameters_in_folder,
    parameters_in_gguf,
    remembered_digest,
    source_digest,
)

_WHILE_CONVERTING = 3
"""Bytes a parameter while a GGUF file is converted: 2.7 for the embedded model, .9 for Qwen2.5-Coder-1.5B."""


@dataclass(frozen=True)
class ModelNeeds:
    """Facts about a model, known without loading it.

    Attributes:
        parameters: their number, as published; None if it is not listed and no file on this machine shows it.
        on_disk: its weights are on this machine; others are fetched when it is loaded.
        converted: its weights can be read without conversion; a GGUF file is converted once, which needs more memory
            than the model.
        held: the numbers in its weights: more than its parameters where embeddings that are also the last layer's
            weights are in its file twice, as in GGUF files of Qwen2.5.
    """

    parameters: int | None
    on_disk: bool
    converted: bool = True
    held: int | None = None

    @property
    def memory(self) -> int | None:
        """Bytes for its weights while it is loaded; a run's computations take more."""
        if (count := self.held or self.parameters) is None:
            return None
        bits = _bits(count)
        return count * (bits if self.converted else max(bits, 8 * _WHILE_CONVERTING)) // 8


def needs(name: str) -> ModelNeeds:
    """The needs of a model, by the name that `load_model` accepts."""
    _, source = located(name)
    listed = next((each.parameters for each in available_models() if each.name == name), None)
    if isinstance(source, str):
        try:
            source = Path(snapshot_download(source, local_files_only=True))
        except (OSError, ValueError):  # missing, or not an id
            return ModelNeeds(listed, False, converted=not file_of(name))
        if not has_weights(source):
            return ModelNeeds(listed, False, converted=not file_of(name))
    if source.is_file():
        folder = conversion_of(source)
        listed = listed or published_parameters(remembered_digest(source))
        if not converted_before(folder):
            return ModelNeeds(listed or parameters_in_gguf(source), True, converted=False)
        source = folder
    held = parameters_in_folder(source)
    return ModelNeeds(listed or held, True, held=held)


def memory_of(name: str) -> int:
    """Bytes of a listed model's weights on the chosen device; 0 if its files are damaged."""
    try:
        return needs(name).memory or 0
    except ModelUnavailable:
        return 0


WEIGHTS = "DPICL_WEIGHTS"
FULL, EIGHT_BIT, FOUR_BIT = "full", "8bit", "4bit"
_BITS_ON_GPU = {EIGHT_BIT: 9, FOUR_BIT: 5}
"""Bits of a parameter, including the scales of its block."""
_READ_BEFORE_ROUNDING = torch.bfloat16
"""The format in which a CPU reads a model that it then rounds to 8 bits, and its embeddings, norms and head."""
_BITS_BEFORE_ROUNDING = 24
"""Bits of a parameter while a CPU rounds them; afterwards embeddings and head have 32, the others 8."""
LARGE = 300_000_000
"""The parameters from which a CPU without fast bfloat16 rounds to 8 bits: smaller models lose more and gain less
(research/docs/engine.md)."""
_USABLE = 0.9
"""The part of a GPU's free memory for weights."""


def weight_format(parameters: int | None) -> str:
    """The format of a model's weights: "8bit", "4bit", or "full", that of the device.

    The environment's; if it states none, 8 bits for large models on a CPU in float32, else full.

    Raises:
        UsageError: the environment's format is not one of these, or this machine does not support it.
    """
    said, device = os.environ.get(WEIGHTS, "").strip().lower(), chosen_device()
    on_cpu = device.torch_device.type == CPU
    if not said:
        rounds = on_cpu and device.dtype == torch.float32 and eight_bits_work()
        return EIGHT_BIT if rounds and parameters is not None and parameters >= LARGE else FULL
    if said not in (FULL, EIGHT_BIT, FOUR_BIT):
        raise UsageError(f"{WEIGHTS} must be 8bit, 4bit or full, or unset.")
    if said == EIGHT_BIT and on_cpu:
        if not eight_bits_work():
            raise UsageError(f"{WEIGHTS}=8bit is not supported by this processor: unset it.")
    elif said != FULL and (device.torch_device.type != CUDA or find_spec("bitsandbytes") is None):
        raise UsageError(f"{WEIGHTS}={said} needs an NVIDIA GPU and bitsandbytes: pip install bitsandbytes")
    return said


def _bits(parameters: int) -> int:
    """The bits of a parameter while a model is loaded."""
    device, weights = chosen_device(), weight_format(parameters)
    if weights == EIGHT_BIT and device.torch_device.type == CPU:
        return _BITS_BEFORE_ROUNDING
    return _BITS_ON_GPU.get(weights, 8 * device.dtype.itemsize)


def free_memory() -> tuple[int, int]:
    """Bytes available for a model: on the chosen device, and in addition on the machine."""
    device = chosen_device().torch_device
    return (torch.cuda.mem_get_info(device)[0], available_memory()) if device.type == CUDA else (available_memory(), 0)


def refuse_too_large(name: str, freed: int = 0) -> ModelNeeds:
    """The needs of a model; refuses a model whose weights do not fit even with `freed` bytes more. An unknown size is
    accepted."""
    found, free = needs(name), sum(free_memory()) + freed
    needed = found.memory
    if needed is not None and needed > free:
        raise ModelUnavailable(
            f"The model '{name}' needs {in_gigabytes(needed)} of memory, and {in_gigabytes(free)} are free here: "
            "choose a smaller one."
        )
    return found


def in_gigabytes(count: int) -> str:
    return f"{count / 1e9:.2g} GB" if count < 1e10 else f"{count / 1e9:.0f} GB"


FETCHING, CONVERTING, READING, TESTING = "fetching it", "converting it once", "reading it", "testing rows"
"""The progress messages of `load_model`."""


def fetched(name: str, tell: Callable[[str], object] = lambda stage: None, freed: int = 0) -> ModelNeeds:
    """Fetch a model's files to this machine, and return its needs.

    Raises:
        ModelUnavailable: it cannot be fetched, does not fit even with `freed` bytes more, or its configuration shows
            that it is of a refused kind; this is checked before weights are fetched.
    """
    known = refuse_too_large(name, freed)
    if known.on_disk:
        return known
    hub_logging.set_verbosity_error()  # without a network it would report every try
    tell(FETCHING)
    fetch(
        str(located(name)[1]),
        file_of(name),
        lambda share: tell(f"{FETCHING}, {share:.0%}"),
        lambda folder: refuse_by_config(_config(name, folder)),
    )
    return refuse_too_large(name, freed)


def better_writer(than: int, most: float, freed: int = 0) -> ModelListing | None:
    """The largest listed model that fits here and needs no accepted licence; None if there is none.

    Args:
        than: a lower bound on its number of parameters.
        most: an upper bound on its number of parameters.
        freed: bytes that will be freed in addition.
    """
    room = sum(free_memory()) + freed
    sized = (each for each in available_models() if than < each.parameters <= most and each.offered)
    fitting = (each for each in sized if 0 < memory_of(each.name) <= room)
    return max(fitting, key=lambda each: each.parameters, default=None)


@computing
def load_model(
    name: str | None = None, threads: int | None = None, tell: Callable[[str], object] = lambda stage: None
) -> TransformersModel:
    """Load a model onto the best device, only from safetensors or GGUF, and without code that comes with it.

    Args:
        name: a name as for `--model`; None selects `default_name`.
        threads: the number of CPU threads from now on; None selects the environment's, else the number that the load
            allowed when this process loaded its first model.

    Raises:
        ModelUnavailable: it is not on this machine and cannot be fetched, does not fit in memory, is not a causal
            language model, or lets one row of a batch affect another.
        UsageError: the environment's number of threads is none.
    """
    logging.disable_progress_bar()
    name = name or default_name()
    known = fetched(name, tell)
    if threads is not None:
        threads_here().fix(threads)
    label, source = located(name)
    gguf = source if isinstance(source, Path) and source.is_file() else None
    if gguf is not None:
        tell(READING if known.converted else CONVERTING)
        source = converted(gguf, lambda share: tell(f"{CONVERTING}, {share:.0%}"))
        if not known.converted:
            release_freed_memory()  # otherwise the conversion's memory would be kept
    tell(READING)
    device = chosen_device()
    prepare(device)
    refuse_by_config(_config(name, source))
    model, tokenizer = _in_format(name, source, known, device)
    sha256 = source_digest(source, model) if gguf is None else remembered_digest(gguf)
    # The embedded model learns more from examples in plain text than in its chat template (research/docs/engine.md).
    loaded = TransformersModel(label, sha256, model, tokenizer, chat=name != EMBEDDED)
    if threads_here().number is None:
        threads_here().choose()
    tell(TESTING)
    refuse_by_test(loaded)
    return loaded


def _in_format(
    name: str, source: Path | str, known: ModelNeeds, device: Device
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model in the format of its weights, and its tokenizer."""
    weights = weight_format(known.held or known.parameters)
    if weights == EIGHT_BIT and device.torch_device.type == CPU:
        model, tokenizer = _read(name, source, dtype=_READ_BEFORE_ROUNDING)
        if round_to_eight_bits(model):
            release_freed_memory()
            return model.float() if device.dtype == torch.float32 else model, tokenizer
        weights = FULL  # a model without plain linear layers
    return _read(name, source, dtype=device.dtype, **_placement(known, device, weights))


def _placement(known: ModelNeeds, device: Device, weights: str) -> dict[str, Any]:
    """The placement of weights for accelerate: on the device or, if they do not fit, over all GPUs and the machine's
    memory."""
    arguments: dict[str, Any] = {}
    if weights in _BITS_ON_GPU:
        arguments["quantization_config"] = BitsAndBytesConfig(
            load_in_8bit=weights == EIGHT_BIT,
            load_in_4bit=weights == FOUR_BIT,
            # Outliers above a threshold are found in all rows of a batch, so that a row would change the others.
            llm_int8_threshold=0.0,
            bnb_4bit_compute_dtype=device.dtype,
        )
    free, beside = free_memory()
    place = device.torch_device
    if place.type == CPU:
        return {}
    if place.type != CUDA or (known.memory is not None and known.memory <= _USABLE * free):
        return arguments | {"device_map": {"": place}}
    # All GPUs, or the requested one.
    room = {} if place.index is None else {"max_memory": {place.index: int(_USABLE * free), CPU: beside}}
    return arguments | room | {"device_map": "auto"}


_UNREADABLE = (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError)


def _config(name: str, source: Path | str) -> Any:
    """A model's configuration, without its weights."""
    try:
        return AutoConfig.from_pretrained(source, local_files_only=True, trust_remote_code=False)
    except _UNREADABLE as error:
        raise no_model(name) from error


def _read(name: str, source: Path | str, **how: Any) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    try:
        model = AutoModelForCausalLM.from_pretrained(
            source,
            local_files_only=True,  # `fetch` has fetched exactly what is needed
            use_safetensors=True,  # pickles run code
            trust_remote_code=False,  # otherwise transformers asks on the terminal
            attn_implementation="eager",  # a config may name a kernel to be fetched; the engine sets its own
            **how,
        )
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True, trust_remote_code=False)
    except _UNREADABLE as error:
        raise no_model(name) from error
    return model, tokenizer
