"""Classification by a set's directions, without a language model, or by directions and the model's answers together."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from scipy.special import softmax

from mechanisms.noise import Floats

WEIGHT = 16.0
"""The weight of a text's projection on a direction (a cosine) in a label's log-probability: with it the directions' own
probabilities are calibrated on four of six public sets (research/docs/words.md)."""


class By(StrEnum):
    """The classifier of a text."""

    MODEL = "model"
    DIRECTIONS = "directions"
    BOTH = "both"


def joined(log_probabilities: Floats, places: Floats) -> Floats:
    """The label probabilities from model and directions together, shape (texts, labels).

    Args:
        log_probabilities: the model's, up to a constant for each text; with zeros only the directions count.
        places: the projections from `mechanisms.demos.directions.Directions.places`.
    """
    return np.asarray(softmax(log_probabilities + WEIGHT * places, axis=-1))
