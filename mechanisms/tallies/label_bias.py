"""The model's preferred labels on private units: the sum of its label probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.accounting import PrivacyTarget
from mechanisms.tallies.tally import LATTICE, Histogram


@dataclass(frozen=True)
class LabelBias(Histogram):
    """The model's label probabilities for a unit, in the cells of the one set that the unit judges; others are zero.

    A unit that judges several sets has to share its norm of 1 among them.
    """

    name: ClassVar[str] = "prior"
    title: ClassVar[str] = "Label preferences of the model"

    @classmethod
    def costing(cls, target: PrivacyTarget, by_user: bool, alternatives: int) -> LabelBias:
        return cls(target.epsilon)

    @property
    def steps(self) -> int:
        return LATTICE


TALLY = LabelBias
