"""Step 2 without a page: what is calibrated, told and left open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dpicl_ui.data.state import DataState
from dpicl_ui.privacy.state import PrivacyState
from dpicl_ui.privacy.step import NO_RUN, PrivacyStep, budget_of
from mechanisms.accounting import PrivacyTarget
from mechanisms.errors import UsageError
from mechanisms.runs.plan import suggested_delta
from mechanisms.runs.spec import Recipe
from mechanisms.runs.stage import Speed
from tests.ui.data.tab import TAB
from tests.ui.privacy.test_form import DATASET, values
from tests.ui.tabs import confirm, downloaded, lend
from tests.ui.trees import text_of


def recalculated(step: PrivacyStep, **changes: Any) -> dict[Any, Any]:
    *_, last = step._recalculate(values(step, **changes), TAB)
    return last


@pytest.fixture
def session(step: PrivacyStep):
    made = step._app.session(TAB)
    confirm(made, DATASET)
    return made


def test_a_run_is_planned_and_told(step: PrivacyStep, session):
    shown = recalculated(step, recipe="vote")
    planned = session.of(PrivacyState).planned
    assert planned is not None
    assert planned.plan.spec.recipe is Recipe.VOTE
    assert "vote for the one" in text_of(shown[step.stages])
    assert planned.plan.guarantee in text_of(shown[step.outcome])
    assert "this run" in text_of(shown[step.budget])
    assert "allows" in text_of(budget_of(session, step._app.ledger(TAB)))


def test_what_is_left_open_stands_in_grey(step: PrivacyStep, session):
    shown = recalculated(step)
    spec, fields = session.of(PrivacyState).plan.spec, step.expert.fields
    assert shown[fields["tokens"]].placeholder == str(spec.tokens)
    assert shown[fields["subsets"]].placeholder == str(spec.subsets) == "30"
    assert shown[fields["delta"]].placeholder == f"{suggested_delta(60):g}"
    assert shown[fields["instruction"]].placeholder == "Classify each text as a or b."
    assert "write=" in shown[fields["shares"]].placeholder
    recalculated(step, shares=shown[fields["shares"]].placeholder)
    assert session.of(PrivacyState).plan.spec.shares == pytest.approx(spec.shares, rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"recipe": "vote", "shares": "vote=.9, score=.9"}, "more than 1"),
        ({"recipe": "vote", "shares": "score=.9"}, "needs a share"),
        ({"shares": "choose=.5"}, "no stage 'choose'"),
        ({"tokens": "many"}, "Tokens (T)"),
        ({"epsilon": None}, "Epsilon needs a number"),
        ({"mechanism": "blended-logits", "per_subset": "2"}, "closed with subsets"),
    ],
)
def test_a_refused_plan_is_not_told_and_leaves_none(step: PrivacyStep, session, changes, words):
    recalculated(step)
    shown = recalculated(step, **changes)
    assert shown[step.stages] == []
    assert words in text_of(shown[step.outcome])
    assert session.of(PrivacyState).plan is None
    with pytest.raises(UsageError, match=NO_RUN):
        step._accept(TAB)


def test_settings_that_were_touched_leave_no_plan_before_they_are_calibrated(step: PrivacyStep, session):
    """A run that starts in between would cost what no slider shows any more."""
    recalculated(step)
    planned = session.of(PrivacyState).planned
    assert planned
    step._touched(values(step), TAB)
    assert session.of(PrivacyState).planned is planned, "nothing has changed"
    bar = step._touched(values(step, epsilon=0.5), TAB)[step._app.bar.html]
    assert session.of(PrivacyState).plan is None
    assert bar["steps"][2]["why"]
    recalculated(step, epsilon=0.5)
    assert session.of(PrivacyState).plan.spec.epsilon == 0.5
    step._touched(values(step, epsilon=None), TAB)
    assert session.of(PrivacyState).plan is None


def test_without_a_data_set_nothing_is_planned(step: PrivacyStep):
    assert len(list(step._recalculate(values(step), TAB))) == 1
    assert step._app.session(TAB).of(PrivacyState).plan is None


def test_other_data_have_settings_of_their_own_and_the_same_data_keep_them(step: PrivacyStep, session):
    fields = step.expert.fields
    first = step._fill_in(values(step), TAB)
    assert fields["tokens"] not in first, "the page is as it was built"
    assert first[step.cap_epsilon] == step._app.ledger(TAB).snapshot("d", "record").cap.epsilon
    session.of(DataState).withdraw()
    confirm(session, DATASET)
    assert fields["tokens"] not in step._fill_in(values(step), TAB)
    confirm(session, replace(DATASET, name="another"))
    fresh = step._fill_in(values(step), TAB)
    assert {each for each in step.form if each in fresh} == {*step.expert.inputs}
    assert all(fresh[each] == each.value for each in step.expert.inputs)
    assert fresh[step.expert._groups["gaussian"]].visible


def test_the_card_gets_its_time_when_the_model_is_there(step: PrivacyStep, session):
    assert "known when the model" in text_of(recalculated(step)[step.outcome])
    lend(step, loader=type("Loader", (), {"speed": Speed(0, 0, 0)}))
    assert "about 5 seconds" in text_of(step.timed(TAB))
    assert step.timed(TAB) == {"__type__": "update"}, "nothing has changed"


def test_the_odds_follow_epsilon_and_the_usual_delta_where_none_is_said(step: PrivacyStep, session, monkeypatch):
    seen: list[PrivacyTarget] = []
    monkeypatch.setattr("dpicl_ui.privacy.step.odds", lambda target, *rest: seen.append(target) or [])
    step._touched(values(step, epsilon=2.0), TAB)
    step._touched(values(step, epsilon=2.0, delta="1e-3"), TAB)
    step._fill_in(values(step), TAB)
    assert step._touched(values(step, epsilon=None), TAB)[step.odds] == []
    assert [(each.epsilon, each.delta) for each in seen] == [(2.0, suggested_delta(60)), (2.0, 1e-3), (1.0, 1e-5)]


def test_the_settings_of_a_planned_run_are_a_file_without_the_place_of_its_model(step: PrivacyStep, session):
    with pytest.raises(UsageError, match="No run with these settings"):
        step._save(TAB)
    recalculated(step, recipe="vote")
    shown = step._save(TAB)
    assert "recipe: vote" in downloaded(shown[step.sink])
    assert "\nmodel:" not in downloaded(shown[step.sink])  # "none" is no listed model: it may be a path
    assert "charged as one of its own" in text_of(shown[step.saved])
    step._app.loader.name = "embedded"
    assert "\nmodel: embedded\n" in downloaded(step._save(TAB)[step.sink])
