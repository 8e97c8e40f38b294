"""Classification by a set's directions, which need no language model, or by these and the model's answers together."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from scipy.special import softmax

from mechanisms.noise import Floats

WEIGHT = 16.0
"""The weight of a text's place along a direction (a cosine) in a label's log-probability: with it the directions' own
probabilities are calibrated on four of six public sets (research/docs/words.md)."""


class By(StrEnum):
    """What classifies a text."""

    MODEL = "model"
    DIRECTIONS = "directions"
    BOTH = "both"


def joined(log_probabilities: Floats, places: Floats) -> Floats:
    """The label probabilities that model and directions give together, of the shape of either, (texts, labels).

    Args:
        log_probabilities: the model's, up to a constant for each text; zeros leave the directions alone.
        places: of the texts along each label's direction, see `mechanisms.demos.directions.Directions.places`.
    """
    return np.asarray(softmax(log_probabilities + WEIGHT * places, axis=-1))
