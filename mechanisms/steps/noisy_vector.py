"""The base of mechanisms that release a whole noisy vector, from which a token follows by its posterior mean.

The standard deviation of the noise is public, and so is p, the model's distribution without any private row. With a
normal prior of standard deviation tau around p, the posterior mean of the rows' mean distribution is

    v = (tau^2 released / n + s^2 p) / (tau^2 + s^2),    s = deviation / n,

where n is the expected number of rows. With few rows v stays near the public distribution; with many rows it follows
the released vector. The reading is post-processing: v follows from the released vector and from public values alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.discovery import parameter
from mechanisms.noise import Floats, Randomness
from mechanisms.steps.distributions import TokenDistributions, TokenRelease, choose
from mechanisms.steps.mechanism import TokenMechanism

AS_RELEASED = 1000.0
"""A prior deviation so large that v is the released vector over n, as in the papers."""


@dataclass(frozen=True, kw_only=True)  # keyword-only, so that a mechanism's noise is its first positional field
class NoisyVector(TokenMechanism):
    """A mechanism that releases a noisy vector, with the parameters that turn the vector into a token."""

    temperature: float = parameter(
        1.0,
        label="Temperature",
        help="0 selects the token with the largest value; above 0 the token is drawn from the values.",
        low=0.0,
        high=2.0,
        citation="post-processing of the released vector",
    )
    top_p: float = parameter(
        0.8,
        label="Nucleus",
        help="With a temperature above 0, draw only among the most likely candidates that together have this share.",
        low=0.05,
        high=1.0,
        citation="Holtzman et al. 2020",
    )
    prior_deviation: float = parameter(
        0.1,
        label="Prior deviation",
        help="Standard deviation of the rows' distribution around the public one (tau); 1000 ignores the public one.",
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
        """The release of a noisy vector, with the token that follows from its posterior mean.

        Args:
            scores: the noisy sum in units of rows, shape (K,).
            distributions: only their public row and their expected number of rows are used.
            deviation: the standard deviation of the noise on each entry, in units of rows.
            trail: pairs of numbers that the step released before.
        """
        values = posterior_mean(scores, distributions, deviation, self.prior_deviation)
        index = choose(values, self.temperature, self.top_p, randomness)
        return TokenRelease(index, scores, trail=trail, values=values)


def posterior_mean(scores: Floats, distributions: TokenDistributions, deviation: float, tau: float) -> Floats:
    """The posterior mean v of the rows' mean distribution, as this module defines it; shape (K,).

    Args:
        scores, deviation: the noisy sum, shape (K,), and the deviation of its noise, in units of rows.
        tau: the standard deviation of the prior.
    """
    noise = (deviation / distributions.expected_rows) ** 2
    weighed = tau**2 * scores / distributions.expected_rows + noise * distributions.public_probabilities
    return np.asarray(weighed / (tau**2 + noise))
