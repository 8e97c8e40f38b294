"""Step 2 without a page: presets, proposals and what is told of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from dpicl_ui.privacy.form import PrivacyForm
from mechanisms.runs.advice import proposed
from mechanisms.runs.recipe import Division, Kind, Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest

from dpicl_ui.data.state import Confirmed, DataState
from dpicl_ui.privacy.state import PrivacyState
from dpicl_ui.privacy.step import PrivacyStep
from mechanisms.demos.demo_set import Answers
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, Record
from mechanisms.runs.defaults import MOST_WRITTEN_LABELS
from tests.ui.generate.test_answered import confirm_answered
from tests.ui.generate.test_records import SCHEMA, confirm_records
from tests.ui.privacy.test_form import DATASET, TOKENS, VALUES
from tests.ui.tabs import confirm, downloaded
from tests.ui.trees import text_of

pytestmark = pytest.mark.slow

TAB: Any = SimpleNamespace(username=None, session_hash="tab")
VOTE = [*VALUES[: -len(TOKENS)], "vote", False, *TOKENS[2:]]


def recalculated(step: PrivacyStep, values: list[Any]) -> dict[Any, Any]:
    *_, last = step._recalculate(TAB, *values)
    return last


def test_the_form_reads_the_pages_components_as_they_are_at_first(step: PrivacyStep):
    form = PrivacyForm.read(*(each.value for each in step.form))
    assert form.recipe.kind == Kind.BOTH
    assert form.recipe.score
    assert form.recipe.stages is None
    assert (form.delta, form.max_record_tokens) == (1e-5, 64)


def test_a_vote_is_planned_and_told(step: PrivacyStep):
    session = step._app.session(TAB)
    confirm(session, DATASET)
    shown = recalculated(step, VOTE)
    planned = session.of(PrivacyState).planned
    assert planned is not None
    assert isinstance(planned.request, RecipeRequest)
    assert "vote for the one" in text_of(shown[step.recipe.words])
    assert planned.preview.guarantee in text_of(shown[step.outcome])
    assert "this run" in text_of(shown[step.budget])


def test_a_refused_plan_is_not_told(step: PrivacyStep):
    confirm(step._app.session(TAB), DATASET)
    shown = recalculated(step, [*VALUES[: -len(TOKENS)], "vote", False, True, *TOKENS[3:]])
    assert shown[step.recipe.words] == []
    assert "needs a share" in text_of(shown[step.outcome])


@pytest.mark.parametrize("kind", [Kind.VOTE, Kind.BOTH])
@pytest.mark.parametrize("division", [None, *Division])
def test_by_hand_begins_with_the_proposal_and_can_be_run_at_once(step: PrivacyStep, kind: Kind, division):
    confirm(step._app.session(TAB), DATASET)
    filled = step._propose(TAB, kind.value, False, True, 1.0, 1, division)
    shares = [filled[each] / 100 for each in step.recipe.shares]
    wanted = proposed(kind, DATASET.counted_sizes(), 1.0, True, division)
    assert shares == pytest.approx([wanted.shares.get(stage, 0.0) for stage in Stage], abs=1e-4)
    assert sum(shares) <= 1 + 1e-9
    values = [filled.get(each, each.value) for each in step.recipe.inputs]
    made = PrivacyForm.read(*VALUES[: -len(TOKENS)], kind.value, False, True, *values[3:])
    assert made.spec(DATASET).staged(DATASET).recipe.division is wanted.division


@pytest.mark.parametrize("by_hand", [False, True])
def test_without_a_data_set_nothing_is_proposed(step: PrivacyStep, by_hand: bool):
    assert set(step._propose(TAB, "vote", False, by_hand, 1.0, 1)) == {step.recipe.own}
    assert set(step._propose(TAB, "vote", False, by_hand, 1.0, 1, "roles")) == {step.recipe.own}


def test_new_data_forgets_what_was_set_by_hand(step: PrivacyStep):
    confirm(step._app.session(TAB), DATASET)
    assert step._suggest(TAB)[step.recipe.by_hand] is False


def test_fields_are_called_as_step_1_says_until_step_2_says_otherwise(step: PrivacyStep):
    session = step._app.session(TAB)
    confirm(session, DATASET)
    shown = step._suggest(TAB, "", "")
    assert (shown[step.text_name], shown[step.label_name].value) == ("Text", "Label")
    confirm(session, DATASET)  # the same names again: what was typed here since is later
    shown = step._suggest(TAB, "Tweet", "Label")
    assert (shown[step.text_name], shown[step.label_name].value) == ("Tweet", "Label")
    assert shown[step.instruction].startswith("Classify each tweet as")
    state = session.of(DataState)
    for names in (("Review", "Mood"), ("Text", "Label")):  # step 1 again is later than that
        state.call(names)
        state.confirm(Confirmed(state.columns, DATASET))
        shown = step._suggest(TAB, "Tweet", "Label")
        assert (shown[step.text_name], shown[step.label_name].value) == names
        assert shown[step.instruction].startswith(f"Classify each {names[0].lower()} as")
    confirm(session, replace(DATASET, name="another"))
    assert step._suggest(TAB, "Tweet", "Mood")[step.text_name] == "Text"


def test_records_leave_no_choice_of_a_recipe_and_texts_have_it_again(step: PrivacyStep):
    session = step._app.session(TAB)
    confirm_records(session)
    shown = step._suggest(TAB)
    assert (shown[step.recipe.kind].value, shown[step.recipe.kind].interactive) == ("tokens", False)
    assert "know no schemas" in text_of(shown[step.recipe.closed])
    assert not shown[step.best_of].visible
    assert shown[step._by_token].visible
    assert shown[step.instruction] == "Write one JSON record of the given kind."
    told = recalculated(step, [*VALUES[:12], shown[step.instruction], "JSON record", "Kind", *VALUES[15:]])
    planned = session.of(PrivacyState).planned
    assert isinstance(planned.request, SynthesisRequest)
    assert (planned.request.schema, planned.request.min_tokens) == (SCHEMA, 0)
    assert planned.preview.guarantee in text_of(told[step.outcome])
    confirm(session, DATASET)
    shown = step._suggest(TAB)
    assert (shown[step.recipe.kind].value, shown[step.recipe.kind].interactive) == ("both", True)
    assert shown[step.recipe.closed] == []
    assert step.recipe.kind not in step._suggest(TAB)  # what was chosen since stays


def test_many_labels_are_voted_for_and_few_are_written_again(step: PrivacyStep):
    session = step._app.session(TAB)
    labels = tuple(f"intent {i}" for i in range(MOST_WRITTEN_LABELS + 1))
    for few, kind in ((False, "vote"), (True, "both"), (False, "vote")):
        named = labels[:-1] if few else labels
        confirm(
            session, Dataset("intents", named, [Record(f"text {i} of {each}", each) for each in named for i in (1, 2)])
        )
        shown = step._suggest(TAB)
        assert (shown[step.recipe.kind].value, shown[step.recipe.kind].interactive) == (kind, True)
        assert bool(shown[step.recipe.closed]) is (kind == "vote"), "why the vote is proposed"
        assert step.recipe.kind not in step._suggest(TAB), "what was chosen since stays"


def test_texts_with_answers_are_written_by_token_for_what_the_tokens_cost(step: PrivacyStep):
    session = step._app.session(TAB)
    confirm_answered(session)
    shown = step._suggest(TAB)
    assert (shown[step.recipe.kind].value, shown[step.recipe.kind].interactive) == ("tokens", False)
    assert "know no answers" in text_of(shown[step.recipe.closed])
    assert not shown[step.best_of].visible
    assert shown[step.answers.body].visible
    assert (shown[step.label_name].value, shown[step.label_name].label) == ("Answer", "Name of the answer field")
    assert shown[step.instruction] == "Give the answer of each question."
    named = [*VALUES[:12], shown[step.instruction], "Question", "Answer"]
    told = recalculated(step, [*named, *VALUES[15:]])
    own = session.of(PrivacyState).planned
    assert (own.request.template.output, own.request.outputs.charged) == ("Answer", 2)
    assert own.request.min_tokens == own.request.plan.tokens - 2
    assert own.preview.guarantee in text_of(told[step.outcome])
    recalculated(step, [*named, Answers.MODEL.value, *VALUES[16:]])
    model = session.of(PrivacyState).planned
    assert (model.request.outputs.charged, model.request.outputs.shown) == (0, 0)
    assert model.claim == own.claim
    assert model.request.mechanism == own.request.mechanism


def test_an_answer_that_leaves_no_token_to_its_text_is_refused_in_one_line(step: PrivacyStep):
    confirm_answered(step._app.session(TAB))
    told = recalculated(step, [*VALUES[:12], "Answer.", "Question", "Answer", "private", VALUES[7], *VALUES[17:]])
    assert "none is left for the text" in text_of(told[step.outcome])
    told = recalculated(step, [*VALUES[:12], "Answer.", "Question", "Question", *VALUES[15:]])
    assert "needs a name of its own" in text_of(told[step.outcome])


def test_texts_with_labels_have_their_choices_again_after_texts_with_answers(step: PrivacyStep):
    session = step._app.session(TAB)
    confirm_answered(session)
    step._suggest(TAB)
    confirm(session, DATASET)
    shown = step._suggest(TAB)
    assert (shown[step.recipe.kind].value, shown[step.recipe.kind].interactive) == ("both", True)
    assert not shown[step.answers.body].visible
    assert shown[step.label_name].label == "Name of the label field"


def test_the_settings_of_a_planned_run_are_a_file_without_the_place_of_its_model(step: PrivacyStep):
    session, own = step._app.session(TAB), step.settings
    confirm(session, DATASET)
    with pytest.raises(UsageError, match="No run with these settings"):
        own.saved(TAB)
    recalculated(step, VOTE)
    shown = own.saved(TAB)
    assert "recipe: vote" in downloaded(shown[own.sink])
    assert "\nmodel:" not in downloaded(shown[own.sink])  # "none" is no listed model: it may be a path
    assert "charged as one of its own" in text_of(shown[own.notice])
    step._app.loader.name = "embedded"
    assert "\nmodel: embedded\n" in downloaded(own.saved(TAB)[own.sink])
