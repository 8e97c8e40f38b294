"""Openings, votes, label preferences and the score as they are shown: hostile text stays text, figures are rounded."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

from dpicl_ui.generate.cards import of_hundred, score_card, score_of_run
from dpicl_ui.generate.charts import Bar, noisy_bars, openings_card, vote_card
from mechanisms.demos.demo_set import ArmScore
from mechanisms.runs.events import StageStarted
from mechanisms.runs.spec import OPENINGS, SCORE, VOTE
from mechanisms.runs.stages.score import ScoreReleased
from mechanisms.runs.view import RunView, fold
from tests.ui.generate.recording import DRAFTS, HOSTILE, LABELS, OPENED, SCORED, SHARES, STORIES, openings, votes
from tests.ui.trees import tags, text_of

ENDED = functools.reduce(fold, STORIES["both"], RunView())


def at(stage: str, event, kind: str = "both") -> RunView:
    """A run with one release."""
    return fold(fold(fold(RunView(), STORIES[kind][0]), StageStarted(stage)), event)


def classes(tree, wanted: str) -> list:
    if isinstance(tree, str):
        return []
    if isinstance(tree, list):
        return [found for each in tree for found in classes(each, wanted)]
    own = [tree] if wanted in tree.get("class", "").split() else []
    return own + classes(tree["children"], wanted)


def names(trees: list) -> list[str]:
    return [text_of(each) for each in classes(trees, "noisy-name")]


# Noisy bars.


def test_bars_and_their_noise_lie_on_one_axis():
    shown = noisy_bars([Bar("a", 20.0, best=True), Bar("b", -3.0), Bar("c", -0.2)], 2.0)
    axis = [each["numbers"] for each in classes(shown, "noisy-bar")]
    errors = [each["numbers"] for each in classes(shown, "noisy-error")]
    zero = axis[0]["from"]
    assert axis[1]["to"] == zero == axis[2]["to"]
    scale = (axis[0]["to"] - zero) / 20.0
    assert zero - axis[1]["from"] == pytest.approx(3.0 * scale, abs=1e-3)
    for error, bar, end in zip(errors, axis, ("to", "from", "from"), strict=True):
        assert 0 <= error["low"] <= bar[end] <= error["high"] <= 1
        assert error["high"] - error["low"] == pytest.approx(4.0 * scale, abs=1e-3)
    assert [text_of(each) for each in classes(shown, "noisy-number")] == ["20", "-3", "0"]
    assert [text_of(each).split()[0] for each in classes(shown, "chosen")] == ["a"]


# Openings.


def test_openings_stand_with_their_noise_and_the_used_ones_are_marked():
    shown = openings_card(at(OPENINGS, openings("both")))
    order = sorted(range(len(SHARES)), key=lambda i: -SHARES[i])
    assert names(shown) == [OPENED[i] for i in order]
    assert names(classes(shown, "chosen")) == [OPENED[0], OPENED[1], OPENED[2]]
    words = text_of(shown)
    assert "3 of 6 public openings" in words
    assert f"({openings('both').noise:.1f})" in words
    assert "img" not in tags(shown)


# The vote.


@pytest.mark.parametrize("kind", ["both", "vote"])
def test_votes_put_winners_first_and_say_who_wrote_what(kind):
    released = votes(kind, written=kind == "both")
    shown = vote_card(at(VOTE, released, kind))
    winners = len(released.ballots["News"].winners)
    assert len(classes(shown, "chosen")) == winners * len(LABELS)
    assert names(shown)[:winners][-1] == (HOSTILE if kind == "vote" else "News draft 2")
    assert text_of(shown).count("written by rows") == (2 if kind == "both" else 0)
    assert f"{DRAFTS} texts" in text_of(shown)
    assert "2 more with fewer votes." in text_of(shown)
    rest = [float(text_of(each)) for each in classes(shown, "noisy-number")][winners : DRAFTS - 2]
    assert rest == sorted(rest, reverse=True)


# The score.


def scored(**changes) -> RunView:
    return at(SCORE, ScoreReleased(replace(SCORED, **changes)))


@pytest.mark.parametrize(
    ("interval", "words"),
    [((0.714, 0.778), "71 to 78"), ((0.71, 0.78), "71 to 78"), ((0.0, 1.0), "0 to 100"), ((0.29, 0.57), "29 to 57")],
)
def test_intervals_are_rounded_outwards(interval, words):
    assert of_hundred(ArmScore(0.5, interval)) == words


def test_the_score_compares_the_set_with_the_two_others_and_the_largest_label():
    shown = score_of_run(ENDED)
    words = text_of(shown)
    assert "71 to 78 of 100 of your own rows; zero-shot, 60 to 68; the largest label, named every time, 50." in words
    rows = [text_of(row).split("  ")[0] for row in classes(shown, "range-row")]
    assert [name.split()[0] for name in rows[:4]] == ["Zero-shot", "Public", "This", "The"]
    assert text_of(classes(shown, "few-rows")) == "Public only  too few rows"
    assert "read alike" in words
    assert "took part in nothing" in words
    bare = replace(scored().demo_set, stages=(), score=SCORED)
    assert "read alike" not in text_of(score_card(bare)), "without a calibration there is nothing to say of it"


@pytest.mark.parametrize(("gain", "better"), [((-0.2, -0.05), True), ((-0.2, 0.05), False), ((0.05, 0.2), False)])
def test_where_zero_shot_reads_better_it_is_said_in_one_sentence_with_the_readers_name(gain, better):
    words = text_of(score_of_run(scored(gains={"zero-shot": ArmScore(sum(gain) / 2, gain)})))
    assert ("toy reads these rows better without demonstrations" in words) is better
    assert words.count("exported all the same") == better


@pytest.mark.parametrize(("largest", "better"), [(620, True), (740, False), (900, False)])
def test_a_score_stands_beside_naming_the_largest_label_every_time(largest, better):
    view = scored()
    held = view.demo_set.certificate
    sizes = dict(zip(LABELS, (largest, 1000 - largest), strict=True))
    made = replace(view.demo_set, certificate=replace(held, parameters={**held.parameters, "sizes": sizes}))
    words = text_of(score_of_run(replace(view, demo_set=made)))
    assert f"the largest label, named every time, {largest // 10}." in words
    assert ("does not show that the set is better" in words) != better


def test_a_wide_interval_is_no_claim():
    assert [ArmScore(0.5, (0.4, high)).wide for high in (0.59, 0.61)] == [False, True]
    words = text_of(score_of_run(scored(arms={**SCORED.arms, "demonstrations": ArmScore(0.8, (0.6, 0.9))})))
    assert "Too few rows took part" in words
    assert "60 to 90" not in words


def test_rows_that_took_part_in_the_writing_are_not_called_untouched():
    words = text_of(score_of_run(scored(held_out=False)))
    assert "took part in nothing" not in words
    assert "optimistic" in words
