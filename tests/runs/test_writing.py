"""Synthesis: charges before releases, stops that settle, public behaviour on overflow."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from mechanisms.runs.request import SynthesisRequest

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.data.sizes import measure_sizes
from mechanisms.errors import BudgetRefused, DataError, UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, PromptTemplate, Record
from mechanisms.runs import writer
from mechanisms.runs.events import (
    DemoCompleted,
    DemoStarted,
    PrivateDiagnostics,
    RunCompleted,
    RunStarted,
    TokenReleased,
)
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class
from mechanisms.steps.gaussian import GaussianMechanism
from tests.toy_model import VOCABULARY, ToyModel

LABELS = ("a", "b")


def dataset(per_label: int = 30, name: str = "d") -> Dataset:
    return Dataset(name, LABELS, tuple(Record(f"text {i}", label) for i in range(per_label) for label in LABELS))


def request(**changes) -> SynthesisRequest:
    usual = SynthesisRequest(
        labels=LABELS,
        template=PromptTemplate("Classify.", "T", "L"),
        plan=SamplingPlan(subsets=6, tokens=5),
        mechanism=GaussianMechanism(20.0),
        target=PrivacyTarget(1.0, 1e-5),
        sizes=dict.fromkeys(LABELS, 30),
        content=fingerprint(dataset()).content,
        candidates=8,
        max_record_tokens=8,
    )
    return replace(usual, **changes)


def events(**changes):
    return list(synthesize(dataset(), request(**changes), ToyModel(), PrivacyLedger(), SeededRandomness(1)))


@pytest.mark.parametrize("scheme", list(Scheme))
def test_a_run_tells_everything_in_order(scheme):
    told = events(plan=SamplingPlan(scheme, subsets=6, tokens=5, shots=2))
    assert isinstance(told[0], RunStarted)
    assert isinstance(told[-1], RunCompleted)
    demonstrations = [event.demonstration for event in told if isinstance(event, DemoCompleted)]
    assert [d.label for d in demonstrations] == ["a", "a", "b", "b"]
    assert told[-1].demo_set.demonstrations == tuple(demonstrations)
    for event in told:
        if isinstance(event, TokenReleased):
            assert len(event.candidates) == len(event.scores) == len(event.public) == 8
            assert event.chosen == int(np.argmax(event.scores))
            assert 1 <= event.step <= 5


def test_every_demonstration_is_charged_before_its_first_token():
    ledger = PrivacyLedger()
    spent = []
    for event in synthesize(dataset(), request(), ToyModel(), ledger, SeededRandomness(1)):
        if isinstance(event, TokenReleased) and event.step == 1:
            spent.append(ledger.snapshot("d", "record").epsilon)
        if isinstance(event, DemoStarted):
            assert event.budget.epsilon > 0
    assert all(epsilon > 0 for epsilon in spent)


def test_stopping_keeps_the_charge_and_settles_the_run():
    ledger = PrivacyLedger()
    run = synthesize(dataset(), request(), ToyModel(), ledger, SeededRandomness(1))
    for event in run:
        if isinstance(event, TokenReleased):
            break
    run.close()
    assert ledger.snapshot("d", "record").epsilon > 0
    assert ledger.history("d")[0]["status"] == "finished"


def test_a_model_that_breaks_keeps_the_charge():
    class Breaking(ToyModel):
        def open(self, *arguments):
            raise RuntimeError("out of memory")

    ledger = PrivacyLedger()
    with pytest.raises(RuntimeError):
        list(synthesize(dataset(), request(), Breaking(), ledger, SeededRandomness(1)))
    assert ledger.snapshot("d", "record").epsilon > 0


def test_a_full_ledger_refuses_before_the_model_is_asked():
    ledger = PrivacyLedger()
    ledger.set_cap("d", "record", PrivacyTarget(1e-3, 1e-4))
    model = ToyModel()
    with pytest.raises(BudgetRefused):
        next(synthesize(dataset(), request(), model, ledger, SeededRandomness(1)))
    assert model.opened == []


@pytest.mark.parametrize("scheme", list(Scheme))
def test_what_the_model_refuses_is_refused_before_anything_is_reserved(scheme):
    class Small(ToyModel):
        def check(self, prefix, rows, length, room):
            super().check(prefix, rows, length, room)
            raise UsageError("too long")

    asked, ledger, small = request(plan=SamplingPlan(scheme, subsets=6, tokens=5)), PrivacyLedger(), Small()
    with pytest.raises(UsageError, match="too long"):
        next(synthesize(dataset(), asked, small, ledger, SeededRandomness(1)))
    assert ledger.snapshot("d", "record").epsilon == 0
    assert not small.opened

    model = ToyModel()
    list(synthesize(dataset(), asked, model, ledger, SeededRandomness(1)))
    longest = max(length + room for rows, length, room in model.opened if rows == asked.capacity("a"))
    assert longest == max(length + room for rows, length, room in model.checked if rows == asked.capacity("a"))


def test_more_units_than_declared_are_refused():
    with pytest.raises(DataError, match="declared"):
        events(sizes={"a": 29, "b": 30})


def test_a_run_that_was_planned_for_another_file_is_refused_before_anything_is_reserved():
    ledger, model = PrivacyLedger(), ToyModel()
    planned = request(sizes=dict.fromkeys(LABELS, 1000))
    with pytest.raises(UsageError, match="planned for another file"):
        next(synthesize(dataset(per_label=20), planned, model, ledger))
    assert ledger.snapshot("d", "record").epsilon == 0
    assert not model.opened


def test_sizes_that_were_measured_on_another_file_fit_no_plan():
    other = dataset(per_label=5)
    measured = measure_sizes(other, 0.1, 1e-5, PrivacyLedger())
    with pytest.raises(UsageError, match="measured on another file"):
        request().with_measured_sizes(measured)
    request(content=fingerprint(other).content).with_measured_sizes(measured)


def test_every_run_divides_its_disjoint_batches_anew(monkeypatch):
    secrets = []
    plain = writer.keyed_place
    monkeypatch.setattr(writer, "keyed_place", lambda key, *rest: secrets.append(key) or plain(key, *rest))
    disjoint = request(plan=SamplingPlan(Scheme.DISJOINT, subsets=6, tokens=2, shots=2))
    for _ in range(2):
        list(synthesize(dataset(), disjoint, ToyModel(), PrivacyLedger()))
    assert len(set(secrets)) == 2
    assert all(len(secret) == 32 for secret in secrets)


def test_label_sets_must_agree():
    with pytest.raises(UsageError):
        events(labels=("b", "a"))


def test_overflow_releases_the_public_step(monkeypatch):
    monkeypatch.setattr(SamplingPlan, "capacity", lambda self, size, delta: (1, 0.0))
    monkeypatch.setattr(SeededRandomness, "gaussian", lambda self, values, scale: values)
    scores = [event for event in events() if isinstance(event, TokenReleased)]
    assert scores
    for event in scores:
        assert event.scores == pytest.approx(event.public, abs=1e-6)


def test_a_seeded_run_is_marked_and_repeats_itself():
    first, second = events(), events()
    demo_set = first[-1].demo_set
    assert not demo_set.certificate.private
    assert "seed" in demo_set.certificate.reason
    assert demo_set.demonstrations == second[-1].demo_set.demonstrations


def test_clean_values_are_told_only_to_the_curator_and_mark_the_export():
    assert not any(isinstance(event, PrivateDiagnostics) for event in events())
    told = list(synthesize(dataset(), request(), ToyModel(), PrivacyLedger(), SeededRandomness(1), curator=True))
    clean = [event for event in told if isinstance(event, PrivateDiagnostics)]
    tokens = [event for event in told if isinstance(event, TokenReleased)]
    assert len(clean) == len(tokens)
    assert told[-1].demo_set.certificate.disclosures
    exported = json.dumps(told[-1].demo_set.to_json())
    assert not any(repr(value) in exported for event in clean for value in event.clean if value % 1 > 0)


def test_public_text_never_looks_at_the_data_and_costs_nothing():
    ledger, model = PrivacyLedger(), ToyModel()
    told = list(synthesize(dataset(), request(mechanism=mechanism_class("public")()), model, ledger))
    assert told[-1].demo_set.certificate.claim.epsilon == 0
    assert ledger.snapshot("d", "record").epsilon == 0
    assert {rows for rows, _, _ in model.opened} == {1}


class Rounds(ToyModel):
    """Says x, y, z and x again for as long as it may, and does not want to end."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        session._row = lambda tokens: 50.0 * (np.eye(VOCABULARY)[ord(AFTER.get(chr(tokens[-1]), "x"))] - ENDS)
        return session


