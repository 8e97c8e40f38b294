"""Logistic regression on embeddings, on planted clusters."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.errors import UsageError
from research.measures.linear_classifier import LinearClassifier, held_out_accuracy

LABELS = ["a", "b"] * 20


def clusters(spread):
    centres = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] * 20)
    found = centres + np.random.default_rng(0).normal(size=centres.shape) * spread
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def test_clusters_apart_are_told_apart_and_swapped_labels_are_all_wrong():
    vectors = clusters(0.1)
    swapped = ["b" if label == "a" else "a" for label in LABELS]
    classifier = LinearClassifier(vectors, LABELS)
    assert classifier.accuracy(vectors, LABELS).value == 1
    assert classifier.accuracy(vectors, swapped).value == 0
    assert LinearClassifier(vectors, swapped).accuracy(vectors, LABELS).value == 0


def test_rows_are_judged_by_others():
    """Labels without meaning are learned by heart and not recognised."""
    random = np.random.default_rng(1).normal(size=(40, 60)).astype(np.float32)
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    assert LinearClassifier(random, LABELS).accuracy(random, LABELS).value == 1
    low, high = held_out_accuracy(random, LABELS).interval
    assert low < 0.5 < high
    assert held_out_accuracy(clusters(0.1), LABELS).value == 1


def test_too_few_rows_are_refused():
    with pytest.raises(UsageError, match="two labels"):
        LinearClassifier(clusters(0.1)[:3], ["a"] * 3)
    with pytest.raises(UsageError, match="5 rows"):
        held_out_accuracy(clusters(0.1)[:9], LABELS[:9])
