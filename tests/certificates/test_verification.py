"""A certificate's check: what a run certifies passes, and whatever is edited is found and named."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accounting import PrivacyLedger
from mechanisms.data.disclosures import CLEAN_VALUES
from mechanisms.demos.demo_set import Score, loads
from mechanisms.errors import StudioError, UsageError
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.public_inputs import DECLARED_USERS, WHETHER_MET, WHETHER_SHOWN
from mechanisms.runs.certificate import plan_of
from mechanisms.runs.plan import Plan
from mechanisms.runs.run import run
from mechanisms.runs.spec import CALIBRATE, SCORE, SETTINGS, Group, Recipe, Split
from mechanisms.runs.verification import Verification, _of_gains, verify
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class, mechanism_names
from mechanisms.tallies import ScoreTally, Weighing
from tests.certificates.recipes import FOUND, certified, demonstrations, document_of, planned, shares_of
from tests.certificates.recipes import text_of as recipe_of
from tests.runs import running
from tests.toy_model import ToyModel

pytestmark = pytest.mark.slow

SIZES = {"a": 45, "b": 52}
NOISE = {
    "gaussian": {"noise-multiplier": 20.0},
    "adadpsyn": {"sigma1": 30.0, "sigma0": 90.0, "sigma2": 60.0},
    "noisy-max": {"step-epsilon": 0.1},
    "blended-logits": {"temperature": 40.0},
    "difference-clipping": {"clip": 0.1},
    "svt-public": {"token-epsilon": 0.1},
}
"""With which every mechanism has a claim of about 1, without a calibration."""


def asked(
    name: str, scheme: Scheme = Scheme.PER_DEMONSTRATION, by_user: bool = False, measured: bool = False, **said: Any
) -> Plan:
    usual = {"mechanism": name, "parameters": NOISE.get(name, {}), "scheme": scheme, "shares": None, "subsets": 6}
    return planned(Recipe.TOKENS, Split.EPSILON, by_user, measured, SIZES, **usual | said)


@cache
def text_of(name: str, scheme: Scheme, by_user: bool, measured: bool) -> str:
    return certified(asked(name, scheme, by_user, measured)).dumps()


def edited(text: str, path: tuple[Any, ...], change: Callable[[Any], Any]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    holder: Any = document
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = change(holder[path[-1]])
    return document


def found(document: dict[str, Any]) -> tuple[str, ...]:
    """What is said against a document; a refusal to load it counts."""
    try:
        return verify(loads(json.dumps(document))).problems
    except StudioError as error:
        return (str(error),)


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("name", mechanism_names())
def test_what_a_run_certifies_passes(name, scheme):
    if mechanism_class(name)().closed(SamplingPlan(scheme)):
        pytest.skip("closed")
    for by_user in (False, True):
        for measured in (False, True):
            verified = verify(loads(text_of(name, scheme, by_user, measured)))
            assert verified == Verification(verified.claim, ())
            assert verified.claim.epsilon == pytest.approx(asked(name, scheme, by_user, measured).claim().epsilon)


@pytest.mark.parametrize("scheme", list(Scheme))
def test_a_share_of_the_units_counts_only_where_roles_divide_them(scheme):
    part = planned(Recipe.TOKENS, Split.ROLES, shares={"write": 0.5}, scheme=scheme)
    text = certified(part).dumps()
    assert verify(loads(text)).problems == ()
    for share in (0.4, 1.0):
        document = edited(text, ("privacy", "parameters", "shares", "write"), lambda _, share=share: share)
        assert any("privacy/event" in problem for problem in found(document))
    assert found(edited(text, ("privacy", "parameters", "split"), lambda _: "epsilon"))


@pytest.mark.parametrize("written", [1, 3])
def test_a_run_that_writes_less_or_more_than_its_set_passes(written, any_text_passes):
    rows = running.data(running.rows(60))
    plan = running.planned(rows, running.alone(shots=2, written=written))
    made = list(running.begun(rows, plan, randomness=SecureRandomness()))[-1].demo_set
    assert len(made.demonstrations) == 4
    assert verify(loads(made.dumps())).problems == ()
    assert verify(replace(made, demonstrations=(*made.demonstrations, *demonstrations(1, "red")))).problems == (
        "demonstrations: a label has more of them than privacy/parameters/shots allows.",
    )


@pytest.mark.parametrize("name", ["gaussian", "public", "non-private"])
def test_a_test_seed_is_no_problem_and_makes_nothing_private(name, any_text_passes):
    rows = running.data(running.rows(60))
    plan = running.planned(rows, running.alone(mechanism=name, parameters={}))
    *_, last = run(plan, rows, ToyModel(), PrivacyLedger(), SeededRandomness(5))
    document = json.loads(last.demo_set.dumps())
    assert found(document) == ()
    document["privacy"].update(private=True)
    assert any("privacy/private" in problem or "privacy/epsilon" in problem for problem in found(document))


CASES = [
    ("gaussian", Scheme.PER_DEMONSTRATION, False, False),
    ("gaussian", Scheme.PER_TOKEN, True, True),
    ("adadpsyn", Scheme.PER_DEMONSTRATION, True, False),
    ("noisy-max", Scheme.PER_TOKEN, False, True),
    ("blended-logits", Scheme.PER_TOKEN, False, True),
    ("difference-clipping", Scheme.PER_DEMONSTRATION, True, False),
]
FREE = {
    "top_p", "prior_deviation", "theta", "coverage", "lambda", "candidates", "candidate_top_p", "max_record_tokens",
    "max_unit_records", "min_tokens", "drafts", "draft_tokens", "shots",
}  # fmt: skip
"""Parameters that no cost depends on."""
FREE_OF_A_TARGET = {("epsilon",), ("shares", "write")}
"""What a run that only writes was calibrated for; its noise is stated."""


def numbers(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Every number of a document, with its place."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from numbers(child, (*path, key))
    if isinstance(node, int | float) and not isinstance(node, bool):
        yield path, node


def beside(number: float) -> tuple[float, float]:
    """The nearest numbers that say something else."""
    return (number - 1, number + 1) if isinstance(number, int) else (number * (1 - 1e-5), number * (1 + 1e-5))


def check_numbers(text: str, free: set[str]) -> None:
    privacy = json.loads(text)["privacy"]
    places = [
        ((part, *path), number)
        for part in ("parameters", "event")
        for path, number in numbers(privacy[part])
        if not free & {path[0], path[-1]} and path not in FREE_OF_A_TARGET
    ]
    assert len(places) > 8
    for path, number in places:
        for other in beside(number):
            document = edited(text, ("privacy", *path), lambda _, other=other: other)
            assert any("privacy/" in problem for problem in found(document)), (path, other)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_any_other_number_in_parameters_or_event_is_found(case):
    check_numbers(text_of(*case), FREE | ({"temperature"} if case[0] in ("gaussian", "adadpsyn") else set()))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("share", [0, 0.5, 0.991, 1 - 1e-4])
def test_a_lower_epsilon_is_found_however_little(case, share):
    document = json.loads(text_of(*case))
    accountants = document["privacy"]["accountants"]
    lower = document["privacy"]["epsilon"] * share
    document["privacy"]["epsilon"] = accountants["claimed"]["epsilon"] = lower
    [problem] = found(document)
    assert problem.startswith(f"privacy/epsilon: {lower:.6g} is stated")


PLAIN = CASES[0]
MEASURED = CASES[3]
EDITS: list[tuple[Any, tuple[Any, ...], Callable[[Any], Any], str]] = [
    (PLAIN, ("event", "lists"), lambda lists: {"a": lists["a"]}, "privacy/event/lists/b: is missing"),
    (PLAIN, ("event", "lists"), lambda lists: lists | {"c": lists["a"]}, "privacy/event/lists/c: has no place"),
    (PLAIN, ("event", "per"), lambda _: "cell", "privacy/event/per"),
    (PLAIN, ("mechanism",), lambda _: "no-such", "privacy/mechanism"),
    (PLAIN, ("transform",), lambda _: "pta", "privacy/transform"),
    (PLAIN, ("scheme",), lambda _: "per-token", "privacy/scheme"),
    (PLAIN, ("parameters", "mechanism"), lambda _: "no-such", "privacy/parameters/mechanism"),
    (PLAIN, ("parameters", "mechanism"), lambda _: "non-private", "privacy/parameters/noise_multiplier"),
    (PLAIN, ("parameters", "mechanism"), lambda _: "noisy-max", "privacy/parameters/step_epsilon"),
    (PLAIN, ("parameters", "transform"), lambda _: "pta", "privacy/parameters/alpha"),
    (PLAIN, ("parameters", "scheme"), lambda _: "disjoint", "privacy/parameters/scheme"),
    (PLAIN, ("parameters", "scheme"), lambda _: "per-token", "privacy/event/lists/a"),
    (PLAIN, ("unit",), lambda _: "user:name", "privacy/parameters/max_unit_records"),
    (CASES[1], ("unit",), lambda _: "record", "privacy/parameters/max_unit_records"),
    (PLAIN, ("epsilon",), lambda _: 0.1, "privacy/accountants/claimed/epsilon"),
    (PLAIN, ("delta",), lambda _: 0, "privacy/delta"),
    (PLAIN, ("accountants", "claimed", "name"), lambda _: "mine", "privacy/accountants/claimed/name"),
    (PLAIN, ("accountants", "check", "name"), lambda _: "mine", "privacy/accountants/check/name"),
    (PLAIN, ("accountants", "check", "epsilon"), lambda e: e * 0.9999, "privacy/accountants/check/epsilon"),
    (PLAIN, ("public_inputs",), lambda names: names[:1], "privacy/public_inputs"),
    (PLAIN, ("public_inputs",), lambda names: names[1:], "privacy/public_inputs"),
    (MEASURED, ("parameters",), lambda p: {k: v for k, v in p.items() if k != "measured"}, "privacy/event/lists/a"),
    (MEASURED, ("parameters", "measured"), lambda m: m | {"more": 1}, "privacy/parameters/measured/more"),
    (PLAIN, ("parameters", "sizes"), lambda _: {"a": 45}, "privacy/parameters/sizes"),
    (PLAIN, ("parameters", "sizes", "a"), lambda _: 10**15, "privacy/parameters: A label's declared size"),
    (PLAIN, ("parameters", "per_subset"), lambda _: 1, "privacy/parameters/sensitivity"),
    (PLAIN, ("parameters", "sensitivity_norm"), lambda _: "l1", "privacy/parameters/sensitivity_norm"),
    (PLAIN, ("parameters", "noise_multiplier"), lambda _: "20", "privacy/parameters/noise_multiplier"),
    (PLAIN, ("parameters", "subsets"), lambda _: 10**9, "privacy/parameters/subsets"),
    (PLAIN, ("parameters", "shots"), lambda _: 10**5, "privacy/parameters/shots"),
    (PLAIN, ("parameters", "written"), lambda _: 10**5, "privacy/parameters/written"),
    (PLAIN, ("parameters",), lambda p: p | {"\x1b[2J" + "x" * 99: 1}, "privacy/parameters/?[2Jx"),
]  # fmt: skip


def nested(depth: int) -> dict[str, Any]:
    inner = {"type": "gaussian", "noise_multiplier": 2.0}
    return inner if depth == 0 else {"type": "poisson", "rate": 0.5, "of": nested(depth - 1)}


def test_events_in_events_are_read_in_no_time_to_speak_of():
    document = json.loads(text_of("gaussian", Scheme.PER_DEMONSTRATION, False, False))
    document["privacy"]["event"]["lists"]["a"] = [nested(60)]
    assert any("privacy/event" in problem for problem in found(document))


FLAGS = {
    "a mark behind a flag that says no": lambda d: d["privacy"].update(shown=[CLEAN_VALUES]),
    "a flag without a reason": lambda d: d["privacy"].update(shown=[], curator_diagnostics_shown=True),
    "no word of the mark": lambda d: d["privacy"]["public_inputs"].remove(WHETHER_SHOWN),
    "users for rows": lambda d: d["privacy"]["public_inputs"].append(DECLARED_USERS),
    "a stage that nobody accounts": lambda d: d.update(stages=[{"name": "vote", "role": 1.0, "event": nested(0)}]),
    "spent more than everything": lambda d: d["privacy"]["spent_before"].update(delta=5),
}


@pytest.mark.parametrize("edit", FLAGS)
def test_what_says_how_a_set_came_about_is_checked_too(edit):
    document = json.loads(text_of("gaussian", Scheme.PER_DEMONSTRATION, False, False))
    assert found(document) == ()
    FLAGS[edit](document)
    assert found(document) != ()


def test_more_demonstrations_than_were_paid_for_are_found():
    document = json.loads(text_of(*PLAIN))
    document["demonstrations"] = [{"text": "x", "label": "a"}] * 2
    assert found(document) == ()
    document["demonstrations"].append({"text": "x", "label": "a"})
    assert "parameters/shots allows" in found(document)[0]
    document["demonstrations"] = [{"text": "x", "label": "c"}]
    assert found(document)[0].startswith("demonstrations")


def test_nothing_is_private_without_a_private_mechanism():
    document = json.loads(text_of("non-private", Scheme.PER_TOKEN, False, False))
    assert found(document) == ()
    document["privacy"].update(private=True, epsilon=3.0)
    document["privacy"]["accountants"]["claimed"]["epsilon"] = 3.0
    problems = found(document)
    assert any(problem.startswith("privacy/private") for problem in problems)
    assert any(problem.startswith("privacy/epsilon") for problem in problems)


def test_last_digits_of_another_machine_may_differ():
    held = loads(text_of(*PLAIN)).certificate
    stated = held.claim
    for digits in (-1e-8, 1e-8):
        claimed = replace(stated, epsilon=stated.epsilon * (1 + digits), check=stated.check * (1 + digits))
        assert verify(replace(loads(text_of(*PLAIN)), certificate=replace(held, claim=claimed))).problems == ()
    path = ("privacy", "event", "lists", "a", 1, "delta")
    assert found(edited(text_of(*PLAIN), path, lambda delta: delta * (1 + 1e-9))) == ()
    path = ("privacy", "event", "lists", "a", 0, "of", "rate")
    assert found(edited(text_of(*PLAIN), path, lambda rate: math.nextafter(rate, 1))) == ()


def test_a_file_of_a_thousand_wrong_lists_gets_a_few_lines_and_no_accountant(monkeypatch):
    monkeypatch.setattr(Plan, "claim", lambda *arguments: pytest.fail("it was accounted"))
    document = edited(
        text_of(*PLAIN),
        ("privacy", "event", "lists"),
        lambda lists: {f"{name}{i}": events for name, events in lists.items() for i in range(500)},
    )
    problems = found(document)
    assert len(problems) == 21
    assert problems[-1].startswith("and 982")


@pytest.mark.parametrize(
    ("labels", "field"), [(1001, "privacy/parameters: At most 150 labels"), (60, "privacy/parameters/shots")]
)
def test_more_than_can_be_checked_is_refused_before_anything_is_built(labels, field, monkeypatch):
    document = json.loads(text_of(*MEASURED))
    monkeypatch.setattr(SamplingPlan, "compose", lambda *arguments: pytest.fail("it was built"))
    names = [f"l{i}" for i in range(labels)]
    document["task"]["labels"] = names
    document["privacy"]["parameters"].update(
        sizes=dict.fromkeys(names, 50), rates=dict.fromkeys(names, 1.0), shots=1 if labels > 150 else 10**5
    )
    [problem] = found(document)
    assert problem.startswith(field)


HOSTILE = [0, -1, 1, 3.0, 0.5, 5e-324, 1e308, 2**53, 10**9, 1e5, "", "x\n", [], {}, None, True]


def test_the_longest_run_is_accounted_too():
    noise = {"noise-multiplier": 4000.0}
    vast = asked("gaussian", Scheme.PER_TOKEN, parameters=noise, tokens=10**5, written=50, shots=50)
    assert verify(certified(vast)).problems == ()


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"accountant": "prv", "check_accountant": "pld"}, "privacy/accountants/claimed/name"),
        ({"check_accountant": "mine"}, "privacy/accountants/check/name"),
        ({"check": 9.0}, "privacy/accountants/check/epsilon"),
    ],
)
def test_accountants_are_those_that_account_the_event(scheme, change, field):
    made = certified(asked("gaussian", scheme, parameters={"noise-multiplier": 4000.0}))
    assert made.certificate.claim.accountant in ("exact", "tilted", "rdp")
    stated = replace(made.certificate, claim=replace(made.certificate.claim, **change))
    problems = verify(replace(made, certificate=stated)).problems
    assert any(problem.startswith(field) for problem in problems)


# Of runs in stages.


ALL = list(product(Recipe, Split, (False, True), (False, True)))


@pytest.mark.parametrize("case", ALL, ids=lambda case: "-".join(map(str, case)))
def test_every_setting_of_a_run_comes_back_from_its_set(case):
    """A setting that is new needs nothing but its field."""
    plan, back = planned(*case), plan_of(loads(recipe_of(*case)))
    unused = () if "write" in plan.stages else (Group.TOKENS,)
    apart = {"sizes", "count_epsilon", "score", "parameters"}
    settings = [each.name for each in SETTINGS.values() if each.group not in unused and each.name not in apart]
    assert {name: getattr(back.spec, name) for name in settings} == {
        name: getattr(plan.spec, name) for name in settings
    }
    assert (back.sizes, back.labels, back.unit) == (plan.sizes, plan.labels, plan.unit)
    assert plan.spec.parameters.items() <= back.spec.parameters.items()
    assert (back.spec.score, back.measured) == (SCORE in plan.stages, plan.measured)


@pytest.mark.parametrize("case", ALL, ids=lambda case: "-".join(map(str, case)))
def test_what_a_recipe_certifies_comes_back_and_passes(case):
    text = recipe_of(*case)
    read = loads(text)
    assert read.dumps() == text
    verified = verify(read)
    assert verified.problems == ()
    assert verified.claim.epsilon == pytest.approx(read.certificate.claim.epsilon, rel=1e-6)
    assert [each.name for each in read.stages] == list(read.certificate.parameters["shares"])
    assert verify(loads(json.dumps(json.loads(text), sort_keys=True))).problems == ()  # another layout says the same


RECIPES = [
    (Recipe.VOTE, Split.ROLES, False, False),
    (Recipe.VOTE, Split.EPSILON, True, True),
    (Recipe.TOKENS, Split.ROLES, True, False),
    (Recipe.BOTH, Split.ROLES, False, True),
    (Recipe.BOTH, Split.EPSILON, False, False),
]
FREE_OF_RECIPES = {(name,) for name in FREE | {"temperature"}}
"""What no cost depends on: how many drafts there are, and limits on texts and sets."""


def free(case: tuple[Any, ...], path: tuple[Any, ...]) -> bool:
    recipe, split, _, _ = case
    if recipe is Recipe.VOTE:  # a tally has room for any number of units
        return path in FREE_OF_RECIPES or path[0] == "sizes" or path == ("measured", "failure")
    # The noise of writing is stated by itself, so that its share of epsilon is only what it was calibrated for.
    return path in FREE_OF_RECIPES or (split is Split.EPSILON and path == ("shares", "write"))


@pytest.mark.parametrize("case", RECIPES, ids=str)
def test_any_other_number_in_parameters_event_or_stages_is_found(case):
    document = document_of(*case)
    parts = {"parameters": ("privacy", "parameters"), "event": ("privacy", "event"), "stages": ("stages",)}
    for part, where in parts.items():
        holder = document["stages"] if part == "stages" else document["privacy"][part]
        places = [each for each in numbers(holder) if part != "parameters" or not free(case, each[0])]
        assert len(places) > 4
        for path, number in places:
            for other in beside(number):
                problems = found(edited(recipe_of(*case), (*where, *path), lambda _, other=other: other))
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
    (0, ("parameters", "epsilon"), lambda _: 1e-300, "privacy/parameters: A tally's epsilon"),
    (0, ("parameters", "drafts"), lambda _: 10**6, "privacy/parameters/drafts"),
    (0, ("parameters",), lambda p: p | {"written": 1}, "privacy/parameters/written: has no place"),
    (0, ("parameters",), lambda p: p | {"measured": {"epsilon": 0.2, "failure": 1e-8}}, "privacy/event/lists/vote a"),
    (1, ("parameters", "measured"), lambda m: m | {"epsilon": 5.0}, "privacy/parameters: Counting has used up"),
    (2, ("parameters", "written"), lambda _: None, "privacy/parameters/written"),
    (2, ("parameters", "mechanism"), lambda _: "mine", "privacy/parameters/mechanism"),
    (2, ("parameters", "scheme"), lambda _: "mine", "privacy/parameters/scheme"),
    (2, ("parameters", "scheme"), lambda _: "per-token", "privacy/event/lists/write"),
    (2, ("parameters", "shares", "write"), lambda _: 0.5, "stages/write/role"),
    (2, ("parameters", "shots"), lambda _: 10**5, "privacy/parameters/shots"),
    (2, ("parameters", "written"), lambda _: 10**5, "privacy/parameters/written"),
    (2, ("parameters",), lambda p: p | {"more": 1}, "privacy/parameters/more"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "path", "change", "field"),
    [(text_of(*case), *rest) for case, *rest in EDITS]
    + [(recipe_of(*RECIPES[case]), *rest) for case, *rest in PRIVACY],
)
def test_an_edit_is_found_and_its_field_named(text, path, change, field):
    problems = found(edited(text, ("privacy", *path), change))
    assert any(field in problem for problem in problems), problems
    assert all(problem.isprintable() for problem in problems)


ROLES, SHARED = RECIPES[0], RECIPES[4]
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
    [problem] = found(edited(recipe_of(*case), path, change))
    assert field in problem


ARMS = ("zero-shot", "public-only", "demonstrations")


@given(st.lists(st.integers(-6, 60), min_size=8, max_size=8), st.sampled_from(ARMS[:2]), st.floats(0.001, 0.2))
def test_gains_that_do_not_follow_from_the_accuracies_are_found(cells, arm, more):
    """Whatever the released table, noise that leaves nothing of it included, its own figures agree."""
    score = Score.of_table(
        ScoreTally(1.0, False, False), np.array(cells, dtype=float), ARMS, False, False, Weighing.ROWS
    )
    assert list(_of_gains(score)) == []
    gain = score.gains[arm]
    edited = replace(score, gains={**score.gains, arm: replace(gain, accuracy=gain.accuracy + more)})
    cut_off = [each for each in (score.arms["demonstrations"], score.arms[arm], gain) if each.accuracy in each.interval]
    assert bool(cut_off) or [problem.split(":")[0] for problem in _of_gains(edited)] == [f"score/gains/{arm}"]


def test_a_gain_is_over_another_arm_of_the_score():
    document = document_of(*ROLES)
    document["score"]["arms"] = {
        "zero-shot": {"accuracy": 0.5, "interval": [0.4, 0.6]},
        "demonstrations": {"accuracy": 0.7, "interval": [0.6, 0.8]},
    }
    told = ("zero-shot", 0.2, 0), ("zero-shot", 0.3, 1), ("public-only", 0.2, 1), ("demonstrations", 0.0, 1)
    for name, value, problems in told:
        document["score"]["gains"] = {name: {"value": value, "interval": [-0.1, 0.4]}}
        assert len(found(document)) == problems, name


def test_rows_apart_from_all_others_may_be_called_untouched():
    document = edited(recipe_of(*ROLES), ("score", "rows"), lambda _: "private")
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
    written = document["privacy"]["parameters"]
    written["mechanism"] = "non-private"
    assert any(problem.startswith("privacy/parameters/noise_multiplier") for problem in found(document))
    for name in ("noise_multiplier", "temperature", "top_p", "prior_deviation"):
        del written[name]
    assert any(problem.startswith("privacy/event/lists") for problem in found(document))


@pytest.mark.parametrize("missing", ["split", "shares", "epsilon", "sizes", "drafts", "recipe"])
def test_the_schema_wants_a_whole_recipe_or_a_whole_run(missing):
    document = document_of(*RECIPES[0])
    del document["privacy"]["parameters"][missing]
    with pytest.raises(UsageError, match="privacy/parameters"):
        loads(json.dumps(document))


def test_hostile_values_get_one_line():
    text = recipe_of(*RECIPES[3])
    parameters = json.loads(text)["privacy"]["parameters"]
    paths = [("parameters", name) for name in parameters]
    paths += [("parameters", part, name) for part in ("shares", "measured") for name in parameters[part]]
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


@pytest.mark.parametrize("case", RECIPES, ids=str)
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
