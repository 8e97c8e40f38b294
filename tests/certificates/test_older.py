"""Demo sets that version 0.2.0 wrote: they load and verify, an edit is found, and a dropped kind names that version.

`older.jsonl` was written by version 0.2.0 itself: a set for each mechanism, way to draw, recipe, unit and way to share.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mechanisms.demos.demo_set import loads
from mechanisms.demos.signature import Signature, check_signature, signed
from mechanisms.errors import UsageError
from mechanisms.runs.certificate import CHOOSE, OlderPlan, plan_of
from mechanisms.runs.verification import verify
from mechanisms.steps import mechanism_names
from mechanisms.steps.noisy_vector import AS_RELEASED
from tests.certificates.recipes import demonstrations
from tests.certificates.test_verification import HOSTILE, beside, edited, found, numbers

DROPPED = ("answered", "records", "disjoint", "disjoint in a recipe")
FILES: dict[str, dict[str, Any]] = {
    read["is"]: read["file"]
    for read in map(json.loads, Path(__file__).with_name("older.jsonl").read_text(encoding="utf-8").splitlines())
}
KEPT = [name for name in FILES if name not in DROPPED]
RECIPES = [name for name in KEPT if "division" in FILES[name]["privacy"]["parameters"]]


@pytest.mark.parametrize("name", KEPT)
def test_a_set_of_before_loads_verifies_and_stays_as_it_was(name):
    file = FILES[name]
    made = loads(json.dumps(file))
    verified = verify(made)
    assert verified.problems == ()
    if made.certificate.private:
        assert verified.claim.epsilon == pytest.approx(file["privacy"]["epsilon"], rel=1e-6)
    assert made.to_json() == file | {"software": made.to_json()["software"]}
    assert check_signature(json.dumps(signed(made))) is Signature.VALID


def test_there_is_one_of_every_mechanism_and_of_every_recipe():
    assert {file["privacy"]["mechanism"] for file in FILES.values()} >= {*mechanism_names(), "recipe tokens"}
    assert len(RECIPES) == 20


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_of_before_is_priced_with_its_choice_and_its_rounds(name):
    file = FILES[name]
    plan = plan_of(loads(json.dumps(file)))
    stated = file["privacy"]["parameters"]
    assert isinstance(plan, OlderPlan)
    assert list(plan.stages) == [each["name"] for each in file["stages"]]
    assert CHOOSE in plan.stages
    if "write" in plan.stages:
        assert plan.mechanism.prior_deviation == AS_RELEASED
    if "vote" in plan.stages:
        assert len(plan.stages["vote"].events) == stated["rounds"]


@pytest.mark.parametrize("name", ["vote roles", "both epsilon measured", "tokens roles by user"])
def test_any_other_number_in_event_or_stages_is_found(name):
    text = json.dumps(FILES[name])
    for where in (("privacy", "event"), ("stages",)):
        holder = FILES[name][where[0]] if len(where) == 1 else FILES[name]["privacy"]["event"]
        for path, number in numbers(holder):
            for other in beside(number):
                assert found(edited(text, (*where, *path), lambda _, other=other: other)), (path, other)


EDITS = [
    (("privacy", "parameters", "division"), "epsilon", "privacy/scheme"),
    (("privacy", "parameters", "rounds"), 1, "privacy/event/lists/vote"),
    (("privacy", "parameters", "rounds"), 5, "privacy/parameters/rounds"),
    (("privacy", "parameters", "rounds"), "2", "privacy/parameters/rounds"),
    (("privacy", "parameters", "sets"), 0, "privacy/parameters/sets"),
    (("privacy", "parameters", "shares", "choose"), 0.2, "stages/choose/role"),
    (("privacy", "parameters", "shares", "choose"), 2.0, "privacy/parameters/shares"),
    (("privacy", "parameters", "shares"), {"vote": 0.2}, "stages: vote is what"),
    (("prior",), {"a": 0.1}, "prior: every label"),
    (("choice", "zero_shot_prior"), {"c": 0.1}, "baselines/zero_shot_prior"),
]


@pytest.mark.parametrize(("path", "value", "field"), EDITS)
def test_an_edit_is_found_and_its_field_named(path, value, field):
    problems = found(edited(json.dumps(FILES["vote roles"]), path, lambda _: value))
    assert any(field in problem for problem in problems), problems


@pytest.mark.parametrize("name", ["vote roles", "both roles measured", "best of three"])
def test_hostile_values_get_one_line(name):
    text = json.dumps(FILES[name])
    parameters = FILES[name]["privacy"]["parameters"]
    paths = [(each,) for each in parameters]
    paths += [("shares", each) for each in parameters.get("shares", ())]
    for path in paths:
        for value in HOSTILE:
            for problem in found(edited(text, ("privacy", "parameters", *path), lambda _, value=value: value)):
                assert problem.isprintable()


def test_the_best_of_several_states_what_was_charged_and_what_was_kept():
    file = json.loads(json.dumps(FILES["best of three"]))
    kept = file["privacy"]["parameters"]["kept_per_label"]
    assert file["privacy"]["parameters"]["shots_per_label"] == 3 * kept
    texts = [{"text": each.text, "label": each.label} for each in demonstrations(kept + 1)]
    assert found(file | {"demonstrations": texts[:-1]}) == ()
    assert found(file | {"demonstrations": texts}) == (
        "demonstrations: a label has more of them than privacy/parameters/kept_per_label allows.",
    )


@pytest.mark.parametrize("claimed", [{"shots_per_label": 4}, {"kept_per_label": 0}, {"kept_per_label": "2"}], ids=str)
def test_whoever_claims_other_charges_than_were_paid_is_found(claimed):
    file = json.loads(json.dumps(FILES["best of three"]))
    file["privacy"]["parameters"].update(claimed)
    assert found(file) != ()


@pytest.mark.parametrize(("name", "what"), [("answered", "texts with answers"), ("records", "records of a schema")])
def test_a_dropped_kind_is_refused_in_one_line_with_the_version_that_reads_it(name, what):
    with pytest.raises(UsageError) as refused:
        loads(json.dumps(FILES[name]))
    assert str(refused.value) == (
        f"This is a demo set of {what}: version 0.2.0 of DP-ICL Studio reads it, not this one."
    )


@pytest.mark.parametrize("name", ["disjoint", "disjoint in a recipe"])
def test_disjoint_samples_are_checked_by_the_version_that_drew_them(name):
    [problem] = found(FILES[name])
    assert "scheme: disjoint samples: version 0.2.0 " in problem
