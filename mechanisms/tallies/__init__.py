"""What private units say about public alternatives, in one release. The proof that all share is in `tally.py`."""

from mechanisms.tallies.choice import Choice
from mechanisms.tallies.prior import Prior
from mechanisms.tallies.prototypes import Prototypes
from mechanisms.tallies.score import Estimate, Score
from mechanisms.tallies.tally import mean_contribution
from mechanisms.tallies.votes import Votes

__all__ = ["Choice", "Estimate", "Prior", "Prototypes", "Score", "Votes", "mean_contribution"]
