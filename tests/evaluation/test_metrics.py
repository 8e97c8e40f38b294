"""Metrics, comparisons, the verdict, and figures of texts."""

from __future__ import annotations

import math
from dataclasses import astuple, replace
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from mechanisms.answers.scores import AnswerScores, mean_scores, score_answer
from mechanisms.demos.findings import DEMONSTRATIONS, PUBLIC_ONLY, ZERO_SHOT, ArmScore, Score
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import AS_READ, Accuracy, Comparison, compare, gain, verdict_of_score
from mechanisms.evaluation.reader import LocalReader, finished
from mechanisms.evaluation.text_figures import text_figures
from mechanisms.records import Demonstration, Record
from tests.exports.sets import demo_set
from tests.toy_model import ToyModel

# Metrics of open answers, where they are known in closed form.


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


# Two sets on the same rows.

READER = LocalReader(ToyModel())
ONE = demo_set(Demonstration("one", "News"), Demonstration("two", "Sport"))
OTHER = demo_set(Demonstration("three", "Sport"), Demonstration("four", "News"))
ALWAYS_SPORT = {"News": -100.0, "Sport": 100.0}
ROWS = [Record(f"text {i}", "News" if i % 4 else "Sport") for i in range(20)]


def comparison(only_first: int, only_second: int) -> Comparison:
    return Comparison(Accuracy(50, 100), Accuracy(50, 100), only_first, only_second)


def exact(only_first: int, only_second: int) -> float:
    """Twice the smaller tail of a fair coin's binomial, at most 1."""
    told = only_first + only_second
    return min(1.0, 2 * sum(comb(told, k) for k in range(min(only_first, only_second) + 1)) / 2**told)


@pytest.mark.parametrize("pair", [(0, 0), (1, 0), (0, 5), (6, 1), (10, 10), (3, 17), (40, 2)])
def test_the_p_value_is_the_closed_form(pair):
    assert comparison(*pair).p_value == pytest.approx(exact(*pair))
    assert comparison(*pair).p_value == comparison(*reversed(pair)).p_value
    if sum(pair):
        assert comparison(*pair).p_value == pytest.approx(binomtest(min(pair), sum(pair)).pvalue)


def test_a_set_beside_itself_differs_in_nothing():
    told = []
    found = finished(compare(READER, ONE, ONE, ROWS), told.append)
    assert set(found) == {"raw", "contextual", AS_READ}
    for each in found.values():
        assert (each.only_first, each.only_second, each.p_value) == (0, 0, 1.0)
        assert each.first == each.second
    assert told[-1] == 40


def test_only_rows_that_one_set_alone_answers_right_count():
    found = finished(compare(READER, ONE, OTHER, ROWS))
    for each in found.values():
        assert each.first.correct - each.second.correct == each.only_first - each.only_second
        assert each.only_first + each.only_second > 0
    assert "prior" not in found


def test_each_set_is_read_with_its_own_correction():
    found = finished(compare(READER, replace(ONE, prior=ALWAYS_SPORT), OTHER, ROWS))
    plain = finished(compare(READER, ONE, OTHER, ROWS))
    assert found[AS_READ].first == Accuracy(5, 20)
    assert found[AS_READ].second == plain["contextual"].second
    assert found["contextual"] == plain["contextual"]
    both = finished(compare(READER, *(replace(each, prior=ALWAYS_SPORT) for each in (ONE, OTHER)), ROWS))
    assert both["prior"].only_first == both["prior"].only_second == 0


def test_labels_in_another_order_are_the_same_labels_and_others_are_refused():
    turned = replace(OTHER, labels=("Sport", "News"))
    assert finished(compare(READER, ONE, turned, ROWS)) == finished(compare(READER, ONE, OTHER, ROWS))
    with pytest.raises(UsageError, match="different labels"):
        next(compare(READER, ONE, replace(OTHER, labels=("News", "Weather")), ROWS))


# The one sentence on a set: praise only where an interval allows it.

ARM = ArmScore(0.7, (0.65, 0.75))


