"""Equal numbers of texts of each label, for comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def matching(labels: Sequence[str], like: Sequence[str]) -> list[int]:
    """Positions of as many texts of each label as `like` has, spread evenly over the file; all if there are fewer.

    Args:
        labels: the labels of the texts to choose from.
        like: the labels of the other texts.
    """
    chosen: list[int] = []
    for label, wanted in Counter(like).items():
        own = [place for place, each in enumerate(labels) if each == label]
        count = min(wanted, len(own))
        chosen += [own[i * len(own) // count] for i in range(count)]
    return sorted(chosen)
