"""The exported file: valid, complete, recomputable, and free of everything private."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import replace

import pytest

from mechanisms.demos.demo_set import FORMAT, loads, schema
from mechanisms.errors import UsageError
from mechanisms.runs.spec import Recipe, Split, stated
from mechanisms.runs.stages import stage_names
from tests.runs.running import told

ONE = {"type": "gaussian", "noise_multiplier": 2.0}


def nested(depth: int) -> dict:
    return ONE if depth == 0 else {"type": "repeat", "count": 1, "of": nested(depth - 1)}


@pytest.fixture
def demo_set():
    """Of a calibrated run, written once; tests edit what its document shares."""
    made = deepcopy(told("alone")[-1].demo_set)
    return replace(made, certificate=replace(made.certificate, disclosures=()))


OPTIONAL = {
    "stages": [{"name": "vote", "role": 0.25, "event": ONE}],
    "prior": {"red": 0.31, "blue": 0.69},
    "score": {"arms": {"zero-shot": {"accuracy": 0.61, "interval": [0.57, 0.66]}}, "rows": "private", "level": 0.95},
    "baselines": {"zero_shot_prior": {"red": -0.5, "blue": 0.5}},
    "refused": [{"label": "red", "reason": "no words"}],
}
UNFIT = {
    "stages": [
        [],
        [{"name": "vote", "role": 0, "event": ONE}],
        [{"name": "vote", "role": 1.0, "event": {"type": "x"}}],
    ],
    "prior": [{}, {"red": 100.5}, {"red": "1"}],
    "score": [
        {"arms": {}, "rows": "mine"},
        {"arms": {"x": {"accuracy": 1.01, "interval": [0.5, 1]}}, "rows": "private"},
        {"arms": {"x": {"accuracy": 0.6, "interval": [-0.1, 1]}}, "rows": "private"},
        {"arms": {"x": {"accuracy": 0.6, "interval": [0.5]}}, "rows": "private"},
    ],
    "baselines": [{"zero_shot_prior": {"red": -101}}, {"chosen": "voted 1"}],
    "refused": [[], [{"label": "red"}], [{"label": "red", "reason": "no words", "text": "shown"}]],
}


@pytest.mark.parametrize("name", OPTIONAL)
def test_what_stages_found_comes_back_where_it_fits_and_is_refused_elsewhere(demo_set, name):
    document = demo_set.to_json() | {name: OPTIONAL[name]}
    assert loads(json.dumps(document)).to_json() == document
    for unfit in (3, *UNFIT[name]):
        with pytest.raises(UsageError, match=name):
            loads(json.dumps(demo_set.to_json() | {name: unfit}))


@pytest.mark.parametrize("older", [{"format": "dpicl-demos/1"}, {"privacy": {"division": "roles"}}], ids=str)
def test_a_set_of_an_older_version_is_refused_in_one_line_that_says_what_to_do(demo_set, older):
    with pytest.raises(UsageError, match=r"\AThis is not .* A set of an older version is not read: make it anew\.\Z"):
        loads(json.dumps(demo_set.to_json() | older))


def test_the_schema_knows_the_recipes_and_stages_that_there_are():
    recipe = schema()["$defs"]["parameters"]["properties"]
    assert recipe["recipe"]["enum"] == list(Recipe)
    assert recipe["split"]["enum"] == list(Split)
    assert all(re.search(recipe["shares"]["propertyNames"]["pattern"], stage) for stage in stage_names())


def test_the_schema_wants_the_settings_that_a_certificate_states():
    known = schema()["$defs"]["parameters"]
    always, writing = known["required"], known["then"]["required"]
    assert set(always) == {*stated(False, False), "sizes"}
    derived = {"sensitivity", "sensitivity_norm", "rate", "rates"}
    assert set(writing) == {*stated(True, False)} - {*stated(False, False)} | derived
    assert set(known["properties"]) == {*always, *writing, "measured", "max_unit_records"} - {"rate"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format=[FORMAT]), FORMAT),
        (lambda d: d.pop("privacy"), FORMAT),
        (lambda d: d["privacy"].update(unit="record\n"), "privacy/unit"),
        (lambda d: d["privacy"]["parameters"].pop("sizes"), "privacy/parameters"),
        (lambda d: d["privacy"]["parameters"].update(sizes={"a": 2**53 + 1}), "not JSON"),
        (lambda d: d["privacy"]["spent_before"].update(epsilon=float("nan")), "not JSON"),
        (lambda d: d.update(signature={"algorithm": "none"}), "signature"),
        (lambda d: d["privacy"].update(delta=2), "privacy/delta"),
        (lambda d: d["demonstrations"].append({"text": 3, "label": "red"}), "demonstrations"),
        (lambda d: d["privacy"]["event"]["lists"].update(x=[{"type": "magic"}]), "privacy/event"),
        (lambda d: d["privacy"]["event"].update(lists={}), "list"),
        (lambda d: d["privacy"]["event"]["lists"].update(x=[nested(400)]), f"{FORMAT}|nested"),
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
