"""A session's public configuration: what it costs, and what does not go together."""

from __future__ import annotations

import itertools

import pytest

from mechanisms.accounting import PrivacyTarget
from mechanisms.answers.request import GOOD, AnswerRequest, odds_in_words
from mechanisms.errors import UsageError
from mechanisms.queries import Retrieval, query_mechanism_class, query_mechanism_names
from mechanisms.records import PromptTemplate


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


# What is said of an answer's noise before it is paid for.


@pytest.mark.parametrize(("epsilon", "queries", "chance"), [(4.0, 5, 78), (8.0, 1, 99)])
def test_poor_terms_are_named_with_what_to_change_and_good_ones_get_no_advice(epsilon, queries, chance):
    said = odds_in_words(make(epsilon=epsilon, queries=queries).calibrated())
    assert "7 of 10 groups" in said
    assert f"{chance} of 100" in said
    assert ("Fewer questions" in said) == (chance < 100 * GOOD)


def test_answers_in_words_have_no_labels_to_count():
    assert odds_in_words(make("keywords").calibrated()) == ""
