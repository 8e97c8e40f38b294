"""Mechanisms that release a whole noisy vector, and how it is read: through the public distribution of the same step.

The deviation of the noise is public, and so is what the model expects without any row. With a normal prior of deviation
tau around that expectation, the posterior mean of the rows' mean distribution weighs the two by their precision:

    v = (tau^2 released / n + s^2 p) / (tau^2 + s^2),    s = deviation / n

Where rows are few it stays near the public text, where they are many it is what the rows say. It is post-processing: v
follows from the released vector and from public values alone, so that the mechanism's proof covers it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.discovery import parameter
from mechanisms.noise import Floats, Randomness
from mechanisms.steps.distributions import TokenDistributions, TokenRelease, choose
from mechanisms.steps.mechanism import TokenMechanism

AS_RELEASED = 1000.0
"""A prior deviation with which the vector is read as it was released, as the papers do."""


@dataclass(frozen=True, kw_only=True)  # the noise comes first where a mechanism is made by place
class NoisyVector(TokenMechanism):
    """The base of these mechanisms: the parameters of the reading."""

    temperature: float = parameter(
        1.0,
        label="Temperature",
        help="0 takes the token with the largest value; above 0 draws from the values.",
        low=0.0,
        high=2.0,
        citation="post-processing of the released vector",
    )
    top_p: float = parameter(
        0.8,
        label="Nucleus",
        help="With a temperature, draw only among the likeliest candidates that together hold this share.",
        low=0.05,
        high=1.0,
        citation="Holtzman et al. 2020",
    )
    prior_deviation: float = parameter(
        0.1,
        label="Prior deviation",
        help="How far the rows' distribution may lie from the public one (tau); 1000 reads the noise as it is.",
        low=1e-3,
        high=AS_RELEASED,
        citation="posterior mean under a normal prior, tau measured on public sets (docs/mechanisms.md)",
    )

    def read(
        self,
        scores: Floats,
        distributions: TokenDistributions,
        deviation: float,
        randomness: Randomness,
        trail: tuple[tuple[float, float], ...] = (),
    ) -> TokenRelease:
        """The release of a noisy vector, with the token that its posterior mean gives.

        `scores` is the noisy sum, shape (K,), and `deviation` that of the noise on each entry, both in rows. Of the
        distributions only the public row and the expected number of rows are used.
        """
        values = posterior_mean(scores, distributions, deviation, self.prior_deviation)
        index = choose(values, self.temperature, self.top_p, randomness)
        return TokenRelease(index, scores, trail=trail, values=values)


def posterior_mean(scores: Floats, distributions: TokenDistributions, deviation: float, tau: float) -> Floats:
    """v, shape (K,), as shares of the rows; see the module."""
    noise = (deviation / distributions.expected_rows) ** 2
    weighed = tau**2 * scores / distributions.expected_rows + noise * distributions.public_probabilities
    return np.asarray(weighed / (tau**2 + noise))
