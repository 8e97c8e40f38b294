"""Votes on drafts: a unit votes for the one that it is most like (after Xie et al. 2024, private evolution)."""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.tallies.histogram import Histogram, steps_of


@dataclass(frozen=True)
class Votes(Histogram):
    """A one-hot vector a record; the mean of one-hot vectors a user. The whole noisy ballot is released."""

    by_user: bool

    @property
    def steps(self) -> int:
        """See `Histogram.steps`."""
        return steps_of(self.by_user)
