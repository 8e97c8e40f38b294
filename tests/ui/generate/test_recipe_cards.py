"""The vote, the choice and the score as they are shown: hostile text stays text, figures are rounded and say enough."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dpicl_ui.generate.cards import OWN, of_hundred, score_card
from dpicl_ui.generate.charts import MOST_DRAFTS, choice_card, vote_card
from dpicl_ui.generate.run_view import RecipeView, replay_recipe
from mechanisms.demos.findings import ArmScore, Choice
from mechanisms.exports.export_format import Released, format_named
from mechanisms.exports.provenance import scored_facts
from mechanisms.runs.events import ChoiceReleased, ScoreReleased
from mechanisms.runs.judging import Correction
from mechanisms.runs.recipe import Stage
from mechanisms.tallies import Weighing
from tests.ui.generate.recipe_recording import (
    SCORE,
    STORIES,
    VOTING,
    drafts,
    started,
    voted,
    votes,
)
from tests.ui.generate.recording import HOSTILE, LABELS
from tests.ui.test_drawing import tags
from tests.ui.trees import text_of


def ballot(*events) -> dict:
    return vote_card(replay_recipe([*voted()[:2], *events]))


def test_before_the_vote_drafts_stand_in_the_order_of_the_ballot():
    assert ballot()["rows"] == []
    assert "without the data" in ballot()["hint"]
    shown = ballot(drafts("News", 1))
    assert shown["where"] + shown["label"] + shown["round"] == "To be voted on: News, round 1 of 2"
    assert (shown["count"], shown["axis"]) == ("14 drafts", "2 more drafts not shown")
    assert [row["text"] for row in shown["rows"]] == list(drafts("News", 1).drafts[:MOST_DRAFTS])
    assert all(row["vote"] is None and row["from"] == row["to"] for row in shown["rows"])
    assert shown["band"] is None


def test_votes_put_winners_first_and_keep_every_drafts_key():
    before, after = ballot(drafts("News", 1)), ballot(drafts("News", 1), votes("News", 1))
    assert [row["winner"] for row in after["rows"]] == [True, True] + [False] * (MOST_DRAFTS - 2)
    assert after["rows"][0]["text"] == "News draft 3 of round 1"
    rest = [row["vote"] for row in after["rows"][2:]]
    assert rest == sorted(rest, reverse=True)
    texts = {row["key"]: row["text"] for row in before["rows"]}
    assert all(texts.get(row["key"], row["text"]) == row["text"] for row in after["rows"])
    assert len({row["key"] for row in after["rows"]}) == MOST_DRAFTS
    assert after["noise"] == "noise: ±1.4 votes (one standard deviation)"
    assert "; 2 more drafts not shown" in after["axis"]


def test_bars_and_the_noise_band_lie_on_one_axis():
    shown = ballot(drafts("News", 1), votes("News", 1))
    low, high = shown["band"]
    assert 0 <= low < shown["zero"] < high <= 1
    assert high - shown["zero"] == pytest.approx(shown["zero"] - low, abs=1e-3)
    for row in shown["rows"]:
        assert 0 <= row["from"] <= row["to"] <= 1
        assert (row["from"] if row["vote"] > 0 else row["to"]) == shown["zero"]
    scale = [(row["to"] - row["from"]) / abs(row["vote"]) for row in shown["rows"] if abs(row["vote"]) > 10]
    assert scale[0] == pytest.approx((high - shown["zero"]) / votes("News", 1).noise, rel=1e-2)


def test_winners_that_are_not_shown_are_counted():
    shown = ballot(drafts("News", 1, 20), votes("News", 1, 20, tuple(range(15))))
    assert "8 more drafts not shown, 3 of them among the winners" in shown["axis"]


def test_no_draft_and_no_vote_is_no_defect():
    shown = ballot(drafts("News", 1, 1), replace(votes("News", 1, 1, (0,)), votes=(0.0,), noise=0.0))
    assert shown["band"] == [0.0, 0.0]
    assert [row["vote"] for row in shown["rows"]] == [0.0]


def test_the_vote_gives_way_to_the_choice():
    view = replay_recipe(voted())
    assert vote_card(view) is None
    assert vote_card(replay_recipe(STORIES["short"])) is not None
    assert vote_card(replay_recipe([started(VOTING)])) is None


def strings(value) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in strings(each)]
    return [value] if isinstance(value, str) else []


def test_hostile_drafts_stay_whole_and_text():
    shown = ballot(drafts("News", 1), votes("News", 1))
    assert HOSTILE in [row["text"] for row in shown["rows"]]
    assert all(HOSTILE not in text or text == HOSTILE for text in strings(shown))


def test_hostile_names_stay_text():
    view = replay_recipe(voted())
    sets = tuple(replace(each, name=HOSTILE) if each.name == "voted 2" else each for each in view.sets)
    score = replace(SCORE, arms={**SCORE.arms, HOSTILE: ArmScore(0.5, (0.45, 0.55))})
    hostile = replace(view, sets=sets, score=score)
    for tree in (choice_card(hostile), score_card(hostile)):
        assert HOSTILE in text_of(tree)
        assert "img" not in tags(tree)


def classes(tree, wanted: str) -> list:
    if isinstance(tree, str):
        return []
    if isinstance(tree, list):
        return [found for each in tree for found in classes(each, wanted)]
    own = [tree] if wanted in tree.get("class", "").split() else []
    return own + classes(tree["children"], wanted)


def test_the_ladder_keeps_the_public_order_and_marks_one_rung():
    events = voted()
    for count in range(len(events)):
        rungs = classes(choice_card(replay_recipe(events[: count + 1])), "rung")
        names = [text_of(rung).split(" ")[0] for rung in rungs]
        assert names in ([], ["No", "Public", "Voted", "Voted"])
    shown = choice_card(replay_recipe(events))
    assert [text_of(rung) for rung in classes(shown, "chosen")] == [
        "Voted 1 2 demonstrations; leans to News, 60% Chosen, read with the measured prior"
    ]
    assert "Nothing is known of the others' order" in text_of(shown)


@pytest.mark.parametrize("correction", Correction)
def test_whichever_correction_won_the_export_is_read_with_the_measured_prior(correction):
    view = replay_recipe(voted(("voted 1", str(correction))))
    [rung] = classes(choice_card(view), "chosen")
    assert "measured prior" in text_of(rung)
    assert ("empty queries" in text_of(rung)) == (correction is Correction.CONTEXTUAL)
    assert view.run.demo_set.prior is not None


def test_certificate_and_screen_say_in_one_word_what_the_choice_was_among():
    told = "among 12: 4 sets, each read in 3 ways"
    arms = tuple((name, str(how)) for name in "abcd" for how in list(Correction)[:3])
    view = replay_recipe(voted())
    made = view.run.demo_set
    stated = made.certificate.parameters | {"sizes": dict.fromkeys(LABELS, 90)}
    sized = replace(made, certificate=replace(made.certificate, parameters=stated))
    known = replace(view, run=replace(view.run, demo_set=sized))
    assert f"The choice is {told}." in text_of(choice_card(replace(known, choice=None)))
    assert f"Chosen {told}." in text_of(choice_card(replace(known, choice=ChoiceReleased(arms, arms[0]))))
    chosen = replace(sized, choice=Choice(12, "voted 1", "prior"))
    [page] = format_named("certificate").write(Released("", chosen, "0" * 64)).values()
    assert f"voted 1, chosen {told}" in page


def test_a_run_without_a_choice_counts_no_arms_of_one():
    view = replay_recipe(voted())
    without = replace(view, choice=None, stages=tuple(each for each in view.stages if each is not Stage.CHOOSE))
    assert "makes no choice" in text_of(choice_card(without))
    assert "each read in" not in text_of(choice_card(without))


@pytest.mark.parametrize(
    ("sizes", "weighing", "said"),
    [
        ((90, 90), Weighing.ROWS, "all labels have equally many rows: these are balanced accuracies too"),
        ((90, 70), Weighing.ROWS, "balanced accuracy, in which each label counts the same, was not measured"),
        ((90, 9), Weighing.LABELS, "balanced accuracies, and always naming one label is no better than chance"),
    ],
)
def test_beside_a_private_score_stands_what_it_says_of_balanced_accuracy(sizes, weighing, said):
    view = replay_recipe(voted())
    certificate = replace(view.run.demo_set.certificate, parameters={"sizes": dict(zip(LABELS, sizes, strict=True))})
    made = replace(view.run.demo_set, certificate=certificate, score=replace(view.score, weighing=weighing))
    assert said in text_of(score_card(replace(view, score=made.score, run=replace(view.run, demo_set=made))))
    facts = " ".join(f"{each.name} {each.remark}" for each in scored_facts(made))
    assert "balanced accuracy" in facts
    assert weighing is Weighing.LABELS or said in facts


def test_before_the_choice_no_rung_is_marked():
    view = replace(replay_recipe(voted()), choice=None)
    assert classes(choice_card(view), "chosen") == []
    assert "others' order" not in text_of(choice_card(view))


@pytest.mark.parametrize(
    ("interval", "words"),
    [((0.714, 0.778), "71 to 78"), ((0.71, 0.78), "71 to 78"), ((0.0, 1.0), "0 to 100"), ((0.29, 0.57), "29 to 57")],
)
def test_intervals_are_rounded_outwards(interval, words):
    assert of_hundred(ArmScore(0.5, interval)) == words


def test_the_score_says_what_it_is_and_where_it_says_nothing():
    shown = score_card(replay_recipe(voted()))
    words = text_of(shown)
    assert "71 to 78 of 100 of your own rows; zero-shot, 60 to 68." in words
    names = [text_of(row).split(" ")[0] for row in classes(shown, "range-row")]
    assert names == ["Zero-shot", "Public", "Demonstrations", "0"]
    assert text_of(classes(shown, "few-rows")) == "Public only  too few rows"
    assert "took no part" in words


@pytest.mark.parametrize(("largest", "better"), [(620, True), (740, False), (900, False)])
def test_a_score_stands_beside_naming_the_largest_label_every_time(largest, better):
    view = replay_recipe(voted())
    held = view.run.demo_set.certificate
    sizes = dict(zip(view.labels, (largest, 1000 - largest), strict=True))
    held = replace(held, parameters={**held.parameters, "sizes": sizes})
    made = replace(view.run.demo_set, certificate=held)
    assert made.majority == (view.labels[0], largest / 1000)
    words = text_of(score_card(replace(view, run=replace(view.run, demo_set=made))))
    assert f"the largest label, named every time, {largest // 10}." in words
    assert ("does not show that the set is better" in words) != better


def test_a_wide_interval_is_no_claim():
    assert [ArmScore(0.5, (0.4, high)).wide for high in (0.59, 0.61)] == [False, True]
    arms = {**SCORE.arms, "demonstrations": ArmScore(0.8, (0.6, 0.9))}
    words = text_of(score_card(RecipeView(score=replace(SCORE, arms=arms))))
    assert "Too few rows took part" in words
    assert "60 to 90" not in words


def test_rows_that_took_part_in_the_choice_are_not_called_untouched():
    words = text_of(score_card(RecipeView(score=replace(SCORE, held_out=False))))
    assert "took no part" not in words
    assert "optimistic" in words


def test_the_score_says_that_its_baselines_are_worse_off_where_a_set_of_its_own_is_exported():
    baselines = {name: arm for name, arm in SCORE.arms.items() if name != OWN}
    assert OWN in SCORE.arms
    assert "corrected less finely" in text_of(score_card(RecipeView(score=SCORE)))
    assert "corrected less finely" not in text_of(score_card(RecipeView(score=replace(SCORE, arms=baselines))))


def test_without_a_score_nothing_is_shown():
    events = [event for event in voted() if not isinstance(event, ScoreReleased)]
    assert score_card(replay_recipe(events)) == []


def test_figures_are_rounded():
    for view in (replay_recipe(voted()[:6]), replay_recipe(voted())):
        for text in [*strings(choice_card(view)), *strings(score_card(view)), *strings(vote_card(view) or {})]:
            assert not re.search(r"\d\.\d\d", text)
    assert all(round(row["vote"], 1) == row["vote"] for row in ballot(drafts("News", 1), votes("News", 1))["rows"])
