"""Metrics of open answers, where they are known in closed form."""

from __future__ import annotations

import math
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.evaluation.open_answers import AnswerScores, mean_scores, score_answer

WORDS = st.lists(st.sampled_from(["oslo", "paris", "rome", "bern", "lima", "quito"]), min_size=1, max_size=8)


@given(WORDS)
def test_identical_answers_score_one(words):
    text = " ".join(words)
    scores = score_answer(text, [text])
    pairs = 1.0 if len(words) > 1 else 0.0  # a single word has no pairs
    assert astuple(scores) == pytest.approx((1, pairs, 1, 1, 1, 1))


@given(WORDS)
def test_answers_without_a_common_character_score_zero(words):
    scores = score_answer(" ".join(words), ["777"])
    assert (scores.rouge_1, scores.rouge_2, scores.rouge_l, scores.anls, scores.exact_match) == (0, 0, 0, 0, 0)
    assert scores.bleu < 0.2  # smoothed: never quite zero


def test_rouge_in_closed_form():
    """Two words of four and of three, one pair of three and of two; the longest common subsequence is both words."""
    scores = score_answer("red green blue black", ["red green white"])
    assert scores.rouge_1 == scores.rouge_l == pytest.approx(2 * (1 / 2) * (2 / 3) / (1 / 2 + 2 / 3))
    assert scores.rouge_2 == pytest.approx(2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2))
    swapped = score_answer("green red", ["red green"])
    assert (swapped.rouge_1, swapped.rouge_2, swapped.rouge_l) == (1, 0, pytest.approx(1 / 2))


def test_bleu_in_closed_form():
    """All words, pairs and triples are right, which leaves the brevity penalty of three words for four."""
    scores = score_answer("red green blue", ["red green blue black"])
    assert scores.bleu == pytest.approx(math.exp(1 - 4 / 3))
    assert score_answer("RED GREEN", ["red green"]).bleu == pytest.approx(1)


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [("abcd", "abcx", 0.75), ("abcd", "abxy", 0.0), ("abc", "abxyz", 0.0), ("  AbC  d", "abc d", 1.0)],
)
def test_anls_in_closed_form(answer, reference, expected):
    """Half of the text wrong is worth nothing."""
    assert score_answer(answer, [reference]).anls == pytest.approx(expected)


def test_exact_match_ignores_case_articles_punctuation_and_spaces():
    assert score_answer("The  Eiffel Tower.", ["eiffel tower"]).exact_match == 1
    assert score_answer("theatre", ["atre"]).exact_match == 0
    assert score_answer("Tower", ["Eiffel Tower"]).exact_match == 0


@given(WORDS, WORDS, WORDS)
def test_another_reference_never_lowers_a_score_but_for_bleus_lengths(answer, first, second):
    texts = [" ".join(each) for each in (answer, first, second)]
    one, both = (score_answer(texts[0], references) for references in (texts[1:2], texts[1:]))
    for name in ("rouge_1", "rouge_2", "rouge_l", "anls", "exact_match"):
        assert getattr(both, name) >= getattr(one, name)
    assert score_answer(texts[0], [texts[1], texts[0]]).bleu == pytest.approx(1)


def test_an_empty_answer_scores_zero():
    assert set(astuple(score_answer("", ["Oslo"]))) == {0.0}


def test_means_are_by_score():
    first, second = AnswerScores(0, 0, 0, 0, 0, 1), AnswerScores(1, 0, 0.5, 0, 0, 0)
    assert mean_scores([first, second]) == AnswerScores(0.5, 0, 0.25, 0, 0, 0.5)
