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

    def exponential_argmax(self, values: Integers, scale: float) -> int:
        """Position of the largest of `values` (any length), each plus exponential noise of mean `scale`.

        The same as permute-and-flip (McKenna and Sheldon 2020; Ding et al. 2021): only the position is private.
        """
        ...

    def gumbel_argmax(self, values: Integers, scale: float) -> int:
        """Position drawn with probability proportional to exp(value / scale): the exponential mechanism."""
        ...

    def laplace(self, values: Integers, scale: float) -> Integers:
        """`values` (any length) plus discrete Laplace noise of scale `scale`, both on the integers."""
        ...

    def uniform(self, count: int) -> Floats:
        """`count` independent uniform draws from the open interval (0, 1)."""
        ...

    def poisson_sample(self, population: int, rate: float) -> Integers:
        """Positions, ascending, of the units that join: each of `population` independently with probability `rate`."""
        ...

    def permutation(self, size: int) -> Integers:
        """A uniformly random permutation of 0 .. size-1."""
        ...
