"""Demonstrations that are written side by side are as they would be alone."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, Record
from mechanisms.runs.events import RunCompleted, TokenReleased
from mechanisms.sampling import Scheme
from tests.runs.neighbours import Spelling, recorded_run

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


def test_a_demonstration_that_ended_takes_no_more_part():
    events, _, _ = run(Stopping(busy=10**6), tokens=30)
    ends = {(token.label, token.number): token.step for token in of(events, TokenReleased) if token.stop}
    assert len(set(ends.values())) > 1, "all of them ended at once: the test shows nothing"
    for token in of(events, TokenReleased):
        assert token.step <= ends.get((token.label, token.number), 30)
