"""Clipped differences from the public logits (InvisibleInk, Vinod et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.discovery import parameter
from mechanisms.noise import Integers
from mechanisms.steps.distributions import TokenDistributions, to_lattice
from mechanisms.steps.softmax_draw import SoftmaxDraw


@dataclass(frozen=True)
class DifferenceClipping(SoftmaxDraw):
    """Clip every row's difference from the public logits to [-C, C], add their average over the public batch size B to
    the public logits, and draw the token from softmax at temperature tau.

    A unit adds a vector of range 2C, so the softmax's logits change by a range of `2C / (B tau)`. A small C yields
    public text.
    """

    name: ClassVar[str] = "difference-clipping"
    title: ClassVar[str] = "Clipped differences from public logits"
    citation: ClassVar[str] = "Vinod et al. 2025 (InvisibleInk)"
    proof: ClassVar[str] = "docs/mechanisms.md#difference-clipping-invisibleink-vinod-et-al-2025"
    calibrated: ClassVar[str | None] = "clip"
    is_noise: ClassVar[bool] = False

    clip: float = parameter(
        1.0,
        label="Clipping bound",
        help="How far one unit may pull a token's logit away from the public one; the lower, the more private.",
        low=1e-7,
        high=1e3,
        citation="Vinod et al. 2025 (C)",
    )
    temperature: float = parameter(
        1.0,
        label="Temperature",
        help="Temperature of the softmax from which the token is drawn; 1 leaves public text unchanged.",
        low=0.01,
        high=10.0,
        citation="Vinod et al. 2025 (tau)",
    )
    batch: int = 0
    """B, the public batch size; set by `for_plan`."""

    @property
    def span(self) -> float:
        return 2 * self.clip

    def aggregate(self, distributions: TokenDistributions) -> Integers:
        """B times the new logits plus a constant, in units of 1 / GRID."""
        public = distributions.public
        with np.errstate(over="ignore"):
            differences = np.clip(distributions.unit_logits() - public, -self.clip, self.clip)
        # From 0 to 2C, not from -C to C: the shift does not change the softmax, and rounding down then keeps the span.
        private = to_lattice(differences + self.clip).sum(axis=0)
        # Lower logits have negligible probability, and would overflow the lattice.
        shifted = np.maximum(public - public.max(), -1e4)
        return np.asarray(private + distributions.expected_rows * to_lattice(shifted), dtype=np.int64)


MECHANISM = DifferenceClipping
