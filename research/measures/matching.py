"""As many of each label: what is compared has the same number of texts of the same labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def matching(labels: Sequence[str], like: Sequence[str]) -> list[int]:
    """Positions of as many texts of each label as `like` has, spread evenly over the file; all where there are fewer.

    Args:
        labels: of the texts to choose from.
        like: labels of the others.
    """
    chosen: list[int] = []
    for label, wanted in Counter(like).items():
        own = [place for place, each in enumerate(labels) if each == label]
        count = min(wanted, len(own))
        chosen += [own[i * len(own) // count] for i in range(count)]
    return sorted(chosen)