def score(alone: tuple[float, float], public: tuple[float, float]) -> Score:
    gains = {ZERO_SHOT: ArmScore(sum(alone) / 2, alone), PUBLIC_ONLY: ArmScore(sum(public) / 2, public)}
    return Score({ZERO_SHOT: ARM, PUBLIC_ONLY: ARM, DEMONSTRATIONS: ARM}, True, gains=gains)


def test_each_difference_is_told_as_far_as_its_interval_allows():
    assert verdict_of_score(score((0.01, 0.2), (-0.1, 0.1)), False, 0.5) == (
        "These demonstrations are better than the model alone and naming the largest label every time; not shown to "
        "differ from public text."
    )
    assert "worse than public text" in verdict_of_score(score((0.01, 0.2), (-0.2, -0.01)), False, 0.5)
    assert "not shown to differ from naming" in verdict_of_score(score((0.01, 0.2), (0.01, 0.2)), False, 0.7)


interval = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted).map(tuple)


@given(alone=interval, public=interval, majority=st.floats(0, 1))
def test_nothing_is_praised_whose_interval_holds_zero(alone, public, majority):
    said = verdict_of_score(score(alone, public), False, majority).split(";")
    praise = next((each for each in said if "better than" in each), "")
    for name, low in (("the model alone", alone[0]), ("public text", public[0]), ("naming", 0.65 - majority)):
        assert (name in praise) == (low > 0)


def test_without_demonstrations_the_model_alone_is_what_is_judged():
    kept = Score({ZERO_SHOT: ARM, PUBLIC_ONLY: ARM}, True, gains={PUBLIC_ONLY: ArmScore(0.1, (0.02, 0.2))})
    assert verdict_of_score(kept, True, None) == "The model without demonstrations is better than public text."


@given(alone=interval, public=interval, majority=st.floats(0, 1))
def test_rows_that_may_have_chosen_a_set_praise_nothing(alone, public, majority):
    chosen = replace(score(alone, public), held_out=False)
    said = verdict_of_score(chosen, False, majority)
    assert "better than" not in said
    assert ("ahead, on rows that may have taken part in the choice, of" in said) == (
        max(alone[0], public[0], 0.65 - majority) > 0
    )


def test_too_few_rows_say_nothing():
    wide = Score({DEMONSTRATIONS: ArmScore(0.5, (0.3, 0.7))}, True)
    assert verdict_of_score(wide, False, 0.1) == ""


@pytest.mark.parametrize(("rates", "rows"), [((0.7, 0.6), 100), ((0.9, 0.9), 60), ((0.5, 0.2), 200)])
def test_nine_in_ten_intervals_of_a_difference_and_more_hold_it(rates, rows):
    rng, held = np.random.default_rng(1), 0
    for _ in range(400):
        one, other = (Accuracy(float(rng.binomial(rows, rate)), rows) for rate in rates)
        low, high = gain(one, other)
        held += low <= rates[0] - rates[1] <= high
    assert held >= 0.92 * 400


# Figures of texts: closed forms, and what a repetition changes.

texts = st.lists(st.tuples(st.sampled_from("AB"), st.text("ab c", max_size=12)), min_size=1, max_size=8)


def test_by_hand():
    found = text_figures(
        [("A", "My card is gone."), ("A", "my card is gone"), ("B", "My card is gone!"), ("B", "Why?")]
    )
    assert (found.texts, found.words, found.vocabulary, found.repeated) == (4, (1, 4.0, 4), 5, 1)


@given(texts)
def test_a_text_once_more_is_one_repetition_and_no_new_word(given):
    before, after = text_figures(given), text_figures([*given, given[0]])
    assert after.texts == before.texts + 1
    assert after.repeated == before.repeated + 1
    assert after.vocabulary == before.vocabulary
    assert after.words[::2] == before.words[::2]


def test_other_labels_repeat_nothing():
    assert text_figures([("A", "the same"), ("B", "the same")]).repeated == 0


def test_no_texts_have_no_figures():
    with pytest.raises(UsageError, match="no texts"):
        text_figures([])
