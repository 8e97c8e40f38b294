"""Token by token: charges before releases, stops that settle, public behaviour on overflow."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mechanisms.accounting import PrivacyLedger
from mechanisms.data.sizes import measure_sizes
from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.runs.events import (
    DemoCompleted,
    DemoRefused,
    PrivateDiagnostics,
    RunCompleted,
    RunStarted,
    SetKept,
    TokenReleased,
)
from mechanisms.runs.plan import Plan, plan_for, public_plan
from mechanisms.runs.run import run
from mechanisms.runs.stages.write import NO_SENTENCE, DemonstrationWriter
from mechanisms.runs.text import Gate
from mechanisms.sampling import SamplingPlan, Scheme
from tests.runs.running import LABELS, NOISE, Reading, alone, begun, data, ledger, planned, rows
from tests.toy_model import VOCABULARY, ToyModel

RAW = NOISE | {"temperature": 0.0, "prior-deviation": 1000.0}
"""The likeliest token of the vector as it is released."""


def plan_of(**settings) -> Plan:
    return planned(data(rows(60)), alone(**settings))


def events(randomness=None, curator=False, **settings):
    randomness = randomness or SeededRandomness(1)
    return list(begun(data(rows(60)), plan_of(**settings), randomness=randomness, curator=curator))


@pytest.mark.parametrize("scheme", list(Scheme))
def test_a_run_tells_everything_in_order(scheme):
    told = events(scheme=scheme, written=2, shots=2, parameters=RAW)
    assert isinstance(told[0], RunStarted)
    assert isinstance(told[-1], RunCompleted)
    whole = [event.demonstration for event in told if isinstance(event, DemoCompleted)]
    assert [each.label for each in whole] == ["red", "red", "blue", "blue"]
    refused = sum(isinstance(event, DemoRefused) for event in told)
    assert len(set(whole) & set(told[-1].demo_set.demonstrations)) == 4 - refused
    for event in told:
        if isinstance(event, TokenReleased):
            assert len(event.candidates) == len(event.scores) == len(event.public) == len(event.values) == 8
            assert event.chosen == int(np.argmax(event.scores))
            assert 1 <= event.step <= 5


def test_labels_take_turns_in_a_set():
    made = events(written=2, shots=2)[-1].demo_set
    assert [each.label for each in made.demonstrations] == ["red", "blue", "red", "blue"]


def test_a_token_is_the_likeliest_of_the_posterior_mean_of_what_was_released():
    """What a screen shows as deciding follows from the released vector and public values alone."""
    told = [event for event in events(parameters=NOISE | {"temperature": 0.0}) if isinstance(event, TokenReleased)]
    deviation, rows_of_a_step, tau = 9.0, 6, 0.1
    for event in told:
        noise = (deviation / rows_of_a_step) ** 2
        released = np.array(event.scores) / rows_of_a_step
        public = np.array(event.public) / rows_of_a_step
        wanted = (tau**2 * released + noise * public) / (tau**2 + noise)
        assert np.array(event.values) / rows_of_a_step == pytest.approx(wanted)
        assert event.chosen == int(np.argmax(event.values))


def test_a_model_that_breaks_keeps_the_charge():
    class Breaking(Reading):
        def open(self, prefix, rows, length, room):
            if any(b"secret" in bytes(row) for row in rows):
                raise RuntimeError("out of memory")
            return super().open(prefix, rows, length, room)

    account = ledger()
    with pytest.raises(RuntimeError):
        list(begun(data(rows(60)), plan_of(), ledger=account, model=Breaking()))
    assert account.snapshot("d", "record").epsilon > 0


@pytest.mark.parametrize("scheme", list(Scheme))
def test_what_the_model_refuses_is_refused_before_anything_is_reserved(scheme):
    class Small(Reading):
        def check(self, prefix, rows, length, room):
            super().check(prefix, rows, length, room)
            raise UsageError("too long")

    plan, account, small = plan_of(scheme=scheme), ledger(), Small()
    with pytest.raises(UsageError, match="too long"):
        next(begun(data(rows(60)), plan, ledger=account, model=small))
    assert account.snapshot("d", "record").epsilon == 0
    assert not small.opened

    model, capacity = Reading(), plan.capacity("red")
    list(begun(data(rows(60)), plan, model=model))
    longest = max(length + room for rows, length, room in model.opened if rows == capacity)
    assert longest <= max(length + room for rows, length, room in model.checked if rows == capacity)


def test_sizes_that_were_measured_on_another_file_fit_no_plan():
    other = data(rows(10))
    measured = measure_sizes(other, 0.1, 1e-5, PrivacyLedger())
    with pytest.raises(UsageError, match="measured on another file"):
        plan_for(alone(), data(rows(60)), measured)
    plan_for(alone(), other, measured)


def test_overflow_releases_the_public_step(monkeypatch):
    monkeypatch.setattr(SamplingPlan, "capacity", lambda self, size, delta: (1, 0.0))
    monkeypatch.setattr(SeededRandomness, "gaussian", lambda self, values, scale: values)
    tokens = [event for event in events() if isinstance(event, TokenReleased)]
    assert tokens
    for event in tokens:
        assert event.scores == pytest.approx(event.public, abs=1e-6)


def test_clean_values_are_told_only_to_the_curator_and_mark_the_export():
    assert not any(isinstance(event, PrivateDiagnostics) for event in events())
    told = events(curator=True)
    clean = [event for event in told if isinstance(event, PrivateDiagnostics)]
    assert len(clean) == sum(isinstance(event, TokenReleased) for event in told)
    assert told[-1].demo_set.certificate.disclosures
    exported = json.dumps(told[-1].demo_set.to_json())
    assert not any(repr(value) in exported for event in clean for value in event.clean if value % 1 > 0)


def test_once_clean_values_were_shown_every_later_certificate_says_so():
    account, flags = ledger(), []
    for curator in (False, True, False):
        *_, last = begun(data(rows(60)), plan_of(), ledger=account, curator=curator, randomness=SecureRandomness())
        flags.append(bool(last.demo_set.certificate.disclosures))
    assert flags == [False, True, True]


def test_public_text_never_looks_at_the_data_and_costs_nothing():
    account, model = ledger(), Reading()
    told = list(run(public_plan(alone(), LABELS), data(rows(60)), model, account))
    assert told[-1].demo_set.certificate.claim.epsilon == 0
    assert account.snapshot("d", "record").epsilon == 0
    assert not model.log


class Rounds(ToyModel):
    """Says x, y, z and x again for as long as it may, and does not want to end."""

    def decode(self, tokens) -> str:
        return super().decode(tokens) + "." * bool(tokens)

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        session._row = lambda tokens: 50.0 * (np.eye(VOCABULARY)[ord(AFTER.get(chr(tokens[-1]), "x"))] - ENDS)
        return session


AFTER = {"x": "y", "y": "z"}
ENDS = np.eye(VOCABULARY)[list(ToyModel.stop_tokens)].sum(axis=0)


def test_no_demonstration_writes_the_same_three_tokens_twice(any_text_passes):
    told = list(begun(data(rows(60)), plan_of(mechanism="non-private", parameters={}, tokens=40), model=Rounds()))
    for label in LABELS:
        tokens = [each.token for each in told if isinstance(each, TokenReleased) and each.label == label]
        runs = [tuple(tokens[i : i + 3]) for i in range(len(tokens) - 2)]
        assert bytes(tokens).startswith(b"xyzxy")
        assert len(runs) == len(set(runs)) == 38


# The gate: a text that is none stands in no set, and its charge stays.


def test_a_refused_text_stands_in_no_set_and_public_drafts_take_its_place(monkeypatch):
    """Nor in the one that is kept if the run stops right there."""
    written, account = set(), ledger()
    monkeypatch.setattr(Gate, "reason", lambda gate, text: "no words" if text in written else None)
    finished = DemonstrationWriter.completed.fget

    def completed(writer):
        event = finished(writer)
        written.add(event.demonstration.text)
        return event

    monkeypatch.setattr(DemonstrationWriter, "completed", property(completed))
    for event in begun(data(rows(60)), plan_of(), ledger=account, randomness=SecureRandomness()):
        if isinstance(event, SetKept | RunCompleted):
            assert not {each.text for each in event.demo_set.demonstrations} & written
    assert [each.label for each in event.demo_set.refused] == [*LABELS]
    assert {each.reason for each in event.demo_set.refused} <= {"no words", NO_SENTENCE}
    assert [each.label for each in event.demo_set.demonstrations] == [*LABELS]
    assert account.snapshot("d", "record").epsilon > 0


def test_what_the_gate_is_asked_is_public(monkeypatch):
    """Of two files with the same releases the same texts are asked for."""
    asked = []
    monkeypatch.setattr(Gate, "reason", lambda gate, text: asked.append(text))
    told = events()
    assert {each.demonstration.text for each in told if isinstance(each, DemoCompleted)} <= set(asked)
    assert not any("secret" in text for text in asked)


def test_a_text_without_a_whole_sentence_is_refused():
    class Endless(Reading):
        stop_tokens = frozenset()

        def decode(self, tokens) -> str:
            return super().decode(tokens).replace(".", "")

    told: list[object] = []
    with pytest.raises(UsageError, match="Nothing of this run"):
        told.extend(begun(data(rows(60)), plan_of(), model=Endless()))
    assert [each.reason for each in told if isinstance(each, DemoRefused)] == ["it has no whole sentence"] * 2
