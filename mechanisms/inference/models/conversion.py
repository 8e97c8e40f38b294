"""A GGUF file, converted once to safetensors, one tensor after the other."""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader, ReaderTensor, dequantize
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.modeling_gguf_pytorch_utils import (
    TENSOR_PROCESSORS,
    GGUFTensor,
    TensorProcessor,
    get_gguf_hf_weights_map,
)

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.models.refusal import refuse_by_config
from mechanisms.inference.models.weights import conversion_of, converted_before, kept_in

_SHARD = 2**28
"""Bytes after which a file of weights is written. More than a file and the largest tensor is never in memory."""
_AT_ONCE = 2**24
"""Numbers of an embedding that are dequantised at once."""
_EMBEDDINGS = ("token_embd.weight", "output.weight")
_UNREADABLE = (OSError, ValueError, KeyError, IndexError, NotImplementedError, struct.error)


def converted(gguf: Path, tell: Callable[[float], object] = lambda share: None) -> Path:
    """A folder with the model of a GGUF file, dequantised to bfloat16; created on first use.

    Args:
        tell: receives the share of the file's numbers that are converted.

    Raises:
        ModelUnavailable: the file cannot be read, its model is of a refused kind, or the cache cannot be written.
    """
    folder = conversion_of(gguf)
    if converted_before(folder):
        return folder
    with kept_in(folder.parent):
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        model, tokenizer = _without_weights(gguf)
        with kept_in(folder.parent):
            _write_weights(_tensors(gguf, model, tell), unfinished)
            for each in (model.config, model.generation_config, tokenizer):
                each.save_pretrained(unfinished)
            os.replace(unfinished, folder)
    except ModelUnavailable:
        if not converted_before(folder):  # another process was faster
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _without_weights(gguf: Path) -> tuple[Any, Any]:
    """The model that a file describes, with no memory for its weights, and the tokenizer."""
    try:
        config = AutoConfig.from_pretrained(gguf.parent, gguf_file=gguf.name, trust_remote_code=False)
        refuse_by_config(config)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, trust_remote_code=False)
        model.config.architectures = [type(model).__name__]
        return model, AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, trust_remote_code=False)
    except _UNREADABLE as error:
        raise _unreadable(gguf) from error


def _tensors(gguf: Path, model: PreTrainedModel, tell: Callable[[float], object]) -> Iterator[tuple[str, torch.Tensor]]:
    """The model's weights in bfloat16 by their names in transformers, one at a time.

    Raises:
        ModelUnavailable: the file cannot be read, or lacks a weight.
    """
    try:
        reader = GGUFReader(gguf)
        architecture = reader.get_field("general.architecture")
        kind = TENSOR_PROCESSORS.get(architecture.contents() if architecture else None, TensorProcessor)
        processor = kind(config=model.config.to_dict())
        names = get_gguf_hf_weights_map(model, processor)
        missing = {name for name, _ in model.named_parameters()}  # tied weights have one name
        whole, done = sum(int(each.n_elements) for each in reader.tensors), 0
        for tensor in reader.tensors:
            name, weight = _converted(tensor, partial(processor.process, tensor_key_mapping=names))
            if name in names:
                missing.discard(names[name])
                yield names[name], weight
            done += int(tensor.n_elements)
            tell(done / whole)
    except _UNREADABLE as error:
        raise _unreadable(gguf) from error
    if missing:
        raise _unreadable(gguf)


def _converted(tensor: ReaderTensor, process: Callable[..., GGUFTensor]) -> tuple[str | None, torch.Tensor]:
    """A tensor's name in the file, or None if it is not needed, and its numbers.

    Embeddings, which are by far the largest, are converted in parts of some rows.
    """
    rows, of_type = len(tensor.data), tensor.tensor_type
    if tensor.name not in _EMBEDDINGS:
        found = process(weights=dequantize(tensor.data, of_type), name=tensor.name)
        return found.name, torch.tensor(found.weights, dtype=torch.bfloat16)
    weight = torch.empty((rows, int(tensor.n_elements) // rows), dtype=torch.bfloat16)
    name, step = None, max(1, _AT_ONCE * rows // int(tensor.n_elements))
    for start in range(0, rows, step):
        numbers, name, _ = process(weights=dequantize(tensor.data[start : start + step], of_type), name=tensor.name)
        weight[start : start + step] = torch.tensor(numbers, dtype=torch.bfloat16)
    return name, weight


def _write_weights(tensors: Iterator[tuple[str, torch.Tensor]], folder: Path) -> None:
    """Write weights into files of about `_SHARD` bytes, and the index of names that transformers reads."""
    places: dict[str, str] = {}
    shard: dict[str, torch.Tensor] = {}

    def write() -> None:
        name = f"model-{len({*places.values()}) + 1:05}.safetensors"
        save_file(shard, folder / name, metadata={"format": "pt"})
        places.update(dict.fromkeys(shard, name))
        shard.clear()

    for name, tensor in tensors:
        shard[name] = tensor
        if sum(each.nbytes for each in shard.values()) >= _SHARD:
            write()
    if shard:
        write()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))


def _unreadable(gguf: Path) -> ModelUnavailable:
    return ModelUnavailable(f"{gguf.name} cannot be read as a GGUF language model.")
