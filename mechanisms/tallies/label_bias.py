"""The model's label bias: the noisy sum of its label probabilities over private units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.tallies.tally import LATTICE, Histogram


@dataclass(frozen=True)
class LabelBias(Histogram):
    """A unit's vector has the model's label probabilities for the unit, in the cells of the one set that it judges.

    All other cells are zero. A unit that judges several sets has to divide its norm of 1 among them.
    """

    name: ClassVar[str] = "prior"
    proof: ClassVar[str] = "docs/tallies.md#prior"

    @property
    def steps(self) -> int:
        return LATTICE


TALLY = LabelBias
