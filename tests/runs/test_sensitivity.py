"""Adding or removing one unit never moves a released vector further than its declared sensitivity.

The whole path is run: parsing into units, sampling, prompts, the model, renormalisation, the lattice sum.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mechanisms.records import Record
from mechanisms.sampling import Scheme
from tests.runs.neighbours import Spelling, clean_sums

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("any_text_passes")]

TEXTS = st.lists(st.text(st.characters(codec="ascii"), max_size=24), min_size=1, max_size=7)
SLACK = 1e-6  # 12 candidates rounded down to a grid of 2**-30
BOUNDED = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def moves(records, sizes, **settings) -> list[float]:
    """How far the last record's unit moves the sum of each step."""
    mine = records[-1].unit or records[-1]
    others = [each for each in records[:-1] if each.unit is None or each.unit != mine]
    with_unit, without = (clean_sums(each, Spelling(8.0), sizes, **settings) for each in (records, others))
    assert len(with_unit) == len(without) > 0
    return [float(np.linalg.norm(a - b)) for a, b in zip(with_unit, without, strict=True)]


@pytest.mark.parametrize("scheme", list(Scheme))
@given(texts=TEXTS)
@BOUNDED
def test_unit_rows_move_by_at_most_one(scheme, texts):
    moved = moves([Record(text, "a") for text in texts], {"a": 8}, scheme=scheme, subsets=50, tokens=4)
    assert max(moved) <= 1 + SLACK
    assert min(moved) > 0.05  # the record does take part: the test would notice if it did not


@pytest.mark.parametrize("scheme", list(Scheme))
@given(texts=TEXTS)
@BOUNDED
def test_subsets_move_by_at_most_root_two(scheme, texts):
    moved = moves([Record(text, "a") for text in texts], {"a": 8}, scheme=scheme, subsets=3, per_subset=4, tokens=4)
    assert max(moved) <= math.sqrt(2) + SLACK


def test_subsets_do_exceed_one_so_that_claiming_one_would_be_wrong():
    settings = {"subsets": 1, "per_subset": 8, "tokens": 4}
    worst = max(max(moves([Record(f"{i} {j}", "a") for j in range(3)], {"a": 8}, **settings)) for i in range(10))
    assert worst > 1.05


@given(texts=TEXTS, own=st.lists(st.text(st.characters(codec="ascii"), max_size=24), min_size=1, max_size=4))
@BOUNDED
def test_all_records_of_a_user_move_one_row(texts, own):
    records = [Record(text, "a", f"u{i}") for i, text in enumerate(texts)] + [Record(text, "a", "me") for text in own]
    assert max(moves(records, {"a": 9}, by_user=True, subsets=50, tokens=4)) <= 1 + SLACK


def test_shapes_given_to_the_model_are_public():
    shapes = []
    for records in ([Record("x", "a")] * 6, [Record("a long text " * 9, "a")] * 2, []):
        model = Spelling(8.0)
        clean_sums(records, model, {"a": 8}, scheme=Scheme.PER_TOKEN, subsets=3, tokens=4)
        shapes.append(model.opened)
    assert shapes[0] == shapes[1] == shapes[2]
