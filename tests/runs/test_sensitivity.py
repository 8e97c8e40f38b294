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
from mechanisms.sampling import SamplingPlan, Scheme
from tests.synthesis.neighbours import clean_sums
from tests.toy_model import ToyModel

pytestmark = pytest.mark.slow

TEXTS = st.lists(st.text(st.characters(codec="ascii"), max_size=24), min_size=1, max_size=7)
SLACK = 1e-6  # 12 candidates rounded down to a grid of 2**-30
BOUNDED = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def distances(records, plan, sizes, **options):
    with_unit = clean_sums(records, plan, ToyModel(8.0), sizes, **options)
    without = clean_sums(records[:-1], plan, ToyModel(8.0), sizes, **options)
    assert len(with_unit) == len(without) > 0
    return [float(np.linalg.norm(a - b)) for a, b in zip(with_unit, without, strict=True)]


@pytest.mark.parametrize("scheme", list(Scheme))
@given(texts=TEXTS)
@BOUNDED
def test_unit_rows_move_by_at_most_one(scheme, texts):
    plan = SamplingPlan(scheme, subsets=50, tokens=4)
    moved = distances([Record(text, "a") for text in texts], plan, {"a": 8})
    assert max(moved) <= 1 + SLACK
    assert min(moved) > 0.05  # the record does take part: the test would notice if it did not


@pytest.mark.parametrize("scheme", list(Scheme))
@given(texts=TEXTS)
@BOUNDED
def test_subsets_move_by_at_most_root_two(scheme, texts):
    plan = SamplingPlan(scheme, subsets=3, per_subset=4, unit_rows=False, tokens=4)
    moved = distances([Record(text, "a") for text in texts], plan, {"a": 8})
    assert max(moved) <= math.sqrt(2) + SLACK


def test_subsets_do_exceed_one_so_that_claiming_one_would_be_wrong():
    plan = SamplingPlan(Scheme.PER_DEMONSTRATION, subsets=1, per_subset=8, unit_rows=False, tokens=4)
    worst = max(max(distances([Record(f"{i} {j}", "a") for j in range(3)], plan, {"a": 8})) for i in range(10))
    assert worst > 1.05


@given(texts=TEXTS, own=st.lists(st.text(st.characters(codec="ascii"), max_size=24), min_size=1, max_size=4))
@BOUNDED
def test_all_records_of_a_user_move_one_row(texts, own):
    plan = SamplingPlan(subsets=50, tokens=4)
    others = [Record(text, "a", unit=f"u{i}") for i, text in enumerate(texts)]
    mine = [Record(text, "a", unit="me") for text in own]
    with_me = clean_sums(others + mine, plan, ToyModel(8.0), {"a": 9}, by_user=True)
    without = clean_sums(others, plan, ToyModel(8.0), {"a": 9}, by_user=True)
    assert max(np.linalg.norm(a - b) for a, b in zip(with_me, without, strict=True)) <= 1 + SLACK


def test_shapes_given_to_the_model_are_public():
    plan = SamplingPlan(Scheme.PER_TOKEN, subsets=3, tokens=4)
    shapes = []
    for records in ([Record("x", "a")] * 6, [Record("a long text " * 9, "a")] * 2, []):
        model = ToyModel()
        clean_sums(records, plan, model, {"a": 8})
        shapes.append(model.opened)
    assert shapes[0] == shapes[1] == shapes[2]


@pytest.mark.parametrize("unit_rows", [True, False])
@given(texts=TEXTS)
@BOUNDED
def test_a_record_touches_one_disjoint_batch_only(unit_rows, texts):
    subsets, per_subset = (2, 1) if unit_rows else (1, 2)
    plan = SamplingPlan(Scheme.DISJOINT, subsets, per_subset, unit_rows, tokens=3, shots=4)
    records = [Record(text, "a") for text in texts]
    with_unit = clean_sums(records, plan, ToyModel(8.0), {"a": 8})
    without = clean_sums(records[:-1], plan, ToyModel(8.0), {"a": 8})
    moved = [float(np.linalg.norm(a - b)) for a, b in zip(with_unit, without, strict=True)]
    touched = [any(m > 0 for m in moved[3 * i : 3 * i + 3]) for i in range(4)]
    # With subsets a record that its row has no room for touches nothing.
    assert sum(touched) == 1 if unit_rows else sum(touched) <= 1
    assert max(moved) <= (1 if unit_rows else math.sqrt(2)) + SLACK


@pytest.mark.parametrize("copies", [2, 12])
def test_equal_rows_do_not_share_a_disjoint_batch(copies):
    plan = SamplingPlan(Scheme.DISJOINT, subsets=4, tokens=2, shots=3)
    records = [Record("the same words", "a")] * copies
    with_unit, without = (clean_sums(each, plan, ToyModel(8.0), {"a": 12}) for each in (records, records[:-1]))
    moved = [float(np.linalg.norm(a - b)) for a, b in zip(with_unit, without, strict=True)]
    assert max(moved) <= 1 + SLACK
    sizes = [round(float(total.sum())) for total in with_unit[:: plan.tokens]]
    assert sum(sizes) == copies
    assert copies == 2 or max(sizes) < copies
