"""What is said of an answer's noise before it is paid for, and that the terms proposed do what is said of them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from mechanisms.accounting import PrivacyTarget
from mechanisms.answers.odds import GOOD, better_terms, majority, odds_in_words
from mechanisms.answers.request import AnswerRequest
from mechanisms.queries import Retrieval, query_mechanism_class
from mechanisms.records import answer_template


def request(
    labels: str = "ab", epsilon: float = 4.0, queries: int = 5, name: str = "knn-votes", **changed: object
) -> AnswerRequest:
    mechanism = query_mechanism_class(name)()
    template, target = answer_template(tuple(labels), "T", "L"), PrivacyTarget(epsilon, 1e-5)
    return AnswerRequest(template, mechanism, target, queries, tuple(labels), **changed).calibrated()


def chance(of: AnswerRequest) -> float:
    found = majority(of.calibrated())
    assert found is not None
    return found.chance


@pytest.mark.parametrize("labels", ["ab", "abcdef"])
@pytest.mark.parametrize(("epsilon", "queries", "shards"), [(4.0, 5, 10), (2.0, 20, 30), (4.0, 9, 4)])
def test_what_is_proposed_is_enough_and_the_next_question_is_too_many(labels, epsilon, queries, shards):
    made = request(labels, epsilon, queries, shards=shards)
    assert chance(made) < GOOD
    terms = better_terms(made)
    assert terms
    for words in terms:
        value = float(re.search(r"[\d.]+", words)[0])
        if "question" in words.split(" instead")[0] and "group" not in words:
            assert chance(replace(made, queries=int(value))) >= GOOD > chance(replace(made, queries=int(value) + 1))
        elif words.startswith("epsilon"):
            assert chance(replace(made, target=replace(made.target, epsilon=value))) >= GOOD
        else:
            assert chance(replace(made, shards=int(value))) >= GOOD
        assert words in odds_in_words(made)


def test_the_usual_terms_are_said_to_be_poor_and_good_ones_get_no_advice():
    usual = odds_in_words(request())
    assert "7 of 10 groups" in usual
    assert "78 of 100" in usual
    assert "instead of 5" in usual
    good = odds_in_words(request(queries=1, epsilon=8.0))
    assert "instead" not in good
    assert "No single change" not in good


@pytest.mark.parametrize(("rows", "groups"), [(None, "20 groups of 4"), (40, "20 groups of 2"), (19, None)])
def test_more_groups_are_proposed_where_there_are_rows_for_them(rows, groups):
    said = odds_in_words(request(), rows)
    assert (groups in said) if groups else "groups of" not in said


def test_where_no_single_change_is_enough_that_is_said_and_why():
    lost = odds_in_words(request(epsilon=0.2, queries=50, shards=2), 40)
    assert "No single change" in lost
    assert "40 rows" in lost
    assert "instead of" not in lost


def test_answers_in_words_have_no_labels_to_count_and_sampled_rows_get_no_slow_advice():
    words = request(labels="", name="keywords")
    assert odds_in_words(words) == ""
    sampled = request(epsilon=0.3, retrieval=Retrieval.POISSON, rate=0.5)
    assert better_terms(sampled) == []
    assert "7 of 10" in odds_in_words(sampled)
