"""A label from a product of experts, by the exponential mechanism: after "Private PoEtry" (arXiv 2602.05012).

This was built from a description of the method, without the paper at hand, so that details may differ from it. Each row
of a Poisson sample is an expert: it stands alone in the model's prompt. Its log-probabilities of the labels are
clipped, the experts' are added, and a label is drawn with a probability proportional to the exponential of the sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from mechanisms.accounting import PrivacyTarget, tilted
from mechanisms.accounting.normal_form import NormalForm, SampledPure
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.queries import QueryRelease
from mechanisms.queries.mechanism import GRID

_LOG_ETAS = (-6.0, 4.0)
"""Within which `costing` looks for the eta."""

# The privacy proof.
#
# A row u adds a vector v_u to the score of the labels, whose entries are whole lattice steps between -C and 0 whatever
# the model says: v_u depends on u, the question and public things alone. A label y is drawn with probability
# proportional to exp(eta s_y / C).
#
# Neighbours differ in u. Fix the question, the releases so far and who else joins, which does not depend on u. If u
# joins, the logits of the draw change by entries between -eta and 0, so that no label's probability changes by more
# than a factor of e^eta: eta-DP. There is no factor of 2, since all changes have one sign; a unit that replaced another
# one would cost 2 eta. With the coin of u, a draw is dominated by randomised response at eta on a Poisson sample (Zhu,
# Dong, Wang 2022), in both directions, and a mixture over who else joins stays dominated. Every question has a sample
# of its own; Q questions, chosen in any way, are dominated by Q such pairs, which the accountant composes. []
#
# Without sampling the draws' bounded range is worth more: eta^2 / 8 zCDP a question (Durfee and Rogers 2019; Cesar and
# Rogers 2021) against about eta^2 / 2. With 10 of 5,000 rows in a sample it is the other way round: amplified eta makes
# of epsilon 0.4 one of 1, and of 1 one of 4.
#
# What the proof asks of a program: a row's numbers may not depend on how many rows join. The measurement here reads as
# many rows as have joined; a product would fill its batch up to a public capacity, and take the overflow from delta.


@dataclass(frozen=True)
class Poetry:
    """Draw a label from softmax over the sum of clipped log-probabilities.

    Attributes:
        eta: how far one expert can move the logits of the draw.
        rate: probability with which a row joins a question's sample.
        clip: C, the most by which an expert can hold one label to be less likely than another, in nats.
    """

    eta: float
    rate: float
    clip: float = 2.0

    @classmethod
    def costing(cls, target: PrivacyTarget, queries: int, rate: float, clip: float = 2.0) -> Poetry:
        """The one with the least noise with which so many questions together cost at most the target."""

        def above(log_eta: float) -> float:
            return cls(math.exp(log_eta), rate, clip).epsilon(queries, target.delta) - target.epsilon

        return cls(math.exp(brentq(above, *_LOG_ETAS, xtol=1e-6) - 1e-5), rate, clip)

    def epsilon(self, queries: int, delta: float) -> float:
        """What so many questions cost a row, whether it joined any or none."""
        pairs = NormalForm(((SampledPure(self.eta, 1, self.rate), queries),), failure=0.0)
        return tilted.epsilon(pairs, delta).upper

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise that a draw amounts to, on each label's score, in experts."""
        return math.pi / math.sqrt(6) / self.eta

    def product(self, experts: Floats) -> Integers:
        """The labels' score in lattice steps, shape (labels,), from log-probabilities of shape (experts, labels).

        They need no normalisation: each expert's likeliest label counts 0. An expert with a number that is not finite
        has no say.
        """
        known = experts[np.isfinite(experts).all(axis=1)]
        below = np.maximum(known - known.max(axis=1, keepdims=True), -self.clip)
        return np.asarray(np.trunc(below * GRID).astype(np.int64).sum(axis=0))

    def release(self, product: Integers, randomness: Randomness) -> QueryRelease:
        """Only the label is a release."""
        return QueryRelease((randomness.gumbel_argmax(product, self.clip * GRID / self.eta),), None)
