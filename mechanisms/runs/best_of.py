"""Best of several: of the demonstrations that were paid for, those that the model takes most surely for their label.

Only released text is looked at, so what is kept costs nothing beyond what was charged for all that was written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy.special import log_softmax, logsumexp

from mechanisms.evaluation.reader import Classifier
from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.runs.text import is_letter, without_labels

_LEAST_LETTERS = 4


class Fidelity:
    """How surely a model that is shown no demonstrations takes a text for its label; knows nothing private."""

    def __init__(self, model: LanguageModel, template: PromptTemplate, labels: Sequence[str]) -> None:
        """Open the task's prompt.

        Raises:
            UsageError: it is too long for the model.
        """
        self._labels = tuple(labels)
        self._classifier = Classifier(model, template, labels, ())
        _ = self._classifier.contextual  # a prompt that is too long is refused here

    def of(self, written: Sequence[Demonstration]) -> Floats:
        """Log-probability of each text's own label, shape (texts,); -inf where the model's logits are not finite.

        The model's preference for some labels is taken out first: its mean probability of each, over all these texts
        (Zhou et al. 2024, batch calibration).
        """
        scores = self._classifier.log_probabilities([each.text for each in written])
        finite, found = np.isfinite(scores).all(axis=1), np.full(len(written), -np.inf)
        if finite.any():
            mean = logsumexp(scores[finite], axis=0) - np.log(finite.sum())
            own = np.array([self._labels.index(each.label) for each in written])
            found[finite] = log_softmax(scores[finite] - mean, axis=1)[np.arange(finite.sum()), own[finite]]
        return found

    def best(self, written: Sequence[Demonstration], kept: Mapping[str, int]) -> tuple[Demonstration, ...]:
        """The surest texts of each label, in the order in which they were written.

        A text that says nothing but labels' names loses to any other, and so does one that was written before.

        Args:
            written: released.
            kept: how many of each label, where there are so many.
        """
        sure, seen = self.of(written), set[Demonstration]()
        ranked: list[tuple[bool, bool, float, int]] = []
        for place, each in enumerate(written):
            ranked.append((not _says_something(each.text, self._labels), each in seen, -float(sure[place]), place))
            seen.add(each)
        places = (place for *_, place in sorted(ranked))
        return tuple(written[place] for place in sorted(_first(places, written, kept)))


def first_of_each_label(written: Sequence[Demonstration], kept: Mapping[str, int]) -> tuple[Demonstration, ...]:
    """The first texts of each label: what a set holds whose run has not come to choose."""
    return tuple(written[place] for place in _first(range(len(written)), written, kept))


def _first(places: Iterable[int], written: Sequence[Demonstration], kept: Mapping[str, int]) -> list[int]:
    taken, found = Counter[str](), list[int]()
    for place in places:
        label = written[place].label
        if taken[label] < kept[label]:
            taken[label] += 1
            found.append(place)
    return found


def _says_something(text: str, labels: Sequence[str]) -> bool:
    return sum(map(is_letter, without_labels(text, labels))) >= _LEAST_LETTERS
