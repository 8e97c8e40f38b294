"""A small classifier that learns from examples: logistic regression on a text's embedding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import Accuracy

FOLDS = 5
_INVERSE_PENALTY = 10.0
"""The parameter C: at scikit-learn's default of 1.0 a few hundred embeddings of length one hardly move the weights."""
_MOST_STEPS = 1000

Vectors = NDArray[np.float32]


class LinearClassifier:
    """A classifier trained on labelled embeddings, in the same way for all sources of texts.

    Args:
        vectors: embeddings, shape (texts, dimensions).
        labels: their labels.

    Raises:
        UsageError: fewer than two labels.
    """

    def __init__(self, vectors: Vectors, labels: Sequence[str]) -> None:
        if len(set(labels)) < 2:
            raise UsageError("A classifier learns from texts of at least two labels: give more demonstrations.")
        self._model = _untrained().fit(vectors, list(labels))

    def accuracy(self, vectors: Vectors, labels: Sequence[str]) -> Accuracy:
        """The accuracy on texts, at least one."""
        return _accuracy(self._model.predict(vectors), labels)


def held_out_accuracy(vectors: Vectors, labels: Sequence[str]) -> Accuracy:
    """The accuracy of such a classifier on rows that it was not trained on, by five-fold cross-validation.

    Raises:
        UsageError: a label has fewer than 5 rows.
    """
    if min(list(labels).count(label) for label in set(labels)) < FOLDS:
        raise UsageError(f"The test file needs at least {FOLDS} rows of each label.")
    found = cross_val_predict(_untrained(), vectors, list(labels), cv=StratifiedKFold(FOLDS))
    return _accuracy(found, labels)


def _untrained() -> LogisticRegression:
    return LogisticRegression(C=_INVERSE_PENALTY, max_iter=_MOST_STEPS)


def _accuracy(found: NDArray[np.str_], labels: Sequence[str]) -> Accuracy:
    return Accuracy(int((found == np.array(labels)).sum()), len(labels))
