"""Demonstrations that are written side by side are as they would be alone."""

from __future__ import annotations

import numpy as np
import pytest
from mechanisms.runs.request import SynthesisRequest

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, PromptTemplate, Record
from mechanisms.runs.events import DemoCompleted, DemoStarted, RunCompleted, TokenReleased
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import transform_class
from tests.synthesis.neighbours import Recorder
from tests.toy_model import ToyModel

LABELS = ("red", "indigo", "green")


class Stopping(ToyModel):
    """Ends a text soon: a line break is one of the likeliest tokens, in other places of every text."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        plain = session._row
        session._row = lambda tokens: plain(tokens) + 9.0 * (np.arange(128) == 10)
        return session


class Transformable(Recorder):
    takes_transform = True


def run(model, scheme=Scheme.PER_DEMONSTRATION, tokens=6, transform="none", unit_rows=True):
    records = tuple(Record(f"{label} text {i}", label) for label in LABELS for i in range(7))
    mechanism, dataset = Transformable(), Dataset("d", LABELS, records)
    request = SynthesisRequest(
        labels=LABELS,
        template=PromptTemplate("Classify.", "T", "L"),
        # Everybody joins, so that nothing but the order of the draws differs between two runs.
        plan=SamplingPlan(scheme=scheme, subsets=7, tokens=tokens, shots=2, unit_rows=unit_rows),
        mechanism=mechanism,
        transform=transform_class(transform)(),
        target=PrivacyTarget(1.0, 1e-5),
        sizes=dict.fromkeys(LABELS, 7),
        content=fingerprint(dataset).content,
        candidates=12,
        max_record_tokens=12,
    )
    ledger = PrivacyLedger()
    ledger.set_cap("d", "record", PrivacyTarget(1e6, 0.5))
    events = list(synthesize(dataset, request, model, ledger, SeededRandomness(3)))
    return events, mechanism.sums, ledger.history("d")


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("model", [ToyModel, Stopping])
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
    model = ToyModel(busy=10**6)
    run(model)
    rows = [rows for rows, _, _ in model.opened]
    assert rows[0] == 6, "one public row a demonstration"
    assert len(rows) == 2, "one batch of private rows for all of them"
    few = ToyModel(busy=2 * rows[1] // 6)
    run(few)
    assert len(few.opened) == 6, "three groups of two"


def test_every_demonstration_is_charged_before_the_first_token_of_its_group():
    events, _, history = run(ToyModel(busy=10**6))
    kinds = [type(event) for event in events]
    assert kinds.index(TokenReleased) > max(i for i, kind in enumerate(kinds) if kind is DemoStarted)
    assert [run["status"] for run in history] == ["finished"]
    assert len(of(events, DemoCompleted)) == 6


def test_a_demonstration_that_ended_takes_no_more_part():
    events, _, _ = run(Stopping(busy=10**6), tokens=30)
    ends = {(token.label, token.number): token.step for token in of(events, TokenReleased) if token.stop}
    assert len(set(ends.values())) > 1, "all of them ended at once: the test shows nothing"
    for token in of(events, TokenReleased):
        assert token.step <= ends.get((token.label, token.number), 30)
