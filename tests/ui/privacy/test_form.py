"""The controls of step 2 come from the spec, and what stands in them is a spec; mechanisms bring their parameters."""

from __future__ import annotations

from typing import Any

import gradio as gr
import pytest

from dpicl_ui.frame.inputs import control, said
from dpicl_ui.privacy.step import PrivacyStep, asked_parameters, private_mechanisms, transforms
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, Record
from mechanisms.runs.plan import suggested_delta
from mechanisms.runs.spec import Recipe, RunSpec
from mechanisms.steps import mechanism_names
from tests.ui.data.tab import TAB
from tests.ui.tabs import confirm, in_page

DATASET = Dataset("d", ("a", "b"), tuple(Record("t", label) for label in "ab" for _ in range(30)))
OUTSIDE = {"epsilon", "sizes", "count_epsilon", "parameters", "shots"}
"""What no control of the experts' part asks for, but for the words of step 1."""


def made(name: str) -> Any:
    return in_page(lambda: control(name))


def values(step: PrivacyStep, **changes: Any) -> dict[Any, Any]:
    """What the form holds at first, with some settings changed; one with a flag is a parameter of the mechanism."""
    held = {each: each.value for each in step.form}
    fields = step.expert.fields | {"shots": step.shots, "epsilon": step.epsilon}
    return held | {fields[name]: value for name, value in changes.items()}


def spec(step: PrivacyStep, **changes: Any) -> RunSpec:
    return step.spec(step._app.session(TAB), values(step, **changes))


# One control for one field.


@pytest.mark.parametrize("name", sorted(set(RunSpec.model_fields) - {"parameters", "sizes"}))
def test_a_control_has_the_words_of_its_field_and_leaves_the_default_as_it_is(name: str):
    each, field = made(name), RunSpec.model_fields[name]
    assert each.label.startswith(field.title)
    assert each.info == field.description
    assert said({name: each.value}) == {}


def test_a_number_with_two_bounds_is_a_slider_between_them_and_others_are_typed():
    slider = made("candidates")
    assert (type(slider), slider.minimum, slider.maximum, slider.value) == (gr.Slider, 2, 1000, 16)
    assert isinstance(made("tokens"), gr.Textbox), "what may stay open is typed: an empty slider has a value"
    assert made("delta").placeholder == "1e-05"
    assert made("max_record_tokens").label == "Tokens of a row", "its unit stands in its title"


def test_a_typed_value_is_read_by_the_spec_and_refused_in_its_words():
    assert RunSpec.of(**said({"tokens": " 12 ", "delta": "1e-6"})).tokens == 12
    assert RunSpec.of(**said({"shares": "write=.5, vote=.5"})).shares == {"write": 0.5, "vote": 0.5}
    assert said({"label_words": "a = one, b = two", "instruction": "  "}) == {"label_words": {"a": "one", "b": "two"}}
    for name, value, words in (
        ("tokens", "many", r"Tokens \(T\)"),
        ("tokens", "0", r"Tokens \(T\)"),
        ("delta", "2", "Delta"),
        ("shares", "write", "no equals sign"),
    ):
        with pytest.raises(UsageError, match=words) as refused:
            RunSpec.of(**said({name: value}))
        assert "\n" not in str(refused.value)


# The form.


def test_every_setting_has_a_place_in_step_1_or_step_2(step: PrivacyStep):
    confirmed = confirm(step._app.session(TAB), DATASET)
    assert set(RunSpec.model_fields) == OUTSIDE | set(confirmed.settled) | set(step.expert.fields)


def test_the_form_as_it_is_at_first_leaves_all_open_that_follows_from_the_sizes(step: PrivacyStep):
    confirmed = confirm(step._app.session(TAB), DATASET)
    at_first = spec(step)
    assert at_first == RunSpec.of(epsilon=1.0, delta=suggested_delta(60), **confirmed.settled)
    assert at_first.model_fields_set <= {"epsilon", "delta", *confirmed.settled}, "it counts as asked for otherwise"


@pytest.mark.parametrize(
    ("name", "typed", "meant"),
    [
        ("subsets", "8", 8), ("per_subset", "3", 3), ("tokens", "6", 6), ("written", "2", 2), ("shots", 4, 4),
        ("recipe", "vote", Recipe.VOTE), ("score", False, False), ("delta", "1e-7", 1e-7), ("epsilon", "2.5", 2.5),
        ("instruction", "Sort.", "Sort."), ("text_field", "Mail", "Mail"), ("candidate_top_p", "0.8", 0.8),
        ("max_record_tokens", 20, 20), ("weighing", "labels", "labels"),
    ],
)  # fmt: skip
def test_what_is_set_is_asked_for(step: PrivacyStep, name, typed, meant):
    confirm(step._app.session(TAB), DATASET)
    assert getattr(spec(step, **{name: typed}), name) == meant


# Mechanisms and transforms bring their own parameters.


def test_baselines_are_no_choice_and_every_private_mechanism_is(step: PrivacyStep):
    offered = {value for _, value in step.expert.mechanism.choices}
    assert offered == {each.name for each in private_mechanisms()} == set(mechanism_names()) - {"public", "non-private"}


@pytest.mark.parametrize("mechanism", [each.name for each in private_mechanisms()])
def test_a_mechanism_has_a_field_for_each_parameter_but_the_one_that_is_solved_for(step: PrivacyStep, mechanism):
    confirm(step._app.session(TAB), DATASET)
    assert not spec(step, mechanism=mechanism).parameters
    [owner] = [each for each in private_mechanisms() if each.name == mechanism]
    for each in asked_parameters(owner):
        value = each.typed(each.high if isinstance(each.default, int) else round((each.low + each.default) / 2, 3))
        field = step.expert._own[mechanism][each.flag]
        typed = value if isinstance(value, bool) else str(value)
        asked = step.spec(step._app.session(TAB), values(step, mechanism=mechanism) | {field: typed})
        assert asked.parameters == {each.flag: value}
        assert asked.made_mechanism
    solved = {each.flag for each in parameters(owner)} - {each.flag for each in asked_parameters(owner)}
    assert solved.isdisjoint(step.expert._own[mechanism])


def test_a_parameter_of_another_mechanism_does_not_matter_and_one_out_of_range_is_refused(step: PrivacyStep):
    session = step._app.session(TAB)
    confirm(session, DATASET)
    foreign = step.expert._own["difference-clipping"]["temperature"]
    assert not step.spec(session, values(step) | {foreign: "3"}).parameters
    own = step.expert._own["gaussian"]["top-p"]
    with pytest.raises(UsageError, match="between"):
        step.spec(session, values(step) | {own: "7"})
    with pytest.raises(UsageError, match="needs a number"):
        step.spec(session, values(step) | {own: "much"})


def test_only_what_belongs_to_the_choice_is_shown(step: PrivacyStep):
    expert = step.expert
    for mechanism in private_mechanisms():
        for transform in transforms():
            shown = expert._showing(mechanism.name, transform.name)
            visible = {name for name, group in expert._groups.items() if shown[group].visible}
            taken = {transform.name} if mechanism.takes_transform and transform.name != "none" else set()
            assert visible == {mechanism.name} | taken
            assert shown[expert._of_transform].visible is mechanism.takes_transform
