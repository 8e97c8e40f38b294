"""The operating system's noise drawn in blocks, for simulations that take the same step a hundred thousand times."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from mechanisms.noise.secure import SecureRandomness
from mechanisms.noise.source import Integers

_LARGEST_BLOCK = 4096
_KEPT = 64


class PrefetchedRandomness(SecureRandomness):
    """`SecureRandomness` that draws Gaussian noise ahead of time; every draw is used once.

    It keeps state, so that it serves one thread. Private runs use `SecureRandomness`.
    """

    def __init__(self) -> None:
        self._blocks: OrderedDict[tuple[int, float], tuple[Integers, int]] = OrderedDict()

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """See `Randomness.gaussian`; noise on integers is the same before and after the values are known."""
        key = (len(values), scale)
        block, used = self._blocks.pop(key, (np.empty((0, len(values)), dtype=np.int64), 0))
        if used == len(block):
            # Blocks double, so that a scale that comes once costs one draw.
            size = min(max(1, 2 * len(block)), _LARGEST_BLOCK)
            noise = super().gaussian(np.zeros(size * len(values), dtype=np.int64), scale)
            block, used = noise.reshape(size, len(values)), 0
        self._blocks[key] = (block, used + 1)
        if len(self._blocks) > _KEPT:
            self._blocks.popitem(last=False)
        return np.asarray(values + block[used], dtype=np.int64)
