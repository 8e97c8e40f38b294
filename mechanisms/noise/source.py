"""The protocol of a source of randomness."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Randomness(Protocol):
    """Everything random that a private run needs."""

    private: bool
    """False when an observer could predict it: whatever is made with it must not be called private."""

    def gaussian(self, values: Integers, scale: float) -> Integers:
        """`values` (any length) plus discrete Gaussian noise of standard deviation `scale`, both on the integers."""
        ...

    def uniform(self, count: int) -> Floats:
        """`count` independent uniform draws from the open interval (0, 1)."""
        ...

    def permutation(self, size: int) -> Integers:
        """A uniformly random permutation of 0 .. size-1."""
        ...
