"""The exported file: valid, complete, recomputable, and free of everything private."""

from __future__ import annotations

import json

import jsonschema
import pytest

from mechanisms.accounting import PrivacyLedger
from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness
from mechanisms.studio.demo_set import SCHEMA, loads, recompute
from mechanisms.studio.synthesize import synthesize
from tests.studio.test_synthesize import dataset, request
from tests.toy_model import ToyModel

ONE = {"type": "gaussian", "noise_multiplier": 2.0}


def nested(depth: int) -> dict:
    return ONE if depth == 0 else {"type": "repeat", "count": 1, "of": nested(depth - 1)}


@pytest.fixture
def demo_set():
    calibrated = request().calibrated()
    return list(synthesize(dataset(), calibrated, ToyModel(), PrivacyLedger(), SecureRandomness()))[-1].demo_set


def test_it_validates_and_comes_back_the_same(demo_set):
    jsonschema.validate(demo_set.to_json(), json.loads(SCHEMA.read_text()))
    assert loads(demo_set.dumps()) == demo_set
    assert demo_set.certificate.private


def test_its_claim_follows_from_event_and_delta_alone(demo_set):
    stated = demo_set.to_json()["privacy"]
    found = recompute(loads(demo_set.dumps()))
    assert found.epsilon == pytest.approx(stated["epsilon"], rel=1e-6)
    assert 0.97 <= stated["epsilon"] <= 1.0


def test_spend_before_the_run_is_stated():
    ledger = PrivacyLedger()
    for expected_positive in (False, True):
        *_, last = synthesize(dataset(), request(), ToyModel(), ledger)
        assert (last.demo_set.certificate.spent_before[0] > 0) == expected_positive


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format="other"), "dpicl-demos/1"),
        (lambda d: d.pop("privacy"), "dpicl-demos/1"),
        (lambda d: d["privacy"].update(delta=2), "privacy/delta"),
        (lambda d: d["demonstrations"].append({"text": 3, "label": "a"}), "demonstrations"),
        (lambda d: d["privacy"]["event"]["lists"].update(x=[{"type": "magic"}]), "privacy/event"),
        (lambda d: d["privacy"]["event"].update(lists={}), "list"),
        (lambda d: d["privacy"]["event"]["lists"].update(x=[nested(400)]), "dpicl-demos/1|nested"),
        (lambda d: d["privacy"]["event"]["lists"].update(x=[{"type": "repeat", "count": 10**9, "of": ONE}]), "count"),
        (lambda d: d["privacy"]["parameters"].update(tokens="abc"), "tokens"),
        (lambda d: d["task"]["labels"].append("\ud800"), "not JSON"),
    ],
)
def test_broken_files_are_refused_with_the_place(demo_set, change, message):
    document = demo_set.to_json()
    change(document)
    with pytest.raises(UsageError, match=message):
        loads(json.dumps(document))


@pytest.mark.parametrize("text", ["", "not json", "[]", "3", '{"format": "dpicl-demos/1"}', "[" * 100_000])
def test_no_json_is_refused(text):
    with pytest.raises(UsageError):
        loads(text)
