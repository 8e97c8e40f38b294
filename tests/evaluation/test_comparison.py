"""Two sets on the same rows."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import pytest
from scipy.stats import binomtest

from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import AS_READ, Accuracy, Comparison, compare
from mechanisms.evaluation.reader import LocalReader
from mechanisms.records import Demonstration, Record
from tests.evaluation.test_grid import finished
from tests.toy_model import ToyModel
from tests.ui.generate.recording import demo_set

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
    told, found = finished(compare(READER, ONE, ONE, ROWS))
    assert set(found) == {"raw", "contextual", AS_READ}
    for each in found.values():
        assert (each.only_first, each.only_second, each.p_value) == (0, 0, 1.0)
        assert each.first == each.second
    assert told[-1] == 40


def test_only_rows_that_one_set_alone_answers_right_count():
    _, found = finished(compare(READER, ONE, OTHER, ROWS))
    for each in found.values():
        assert each.first.correct - each.second.correct == each.only_first - each.only_second
        assert each.only_first + each.only_second > 0
    assert "prior" not in found


def test_each_set_is_read_with_its_own_correction():
    _, found = finished(compare(READER, replace(ONE, prior=ALWAYS_SPORT), OTHER, ROWS))
    plain = finished(compare(READER, ONE, OTHER, ROWS))[1]
    assert found[AS_READ].first == Accuracy(5, 20)
    assert found[AS_READ].second == plain["contextual"].second
    assert found["contextual"] == plain["contextual"]
    both = finished(compare(READER, *(replace(each, prior=ALWAYS_SPORT) for each in (ONE, OTHER)), ROWS))[1]
    assert both["prior"].only_first == both["prior"].only_second == 0


def test_labels_in_another_order_are_the_same_labels_and_others_are_refused():
    turned = replace(OTHER, labels=("Sport", "News"))
    assert finished(compare(READER, ONE, turned, ROWS))[1] == finished(compare(READER, ONE, OTHER, ROWS))[1]
    with pytest.raises(UsageError, match="different labels"):
        next(compare(READER, ONE, replace(OTHER, labels=("News", "Weather")), ROWS))
