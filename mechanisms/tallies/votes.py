"""Votes on drafts: a unit votes for the draft most similar to it (after Xie et al. 2024, private evolution)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.accounting import PrivacyTarget
from mechanisms.tallies.tally import Histogram, steps_of


@dataclass(frozen=True)
class Votes(Histogram):
    """A one-hot vector a record; the mean of one-hot vectors a user. The whole noisy ballot is released."""

    name: ClassVar[str] = "votes"
    title: ClassVar[str] = "Votes on drafts"

    by_user: bool

    @classmethod
    def costing(cls, target: PrivacyTarget, by_user: bool, alternatives: int) -> Votes:
        return cls(target.epsilon, by_user)

    @property
    def steps(self) -> int:
        return steps_of(self.by_user)


TALLY = Votes
