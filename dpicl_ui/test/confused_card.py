"""Which labels are taken for which, in words: a matrix of many labels is small, and no screen reader sees it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpicl_ui.frame.tree import Tree, el
from dpicl_ui.test.cards import tag
from mechanisms.evaluation.evaluate import Scorecard

_LISTED = 5
_NOTHING = "No row was given another's label."


def confused(owners: Sequence[str], card: Scorecard | None = None, labels: Sequence[str] = ()) -> list[Tree]:
    """The head of the confusion matrix, with the pairs of labels that most rows are lost between."""
    return [el("h3", "Which labels are confused"), *tag(owners), *(_pairs(card, labels) if card else ())]


def _pairs(card: Scorecard, labels: Sequence[str]) -> list[Tree]:
    wrong = card.confusion - np.diag(np.diag(card.confusion))
    often = np.argsort(-wrong, axis=None, kind="stable")[:_LISTED]
    pairs = [(*divmod(int(place), len(labels)), int(wrong.flat[place])) for place in often if wrong.flat[place]]
    if not pairs:  # where no row was answered at all, that says nothing
        return [el("p.muted", _NOTHING)] if card.confusion.any() else []
    return [
        el("p.muted", "Most often:"),
        el("ul.confused", *(_pair(labels[true], labels[said], rows) for true, said, rows in pairs)),
    ]


def _pair(true: str, said: str, rows: int) -> Tree:
    return el(
        "li",
        el("strong", true),
        " read as ",
        el("strong", said),
        f": {rows} rows" if rows > 1 else ": 1 row",
    )
