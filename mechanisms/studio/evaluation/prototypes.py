"""Classification without a language model: the class whose prototype is nearest. What demonstrations must beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanisms.inference import Embedder
from mechanisms.noise import Floats, Integers
from mechanisms.queries.similarity import on_grid, similarities
from mechanisms.records import Dataset
from mechanisms.studio.data.units import units_of


def one_record_each(dataset: Dataset) -> tuple[list[str], Integers]:
    """What each unit gives to its class: the text of one record, and the place of that record's label; private.

    A user has one record taken, whichever label it has, and which one follows from the user alone. So a unit moves one
    class's sum, by one embedding.
    """
    place = {label: i for i, label in enumerate(dataset.labels)}
    records = [unit[0] for unit in units_of(dataset, 1)]
    return [each.text for each in records], np.array([place[each.label] for each in records], dtype=np.int64)


def nearest_prototype(texts: Sequence[str], prototypes: Floats, embedder: Embedder) -> Integers:
    """Index of the label whose prototype is nearest to each text (cosine), shape (texts,); the first of equal ones.

    A text's answer depends on that text and the prototypes alone.

    Args:
        prototypes: a unit vector for each label, shape (labels, dimensions).
    """
    vectors, places = embedder.embed(texts), on_grid(prototypes.astype(np.float32))
    near = np.stack([similarities(vectors, place) for place in places], axis=1)
    return np.asarray(near.argmax(axis=1))
