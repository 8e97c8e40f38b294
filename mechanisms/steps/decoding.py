"""From a released noisy vector to a token: post-processing, so it costs nothing."""

from __future__ import annotations

import numpy as np

from mechanisms.noise import Floats, Randomness


def project_to_simplex(vector: Floats) -> Floats:
    """The nearest probability vector in Euclidean distance, shape (K,) (Held, Wolfe, Crowder 1974).

    It subtracts one threshold from every value and cuts at zero, which removes most of the noise of unlikely tokens.
    """
    ordered = np.sort(vector)[::-1]
    thresholds = (np.cumsum(ordered) - 1) / np.arange(1, len(vector) + 1)
    last = int(np.nonzero(ordered > thresholds)[0][-1])
    return np.asarray(np.maximum(vector - thresholds[last], 0.0))


def choose(shares: Floats, temperature: float, top_p: float, randomness: Randomness) -> int:
    """A candidate's position, from noisy shares of the vote.

    Args:
        shares: noisy sum over the public number of rows, shape (K,).
        temperature: 0 takes the largest; otherwise draw from the projection to the power 1 / temperature.
        top_p: draw only among the likeliest candidates that together hold this share.
    """
    if temperature == 0:
        return int(np.argmax(shares))
    probabilities = project_to_simplex(shares)
    weights = (probabilities / probabilities.max()) ** (1 / temperature)
    order = np.argsort(-weights, kind="stable")
    cumulative = np.cumsum(weights[order]) / weights.sum()
    kept = order[: int(np.searchsorted(cumulative, top_p)) + 1]
    running = np.cumsum(weights[kept])
    place = int(np.searchsorted(running, randomness.uniform(1)[0] * running[-1]))
    return int(kept[min(place, len(kept) - 1)])
