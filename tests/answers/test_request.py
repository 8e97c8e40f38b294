"""A session's public configuration: what it costs, and what does not go together."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from mechanisms.accounting import PrivacyTarget
from mechanisms.answers.odds import GOOD, better_terms, majority, odds_in_words
from mechanisms.answers.request import AnswerRequest
from mechanisms.errors import UsageError
from mechanisms.queries import Retrieval, query_mechanism_class, query_mechanism_names
from mechanisms.records import PromptTemplate, default_template


def make(mechanism="knn-votes", epsilon=2.0, queries=5, **changes) -> AnswerRequest:
    chosen = query_mechanism_class(mechanism)()
    labels = () if chosen.open_answers else ("a", "b")
    values = {"labels": labels} | changes
    return AnswerRequest(PromptTemplate("", "T", "L"), chosen, PrivacyTarget(epsilon, 1e-5), queries, **values)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "epsilon"), [(None, 0.5), (None, 8.0), (0.05, 2.0), (1.0, 1.0)])
@pytest.mark.parametrize("mechanism", query_mechanism_names())
def test_calibration_uses_the_target_up_and_never_exceeds_it(mechanism, rate, epsilon):
    retrieval = Retrieval.THRESHOLD if rate is None else Retrieval.POISSON
    claimed = make(mechanism, epsilon, retrieval=retrieval, rate=rate).calibrated().claim()
    assert 0.97 * epsilon <= claimed.epsilon <= epsilon
    assert claimed.delta == 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", query_mechanism_names())
def test_more_questions_and_less_epsilon_mean_more_noise(mechanism):
    usual = make(mechanism).calibrated().mechanism.noise
    assert make(mechanism, queries=20).calibrated().mechanism.noise == pytest.approx(2 * usual)
    assert make(mechanism, epsilon=1.0).calibrated().mechanism.noise > usual


@pytest.mark.slow
def test_sampling_at_a_low_rate_needs_less_noise():
    rates = (1.0, 0.2, 0.05)
    noise = [make(retrieval=Retrieval.POISSON, rate=q).calibrated().mechanism.noise for q in rates]
    assert noise == sorted(noise, reverse=True)


@pytest.mark.slow
def test_terms_tell_reservations_apart():
    requests = [
        make(),
        make(epsilon=3.0),
        make(queries=6),
        make(shards=5),
        make(neighbours=1),
        make(labels=("a", "c")),
        make(retrieval=Retrieval.LABELS_ONLY),
        make(retrieval=Retrieval.POISSON, rate=0.5),
        make(retrieval=Retrieval.POISSON, rate=0.25),
        make("keywords"),
    ]
    terms = [each.terms() for each in requests]
    assert all(one != other for one, other in itertools.combinations(terms, 2))
    assert make(threshold=0.9).terms() == terms[0]  # a question may set its own


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"queries": 0}, "queries"),
        ({"shards": 0}, "shards"),
        ({"neighbours": 99}, "neighbours"),
        ({"threshold": 1.5}, "cosine"),
        ({"labels": ("a",)}, "two public labels"),
        ({"labels": ()}, "two public labels"),
        ({"rate": 0.5}, "Poisson"),
        ({"retrieval": Retrieval.POISSON}, "Poisson"),
        ({"retrieval": Retrieval.POISSON, "rate": 1.5}, "rate"),
        ({"mechanism": "keywords", "labels": ("a", "b")}, "open answers"),
        ({"mechanism": "keywords", "retrieval": Retrieval.LABELS_ONLY}, "open answers"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, word):
    with pytest.raises(UsageError, match=word):
        make(**changes)


@pytest.mark.slow
def test_where_the_accountants_have_a_gap_more_noise_is_taken():
    """At the least noise for three questions they cannot bound epsilon; a little above it they can."""
    request = make(epsilon=8.0, queries=3, retrieval=Retrieval.POISSON, rate=0.1)
    assert 4.0 < request.calibrated().claim().epsilon <= 8.0


# What is said of an answer's noise before it is paid for, and that the terms proposed do what is said of them.


def request(
    labels: str = "ab", epsilon: float = 4.0, queries: int = 5, name: str = "knn-votes", **changed: object
) -> AnswerRequest:
    mechanism = query_mechanism_class(name)()
    template, target = default_template(tuple(labels), "T", "L"), PrivacyTarget(epsilon, 1e-5)
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
