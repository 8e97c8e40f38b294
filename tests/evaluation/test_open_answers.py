"""Answers that are text: what a responder says, how it is scored, and the interval of a figure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from mechanisms.errors import UsageError
from mechanisms.evaluation.completions import answering
from mechanisms.evaluation.evaluate import Accuracy, Progress
from mechanisms.evaluation.open_answers import OpenScorecard, evaluate_open, exact_match, token_f1
from mechanisms.evaluation.reader import Arm
from mechanisms.records import Demonstration, PromptTemplate, Record
from tests.toy_model import VOCABULARY, ToyModel

TEMPLATE = PromptTemplate("Answer.", "Q", "Kind", "A")
WORDS = st.lists(st.sampled_from(["red", "blue", "The", "a", "green!", "x"]), max_size=5).map(" ".join)


@pytest.mark.parametrize(
    ("answer", "reference", "exact", "f1"),
    [
        ("The  Cestida.", "cestida", True, 1.0),
        ("science fiction", "soviet science fiction", False, 0.8),
        ("red red", "red", False, 2 / 3),
        ("red", "blue", False, 0.0),
        ("", "the", True, 1.0),
        ("", "red", False, 0.0),
    ],
)
def test_scores_are_squads(answer, reference, exact, f1):
    assert exact_match(answer, reference) is exact
    assert token_f1(answer, reference) == pytest.approx(f1)


@given(WORDS, WORDS)
def test_f1_is_symmetric_and_one_where_the_words_are_the_same(one, other):
    assert token_f1(one, other) == token_f1(other, one)
    assert 0 <= token_f1(one, other) <= 1
    assert not exact_match(one, other) or token_f1(one, other) == 1
    assert token_f1(one, one) == 1


@given(st.integers(1, 500).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_the_interval_is_wilsons(counts):
    expected = binomtest(*counts).proportion_ci(0.95, method="wilson")
    assert Accuracy(*counts).interval == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=200))
def test_what_is_correct_in_part_has_its_mean_in_its_interval(shares):
    found = Accuracy(sum(shares), len(shares))
    low, high = found.interval
    assert 0 <= low <= found.value + 1e-12
    assert found.value - 1e-12 <= high <= 1
    assert low < high


class Echo(ToyModel):
    """Answers a query with its text, where it is shown a demonstration, and with an x elsewhere."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        session._row = echoed
        return session


def echoed(row: list[int]) -> np.ndarray:
    said = bytes(row).decode()
    query, _, answer = said.rpartition("Q: ")[2].partition("\nA:")
    wanted = f" {query}\n" if "\n\nQ: shown" in said else "x\n"
    return np.eye(VOCABULARY)[ord(wanted[len(answer)] if len(answer) < len(wanted) else "\n")]


SHOWN = Demonstration("shown", "Asked", "said")


def test_a_responder_goes_on_behind_the_query_up_to_a_line_break_or_its_cap():
    texts = [f"text {i}" for i in range(35)]
    assert list(answering(Echo(busy=10_000), TEMPLATE, [SHOWN], 20).answers(texts)) == texts
    assert list(answering(Echo(), TEMPLATE, (), 20).answers(texts[:2])) == ["x", "x"]
    assert list(answering(Echo(), TEMPLATE, [SHOWN], 5).answers(["longer"])) == ["long"]
    assert list(answering(Echo(), TEMPLATE, [SHOWN], 5).answers([])) == []


def test_an_answer_does_not_depend_on_the_other_texts():
    texts = [f"text {i}" for i in range(20)]
    together = list(answering(ToyModel(busy=10_000), TEMPLATE, [SHOWN], 6).answers(texts))
    assert together == [next(answering(ToyModel(), TEMPLATE, [SHOWN], 6).answers([text])) for text in texts]


def test_each_set_of_demonstrations_has_its_figures():
    rows = [Record("red", "", None, "red"), Record("deep red", "", None, "red"), Record("blue", "", None, "red")]
    told = list(evaluate_open(Echo(), TEMPLATE, [Arm("none", ()), Arm("one", (SHOWN,))], rows * 8, 12))
    assert [each.done for each in told if isinstance(each, Progress)] == [16, 32, 48]
    none, one = (each for each in told if isinstance(each, OpenScorecard))
    assert (none.name, none.exact.correct, none.f1.correct) == ("none", 0, 0)
    assert (one.name, one.exact.correct, one.exact.total) == ("one", 8, 24)
    assert one.f1.value == pytest.approx((1 + 2 / 3) / 3)


def test_labels_are_no_outputs():
    with pytest.raises(UsageError, match="no outputs"):
        answering(ToyModel(), PromptTemplate("i"), (), 5)
    with pytest.raises(UsageError, match="no outputs"):
        answering(ToyModel(), TEMPLATE, [Demonstration("t", "l")], 5)
    for rows in ([], [Record("t", "l")]):
        with pytest.raises(UsageError, match="needs an output"):
            list(evaluate_open(ToyModel(), TEMPLATE, (), rows, 5))
