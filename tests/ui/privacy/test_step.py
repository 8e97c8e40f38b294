"""Step 2 without a page: its controls, what is calibrated, told and left open, and the picture of the noise."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.controls import control, fields_from
from dpicl_ui.frame.services import Session
from dpicl_ui.privacy import state as privacy_state
from dpicl_ui.privacy.cards import (
    ExpectationState,
    ExpectedWords,
    clarity,
    expected,
    odds,
    outcome,
    picture,
    roughly,
    stages_in_words,
    to_consider,
)
from dpicl_ui.privacy.state import PlannedRun, PrivacyState, status
from dpicl_ui.privacy.step import (
    CHOICES,
    NO_RUN,
    PrivacyStep,
    asked_parameters,
    budget_of,
    private_mechanisms,
    transforms,
)
from mechanisms import api
from mechanisms.accounting import PrivacyTarget, best_guess
from mechanisms.accounting.filter import Cap
from mechanisms.asking import Wording
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.sources import read_table
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.inference import WritingPrompt
from mechanisms.records import Dataset, Record
from mechanisms.rounding import rounded_up
from mechanisms.runs.checks import Finding, Level
from mechanisms.runs.plan import Plan, plan_for, suggested_delta
from mechanisms.runs.spec import OPENINGS, SCORE, VOTE, WRITE, Recipe, RunSpec, Split
from mechanisms.runs.work import Speed
from mechanisms.sampling import Scheme
from mechanisms.steps import mechanism_names
from tests.baselines.toys import SpeakingModel
from tests.toy_embedder import ToyEmbedder
from tests.ui.data.tab import TAB
from tests.ui.tabs import confirm, downloaded, in_page, lend, owned, text_of


@pytest.fixture
def step(tmp_path: Path) -> PrivacyStep:
    return in_page(lambda: PrivacyStep(owned(tmp_path)))


# The controls of step 2 come from the spec, and what stands in them is a spec; mechanisms bring their parameters.

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
    assert fields_from({name: each.value}) == {}


def test_a_number_with_two_bounds_is_a_slider_between_them_and_others_are_typed():
    slider = made("candidates")
    assert (type(slider), slider.minimum, slider.maximum, slider.value) == (gr.Slider, 2, 1000, 16)
    assert isinstance(made("tokens"), gr.Textbox), "what may stay open is typed: an empty slider has a value"
    assert made("delta").placeholder == "1e-05"
    assert made("max_record_tokens").label == "Tokens of a row", "its unit stands in its title"


def test_a_typed_value_is_read_by_the_spec_and_refused_in_its_words():
    assert RunSpec.of(**fields_from({"tokens": " 12 ", "delta": "1e-6"})).tokens == 12
    assert RunSpec.of(**fields_from({"shares": "write=.5, vote=.5"})).shares == {"write": 0.5, "vote": 0.5}
    assert fields_from({"label_words": "a = one, b = two", "instruction": "  "}) == {
        "label_words": {"a": "one", "b": "two"}
    }
    for name, value, words in (
        ("tokens", "many", r"Tokens \(T\)"),
        ("tokens", "0", r"Tokens \(T\)"),
        ("delta", "2", "Delta"),
        ("shares", "write", "no equals sign"),
    ):
        with pytest.raises(UsageError, match=words) as refused:
            RunSpec.of(**fields_from({name: value}))
        assert "\n" not in str(refused.value)


# The form.


def test_every_setting_has_a_place_in_step_1_or_step_2(step: PrivacyStep):
    confirmed = confirm(step._app.session(TAB), DATASET)
    assert set(RunSpec.model_fields) == OUTSIDE | set(confirmed.spec_fields) | set(step.expert.fields)


def test_the_form_as_it_is_at_first_leaves_all_open_that_follows_from_the_sizes(step: PrivacyStep):
    confirmed = confirm(step._app.session(TAB), DATASET)
    at_first = spec(step)
    assert at_first == RunSpec.of(epsilon=1.0, delta=suggested_delta(60), **confirmed.spec_fields)
    assert at_first.model_fields_set <= {"epsilon", "delta", *confirmed.spec_fields}, "it counts as asked for otherwise"


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


# Step 2 without a page: what is calibrated, told and left open.


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
    assert "allows" in text_of(budget_of(step._app, TAB))


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
        ({"mechanism": "blended-logits", "per_subset": "2"}, "not available with subsets"),
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


def test_a_calibration_that_comes_late_does_not_bring_back_older_settings(step: PrivacyStep, session):
    recalculated(step)
    step._touched(values(step, epsilon=0.5), TAB)
    step._touched(values(step, epsilon=2.5), TAB)
    late = [*step._recalculate(values(step, epsilon=0.5), TAB)]
    assert [{*each} for each in late] == [{step.outcome, step.checks}]
    assert session.of(PrivacyState).planned is None
    recalculated(step, epsilon=2.5)
    assert session.of(PrivacyState).plan.spec.epsilon == 2.5


def test_what_speaks_against_a_run_stands_once_before_its_button(step: PrivacyStep, session):
    """What plan and ledger tell at once, what the model tells when it is there; nothing of it in the outcome."""
    last = recalculated(step)
    warnings = [warning for _, warning in session.of(PrivacyState).plan.warnings()]
    assert warnings
    assert all(text_of(last[step.checks]).count(warning) == 1 for warning in warnings)
    assert not any(warning in text_of(last[step.outcome]) for warning in warnings)
    assert "would fail" not in text_of(last[step.checks])

    class Short(SpeakingModel):
        def check(self, prefix, rows, length, room):
            raise UsageError("The prompt does not fit.")

    loader = type("Loader", (), {"model": lambda self: Short(), "speed": None})()
    lend(step, loader=loader, embedder=type("One", (), {"embedder": lambda self: ToyEmbedder()})())
    told = text_of(step._look(TAB)[step.checks])
    assert told.startswith("This run would fail: The prompt does not fit.")
    assert all(told.count(warning) == 1 for warning in warnings)

    step._app.ledger(TAB).set_cap("d", DATASET.unit, Cap(0.5, 1e-3))
    assert "The ledger of 'd' allows epsilon 0.5" in text_of(recalculated(step)[step.checks])
    assert step._app.ledger(TAB).history("d") == []


def test_there_is_no_card_where_nothing_is_to_be_said():
    note = Finding("time", Level.NOTE, "It takes a minute.")
    assert to_consider([]) == to_consider([note]) == []
    shown = text_of(
        to_consider([note, Finding("rows", Level.WARNING, HOSTILE), Finding("a", Level.ERROR, "Too much.")])
    )
    assert shown == f"This run would fail: Too much. Consider before you spend epsilon: {HOSTILE} Only on your screen"


def test_all_that_is_wrong_with_the_settings_is_told_at_once(step: PrivacyStep, session):
    shown = text_of(recalculated(step, tokens="0", delta="2")[step.outcome])
    assert "Tokens (T)" in shown
    assert "Delta" in shown


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


def test_the_settings_of_a_planned_run_are_a_file_without_the_place_of_its_model(step: PrivacyStep, session):
    with pytest.raises(UsageError, match="no run with these settings"):
        step._save(TAB)
    recalculated(step, recipe="vote")
    shown = step._save(TAB)
    assert "recipe: vote" in downloaded(shown[step.sink])
    assert "\nmodel:" not in downloaded(shown[step.sink])  # "none" is no listed model: it may be a path
    assert "charged separately" in text_of(shown[step.saved])
    step._app.loader.name = "embedded"
    assert "\nmodel: embedded\n" in downloaded(step._save(TAB)[step.sink])


# Plans of step 2, and the defaults that app and Python share.

# A plan belongs to the settings and to the confirmed data set that it was made for.

FIRST = RunSpec.of(sizes="counted", mechanism="noisy-max", recipe=Recipe.TOKENS, tokens=4, subsets=8)
LATER = FIRST.with_(epsilon=2.0)
VOTED = RunSpec.of(sizes="counted", recipe=Recipe.VOTE)
SPEED = Speed(position=1e-3, token=1e-3, text=1e-3)


@pytest.fixture
def tab() -> Session:
    tab = Session()
    confirm(tab, DATASET)
    return tab


def test_the_same_settings_are_calibrated_once(tab: Session):
    state = tab.of(PrivacyState)
    first = state.calibrate(FIRST, None)
    assert state.planned is first
    assert state.plan is first.plan
    assert state.calibrate(FIRST, None) is first
    assert status(tab).done


def test_the_plan_is_that_of_the_spec_on_the_data_set_and_calibrated(tab: Session):
    made = tab.of(PrivacyState).calibrate(VOTED, None)
    assert made.plan == plan_for(VOTED, DATASET).calibrated()
    assert made.claim == made.plan.claim()
    assert made.claim.epsilon == made.charge == pytest.approx(1.0)


def test_without_a_confirmed_data_set_there_is_no_plan(tab: Session):
    state = tab.of(PrivacyState)
    state.calibrate(FIRST, None)
    tab.of(DataState).withdraw()
    assert state.planned is None
    assert state.plan is None
    assert status(tab).why
    with pytest.raises(UsageError, match="step 1"):
        state.calibrate(FIRST, None)


@pytest.mark.parametrize("fails", [False, True])
def test_settings_that_were_overtaken_neither_show_nor_spoil_the_later_ones(
    tab: Session, monkeypatch: pytest.MonkeyPatch, fails: bool
):
    state, calm = tab.of(PrivacyState), privacy_state.plan_for

    def overtaken(*given: Any) -> Any:
        monkeypatch.setattr(privacy_state, "plan_for", calm)
        state.calibrate(LATER, None)
        if fails:
            raise UsageError("No noise meets this.")
        return calm(*given)

    monkeypatch.setattr(privacy_state, "plan_for", overtaken)
    if fails:
        with pytest.raises(UsageError):
            state.calibrate(FIRST, None)
    else:
        assert state.calibrate(FIRST, None).spec is FIRST
    assert state.planned is not None
    assert state.planned.spec is LATER


def test_two_handlers_calibrate_the_same_settings_once(tab: Session, monkeypatch: pytest.MonkeyPatch):
    state, calm, entered, second = (
        tab.of(PrivacyState),
        privacy_state.plan_for,
        threading.Event(),
        threading.Event(),
    )

    def slow(*given: Any) -> Any:
        (second if entered.is_set() else entered).set()
        second.wait(0.3)
        return calm(*given)

    monkeypatch.setattr(privacy_state, "plan_for", slow)
    with ThreadPoolExecutor() as pool:
        run = pool.submit(state.calibrate, FIRST, None)
        assert entered.wait(60)
        assert pool.submit(state.calibrate_for_screen, FIRST, None).result() is run.result()
    assert not second.is_set()


# The app and Python plan the same run where nobody says otherwise; the command line and Python share one function.


@pytest.mark.parametrize("user", [None, "who"])
def test_a_file_is_planned_alike_in_the_app_and_in_python(step: PrivacyStep, tmp_path: Path, user):
    path = tmp_path / "notes.csv"
    rows = [f"text {i},{'Yes' if i % 3 else 'No'},p{i % 61}" for i in range(150)]
    path.write_text("the text,topic,who\n" + "\n".join(rows), encoding="utf-8")
    data = api.load(path, ["No", "Yes"], text="the text", label="topic", user=user, name="my notes")
    python = api.plan(data, sizes="counted", kind="note", writer="a nurse", label_field="Topic", text_field="Note")
    session = step._app.session(TAB)
    state = session.of(DataState)
    state.open(read_table(path), Wording("note", "a nurse"), "Topic", ("the text", "topic"))
    columns = state.inspect(ColumnMapping("the text", "topic", user))
    state.confirm(privacy_state.ConfirmedData(columns, data))
    assert state.confirmed is not None
    app = session.of(PrivacyState).calibrate(spec(step, delta="1e-5"), None).plan
    assert app == python


# A plan in words, from declared numbers alone.

LABELS = ("a", "b")
HOSTILE = "<img src=x onerror=alert(1)>"


def planned(
    size: int = 3000, by_user: bool = False, labels: tuple[str, ...] = LABELS, sizes: Any = None, **settings: Any
) -> PlannedRun:
    """A calibrated run on declared sizes."""
    session = Session()
    data = Dataset("d", labels, [], user_column="who" if by_user else None)
    confirmed = confirm(session, DATASET)
    spec = RunSpec.of(**{"sizes": sizes or dict.fromkeys(labels, size), "recipe": Recipe.VOTE} | settings)
    plan = plan_for(spec, data).calibrated()
    return PlannedRun(confirmed, spec, plan, plan.claim())


def plan(**settings: Any) -> Plan:
    return planned(**settings).plan


@pytest.mark.parametrize("recipe", [Recipe.VOTE, Recipe.BOTH])
def test_every_stage_says_who_is_asked_for_what_and_its_share(recipe):
    made = plan(recipe=recipe)
    words = text_of(stages_in_words(made))
    assert made.by_roles
    for name, stage in made.stages.items():
        assert f"About {roughly(6000 * made.unit_share(name))} rows" in words
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
    assert f"± {made.plan.stages[VOTE].tally.deviation:.1g}"[:4] in words
    assert f"{round(100 * made.plan.stages[SCORE].margin + 0.5)} points" in words
    assert clarity(made.plan.signal_to_noise) in words
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


# The picture of a run's noise: of public distributions alone, with the noise that the run would have.

OPENED = {OPENINGS: 0.04, WRITE: 0.5, VOTE: 0.2}
OF = ExpectedWords("a", (("Dear", 0.5), ("Hello", 0.25)), (("sir", 0.75), ("clinic", 0.125)))


class Asking(SpeakingModel):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts: list[list[int]] = []

    def open(self, prefix: Any, rows: Any, *rest: Any) -> Any:
        self.prompts += [[*prefix, *row] for row in rows]
        return super().open(prefix, rows, *rest)


def test_the_model_is_asked_twice_with_public_words_alone():
    model, wording = Asking(), Wording("message", "a fan")
    found = expected(model, wording, "a")
    prompt = WritingPrompt(model, wording, "a")
    first, behind = model.prompts
    assert first == [*prompt.prefix, *prompt.cue]
    assert behind[:-1] == first
    assert model.decode(behind[-1:]).strip() == found.openings[0][0]
    for shares in (found.openings, found.next):
        assert 0 < sum(share for _, share in shares) <= 1
        assert [*shares] == sorted(shares, key=lambda each: -each[1])
        assert all(word.isalpha() for word, _ in shares)


def test_bars_are_of_the_rows_that_would_speak_and_noise_is_the_plans():
    made = plan(recipe="both", shares=OPENED)
    openings, token = picture(made, OF)["groups"]
    voters, rows = made.units(OPENINGS), made.sampling.rows_per_token
    assert made.stages[OPENINGS].by_label is False
    assert [bar["value"] for bar in openings["bars"]] == pytest.approx([voters / 2, voters / 4])
    assert openings["noise"][2] == [1.0, made.stages[OPENINGS].tally.deviation]
    assert [bar["value"] for bar in token["bars"]] == pytest.approx([0.75 * rows, rows / 8])
    sensitivity = made.mechanism.sensitivity(made.sampling.unit_rows).bound
    assert token["noise"][2] == [1.0, pytest.approx(sensitivity * made.mechanism.noise_multiplier)]


def test_the_picture_knows_less_noise_at_more_epsilon_and_needs_no_calibration_for_it(monkeypatch):
    made, other = (plan(recipe="both", shares=OPENED, epsilon=epsilon) for epsilon in (1.0, 0.3))
    monkeypatch.setattr(Plan, "calibrated", lambda self: pytest.fail("this takes seconds"))
    shown = picture(made, OF)["groups"]
    for group in shown:
        assert [epsilon for epsilon, _ in group["noise"]] == [0.1, 0.3, 1.0, 3.0, 10.0]
        assert [noise for _, noise in group["noise"]] == sorted({noise for _, noise in group["noise"]}, reverse=True)
    assert shown[0]["noise"][1] == [0.3, other.stages[OPENINGS].tally.deviation]


def test_step_2_draws_it_once_the_model_was_asked_and_asks_it_once(step: PrivacyStep, monkeypatch):
    session, model = step._app.session(TAB), SpeakingModel()
    confirm(session, DATASET)
    *_, last = step._recalculate(values(step), TAB)
    assert last[step.noise] is None
    lend(step, loader=type("Loader", (), {"model": lambda self: model, "speed": None})())
    assert step._expect(TAB)[step.noise]["epsilon"] == 1.0
    monkeypatch.setattr("dpicl_ui.privacy.cards.expected", lambda *_: pytest.fail("asked again"))
    assert step._expect(TAB)[step.noise] is not None
    *_, last = step._recalculate(values(step, epsilon=2.0), TAB)
    assert last[step.noise]["epsilon"] == 2.0
    *_, last = step._recalculate(values(step, epsilon=None), TAB)
    assert last[step.noise] is None
    assert session.of(ExpectationState).found is not None
