"""What shards answer, from their own examples alone."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.accounting import PrivacyTarget
from mechanisms.answers.request import AnswerRequest
from mechanisms.answers.session import LabelRespondent, greedy
from mechanisms.queries import query_mechanism_class, query_mechanism_names
from mechanisms.records import PromptTemplate, Record
from tests.toy_model import ToyModel

MECHANISMS = [name for name in query_mechanism_names() if not query_mechanism_class(name).open_answers]
LABELS = ("apple", "beta")  # " apple" and " beta" differ in their second token
SHARDS_OF_TWO = [[Record(f"text {shard} {i}", LABELS[(shard + i) % 2]) for i in range(2)] for shard in range(30)]
SHARDS_OF_TWO[7] = []


class Biased(ToyModel):
    """Says one token far too often, whatever it is asked."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        plain = session._row
        session._row = lambda tokens: plain(tokens) + 30.0 * (np.arange(128) == ord("b"))
        return session


def votes(model, examples, mechanism="knn-votes", query="which one?"):
    request = AnswerRequest(
        PromptTemplate("Classify.", "T", "L"),
        query_mechanism_class(mechanism)(),
        PrivacyTarget(1.0, 1e-5),
        5,
        labels=LABELS,
        max_record_tokens=12,
        max_query_tokens=20,
    )
    return LabelRespondent(model, request).answer(examples, query).histogram


def test_a_constant_preference_of_the_model_does_not_decide():
    assert votes(Biased(0.5), SHARDS_OF_TWO).all()


def only(place, examples):
    """All shards empty but one."""
    return [shard if i == place else [] for i, shard in enumerate(examples)]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_shards_vote_is_its_own_and_the_shape_is_public(mechanism):
    model = ToyModel()
    before = votes(model, SHARDS_OF_TWO, mechanism)
    shapes = list(model.opened)
    moved = []
    for place in (3, 7):  # the second had no examples
        changed = [*SHARDS_OF_TWO]
        changed[place] = [Record("another", LABELS[0])]
        moved.append(votes(model, changed, mechanism) - before)
        alone, was = (votes(model, only(place, each), mechanism) for each in (changed, SHARDS_OF_TWO))
        assert (moved[-1] == alone - was).all()
    assert model.opened == shapes * 7
    assert mechanism == "knn-votes" or np.any(moved)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_shard_whose_numbers_are_not_finite_votes_as_without_data(mechanism):
    class Broken(ToyModel):
        """Has no numbers for what mentions a word."""

        def open(self, prefix, rows, length, room):
            session = super().open(prefix, rows, length, room)
            plain = session._row
            session._row = lambda tokens: plain(tokens) * (np.nan if b"poison" in bytes(tokens) else 1.0)
            return session

    poisoned = only(3, [[Record("poison", LABELS[0])]] * 30)
    empty = [[]] * 30
    assert (votes(Broken(), poisoned, mechanism) == votes(Broken(), empty, mechanism)).all()
    assert (
        mechanism == "knn-votes"
        or (votes(ToyModel(), poisoned, mechanism) != votes(ToyModel(), empty, mechanism)).any()
    )


def test_an_answer_is_never_empty_and_ends_at_the_first_stop():
    class Quiet(ToyModel):
        """Wants to stop at once, and again after the second token."""

        def open(self, prefix, rows, length, room):
            opened = super().open(prefix, rows, length, room)
            start = len(opened.rows[0])
            opened._row = lambda tokens: np.eye(128)[10] * 3 + np.eye(128)[65] * (2 + 2 * (len(tokens) == start + 1))
            return opened

    quiet = Quiet()
    assert greedy(quiet, quiet.open([1], [[2], [3]], 1, 5), 5) == [[65, 65]] * 2
    assert greedy(quiet, quiet.open([1], [[2]], 1, 1), 1) == [[65]]
