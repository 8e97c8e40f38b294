"""What shards answer, from their own examples alone."""

from __future__ import annotations

import numpy as np

from mechanisms.accounting import PrivacyTarget
from mechanisms.queries import query_mechanism_class
from mechanisms.records import PromptTemplate, Record
from mechanisms.studio.answering.greedy import greedy
from mechanisms.studio.answering.request import AnswerRequest
from mechanisms.studio.answering.shards import LabelRespondent
from tests.toy_model import ToyModel

LABELS = ("apple", "beta")  # " apple" and " beta" differ in their second token
EXAMPLES = [[Record(f"text {shard} {i}", LABELS[(shard + i) % 2]) for i in range(2)] for shard in range(30)]
EXAMPLES[7] = []


class Biased(ToyModel):
    """Says one token far too often, whatever it is asked."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        plain = session._row
        session._row = lambda tokens: plain(tokens) + 30.0 * (np.arange(128) == ord("b"))
        return session


def votes(model, examples, query="which one?"):
    request = AnswerRequest(
        PromptTemplate("Classify.", "T", "L"),
        query_mechanism_class("knn-votes")(),
        PrivacyTarget(1.0, 1e-5),
        5,
        labels=LABELS,
        max_record_tokens=12,
        max_query_tokens=20,
    )
    return [vote for (vote,) in LabelRespondent(model, request).answer(examples, query).answers]


def test_a_constant_preference_of_the_model_does_not_decide():
    assert set(votes(Biased(0.5), EXAMPLES)) == {0, 1}


def test_a_shards_vote_is_its_own_and_the_shape_is_public():
    model = ToyModel()
    before = votes(model, EXAMPLES)
    shapes = list(model.opened)
    changed = [*EXAMPLES]
    changed[3] = [Record("another", LABELS[0])]
    after = votes(model, changed)
    assert [i for i in range(30) if before[i] != after[i]] in ([], [3])
    assert model.opened == shapes * 2


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
