"""The form of step 2 describes a request; mechanisms bring their own parameters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpicl_ui.privacy.form import PrivacyForm, RecipeForm, described, private_mechanisms
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, Record
from mechanisms.runs.request import DECLARED_COUNTS, FILE_FORMAT
from mechanisms.sampling import Scheme
from mechanisms.steps import mechanism_names

DATASET = Dataset("d", ("a", "b"), tuple(Record("t", label) for label in "ab" for _ in range(30)))
OWN = [parameter.default for _, parameter in described()]
TOKENS = ["tokens", False, False, "roles", 32, 1, 3, 40, 0, 0, 0, 0, 0]
"""No stages."""
VALUES = [
    1.0,
    1e-5,
    "gaussian",
    "per-demonstration",
    True,
    8,
    2,
    4,
    1,
    1,
    20,
    16,
    "Classify.",
    "Text",
    "Topic",
    "private",
    2,
    "none",
    *OWN,
    *TOKENS,
]


def test_the_form_becomes_a_request():
    request = PrivacyForm.read(*VALUES).spec(DATASET).writing(DATASET)
    assert request.plan.subsets == 8
    assert request.plan.per_subset == 1
    assert request.sizes == {"a": 30, "b": 30}
    assert {DECLARED_COUNTS, FILE_FORMAT} <= set(request.public_inputs)
    assert request.template.label == "Topic"
    assert request.min_tokens == min(8, request.plan.tokens)


def test_subsets_take_their_size_from_the_form():
    values = [*VALUES]
    values[4] = False
    assert PrivacyForm.read(*values).spec(DATASET).writing(DATASET).plan.per_subset == 2


@pytest.mark.parametrize("position", [0, 1, 5, 7])
@pytest.mark.parametrize("value", [None, "", "many", float("nan")])
def test_a_missing_number_is_named_in_one_line(position, value):
    values = [*VALUES]
    values[position] = value
    with pytest.raises(UsageError, match=r"needs a number\.$"):
        PrivacyForm.read(*values)


def test_the_best_of_several_are_paid_for_where_there_are_no_stages():
    form = replace(PrivacyForm.read(*VALUES), shots=2, best_of=3)
    request = form.spec(DATASET).writing(DATASET)
    assert (request.plan.shots, request.kept) == (6, 2)
    assert PrivacyForm.read(*VALUES).spec(DATASET).writing(DATASET).kept is None
    written = replace(form, recipe=RecipeForm("both", score=True)).spec(DATASET).staged(DATASET).written
    assert (written.plan.shots, written.kept) == (2, None)


def test_half_a_token_is_refused():
    values = [*VALUES]
    values[7] = 4.5
    with pytest.raises(UsageError, match="whole number"):
        PrivacyForm.read(*values)


def with_transform(**changes):
    """The form with plausible token amplification, some of its parameters changed."""
    own = [changes.get(parameter.name, parameter.default) for _, parameter in described()]
    return PrivacyForm.read(*VALUES[:17], "pta", *own, *TOKENS)


def test_a_transform_takes_its_parameters_from_the_form():
    transform = with_transform(alpha=0.5, base=False).spec(DATASET).writing(DATASET).transform
    assert (transform.name, transform.alpha, transform.base) == ("pta", 0.5, False)


def test_a_hidden_transform_is_left_out():
    closed = next(each.name for each in private_mechanisms() if not each.takes_transform)
    assert replace(with_transform(), mechanism=closed).spec(DATASET).writing(DATASET).transform.name == "none"


def test_disjoint_batches_are_a_choice():
    values = [*VALUES]
    values[3] = "disjoint"
    assert PrivacyForm.read(*values).spec(DATASET).writing(DATASET).plan.scheme is Scheme.DISJOINT


def test_a_closed_combination_is_refused_with_its_reason():
    form = replace(PrivacyForm.read(*VALUES), mechanism="blended-logits", unit_rows=False)
    with pytest.raises(UsageError, match="closed with subsets"):
        form.spec(DATASET).writing(DATASET)


def test_baselines_are_no_choice():
    names = {each.name for each in private_mechanisms()}
    assert names
    assert not names & {"public", "non-private"}
    assert names < set(mechanism_names())


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [each.name for each in private_mechanisms()])
def test_calibration_solves_for_what_the_form_does_not_ask_for(mechanism):
    request = replace(PrivacyForm.read(*VALUES), mechanism=mechanism).spec(DATASET).writing(DATASET)
    calibrated = request.calibrated().mechanism
    changed = [
        p.name for p in parameters(calibrated) if getattr(calibrated, p.name) != getattr(request.mechanism, p.name)
    ]
    assert calibrated.calibrated in changed
    asked = {parameter.name for owner, parameter in described() if owner.name == mechanism}
    assert asked == {p.name for p in parameters(calibrated)} - {calibrated.calibrated}
