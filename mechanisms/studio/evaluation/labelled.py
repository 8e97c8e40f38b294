"""Texts and the labels that a demo set gives them, read with the set's own correction."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.errors import UsageError
from mechanisms.inference import LanguageModel
from mechanisms.studio.evaluation.classify import Classifier, Prediction
from mechanisms.studio.evaluation.labels_to_find import check_labels
from mechanisms.studio.evaluation.reader import as_read_by
from mechanisms.studio.synthesis.demo_set import DemoSet


def labelled(written: DemoSet, model: LanguageModel, texts: Sequence[str]) -> list[Prediction]:
    """A prediction for each text; a correction that was measured with another model is left out.

    Raises:
        UsageError: see `check_gives_labels`.
    """
    check_gives_labels(written)
    demo_set = as_read_by(written, model)
    classifier = Classifier(model, demo_set.template, demo_set.labels, demo_set.demonstrations, demo_set.prior)
    return list(classifier.predict(texts))


def check_gives_labels(written: DemoSet) -> None:
    """Refuse a set that answers with no label.

    Raises:
        UsageError: it answers with text, or see `check_labels`.
    """
    if written.template.output is not None:
        raise UsageError("The demonstrations of this set have outputs: it answers with text, and gives no label.")
    check_labels(written.labels, written.schema)
