"""What counts the same where units fit, choose and score: every row, or every label.

A unit's vector is multiplied by a weight of its own label. The weights are public: they follow from the public label
sizes. None is above 1, so a weighted vector keeps the norm that the tally pays for, and the proof in `tally.py` holds
for it as it is. Users' vectors are means of weighted vectors of their rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Weighing(StrEnum):
    """What counts the same."""

    ROWS = "rows"
    LABELS = "labels"


LARGE = 2.0
"""Of an even share: a label above it makes labels count the same, unless the owner says otherwise."""
_SMALL = 0.25
"""Of an even share: labels below it count by their rows. A handful of rows would else decide the weight of all."""


def usual_weighing(sizes: Mapping[str, int]) -> Weighing:
    """By labels where the largest one has more than twice an even share of the units."""
    largest, total = max(sizes.values()), sum(sizes.values())
    return Weighing.LABELS if largest * len(sizes) > LARGE * total else Weighing.ROWS


def masses(sizes: Mapping[str, int], weighing: Weighing) -> dict[str, float]:
    """What all units of each label count together, in units of weight 1."""
    if weighing is Weighing.ROWS:
        return {label: float(size) for label, size in sizes.items()}
    most = max(float(min(sizes.values())), _SMALL * sum(sizes.values()) / len(sizes))
    return {label: min(float(size), most) for label, size in sizes.items()}


def weights(sizes: Mapping[str, int], weighing: Weighing) -> dict[str, float]:
    """What one unit of each label counts, in (0, 1]."""
    return {label: mass / max(1, sizes[label]) for label, mass in masses(sizes, weighing).items()}
