"""Votes on drafts: a unit votes for the draft most similar to it (after Xie et al. 2024, private evolution)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.tallies.tally import WholeVotes


@dataclass(frozen=True)
class Votes(WholeVotes):
    """Each record casts a one-hot vector, each user the mean of one-hot vectors. The whole noisy ballot is released."""

    name: ClassVar[str] = "votes"
    proof: ClassVar[str] = "docs/tallies.md#votes"


TALLY = Votes
