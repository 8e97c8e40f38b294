"""Neighbouring runs, and demonstrations written side by side: how far sums move, and that nothing else does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, Record
from mechanisms.runs.events import RunCompleted, TokenReleased
from mechanisms.sampling import Scheme
from tests.runs.neighbours import Spelling, clean_sums, recorded_run

pytestmark = pytest.mark.usefixtures("any_text_passes")

LABELS = ("red", "indigo", "green")


class Stopping(Spelling):
    """Ends a text soon: a line break is one of the likeliest tokens, in other places of every text."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        plain = session._row
        session._row = lambda tokens: plain(tokens) + 9.0 * (np.arange(128) == 10)
        return session


def run(model, scheme=Scheme.PER_DEMONSTRATION, tokens=6, transform="none"):
    """Everybody joins, so that nothing but the order of the draws differs between two runs."""
    dataset = Dataset("d", LABELS, tuple(Record(f"{label} text {i}", label) for label in LABELS for i in range(7)))
    events, sums, ledger = recorded_run(
        dataset, model, SeededRandomness(3), sizes=dict.fromkeys(LABELS, 7), max_record_tokens=12, scheme=scheme,
        subsets=7, tokens=tokens, written=2, shots=2, transform=transform, min_tokens=1,
    )  # fmt: skip
    return events, sums, ledger.history("d")


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("model", [Spelling, Stopping])
@pytest.mark.parametrize("scheme", [Scheme.PER_DEMONSTRATION, Scheme.PER_TOKEN])
@pytest.mark.parametrize("transform", ["none", "pta"])
def test_texts_and_clean_sums_are_those_of_demonstrations_written_alone(model, scheme, transform):
    alone, sums_alone, _ = run(model(busy=1), scheme, transform=transform)
    together, sums_together, _ = run(model(busy=10**6), scheme, transform=transform)
    assert of(together, RunCompleted)[0].demo_set.demonstrations == of(alone, RunCompleted)[0].demo_set.demonstrations
    key = lambda token: (token.label, token.number, token.step)  # noqa: E731
    assert sorted(of(together, TokenReleased), key=key) == sorted(of(alone, TokenReleased), key=key)
    assert sorted(map(tuple, sums_together)) == sorted(map(tuple, sums_alone)), "sums on the lattice are exact"


def test_they_share_batches_whose_shapes_follow_from_released_tokens():
    model = Spelling(busy=10**6)
    run(model)
    rows = [rows for rows, _, _ in model.opened]
    assert rows.count(2) == 3, "one public row a demonstration, the two of a label together"
    assert rows.count(2 * 8) == 3, "one batch of private rows for both"


SLOW = pytest.mark.slow

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


@SLOW
@pytest.mark.parametrize("scheme", list(Scheme))
@given(texts=TEXTS)
@BOUNDED
def test_subsets_move_by_at_most_root_two(scheme, texts):
    moved = moves([Record(text, "a") for text in texts], {"a": 8}, scheme=scheme, subsets=3, per_subset=4, tokens=4)
    assert max(moved) <= math.sqrt(2) + SLACK


@SLOW
def test_subsets_do_exceed_one_so_that_claiming_one_would_be_wrong():
    settings = {"subsets": 1, "per_subset": 8, "tokens": 4}
    worst = max(max(moves([Record(f"{i} {j}", "a") for j in range(3)], {"a": 8}, **settings)) for i in range(10))
    assert worst > 1.05
