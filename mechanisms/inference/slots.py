"""Numbers of rows at which every slot of a batch computes alike, found out on the device itself.

A matrix kernel works in blocks of rows and does the last, smaller block with other instructions, or gives each thread a
blocking of its own; either rounds differently. Rows that stand behind a removed one would then all move by a bit, which
the sensitivity does not cover. Which numbers are safe depends on processor, threads and library (docs/engine.md).
"""

from __future__ import annotations

import math

import torch
from transformers import PreTrainedModel

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.chunk import Chunk
from mechanisms.inference.device_room import DeviceRoom
from mechanisms.inference.forward import first_layers

_MULTIPLES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)


class Slots:
    """Chooses the shape of chunks for one model on one device; what it has found out, it remembers."""

    def __init__(self, model: PreTrainedModel) -> None:
        # Two layers, because the numbers of a position that the second one keeps have been through the whole first one.
        self._layers = first_layers(model, 2)
        self._known: dict[tuple[int, int, int], bool] = {}

    def layout(self, room: DeviceRoom, rows: int, limit: int, length: int, held: int) -> tuple[int, int]:
        """Number of chunks and rows of each, as few as every slot computes alike with.

        Args:
            room: of the device.
            rows: to be computed; the chunks have room for a few more.
            limit: rows of a chunk at most, or the multiple that is needed where that is more.
            length: positions of a row in the first pass; 1 where only single tokens follow.
            held: positions that a row attends to in the end.

        Raises:
            ModelUnavailable: with none of the numbers tried do all slots compute alike.
        """
        for multiple in _MULTIPLES:
            chunks, per_chunk = layout(rows, limit, room.in_a_pass(length), multiple)
            first = room.slices(per_chunk, length)
            if self._alike(per_chunk, 1, held - 1) and self._alike(first, length, held - length):
                return chunks, per_chunk
        raise ModelUnavailable(
            "On this device the model's result for a row depends on its place in the batch, which breaks the privacy "
            "proof. Use another model, or the CPU."
        )

    def _alike(self, rows: int, positions: int, before: int) -> bool:
        """Whether equal rows give equal bits in every slot of a pass of rows x positions, with others before these."""
        key = (rows, positions, torch.get_num_threads())
        if rows > 1 and key not in self._known:
            with torch.inference_mode():
                self._known[key] = self._compared(rows, positions, before)
        return rows == 1 or self._known[key]

    def _compared(self, rows: int, positions: int, before: int) -> bool:
        words, forward = torch.arange(before + positions) % 97 + 1, self._layers
        cache = forward.prefix(words[:before].tolist()).expanded(rows, len(words))
        tokens = words[before:].expand(rows, -1)
        features = forward(Chunk(cache, tokens, torch.ones((rows, len(words)), dtype=torch.long)))
        seen = [features, cache.layers[-1].keys, cache.layers[-1].values]
        if positions == 1:
            seen += [
                forward.head.logits(features),
                forward.head.logits(features, torch.arange(2, device=forward.device)),
            ]
        return all(bool((each == each[:1]).all()) for each in seen)


def layout(rows: int, limit: int, in_a_pass: int | None = None, multiple: int = 1) -> tuple[int, int]:
    """Number of chunks, and rows of each, all of one shape, which splits into passes of one shape.

    Args:
        rows: to be computed; the chunks have room for a few more.
        limit: rows of a chunk at most, but for one `multiple`.
        in_a_pass: rows of a forward pass at most; None where a chunk is one pass.
        multiple: that the rows of a chunk are of.
    """
    chunks = math.ceil(rows / max(multiple, limit // multiple * multiple))
    per_chunk = math.ceil(rows / chunks)
    steps = [multiple]
    if in_a_pass is not None and per_chunk > in_a_pass:
        steps = [math.lcm(size, multiple) for size in range(in_a_pass, in_a_pass // 2, -1)]
    return chunks, min(math.ceil(per_chunk / step) * step for step in steps)
