"""MAUVE: how alike two collections of texts are, by the area under their divergence frontier (Pillutla et al. 2021).

Computed by its authors' package, which is under the GPL and therefore not among what the studio needs: whoever wants
the figure installs requirements-mauve.txt. No model of its own is used: embeddings come from outside.
"""

from __future__ import annotations

from importlib.util import find_spec

from research.measures.linear_classifier import Vectors

FEWEST = 100
"""Texts on each side below which nothing is said: a tenth of their number are the cells, and with four cells most
collections of the same labels are alike."""


def can_compare() -> bool:
    """Whether the package is installed."""
    return all(find_spec(name) is not None for name in ("mauve", "faiss"))


def mauve(first: Vectors, second: Vectors) -> float:
    """MAUVE of two collections of embeddings, each of shape (texts, dimensions), in (0, 1]; near 1 where alike.

    Cells come from a k-means whose starting points are fixed, so that the same texts give the same figure.
    """
    from mauve import compute_mauve  # optional

    return float(compute_mauve(p_features=first, q_features=second, verbose=False).mauve)
