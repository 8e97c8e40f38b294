"""Private prediction with logits blended half and half with public ones (Bhusal et al. 2026, algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.discovery import parameter
from mechanisms.noise import Floats, Integers
from mechanisms.steps.distributions import TokenDistributions, to_lattice
from mechanisms.steps.softmax_draw import SoftmaxDraw


@dataclass(frozen=True)
class BlendedLogits(SoftmaxDraw):
    """Clip every row's logits to [-c, c] below their maximum, average over the public batch size s, blend with the
    clipped public logits, and draw the token from softmax at temperature tau.

    A unit adds a vector of range 2c, so the softmax's logits change by a range of `c / (s tau)`.
    """

    name: ClassVar[str] = "blended-logits"
    title: ClassVar[str] = "Blended logits"
    citation: ClassVar[str] = "Bhusal et al. 2026, algorithm 1"
    proof: ClassVar[str] = "docs/mechanisms.md#blended-logits-bhusal-et-al-2026-algorithm-1"
    calibrated: ClassVar[str | None] = "temperature"
    logits_in_sum: ClassVar[int] = 2

    temperature: float = parameter(
        1.0,
        label="Temperature",
        help="Temperature of the softmax from which the token is drawn; the higher, the more private.",
        low=1e-6,
        high=1e7,
        citation="Bhusal et al. 2026, algorithm 1 (tau)",
    )
    clip: float = parameter(
        10.0,
        label="Clipping bound",
        help="Logits more than twice this below a row's largest are raised to that bound.",
        low=0.01,
        high=100.0,
        citation="Bhusal et al. 2026, equation 2 (c)",
    )
    batch: int = 0
    """s, the public batch size; set by `for_plan`."""

    @property
    def span(self) -> float:
        """c: half of a row's range of 2c, because the other half of the logits is public."""
        return self.clip

    def _clipped(self, logits: Floats) -> Floats:
        # From 0 to 2c, not from -c to c: the shift does not change the softmax, and rounding down then keeps the span.
        with np.errstate(over="ignore"):
            return np.asarray(np.maximum(0.0, logits - logits.max(axis=-1, keepdims=True) + 2 * self.clip))

    def aggregate(self, distributions: TokenDistributions) -> Integers:
        """2s times the blended logits plus a constant, in units of 1 / GRID."""
        private = to_lattice(self._clipped(distributions.unit_logits())).sum(axis=0)
        public = distributions.expected_rows * to_lattice(self._clipped(distributions.public))
        return np.asarray(private + public, dtype=np.int64)


MECHANISM = BlendedLogits
