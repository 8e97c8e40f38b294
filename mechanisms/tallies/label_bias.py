"""The model's preferred labels on private units: the sum of its label probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.tallies.tally import LATTICE, Histogram


@dataclass(frozen=True)
class LabelBias(Histogram):
    """The model's label probabilities for a unit, in the cells of the one set that the unit judges; others are zero.

    A unit that judges several sets has to share its norm of 1 among them.
    """

    name: ClassVar[str] = "prior"
    proof: ClassVar[str] = "docs/tallies.md#prior"

    @property
    def steps(self) -> int:
        return LATTICE


TALLY = LabelBias
