"""A token from a product of experts, by the exponential mechanism: after "Private PoEtry" (arXiv 2602.05012).

This was built from a description of the method, without the paper at hand, so that details may differ from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.noise import Integers
from mechanisms.steps.blended_logits import BlendedLogits
from mechanisms.steps.distributions import TokenDistributions, to_lattice


@dataclass(frozen=True)
class ProductOfExperts(BlendedLogits):
    """Each row is an expert: its log-probabilities, clipped to 2c below the largest, are added to the others', and a
    token is drawn from softmax of the sum. No public logits are blended in.

    A unit that joins raises each logit by between 0 and 2c over the temperature, whatever the model says of it: this is
    `2c / (s tau)`-bounded-range, and the proof of blended logits holds with that span in the place of theirs.
    """

    name: ClassVar[str] = "product-of-experts"
    title: ClassVar[str] = "Product of experts"
    citation: ClassVar[str] = "arXiv 2602.05012, by description"
    logits_in_sum: ClassVar[int] = 1

    @property
    def span(self) -> float:
        return 2 * self.clip

    def aggregate(self, distributions: TokenDistributions) -> Integers:
        """s times the logits, but for a constant, in units of 1 / GRID."""
        return np.asarray(to_lattice(self._clipped(distributions.unit_logits())).sum(axis=0), dtype=np.int64)


MECHANISM = ProductOfExperts
