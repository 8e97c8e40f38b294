"""Numbers of rows at which every slot of a batch computes alike, found out on the device itself.

A matrix kernel works in blocks of rows and does the last, smaller block with other instructions, or gives each thread a
blocking of its own; either rounds differently, so that a row's last bits tell where it sits. Nobody sits elsewhere
because somebody left (docs/accounting.md), so that this is defence in depth: with it a row's numbers are its own.
Which numbers of rows are safe depends on processor, threads and library.
"""

from __future__ import annotations

import math

import torch

from mechanisms.inference.engine.chunk import Chunk
from mechanisms.inference.engine.device_room import DeviceRoom
from mechanisms.inference.engine.forward import ForwardPass

_MULTIPLES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
_BEFORE = 16
"""Positions that the rows attend to in a comparison: kernels that mix rows do not see how many there are."""


class Slots:
    """Chooses the shape of chunks for one model on one device; what it has found out, it remembers."""

    def __init__(self, forward: ForwardPass) -> None:
        self._forward = forward
        self._known: dict[tuple[int, int, int], bool] = {}

    def layout(self, room: DeviceRoom, rows: int, limit: int, length: int) -> tuple[int, int]:
        """Number of chunks and rows of each, as few as every slot computes alike with; see `layout`.

        Without such a number within the limit, the chunks are those that memory allows.

        Args:
            room: of the device.
            rows: to be computed; the chunks have room for a few more.
            limit: rows of a chunk at most.
            length: positions of a row in the first pass; 1 where only single tokens follow.
        """
        return self.found(room, rows, limit, length) or layout(rows, limit, room.in_a_pass(length))

    def found(self, room: DeviceRoom, rows: int, limit: int, length: int) -> tuple[int, int] | None:
        """The same as `layout`, or None where no number of rows within the limit is known to be alike."""
        for multiple in (each for each in _MULTIPLES if each <= limit):
            chunks, per_chunk = layout(rows, limit, room.in_a_pass(length), multiple)
            if self.alike(per_chunk, 1) and self.alike(room.slices(per_chunk, length), length):
                return chunks, per_chunk
        return None

    def alike(self, rows: int, positions: int) -> bool:
        """Whether equal rows give equal bits in every slot of a pass of rows x positions, with the present threads."""
        key = (rows, positions, torch.get_num_threads())
        if rows > 1 and key not in self._known:
            with torch.inference_mode():
                self._known[key] = self._compared(rows, positions)
        return rows == 1 or self._known[key]

    def _compared(self, rows: int, positions: int) -> bool:
        # The whole model: a difference in the last bit is seldom seen behind a few layers in bfloat16.
        words, forward = torch.arange(_BEFORE + positions) % 97 + 1, self._forward
        cache = forward.prefix(words[:_BEFORE].tolist()).expanded(rows, len(words))
        tokens = words[_BEFORE:].expand(rows, -1)
        features = forward(Chunk(cache, tokens, torch.ones((rows, len(words)), dtype=torch.long)))
        seen = [features, cache.layers[-1].keys, cache.layers[-1].values]
        if positions == 1:
            columns = torch.arange(2, device=forward.device)
            seen += [forward.head.logits(features), forward.head.logits(features, columns)]
        return all(bool((each == each[:1]).all()) for each in seen)


def layout(rows: int, limit: int, in_a_pass: int, multiple: int = 1) -> tuple[int, int]:
    """Number of chunks, and rows of each, all of one shape, which splits into passes of one shape.

    Args:
        rows: to be computed; the chunks have room for a few more.
        limit: rows of a chunk at most, but for what passes of one shape add; no less than `multiple`.
        in_a_pass: rows of a forward pass at most.
        multiple: that the rows of a chunk are of.
    """
    chunks = math.ceil(rows / (limit // multiple * multiple))
    per_chunk = math.ceil(rows / chunks)
    steps = [multiple]
    if per_chunk > in_a_pass:
        steps = [math.lcm(size, multiple) for size in range(in_a_pass, in_a_pass // 2, -1)]
    return chunks, min(math.ceil(per_chunk / step) * step for step in steps)
