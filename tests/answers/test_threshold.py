"""What a threshold does to public text."""

from __future__ import annotations

import pytest

from mechanisms.answers.odds import threshold_effect, threshold_effect_on_example
from mechanisms.data.sources import EXAMPLES
from tests.toy_embedder import ToyEmbedder


def test_shares_of_rows_and_questions():
    rows, questions = ["p q", "p q", "r s", "t u"], ["p q", "r s", "p q", "v w"]
    [exact, everything] = threshold_effect(rows, questions, ToyEmbedder(64), (0.9, -1.0))
    assert exact.share == pytest.approx(5 / 16)  # two questions reach two rows, one reaches one, one none
    assert (exact.busiest, exact.unanswered) == (0.5, 0.25)
    assert (everything.share, everything.busiest, everything.unanswered) == (1, 1, 0)


def test_a_higher_threshold_reaches_fewer_rows_of_an_example():
    effects = threshold_effect_on_example(EXAMPLES[0], ToyEmbedder())
    shares = [effect.share for effect in effects]
    assert shares == sorted(shares, reverse=True)
    assert 0 < shares[0] < 1
