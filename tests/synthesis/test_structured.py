"""Records of a schema in whole runs: always valid, charged for what is drawn and for nothing else, refused in time."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.data.record_schema import RecordSchema, rewritten
from mechanisms.demos.demo_set import loads
from mechanisms.errors import UsageError
from mechanisms.inference import Grammar
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, PromptTemplate, Record
from mechanisms.runs import lockstep
from mechanisms.runs import lockstep as structured
from mechanisms.runs.events import DemoCompleted, RunCompleted, TokenReleased
from mechanisms.runs.forecast import ModelSpeed
from mechanisms.runs.public_demonstrations import public_demonstrations
from mechanisms.runs.recipe_forecast import predicted_seconds
from mechanisms.runs.request import RECORD_SCHEMA, SynthesisRequest
from mechanisms.runs.run import synthesize
from mechanisms.runs.verification import verify
from mechanisms.runs.writing import Writing
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class, mechanism_names, transform_class
from mechanisms.steps.gaussian import GaussianMechanism
from tests.synthesis.neighbours import Coupled, Recorder
from tests.toy_model import VOCABULARY, ToyModel

SCHEMA = RecordSchema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 4},
            "n": {"type": "integer", "minimum": -3, "maximum": 120},
            "kind": {"enum": ["red", "reddish", None]},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 2}, "maxItems": 2},
        },
        "required": ["name", "kind"],
    }
)
IMPOSSIBLE = RecordSchema(
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 2, "maximum": 1}}, "required": ["a"]}
)
ONE = RecordSchema({"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]})

SPEED = ModelSpeed(1e-4, 1e-3, 1e-2)


def dataset(units: int = 30) -> Dataset:
    texts = (SCHEMA.canonical({"name": f"m{i}", "n": i, "kind": "red", "tags": ["a"]}) for i in range(units))
    return Dataset("films", ("Film",), tuple(Record(text, "Film") for text in texts))


def request(data: Dataset | None = None, **changes) -> SynthesisRequest:
    usual = SynthesisRequest(
        labels=("Film",),
        template=PromptTemplate("Write.", "R", "K"),
        plan=SamplingPlan(subsets=6, tokens=40, shots=2),
        mechanism=GaussianMechanism(20.0),
        target=PrivacyTarget(1.0, 1e-5),
        sizes={"Film": 30},
        content=fingerprint(data or dataset()).content,
        candidates=8,
        max_record_tokens=8,
        schema=SCHEMA,
    )
    return replace(usual, **changes)


def run(model=None, ledger=None, seed: int = 1, **changes) -> list:
    return list(
        synthesize(
            dataset(), request(**changes), model or ToyModel(), ledger or PrivacyLedger(), SeededRandomness(seed)
        )
    )


def written(model, seed: int = 1, **changes) -> list:
    """What a run tells of its demonstrations, without anybody who pays for them."""
    writing = Writing(dataset(), request(**changes), model, SeededRandomness(seed))
    return list(writing.events(lambda label, number: None))


def done(told: list) -> list[DemoCompleted]:
    return [event for event in told if isinstance(event, DemoCompleted)]


def check(told: list, tokens: int) -> None:
    """Everything that holds of every run."""
    drawn = [event for event in told if isinstance(event, TokenReleased)]
    assert len(done(told)) == 2
    for event in done(told):
        text, mine = event.demonstration.text, [each for each in drawn if each.number == event.number]
        assert SCHEMA.holds(text)
        assert text == rewritten(text)
        assert event.tokens.charged == len(mine) <= tokens
        assert [each.step for each in mine] == list(range(1, len(mine) + 1))
        assert event.tokens.forced > 0
        assert (event.tokens.rest > 0) <= (len(mine) == tokens)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("name", mechanism_names())
def test_every_mechanism_writes_records_under_every_scheme_that_it_takes(name, scheme):
    plan = SamplingPlan(scheme, subsets=6, tokens=12, shots=2)
    if mechanism_class(name)().closed(plan) is not None:
        pytest.skip("closed")
    check(written(ToyModel(), plan=plan, mechanism=mechanism_class(name)()), 12)


@pytest.mark.slow
@settings(max_examples=12)
@given(st.integers(0, 2**20), st.integers(1, 30), st.sampled_from([0.1, 4.0, 300.0]), st.sampled_from(["none", "pta"]))
def test_every_record_validates_whatever_the_logits_and_however_few_tokens(seed, tokens, sharpness, transform):
    changes = {"plan": SamplingPlan(subsets=6, tokens=tokens, shots=2), "transform": transform_class(transform)()}
    check(written(ToyModel(sharpness), seed, **changes), tokens)


@pytest.mark.parametrize("rest", [0, 1, 5])
def test_a_record_ends_validly_when_public_text_is_used_up_too(rest, monkeypatch):
    monkeypatch.setattr(structured, "REST", rest)
    monkeypatch.setattr(lockstep, "REST", rest)
    check(written(ToyModel(), plan=SamplingPlan(subsets=6, tokens=1, shots=2)), 1)


def test_a_record_ends_validly_when_the_rows_room_is_used_up(monkeypatch):
    monkeypatch.setattr("mechanisms.runs.request._MOST_FORCED", 2)
    told = written(ToyModel(), plan=SamplingPlan(subsets=6, tokens=9, shots=2))
    assert all(SCHEMA.holds(event.demonstration.text) for event in done(told))
    assert all(event.tokens.charged <= 9 for event in done(told))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", list(Scheme))
def test_a_run_costs_what_as_many_tokens_cost_without_a_schema(scheme):
    plan = SamplingPlan(scheme, subsets=6, tokens=5, shots=2)
    assert request(plan=plan).event == request(plan=plan, schema=None).event
    ledger = PrivacyLedger()
    run(ledger=ledger, plan=plan)
    other = PrivacyLedger()
    named = replace(dataset(), name="texts")
    list(synthesize(named, request(plan=plan, schema=None), ToyModel(), other, SeededRandomness(1)))
    assert ledger.snapshot("films", "record").epsilon == other.snapshot("texts", "record").epsilon > 0


def test_nobody_joins_a_sample_for_a_token_that_is_forced():
    model = ToyModel()
    told = written(model, plan=SamplingPlan(Scheme.PER_TOKEN, subsets=6, tokens=9))
    [record] = done(told)
    assert record.tokens.forced > 1
    assert len([room for _, _, room in model.opened if room == 0]) == record.tokens.charged


class Fixed(ToyModel):
    """All rows say the same at the same place, so that without noise the likeliest allowed token is released."""

    def open(self, prefix, rows, length, room):
        session = super().open([], [[0]] * len(rows), length, room)
        session._row = lambda tokens: place_logits(len(tokens) - 1)
        return session


def place_logits(place: int) -> np.ndarray:
    return np.random.default_rng(place).permutation(VOCABULARY) * 5.0


def test_without_noise_the_likeliest_allowed_token_is_released():
    plan = SamplingPlan(Scheme.PER_DEMONSTRATION, subsets=6, tokens=60)
    told = written(Fixed(), plan=plan, mechanism=mechanism_class("non-private")())
    grammar, tokens = Grammar(SCHEMA.text, Fixed()), []
    while grammar.forced:
        tokens.append(grammar.take())
    place = 0
    while not grammar.complete:
        if grammar.forced:
            tokens.append(grammar.take())
        else:
            allowed = grammar.allowed(VOCABULARY)
            tokens.append(int(np.argmax(np.where(allowed, place_logits(place), -np.inf))))
            grammar.accept(tokens[-1])
        place += 1
    [record] = done(told)
    assert record.tokens.rest == 0
    assert record.demonstration.text == rewritten(grammar.text(tokens))


@pytest.mark.parametrize("scheme", [Scheme.PER_TOKEN, Scheme.PER_DEMONSTRATION])
def test_a_unit_moves_each_charged_step_by_its_own_row_and_no_forced_token_at_all(scheme):
    sums, texts = [], []
    for units in (20, 19):
        mechanism, data = Recorder(), dataset(units)
        plan = SamplingPlan(scheme, subsets=20, tokens=9)  # everybody joins
        planned = request(data, mechanism=mechanism, plan=plan, sizes={"Film": 20})
        writing = Writing(data, planned, ToyModel(), Coupled())
        told = list(writing.events(lambda label, number: None))
        sums.append(mechanism.sums)
        texts += [event.demonstration.text for event in done(told)]
        assert len(mechanism.sums) == done(told)[0].tokens.charged
    one, other = sums
    assert texts[0] == texts[1]
    distances = [float(np.linalg.norm(a - b)) for a, b in zip(one, other, strict=True)]
    assert max(distances) <= 1 + 1e-6
    assert max(distances) > 0


@pytest.mark.parametrize(
    ("schema", "message"), [(IMPOSSIBLE, "No record can be written"), (ONE, "Only one record meets")]
)
def test_a_schema_that_cannot_be_written_by_is_refused_before_anybody_has_paid(schema, message):
    ledger, model = PrivacyLedger(), ToyModel()
    with pytest.raises(UsageError, match=message):
        run(model, ledger, schema=schema)
    assert ledger.snapshot("films", "record").epsilon == 0
    assert ledger.history("films") == []
    assert model.opened == []


def test_tokens_that_the_schema_forces_take_time_too():
    for scheme in Scheme:
        with_schema, without = (
            predicted_seconds(request(plan=SamplingPlan(scheme, subsets=6, tokens=40), schema=each), SPEED)
            for each in (SCHEMA, None)
        )
        assert with_schema > without


def test_a_least_number_of_tokens_is_refused_beside_a_schema():
    with pytest.raises(UsageError, match="ends where its schema says"):
        request(min_tokens=1)


@pytest.mark.slow
def test_the_certificate_states_the_schema_and_is_checked_against_it():
    [*_, completed] = run(mechanism=mechanism_class("gaussian")(), plan=SamplingPlan(subsets=6, tokens=5))
    assert isinstance(completed, RunCompleted)
    # A test's seed makes the set not private, which is no matter here.
    stated = loads(completed.demo_set.dumps())
    assert stated == completed.demo_set
    privacy = stated.to_json()["privacy"]
    assert privacy["parameters"]["schema_sha256"] == SCHEMA.digest
    assert "schema forces" in privacy["parameters"]["free_tokens"]
    assert RECORD_SCHEMA in privacy["public_inputs"]
    assert verify(stated).problems == ()

    edited = json.loads(completed.demo_set.dumps())
    edited["demonstrations"][0]["text"] = '{"name": "too long for it"}'
    [problem] = verify(loads(json.dumps(edited))).problems
    assert "not a record of task/schema" in problem

    edited = json.loads(completed.demo_set.dumps())
    edited["task"]["schema"]["properties"]["name"]["maxLength"] = 5
    [problem] = verify(loads(json.dumps(edited))).problems
    assert "privacy/parameters/schema_sha256" in problem

    edited = json.loads(completed.demo_set.dumps())
    del edited["task"]["schema"]
    assert any("record schema" in each for each in verify(loads(json.dumps(edited))).problems)


def test_public_demonstrations_of_a_structured_set_are_records_too():
    [*_, completed] = run(plan=SamplingPlan(subsets=6, tokens=5, shots=2))
    found = public_demonstrations(completed.demo_set, ToyModel())
    assert len(found) == 2
    assert all(SCHEMA.holds(each.text) for each in found)
