"""Class prototypes in words: what they are called, and what to say where they do better than a prompted model."""

from __future__ import annotations

from collections.abc import Sequence

PROTOTYPES = ("Class prototypes (no language model)", "the nearest class mean of text embeddings, released with noise")

Figure = tuple[float, tuple[float, float]]
"""An accuracy and its interval."""


def verdict(prototypes: Figure, own: Figure, others: Sequence[Figure]) -> str:
    """One sentence where prototypes find more labels than the demonstrations; empty elsewhere.

    Args:
        own: the demonstrations' figure, on the same rows.
        others: those of the same model without them.
    """
    value, (low, _) = prototypes
    if value <= own[0]:
        return ""
    everything = all(value > other for other, _ in others)
    beaten = [own, *others] if everything else [own]
    whom = "this model" if everything else "these demonstrations"
    if all(low > high for _, (_, high) in beaten):
        return f"For labels alone, class prototypes do better than {whom}."
    return f"For labels alone, class prototypes look better than {whom}, but intervals overlap: it may be chance."
