"""Tallies: one noisy release of what private units say about public alternatives.

Each module of this package that defines `TALLY` is registered. `tally.py` has the part of the proof that all share.
"""

from mechanisms.tallies.label_bias import LabelBias
from mechanisms.tallies.openings import OpeningFinder, Openings, distinct
from mechanisms.tallies.prototypes import Prototypes
from mechanisms.tallies.score import Estimate, ScoreTally
from mechanisms.tallies.tally import (
    Weighing,
    masses,
    mean_contribution,
    usual_weighing,
    weights,
)
from mechanisms.tallies.votes import Votes

__all__ = [
    "Estimate", "LabelBias", "OpeningFinder", "Openings", "Prototypes", "ScoreTally", "Votes", "Weighing", "distinct",
    "masses", "mean_contribution", "usual_weighing", "weights",
]  # fmt: skip
