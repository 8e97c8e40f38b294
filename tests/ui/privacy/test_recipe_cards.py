"""A plan of stages in words, from declared numbers alone."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import gradio as gr
import pytest
from mechanisms.runs.advice import proposed
from mechanisms.runs.forecast import ModelSpeed
from mechanisms.runs.preview import Preview, preview
from mechanisms.runs.recipe import Division, Kind, Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest

from dpicl_ui.privacy.cards import outcome, roughly, stages_in_words, why_so_long
from dpicl_ui.privacy.settings import PRESETS, RecipeSettings, odds
from mechanisms.accounting import PrivacyTarget, best_guess
from mechanisms.records import default_template
from mechanisms.runs.stages.vote import Vote
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class
from tests.ui.trees import text_of

LABELS = ("a", "b")
HOSTILE = "<img src=x onerror=alert(1)>"


def request(size: int = 3000, score: bool = True, by_user: bool = False, labels=LABELS, **changes) -> RecipeRequest:
    sizes = dict.fromkeys(labels, size)
    recipe = proposed(Kind.VOTE, sizes, 1.0, score, **changes)
    return RecipeRequest(
        labels=labels,
        template=default_template(labels),
        recipe=recipe,
        target=PrivacyTarget(1.0, 1e-6),
        sizes=sizes,
        content="x",
        by_user=by_user,
    )


@pytest.mark.parametrize(
    ("count", "words"), [(0.4, "0"), (7.6, "8"), (96, "96"), (1560, "1,600"), (312.5, "310"), (99.7, "100")]
)
def test_numbers_are_rough(count, words):
    assert roughly(count) == words


def test_every_stage_says_who_is_asked_for_what():
    made = request()
    words = text_of(stages_in_words(made))
    for stage in made.recipe.stages:
        assert roughly(6000 * made.role(stage)) in words
    assert f"{made.recipe.drafts} drafts" in words
    assert "secret key" in words
    assert "At most" not in words


def test_without_a_score_none_is_told():
    assert "say how often" in text_of(stages_in_words(request()))
    assert "say how often" not in text_of(stages_in_words(request(score=False)))
    assert "Private score" not in text_of(outcome(preview(request(score=False))))


def test_where_epsilon_is_shared_all_rows_are_asked_and_the_score_is_not_called_untouched():
    made = request(division=Division.EPSILON)
    words = text_of(stages_in_words(made))
    assert f"All rows, for epsilon {made.epsilon(Stage.VOTE):.2g}" in words
    assert "nothing else" not in words
    assert "nothing else" in text_of(stages_in_words(request()))


def test_a_long_run_says_what_takes_so_long():
    made = preview(request())
    told = {
        seconds: "behind 2 demonstrations" in text_of(outcome(replace(made, seconds=seconds)))
        for seconds in (None, 60.0, 7200.0)
    }
    assert told == {None: False, 60.0: False, 7200.0: True}


def test_users_are_no_rows():
    words = text_of(stages_in_words(request(by_user=True)))
    assert "users at most" in words
    assert "rows" not in words


def test_the_outcome_tells_the_promise_the_noise_and_the_score():
    made = preview(request())
    words = text_of(outcome(made))
    assert made.guarantee in words
    assert f"± {Vote(made.request).tally.deviation:.2g}" in words
    assert "Private score" in words
    assert "known when the model is loaded" in words


@pytest.mark.parametrize("sizes", [(100, 100), (100, 900)])
def test_a_span_of_votes_has_two_ends(sizes):
    made = replace(request(), sizes=dict(zip(LABELS, sizes, strict=True)))
    [least, *most] = re.search(r"on average: ([\d,.]+)(?: to ([\d,.]+))?", text_of(outcome(preview(made)))).groups()
    assert most != [least]
    assert (most == [None]) == (sizes == (100, 100))


def test_hostile_labels_stay_text():
    def strings(tree):
        if isinstance(tree, str):
            yield tree
        else:
            for child in tree["children"]:
                yield from strings(child)

    shown = outcome(preview(request(20, labels=("a", HOSTILE))))
    assert all("attributes" not in tree or HOSTILE not in tree["attributes"].values() for tree in shown)
    assert any("votes, and the noise" in each for tree in shown for each in strings(tree))


def test_each_preset_has_a_title_and_what_it_gives():
    assert list(PRESETS) == [Kind.BOTH, Kind.VOTE, Kind.TOKENS]
    assert all(words.count("\n") == 1 for words in PRESETS.values())


async def built() -> RecipeSettings:
    with gr.Blocks():
        return RecipeSettings()


def test_a_proposal_by_hand_describes_itself():
    settings = asyncio.run(built())
    recipe = request().recipe
    filled = settings.filled(recipe)
    values = [filled.get(each) for each in settings.inputs]
    shares = dict(zip(Stage, values[-len(Stage) :], strict=True))
    assert {stage: share / 100 for stage, share in shares.items() if share} == pytest.approx(recipe.shares)
    assert set(filled) == set(settings.filled_in)


SPEED = ModelSpeed(position=0.003, row=0.003, step=0.05, together=128)


def foreseen(kind: Kind, labels: int, division: Division, score: bool) -> Preview:
    names = tuple(f"label {i}" for i in range(labels))
    template, target, sizes = default_template(names), PrivacyTarget(1.0, 1e-6), dict.fromkeys(names, 300)
    recipe = proposed(kind, sizes, 1.0, score, division)
    plan, mechanism = SamplingPlan(tokens=24), mechanism_class("gaussian")()
    writing = SynthesisRequest(
        labels=names,
        template=template,
        plan=plan,
        mechanism=mechanism,
        target=target,
        sizes=sizes,
        content="x",
        min_tokens=4,
    )
    written = writing if Stage.WRITE in recipe.shares else None
    return preview(
        RecipeRequest(
            labels=names, template=template, recipe=recipe, target=target, sizes=sizes, content="x", written=written
        ),
        SPEED,
    )


def seconds(preview: Preview) -> float:
    assert preview.seconds is not None
    return preview.seconds


@pytest.mark.parametrize("labels", [2, 20])
@pytest.mark.parametrize("division", Division)
@pytest.mark.parametrize("score", [True, False])
def test_what_is_said_to_make_a_long_run_shorter_does(labels: int, division: Division, score: bool):
    shown = foreseen(Kind.BOTH, labels, division, score)
    words, whole = why_so_long(replace(shown, seconds=4000.0)), seconds(shown)
    spared = whole - seconds(foreseen(Kind.BOTH, labels, division, score=False))
    assert ("without the private score" in words) == (spared > 0.05 * whole)
    if "vote on drafts alone" in words:
        assert seconds(foreseen(Kind.VOTE, labels, division, score)) < 0.9 * whole
    assert ("label names" in words) == (labels == 20)
    assert why_so_long(replace(shown, seconds=600.0)) == ""


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


def test_known_odds():
    assert share(PrivacyTarget(1.0, 1e-12)) == 0.732  # e / (1 + e) = .73106
    assert share(PrivacyTarget(100.0, 0.5)) == 1.0


def test_for_users_it_speaks_of_all_their_rows():
    target = PrivacyTarget(1.0, 1e-5)
    assert "all rows of one user are" in text_of(odds(target, True, False))
    assert "one row is" in text_of(odds(target, False, False))


def test_counts_that_were_declared_public_are_set_apart():
    target = PrivacyTarget(1.0, 1e-5)
    assert "declared public" in text_of(odds(target, False, True))
    assert "declared public" not in text_of(odds(target, False, False))
