"""The search for a plan: what it looks for, what it offers, and what it says where it cannot look."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Sessions
from dpicl_ui.privacy.form import PrivacyForm
from dpicl_ui.privacy.plan_finder import PlanFinder, plan_figure, search, with_plan
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.records import Dataset, Record
from mechanisms.runs.forecast import ModelSpeed, positions
from mechanisms.runs.planner import Option, ranked
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class
from tests.ui.privacy.test_form import DATASET, VALUES
from tests.ui.tabs import confirm, lend, services
from tests.ui.trees import text_of

FORM = PrivacyForm.read(*VALUES)
SPEED = ModelSpeed(position=1e-3, row=1e-3, step=1e-3)
BY_USER = Dataset("d", ("a", "b"), tuple(Record("t", label, f"u{i}") for label in "ab" for i in range(30)), "who")


def option(subsets: int, cost: float, signal: float, scheme: Scheme = Scheme.PER_DEMONSTRATION) -> Option:
    return Option(SamplingPlan(scheme, subsets), mechanism_class("gaussian")(), signal, cost)


FOUND = ranked([option(8, 100, 4.0), option(4, 50, 2.0), option(2, 80, 1.0, Scheme.PER_TOKEN)])


def test_a_duration_becomes_prompt_tokens_for_one_demonstration():
    steps = 2 * FORM.tokens * SPEED.step
    assert search(FORM, DATASET, SPEED, 60).budget == pytest.approx((60 / 2 - steps) / SPEED.position)
    assert search(replace(FORM, shots=3), DATASET, SPEED, 60).budget == pytest.approx((60 / 6 - steps) / SPEED.position)


@pytest.mark.parametrize("row", [1e-4, 1e-2])
def test_what_just_fits_the_budget_takes_the_duration_at_most(row):
    speed = replace(SPEED, row=row)
    looked = search(FORM, DATASET, speed, 10)
    length = looked.task.prompt_tokens
    rows = looked.budget // (length + FORM.tokens)
    assert rows > 10
    one = rows * (length * speed.position + FORM.tokens * row) + 2 * FORM.tokens * speed.step
    assert 2 * one <= 10


def test_a_duration_that_leaves_no_time_for_rows_is_refused():
    with pytest.raises(UsageError, match="allow more time"):
        search(FORM, DATASET, SPEED, 0.01)


def test_the_task_is_the_runs():
    looked = search(FORM, DATASET, SPEED, 60)
    request = FORM.spec(DATASET).writing(DATASET)
    rows = sum(request.capacity(label) for label in request.labels)
    assert looked.task.prompt_tokens * rows == positions(request)[0]
    assert (looked.task.size, looked.task.tokens, looked.task.per_subset) == (30, 4, 1)


def test_the_labels_of_a_user_count_as_demonstrations_of_one():
    assert search(replace(FORM, shots=2), BY_USER, SPEED, 60).task.shots == 4


def test_a_plan_that_settings_close_can_still_be_replaced():
    closed = replace(FORM, mechanism="blended-logits", unit_rows=False)
    assert search(closed, DATASET, SPEED, 60).task.per_subset == FORM.per_subset


def test_the_form_takes_over_an_option():
    taken = with_plan(FORM, option(17, 1.0, 1.0, Scheme.PER_TOKEN)).spec(DATASET).writing(DATASET).plan
    assert (taken.subsets, taken.scheme, taken.unit_rows) == (17, Scheme.PER_TOKEN, True)


def test_the_curve_joins_the_efficient_options_and_marks_the_settings():
    traces = plan_figure(FOUND, now=(60.0, 1.5)).to_plotly_json()["data"]
    line, *kinds, now = traces
    assert (line["mode"], line["x"]) == ("lines", [50, 100])
    assert [trace["marker"]["symbol"] for trace in kinds] == [["circle", "circle"], ["circle-open"]]
    assert len({trace["marker"]["color"] for trace in kinds}) == 2
    assert now["x"] == [60.0]


@pytest.fixture
def finder() -> Any:
    loader: Any = SimpleNamespace(speed=SPEED, settled=True, problem=None)
    return PlanFinder(services(Sessions(), None, loader), gr.Radio(), gr.Radio(), gr.Slider())


def tab() -> Any:
    return SimpleNamespace(session_hash="tab", username=None)


@pytest.mark.slow
def test_a_search_tells_its_progress_and_offers_the_efficient_options(finder, monkeypatch):
    monkeypatch.setattr("dpicl_ui.privacy.plan_finder._POINTS", 1)
    monkeypatch.setattr("dpicl_ui.frame.job._INTERVAL", -1.0)  # however fast the machine is
    session = finder._app.session(tab())
    confirm(session, DATASET)
    *progress, last = finder._find(tab(), 3.0, *VALUES)
    assert "1 tried" in text_of(progress[1][finder.notice])
    plans = session.of(PrivacyState).found
    assert plans
    assert all(each.efficient for each in plans)
    assert [number for _, number in last[finder.choice].choices] == list(range(len(plans)))
    best = plans[0].plan
    used = finder._use(0, tab())
    assert used[finder._subsets].value == best.subsets
    assert used[finder._subsets].minimum <= best.subsets <= used[finder._subsets].maximum


def test_new_data_forgets_the_plans(finder):
    session = finder._app.session(tab())
    state, confirmed = session.of(PrivacyState), confirm(session, DATASET)
    assert state.offer(confirmed, tuple(FOUND))
    assert state.found
    confirm(session, DATASET)
    assert state.found == ()
    assert not state.offer(confirmed, tuple(FOUND))
    with pytest.raises(UsageError, match="Find a plan first"):
        finder._use(0, tab())


@pytest.mark.parametrize(("done", "words"), [(False, "not known yet"), (True, "not available")])
def test_without_a_speed_it_says_so(finder, done, words):
    loader = ModelLoader("none")
    loader._done = threading.Event()
    if done:
        loader._done.set()
    lend(finder, loader=loader)
    confirm(finder._app.session(tab()), DATASET)
    with pytest.raises(ModelUnavailable, match=words):
        list(finder._find(tab(), 3.0, *VALUES))