AFTER = {"x": "y", "y": "z"}
ENDS = np.eye(VOCABULARY)[list(ToyModel.stop_tokens)].sum(axis=0)


def test_no_demonstration_writes_the_same_three_tokens_twice():
    asked = request(mechanism=mechanism_class("non-private")(), plan=SamplingPlan(subsets=6, tokens=40))
    *_, last = synthesize(dataset(), asked, Rounds(), PrivacyLedger(), SeededRandomness(1))
    for demonstration in last.demo_set.demonstrations:
        text = demonstration.text
        runs = [text[i : i + 3] for i in range(len(text) - 2)]
        assert text.startswith("xyzxy")
        assert len(runs) == len(set(runs)) == 38


def test_once_clean_values_were_shown_every_later_certificate_says_so():
    ledger = PrivacyLedger()
    flags = []
    for curator in (False, True, False):
        *_, last = synthesize(dataset(), request(), ToyModel(), ledger, curator=curator)
        flags.append(bool(last.demo_set.certificate.disclosures))
    assert flags == [False, True, True]


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("by_user", [False, True])
def test_a_finished_run_has_charged_what_it_planned(scheme, by_user):
    from mechanisms.accounting.filter import Spend, usage

    records = tuple(Record(f"text {i}", label, unit=f"u{i}") for i in range(30) for label in LABELS)
    private = Dataset("d", LABELS, records, "who" if by_user else None)
    plan = SamplingPlan(scheme, subsets=6, tokens=2, shots=2)
    chosen = request(plan=plan, by_user=by_user, content=fingerprint(private).content)
    ledger = PrivacyLedger()
    ledger.set_cap("d", private.unit, PrivacyTarget(1e3, 1e-3))
    for _ in synthesize(private, chosen, ToyModel(), ledger):
        pass
    cap = ledger.snapshot("d", private.unit).cap
    planned = usage([Spend(1e6, 1e-5, dict(chosen.event))], cap)
    with ledger.transaction() as database:
        [charged] = ledger._spends(database, "d", private.unit)
    finished = usage([Spend(1e6, 1e-5, charged.lists)], cap)
    assert finished.epsilon == pytest.approx(planned.epsilon, rel=1e-6)
    failures = [sum(e.delta for e in events if hasattr(e, "delta")) for events in charged.lists.values()]
    assert max(failures) == pytest.approx(
        max(sum(e.delta for e in events if hasattr(e, "delta")) for _, events in chosen.event)
    )


def test_a_plan_for_a_share_of_the_units_is_no_run_of_its_own():
    planned = request()
    part = replace(planned, plan=replace(planned.plan, share=0.5))
    with pytest.raises(UsageError, match="run the recipe"):
        next(synthesize(dataset(), part, ToyModel(), PrivacyLedger()))
