"""Certificates of runs in stages: what a run states passes, and whatever is edited is found and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.data.sizes import WHETHER_MET, WHETHER_SHOWN
from mechanisms.demos.demo_set import loads
from mechanisms.errors import UsageError
from mechanisms.runs.spec import CALIBRATE, SCORE, Recipe, Split
from mechanisms.runs.verification import verify
from tests.certificates.recipes import FOUND, certified, document_of, planned, shares_of, text_of
from tests.certificates.test_verification import HOSTILE, beside, edited, found, numbers

pytestmark = pytest.mark.slow

ALL = list(product(Recipe, Split, (False, True), (False, True)))


@pytest.mark.parametrize("case", ALL, ids=lambda case: "-".join(map(str, case)))
def test_what_a_recipe_certifies_comes_back_and_passes(case):
    text = text_of(*case)
    read = loads(text)
    assert read.dumps() == text
    verified = verify(read)
    assert verified.problems == ()
    assert verified.claim.epsilon == pytest.approx(read.certificate.claim.epsilon, rel=1e-6)
    assert [each.name for each in read.stages] == list(read.certificate.parameters["shares"])
    assert verify(loads(json.dumps(json.loads(text), sort_keys=True))).problems == ()  # another layout says the same


CASES = [
    (Recipe.VOTE, Split.ROLES, False, False),
    (Recipe.VOTE, Split.EPSILON, True, True),
    (Recipe.TOKENS, Split.ROLES, True, False),
    (Recipe.BOTH, Split.ROLES, False, True),
    (Recipe.BOTH, Split.EPSILON, False, False),
]
OF_WRITING = {"temperature", "top_p", "prior_deviation", "candidates", "min_tokens", "max_record_tokens"}
FREE = {("drafts",), ("draft_tokens",), ("shots_per_label",), ("max_record_tokens",), ("max_unit_records",)}
FREE |= {("written", name) for name in (*OF_WRITING, "max_unit_records")}
"""What no cost depends on: how many drafts there are, and limits on texts and sets."""


def free(case: tuple[Any, ...], path: tuple[Any, ...]) -> bool:
    recipe, split, _, _ = case
    if recipe is Recipe.VOTE:  # a tally has room for any number of units
        return path in FREE or path[0] == "sizes" or path == ("measured", "failure")
    # The noise of writing is stated by itself, so that its share of epsilon is only what it was calibrated for.
    return path in FREE or (split is Split.EPSILON and path == ("shares", "write"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_any_other_number_in_parameters_event_or_stages_is_found(case):
    document = document_of(*case)
    parts = {"parameters": ("privacy", "parameters"), "event": ("privacy", "event"), "stages": ("stages",)}
    for part, where in parts.items():
        holder = document["stages"] if part == "stages" else document["privacy"][part]
        places = [each for each in numbers(holder) if part != "parameters" or not free(case, each[0])]
        assert len(places) > 4
        for path, number in places:
            for other in beside(number):
                problems = found(edited(text_of(*case), (*where, *path), lambda _, other=other: other))
                assert problems, (part, path, other)


PRIVACY: list[tuple[Any, tuple[Any, ...], Callable[[Any], Any], str]] = [
    (0, ("mechanism",), lambda _: "gaussian", "privacy/mechanism"),
    (0, ("transform",), lambda _: "pta", "privacy/transform"),
    (0, ("scheme",), lambda _: "epsilon", "privacy/scheme"),
    (0, ("unit",), lambda _: "user:who", "privacy/parameters/max_unit_records"),
    (1, ("unit",), lambda _: "record", "privacy/event"),
    (0, ("public_inputs",), lambda names: [each for each in names if each != WHETHER_SHOWN], "privacy/public_inputs"),
    (1, ("public_inputs",), lambda names: names[:1], "privacy/public_inputs"),
    (0, ("event", "per"), lambda _: "label", "privacy/event/per"),
    (0, ("parameters", "recipe"), lambda _: "both", "privacy/parameters: The recipe 'both' needs"),
    (0, ("parameters", "split"), lambda _: "epsilon", "privacy/scheme"),
    (0, ("parameters", "shares"), lambda shares: shares | {"vote": 0.9}, "privacy/parameters: The stages' shares"),
    (0, ("parameters", "shares"), lambda shares: {"vote": 0.2}, "privacy/event/lists/calibrate"),
    (0, ("parameters", "target_epsilon"), lambda _: 1e-300, "privacy/parameters: A tally's epsilon"),
    (0, ("parameters", "drafts"), lambda _: 10**6, "privacy/parameters/drafts"),
    (0, ("parameters",), lambda p: p | {"written": {}}, "privacy/parameters/written"),
    (0, ("parameters",), lambda p: p | {"measured": {"epsilon": 0.2, "failure": 1e-8}}, "privacy/event/lists/vote a"),
    (1, ("parameters", "measured"), lambda m: m | {"epsilon": 5.0}, "privacy/parameters: Counting has used up"),
    (2, ("parameters", "written"), lambda _: None, "privacy/parameters/written"),
    (2, ("parameters", "written", "mechanism"), lambda _: "mine", "privacy/parameters/written/mechanism"),
    (2, ("parameters", "written", "scheme"), lambda _: "mine", "privacy/parameters/written/scheme"),
    (2, ("parameters", "written", "scheme"), lambda _: "per-token", "privacy/event/lists/write"),
    (2, ("parameters", "written", "share"), lambda _: 0.5, "privacy/parameters/written/share"),
    (2, ("parameters", "written", "shots_per_label"), lambda _: 10**5, "privacy/parameters/shots_per_label"),
    (2, ("parameters", "written"), lambda w: w | {"more": 1}, "privacy/parameters/written/more"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "path", "change", "field"), PRIVACY)
def test_an_edit_of_the_certificate_is_found_and_its_field_named(case, path, change, field):
    problems = found(edited(text_of(*CASES[case]), ("privacy", *path), change))
    assert any(field in problem for problem in problems), problems
    assert all(problem.isprintable() for problem in problems)


ROLES, SHARED = CASES[0], CASES[4]
FINDINGS: list[tuple[Any, tuple[Any, ...], Callable[[Any], Any], str]] = [
    (ROLES, ("stages",), lambda stages: stages[:-1], "stages: openings, vote, calibrate, score"),
    (ROLES, ("stages", 0, "name"), lambda _: "write", "stages: openings"),
    (ROLES, ("stages", 0, "role"), lambda _: 0.2, "stages/openings/role"),
    (SHARED, ("stages", 1, "role"), lambda _: 0.4, "stages/write/role"),
    (ROLES, ("stages", 3, "event"), lambda _: {"type": "pure", "epsilon": 0.1}, "stages/score/event"),
    (ROLES, ("prior",), lambda _: {"a": 0.1}, "prior: every label"),
    (ROLES, ("baselines", "zero_shot_prior"), lambda _: {"c": 0.1}, "baselines/zero_shot_prior"),
    (ROLES, ("refused", 0, "label"), lambda _: "c", "refused: every label"),
    (ROLES, ("score", "arms", "zero-shot", "accuracy"), lambda _: 0.5, "score/arms"),
    (ROLES, ("score", "arms"), lambda arms: arms | {"# Epsilon 0.001": arms["zero-shot"]}, "score/arms"),
    (SHARED, ("score", "rows"), lambda _: "private", "score/rows"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "path", "change", "field"), FINDINGS)
def test_an_edit_of_what_was_found_is_found_and_its_field_named(case, path, change, field):
    [problem] = found(edited(text_of(*case), path, change))
    assert field in problem


def test_rows_apart_from_all_others_may_be_called_untouched():
    document = edited(text_of(*ROLES), ("score", "rows"), lambda _: "private")
    assert found(document) == ()
    text = json.dumps(document)  # that they are follows from the rows
    [problem] = found(edited(text, ("privacy", "public_inputs"), lambda names: [n for n in names if n != WHETHER_MET]))
    assert "public_inputs" in problem


@pytest.mark.parametrize(("stage", "name"), [(SCORE, "score"), (CALIBRATE, "prior")])
def test_nothing_is_found_by_a_stage_that_nobody_paid_for(stage, name):
    made = certified(
        planned(Recipe.VOTE, Split.ROLES, shares=shares_of(Recipe.VOTE, stage), score=stage != SCORE), **FOUND
    )
    problems = verify(loads(made.dumps())).problems
    assert [problem.split(":")[0] for problem in problems] == [name]


@pytest.mark.parametrize("split", Split)
@pytest.mark.parametrize("recipe", [Recipe.TOKENS, Recipe.BOTH])
def test_nothing_is_private_that_is_written_without_noise(recipe, split):
    document = document_of(recipe, split)
    written = document["privacy"]["parameters"]["written"]
    written["mechanism"] = "non-private"
    assert any(problem.startswith("privacy/parameters/written/noise_multiplier") for problem in found(document))
    for name in ("noise_multiplier", "temperature", "top_p", "prior_deviation"):
        del written[name]
    assert any(problem.startswith("privacy/event/lists") for problem in found(document))


@pytest.mark.parametrize("missing", ["split", "shares", "target_epsilon", "sizes", "drafts", "recipe"])
def test_the_schema_wants_a_whole_recipe_or_a_whole_run(missing):
    document = document_of(*CASES[0])
    del document["privacy"]["parameters"][missing]
    with pytest.raises(UsageError, match="privacy/parameters"):
        loads(json.dumps(document))


def test_hostile_values_get_one_line():
    text = text_of(*CASES[3])
    parameters = json.loads(text)["privacy"]["parameters"]
    paths = [("parameters", name) for name in parameters]
    paths += [("parameters", part, name) for part in ("shares", "written", "measured") for name in parameters[part]]
    paths += [(name,) for name in ("delta", "mechanism", "transform", "scheme", "unit")]
    for path, value in product(paths, HOSTILE):
        for problem in found(edited(text, ("privacy", *path), lambda _, value=value: value)):
            assert problem.isprintable()


@st.composite
def other_lists(draw: st.DrawFn, lists: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The lists after one to three changes: events lost, doubled, moved, exchanged, sampled or made cheaper.

    Scales have few digits: one that differs from the right one by a rounding error is the right one.
    """
    for _ in range(draw(st.integers(1, 3))):
        filled = [name for name in lists if lists[name]]
        name, other = draw(st.sampled_from(filled)), draw(st.sampled_from(sorted(lists)))
        place = draw(st.integers(0, len(lists[name]) - 1))
        event, rest = lists[name][place], [*lists[name][:place], *lists[name][place + 1 :]]
        changed = [
            {name: rest},
            {name: [*lists[name], event]},
            {name: rest, other: [*(rest if other == name else lists[other]), event]},
            {name: lists[other], other: lists[name]},
            {name: [*rest, {"type": "poisson", "rate": 0.5, "of": event}]},
            {name: [*rest, {"type": "laplace", "scale": round(draw(st.floats(0.1, 100)), 3)}]},
            {f"{name} {other}": [event]},
        ]
        lists = lists | draw(st.sampled_from(changed))
    return lists


def in_nine_digits(lists: dict[str, list[Any]]) -> Any:
    """The same for events that differ by a rounding error: a list may hold both 1.5 and 1.4999999999999998."""
    return json.loads(json.dumps(lists), parse_float=lambda digits: float(f"{float(digits):.9g}"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_other_event_passes(case):
    own = document_of(*case)["privacy"]["event"]

    @settings(max_examples=60)
    @given(other_lists(own["lists"]))
    def is_found(lists):
        document = document_of(*case)
        document["privacy"]["event"]["lists"] = lists
        same = in_nine_digits(lists) == in_nine_digits(own["lists"])
        assert same or any("privacy/event" in problem for problem in found(document))

    is_found()
