"""The direction of each label among embedded texts: part of a set, and as public as the set.

A direction is the released mean of a label's embeddings minus the mean over labels, made orthogonal to that mean and
normalised. Everything here is a function of released numbers and public texts, so it costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mechanisms.errors import UsageError
from mechanisms.inference import Embedder
from mechanisms.noise import Floats, Integers

LIKENESS = 0.5
"""The weight of a text's projection on the mean over labels relative to that on a label's direction: among texts of the
label, those that resemble all rows are better. A larger weight admits other labels' texts (research/docs/words.md)."""
_DIGITS = 5
"""Decimals of a unit vector's coordinate in a file: rounding changes an angle by less than .0002."""


@dataclass(frozen=True)
class Directions:
    """A unit vector for each label, and the embedding model that they belong to.

    Attributes:
        embedder: the embedding model's name; `sha256` is its digest.
        vectors: one for each label, in the order of the labels.
    """

    embedder: str
    sha256: str
    vectors: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(cls, embedder: Embedder, labels: Sequence[str], vectors: Floats) -> Self:
        """Directions from vectors of any length, shape (labels, dimensions); a zero vector stays zero."""
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = np.round(vectors / np.where(lengths > 0, lengths, 1.0), _DIGITS)
        return cls(embedder.name, embedder.sha256, {y: tuple(v.tolist()) for y, v in zip(labels, units, strict=True)})

    @cached_property
    def matrix(self) -> Floats:
        """The vectors, shape (labels, dimensions)."""
        return np.array([*self.vectors.values()])

    def check(self, embedder: Embedder) -> None:
        """Refuse any other embedding model than the directions' own.

        Raises:
            UsageError: it is another model.
        """
        if embedder.sha256 != self.sha256:
            raise UsageError(
                f"The set's directions belong to the embedding model {self.embedder}, and here is {embedder.name}, or "
                "other weights of it: read the set with its language model instead."
            )

    def places(self, texts: Sequence[str], embedder: Embedder) -> Floats:
        """The projection of each text on each label's direction, a cosine, shape (texts, labels).

        A text's row depends on that text and the directions alone.
        """
        return self._along(embedder.embed(texts))

    def nearest(self, texts: Sequence[str], embedder: Embedder) -> Integers:
        """The index of the label along whose direction each text lies furthest, shape (texts,)."""
        return self.nearest_to(embedder.embed(texts))

    def nearest_to(self, vectors: NDArray[np.float32]) -> Integers:
        """The same of embedded texts, shape (texts, dimensions)."""
        return np.asarray(self._along(vectors).argmax(axis=1), dtype=np.int64)

    def _along(self, vectors: NDArray[np.float32]) -> Floats:
        return np.asarray(vectors.astype(np.float64) @ self.matrix.T)

    def to_json(self) -> dict[str, Any]:
        """The format's `directions`."""
        return {
            "embedder": {"name": self.embedder, "sha256": self.sha256},
            "vectors": {label: list(vector) for label, vector in self.vectors.items()},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], labels: Sequence[str]) -> Self:
        """Read what fits the format's schema, for a set of these labels.

        Raises:
            UsageError: the vectors are of other labels, differ in dimension, or are not of unit length.
        """
        if set(document["vectors"]) != set(labels):
            raise UsageError("This is not a demo set: its directions are not those of its labels.")
        vectors = {label: tuple(map(float, document["vectors"][label])) for label in labels}
        if not are_units([*vectors.values()]):
            raise UsageError("This is not a demo set: its directions are not unit vectors of one embedding model.")
        return cls(document["embedder"]["name"], document["embedder"]["sha256"], vectors)


def are_units(vectors: Sequence[Sequence[float]]) -> bool:
    """Whether vectors have one dimension, and each has unit length or is zero."""
    if len({*map(len, vectors)}) != 1:
        return False
    lengths = np.linalg.norm(np.array(vectors), axis=1)
    return bool(((lengths == 0) | (np.abs(lengths - 1) <= 1e-2)).all())


def margins(places: Floats, labels: Integers) -> Floats:
    """The projection of each text on its own label's direction minus the largest on another's, shape (texts,).

    Args:
        places: shape (texts, labels), see `Directions.places`.
        labels: the index of each text's label.
    """
    rows = np.arange(len(places))
    others = places.copy()
    others[rows, labels] = -np.inf
    return np.asarray(places[rows, labels] - others.max(axis=1))
