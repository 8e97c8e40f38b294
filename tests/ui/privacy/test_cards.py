"""A plan in words, from declared numbers alone."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from dpicl_ui.frame.services import Session
from dpicl_ui.privacy.cards import clarity, odds, outcome, roughly, stages_in_words
from dpicl_ui.privacy.state import Planned
from dpicl_ui.privacy.step import CHOICES
from mechanisms.accounting import PrivacyTarget, best_guess
from mechanisms.records import Dataset
from mechanisms.rounding import rounded_up
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.spec import SCORE, VOTE, Recipe, RunSpec, Split
from mechanisms.runs.stage import Speed
from mechanisms.sampling import Scheme
from tests.ui.privacy.test_form import DATASET
from tests.ui.tabs import confirm
from tests.ui.trees import text_of

LABELS = ("a", "b")
HOSTILE = "<img src=x onerror=alert(1)>"


def planned(
    size: int = 3000, by_user: bool = False, labels: tuple[str, ...] = LABELS, sizes: Any = None, **settings: Any
) -> Planned:
    """A calibrated run on declared sizes."""
    session = Session()
    data = Dataset("d", labels, [], user_column="who" if by_user else None)
    confirmed = confirm(session, DATASET)
    spec = RunSpec.of(**{"sizes": sizes or dict.fromkeys(labels, size), "recipe": Recipe.VOTE} | settings)
    plan = plan_for(spec, data).calibrated()
    return Planned(confirmed, spec, plan, plan.claim())


def plan(**settings: Any) -> Plan:
    return planned(**settings).plan


@pytest.mark.parametrize("recipe", [Recipe.VOTE, Recipe.BOTH])
def test_every_stage_says_who_is_asked_for_what_and_its_share(recipe):
    made = plan(recipe=recipe)
    words = text_of(stages_in_words(made))
    assert made.by_roles
    for name, stage in made.stages.items():
        assert f"About {roughly(6000 * made.role(name))} rows" in words
        assert stage.title in words
        assert f"({100 * made.spec.shares[name]:.3g}% of rows)" in words
    assert f"{made.spec.drafts} drafts" in words
    assert "secret key" in words
    assert "at most" not in words


def test_where_epsilon_is_shared_all_rows_are_asked_and_the_score_is_not_called_untouched():
    made = plan(split=Split.EPSILON)
    words = text_of(stages_in_words(made))
    assert f"All rows, for epsilon {rounded_up(made.epsilon(VOTE), 2)}" in words
    assert f"({100 * made.spec.shares[VOTE]:.3g}% of epsilon)" in words
    assert "nothing else" not in words
    assert "nothing else" in text_of(stages_in_words(plan()))


def test_the_outcome_tells_the_promise_the_noise_and_the_time():
    made = planned(recipe=Recipe.BOTH)
    words = text_of(outcome(made))
    assert made.plan.guarantee in words
    for stage in (VOTE, "openings"):
        assert f"± {made.plan.stages[stage].tally.deviation:.1g}"[:4] in words
    assert f"{round(100 * made.plan.stages[SCORE].margin + 0.5)} points" in words
    assert clarity(made.plan.signal_to_noise) in words
    assert all(warning in words for warning in made.plan.warnings())
    assert "known when the model is loaded" in words
    assert "about 5 seconds" in text_of(outcome(replace(made, speed=Speed(0, 0, 0))))


@pytest.mark.parametrize(("name", "values"), [("recipe", Recipe), ("split", Split), ("scheme", Scheme)])
def test_each_value_has_words_of_its_own(name, values):
    assert {value for _, value in CHOICES[name]} == set(values)
    assert len({title for title, _ in CHOICES[name]}) == len(values)


# The sentence below the slider: a bound, never rounded below what it is, for rows and for users.


def share(target: PrivacyTarget, by_user: bool = False) -> float:
    found = re.search(r"at most\s+([\d.]+)%", text_of(odds(target, by_user, False)))
    assert found
    return float(found[1]) / 100


@pytest.mark.parametrize("epsilon", [0.1, 0.37, 1.0, 4.0, 5.0, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.1])
def test_what_is_said_bounds_the_best_guess_closely(epsilon: float, delta: float):
    right = best_guess(epsilon, delta)
    assert right <= share(PrivacyTarget(epsilon, delta)) <= right + 0.0011


def test_for_users_it_speaks_of_all_their_rows():
    target = PrivacyTarget(1.0, 1e-5)
    assert "all rows of one user are" in text_of(odds(target, True, False))
    assert "one row is" in text_of(odds(target, False, False))


def test_counts_that_were_declared_public_are_set_apart():
    target = PrivacyTarget(1.0, 1e-5)
    assert "declared public" in text_of(odds(target, False, True))
    assert "declared public" not in text_of(odds(target, False, False))
