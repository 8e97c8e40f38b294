"""The screens of a run: its pictures, its pace, its score and its replay follow from its events, wherever these end."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpicl_ui.generate import replay as replays
from dpicl_ui.generate.cards import (
    RunPace,
    finished,
    of_hundred,
    outcome_of_run,
    score_card,
    score_of_run,
    time_card,
)
from dpicl_ui.generate.charts import (
    Bar,
    live,
    noisy_bars,
    openings_card,
    stages_card,
    visible,
    vote_card,
    words_card,
    writes,
)
from dpicl_ui.generate.replay import looked_back, replay_screen, replayed, screens
from mechanisms.accounting import PrivacyLedger
from mechanisms.demos.demo_set import ArmScore
from mechanisms.exports.certificate_page import label_of_facts
from mechanisms.noise import SecureRandomness
from mechanisms.records import Dataset, Record
from mechanisms.runs.events import (
    DemoStarted,
    PrivateDiagnostics,
    RunEvent,
    RunFailed,
    RunStopped,
    StageProgress,
    StageStarted,
    TokenReleased,
)
from mechanisms.runs.plan import plan_for
from mechanisms.runs.run import run
from mechanisms.runs.run_file import from_lines, to_lines
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, VOTE, WORDS, WRITE, RunSpec
from mechanisms.runs.stages.score import ScoreReleased
from mechanisms.runs.stages.words import Word
from mechanisms.runs.view import RunView, fold
from mechanisms.steps import mechanism_class, mechanism_names
from tests.ui.generate.recording import (
    CLEAN,
    CLEARED,
    DRAFTS,
    HOSTILE,
    LABELS,
    OPENED,
    SCORED,
    SHARES,
    STORIES,
    openings,
    recording,
    token,
    votes,
    words,
)
from tests.ui.tabs import tags, text_of
from tests.word_model import WordModel

TAGS = {
    "div", "span", "p", "h3", "h4", "ul", "li", "strong", "details", "summary", "dl", "dt", "dd", "table", "thead",
    "tbody", "tr", "th", "td",
}  # fmt: skip


def folded(events: Iterable[RunEvent]) -> RunView:
    return functools.reduce(fold, events, RunView())


def test_a_failure_says_why_and_what_is_kept():
    failed = RunFailed("The cap is reached.")
    assert outcome_of_run(fold(RunView(), failed)) == ("The cap is reached.", "bad")
    assert outcome_of_run(fold(folded(recording()[:-1]), failed))[0].endswith("What was released before is kept.")


def numbers(tree) -> list[float]:
    if isinstance(tree, dict):
        return [*tree.get("numbers", {}).values(), *(n for child in tree["children"] for n in numbers(child))]
    return [n for each in tree for n in numbers(each)] if isinstance(tree, list) else []


def trees(view: RunView) -> list:
    cards = (stages_card, openings_card, words_card, vote_card, score_of_run, finished)
    return [tree for card in cards for tree in card(view)]


@pytest.mark.parametrize("story", STORIES)
def test_every_beginning_of_a_story_is_a_screen(story):
    view = RunView()
    for event in STORIES[story]:
        view = fold(view, event)
        json.dumps(screens(view), allow_nan=False)
        assert tags(trees(view)) <= TAGS
        assert all(0 <= number <= 1 for number in numbers(trees(view)))
        pictures = (writes(view), openings_card(view), words_card(view), vote_card(view))
        assert sum(map(bool, pictures)) == 1, "one picture at a time"
    assert view.phase == "completed"


@given(st.sampled_from(sorted(STORIES)), st.integers(0, 40), st.lists(st.floats(0, 1), max_size=5), st.booleans())
def test_a_run_may_end_anywhere_and_progress_changes_nothing_that_lasts(story, place, done, fails):
    view = folded(STORIES[story][: 1 + place])
    seen = functools.reduce(fold, (StageProgress(VOTE, each) for each in done), view)
    end = RunFailed("The cap is reached.") if fails else RunStopped(view.demo_set)
    ended = fold(seen, end)
    json.dumps(screens(ended), allow_nan=False)
    assert ended.standing == view.standing
    assert ended.phase == ("failed" if fails else "stopped")
    assert outcome_of_run(ended)[0]


@pytest.mark.parametrize("story", STORIES)
def test_looking_back_shows_one_more_thing_with_every_step(story):
    events = STORIES[story]
    views = [view for _, view in looked_back(events)]
    assert len(views) >= 4
    seen = [json.dumps(screens(view)) for view in views]
    assert all(one != other for one, other in itertools.pairwise(seen))
    assert screens(views[-1]) == screens(replayed(events))


def marks(view: RunView) -> list[str]:
    return [each["class"].split()[1] for each in stages_card(view)[0]["children"]]


def test_stages_are_done_one_after_the_other():
    events = STORIES["vote"]
    seen = [marks(folded(events[: place + 1])) for place in range(len(events))]
    assert seen[0] == ["later"] * 5
    assert seen[1] == ["current", "later", "later", "later", "later"]
    assert seen[-2] == ["done", "done", "done", "done", "current"]
    assert seen[-1] == ["done"] * 5
    assert all(each.count("current") <= 1 for each in seen)
    assert marks(fold(folded(events[:2]), RunFailed("No.")))[0] == "later"


def test_what_the_gate_refused_is_counted_with_its_reason():
    view = folded(STORIES["refused"])
    assert "1 text was refused: it breaks off (1)." in text_of(finished(view))
    assert [each.label for each in view.standing] == ["News"]
    assert "refused" not in text_of(finished(folded(recording())))


def test_it_is_told_in_how_many_tokens_another_came_first_than_the_model_expected():
    said = outcome_of_run(folded(recording()))[0]
    assert "In 1 of 4 tokens your rows, or the noise, chose another" in said  # two have values, one another first
    assert said.endswith("step 5.")
    assert "the noise, chose" not in outcome_of_run(folded(STORIES["vote"]))[0]


# Openings, votes, label preferences and the score as they are shown: hostile text stays text, figures are rounded.

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


# Words.


def test_words_stand_with_the_noise_on_one_axis_and_a_label_without_any_says_so():
    shown = words_card(at(WORDS, words("both")))
    assert names(shown) == [each.word for each in CLEARED]
    tracks = [each["numbers"] for each in classes(shown, "noisy-bar")]
    errors = [each["numbers"] for each in classes(shown, "noisy-error")]
    for bar, error, each in zip(tracks, errors, CLEARED, strict=True):
        assert bar["from"] == 0
        assert bar["to"] / tracks[0]["to"] == pytest.approx(each.clears / CLEARED[0].clears, abs=1e-3)
        assert error["high"] - bar["to"] == pytest.approx(bar["to"] / each.clears, abs=1e-3), "one deviation"
    said = text_of(shown)
    assert "Sport No word exceeds the noise: only the label's name is used." in said
    assert said.count("Noise may have put a word here.") == 1


def test_words_of_all_labels_are_as_long_as_they_clear_the_noise():
    told = words("both")
    shown = words_card(at(WORDS, replace(told, words={**told.words, "Sport": (Word("goal", 6.2), *CLEARED[1:])})))
    ends = {name: bar["numbers"]["to"] for name, bar in zip(names(shown), classes(shown, "noisy-bar"), strict=True)}
    assert ends["goal"] == pytest.approx(ends["minister"] / 2, abs=1e-3)


def test_hostile_words_and_labels_stay_text():
    told = words("both", (Word(HOSTILE, 9.0), *CLEARED[1:]))
    hostile = {HOSTILE: told.words["News"], "Sport": ()}
    shown = words_card(at(WORDS, replace(told, words=hostile)))
    assert text_of(shown).count(HOSTILE) == 2
    assert "img" not in tags(shown)
    assert tags(shown) <= TAGS


def test_the_words_that_a_demonstration_is_asked_with_stand_beside_it():
    begun = after(*recording()[:2], DemoStarted("News", 1, "Just", ("minister", HOSTILE)))
    assert live(begun)["where"] == f"Writing: News, asked with words like minister and {HOSTILE}"
    assert live(after(*recording()[:3]))["where"] == "Writing: News"


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
    assert [name.split()[0] for name in rows[:5]] == ["Zero-shot", "Public", "This", "Directions", "The"]
    assert text_of(classes(shown, "few-rows")) == "Public only  30 to 71, too few rows"
    assert "with a correction that was measured on rows" in words
    assert "took no part in writing" in words
    bare = replace(scored().demo_set, stages=(), score=SCORED)
    assert "read alike" not in text_of(score_card(bare)), "without a calibration there is nothing to say of it"


@pytest.mark.parametrize(("gain", "better"), [((-0.2, -0.05), True), ((-0.2, 0.05), False), ((0.05, 0.2), False)])
def test_where_zero_shot_reads_better_it_is_said_in_one_sentence_with_the_readers_name(gain, better):
    words = text_of(score_of_run(scored(gains={"zero-shot": ArmScore(sum(gain) / 2, gain)})))
    assert ("toy reads these rows better without demonstrations" in words) is better
    assert words.count("exported anyway") == better


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
    view = scored(arms={**SCORED.arms, "demonstrations": ArmScore(0.8, (0.6, 0.9))})
    words = text_of(score_of_run(view))
    assert "Too few rows took part" in words
    assert "60 to 90, too few rows" in words
    assert "80" not in words
    lines = view.releases[SCORE].lines()
    assert [line for line in lines if "demonstrations" in line] == [
        "demonstrations: accuracy too few rows, between 60.0% and 90.0%"
    ]
    on_rows = next(
        each
        for each in label_of_facts(replace(view.demo_set, score=view.releases[SCORE].score))
        if "rows" in each.title and "own" in each.title
    )
    [own] = (each for each in on_rows.facts if each.name == "Demonstrations")
    assert own.value == "too few rows"
    assert "60.0% to 90.0%" in own.remark


def test_rows_that_took_part_in_the_writing_are_not_called_untouched():
    words = text_of(score_of_run(scored(held_out=False)))
    assert "took no part in writing" not in words
    assert "optimistic" in words


# The live screen's values follow from the view alone.


def after(*events) -> RunView:
    return functools.reduce(fold, events, RunView())


def place(number: int) -> RunView:
    """The recording's view with its `number`-th token."""
    return [view for event, view in looked_back(recording()) if isinstance(event, TokenReleased)][number - 1]


def with_token(*arguments, **changes) -> RunView:
    return after(*recording()[:3], token("News", 1, "x", *arguments, **changes))


def test_before_the_first_token_there_is_no_chart_and_the_opening_stands():
    assert live(RunView())["chart"] is None
    begun = live(after(*recording()[:3]))
    assert (begun["chart"], begun["text"] + begun["fresh"]) == (None, "Just")


def test_each_candidate_has_its_noisy_value_its_public_one_and_the_one_that_decided():
    chart = live(place(2))["chart"]
    assert chart["read"]
    assert [(bar["value"], bar["public"], bar["decided"]) for bar in chart["bars"]] == [
        (7.0, 3.0, 4.0),
        (2.0, 1.0, 2.0),
        (-1.5, 2.0, 1.0),
    ]
    far = live(with_token(values=(90.0, 0.0, -90.0)))["chart"]
    assert far["domain"] == [-90.0, 90.0], "what decided is on the axis"
    plain = live(place(1))["chart"]
    assert not plain["read"]
    assert {bar["decided"] for bar in plain["bars"]} == {None}


def test_hostile_tokens_stay_text():
    chart = live(place(1))["chart"]
    assert visible(HOSTILE) in {bar["token"] for bar in chart["bars"]}


def test_where_only_the_token_is_released_no_noisy_value_is_drawn():
    chart = live(with_token(scores=None))["chart"]
    assert not chart["noisy"]
    assert chart["noise"] is None
    assert [bar["value"] for bar in chart["bars"]] == [3.0, 2.0, 1.0]


def test_a_free_token_is_called_free_and_shows_no_noisy_value():
    paid, free = (live(with_token(scores=None, free=each)) for each in (False, True))
    assert paid["count"] == "token 1 of at most 3"
    assert free["count"] == "token 1 of at most 3, free"
    assert (paid["chart"]["free"], free["chart"]["free"]) == (False, True)
    assert not free["chart"]["noisy"]


def test_clean_values_appear_only_behind_the_curators_switch():
    view = place(1)
    assert all(bar["clean"] is None for bar in live(view)["chart"]["bars"])
    chart = live(fold(view, CLEAN))["chart"]
    assert chart["clean"]
    assert [bar["clean"] for bar in chart["bars"]] == [6.0, 1.0, 1.0]


# The picture of every mechanism, live and from a run file: the same but for what the curator's screen alone may show.

PRIVATE = [
    name
    for name in mechanism_names()
    if mechanism_class(name).uses_private_rows and not mechanism_class(name).not_private
]
ROWS = Dataset("d", ("a", "b"), tuple(Record(f"canary {i}", label) for label in "ab" for i in range(30)))


@pytest.mark.slow
@pytest.mark.usefixtures("any_text_passes")
@pytest.mark.parametrize("name", PRIVATE)
def test_a_run_shows_the_same_picture_live_and_from_its_file_but_for_clean_values(name):
    spec = RunSpec.of(recipe="tokens", sizes="counted", mechanism=name, subsets=12, tokens=5, shots=1)
    wanted = plan_for(spec, ROWS).calibrated()
    told = list(run(wanted, ROWS, WordModel(), PrivacyLedger(), SecureRandomness(), curator=True))
    view, cards = RunView(), []
    for event in told:
        view = fold(view, event)
        if isinstance(event, TokenReleased):
            cards.append(live(view)["chart"])
        elif isinstance(event, PrivateDiagnostics):
            assert live(view)["chart"]["clean"]
    saved = to_lines([event for event in told if not isinstance(event, PrivateDiagnostics)])
    looked = [live(view)["chart"] for event, view in looked_back(from_lines(saved)) if isinstance(event, TokenReleased)]
    key = json.dumps
    assert sorted(map(key, looked)) == sorted(map(key, cards)), "side by side, and one after the other"
    assert not any(card["clean"] for card in cards)


# How much of a run is left follows from its stages' forecasts and its progress, and is never nonsense.

STAGES = {OPENINGS: 5.0, WORDS: 5.0, WRITE: 60.0, VOTE: 20.0, CALIBRATE: 20.0, SCORE: 15.0}
WHOLE = sum(STAGES.values())


def before(stage: str) -> RunView:
    """A run whose stage has just begun."""
    events = STORIES["both"]
    return folded(events[: 1 + next(i for i, event in enumerate(events) if getattr(event, "stage", "") == stage)])


@pytest.mark.parametrize("pace", [0.5, 1.0, 2.0])
def test_a_steady_machine_is_foretold_the_better_the_more_it_has_done(pace):
    errors, passed = [], 0.0
    for stage, seconds in STAGES.items():
        left = (WHOLE - passed) * pace
        errors.append(abs(RunPace(0.0, STAGES).seconds_left(before(stage), passed * pace) - left) / (WHOLE * pace))
        passed += seconds
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(errors))
    assert errors[-1] < 0.05
    assert pace != 1.0 or max(errors) < 1e-9


def test_without_a_forecast_nothing_is_claimed_before_there_is_progress():
    assert RunPace(0.0).seconds_left(before(OPENINGS), 5.0) is None
    assert RunPace(0.0).seconds_left(before(VOTE), 40.0) == pytest.approx(40.0), "three of six stages are over"
    resumed = RunPace(0.0, before=0.5)
    assert resumed.seconds_left(before(VOTE), 40.0) is None
    assert resumed.seconds_left(before(CALIBRATE), 20.0) == pytest.approx(40.0)


def test_afterwards_it_stands_beside_the_forecast():
    view, pace = folded(STORIES["both"]), RunPace(0.0, {WRITE: 60.0})
    assert text_of(time_card(pace, view, 48.0)) == "Took 48 seconds; the forecast was about a minute."
    stopped = fold(before(VOTE), RunStopped(view.demo_set))
    assert "Stopped after 30 seconds; the whole run was forecast" in text_of(time_card(pace, stopped, 30.0))
    assert time_card(RunPace(), RunView(), 1.0) == []


@given(
    st.sampled_from(sorted(STORIES)),
    st.lists(st.floats(0, 1e4), min_size=40, max_size=40),
    st.one_of(
        st.just({}),
        st.lists(st.floats(1e-300, 1e5), min_size=6, max_size=6).map(lambda s: dict(zip(STAGES, s, strict=True))),
    ),
    st.floats(0, 1e5),
)
def test_no_story_at_any_pace_says_nonsense(story, gaps, foreseen, later):
    clock = itertools.accumulate(itertools.chain(gaps, itertools.repeat(1.0)))
    pace, view = RunPace(0.0, foreseen), RunView("waiting")
    for event in STORIES[story]:
        now, view = next(clock), fold(view, event)
        for seen in (now, now + later):
            remaining = pace.seconds_left(view, seen)
            assert remaining is None or (math.isfinite(remaining) and remaining >= 0)
            said = text_of(time_card(pace, view, seen))
            assert not any(each in said for each in (" 0 s", "-", "nan", "inf"))


# A replay's values: every place of a recording once, as its screens are, small, and plain JSON.


@pytest.mark.parametrize("story", STORIES)
def test_every_place_is_there_as_its_screens_are(story):
    made = replay_screen(STORIES[story])
    json.dumps(made, allow_nan=False)
    views = [view for _, view in looked_back(STORIES[story])]
    assert len(made["frames"]) == len(views)
    for frame, view in zip(made["frames"], views, strict=True):
        shown = {screen: made["parts"][screen][at] for screen, at in frame["at"].items()}
        live = {name: each for name, each in (shown.pop("live") or {}).items() if name != "tokens"} or None
        assert shown | {"live": live} == screens(view)
    assert len({frame["name"] for frame in made["frames"]}) > 1


@pytest.mark.parametrize("story", ["tokens", "both"])
def test_each_token_of_a_text_leads_to_its_place(story):
    made = replay_screen(STORIES[story])
    places = [event for event, _ in looked_back(STORIES[story])]
    pieces = [each for text in made["texts"] for each in text]
    tokens = [i for i, each in enumerate(places) if isinstance(each, TokenReleased)]
    assert [each["place"] for each in pieces if each["place"] is not None] == tokens
    assert "".join(each["text"] for each in made["texts"][0]) == f"Just one two{replays._SILENT}"
    for place, (event, frame) in enumerate(zip(places, made["frames"], strict=True)):
        if isinstance(event, TokenReleased):
            text = made["texts"][made["parts"]["live"][frame["at"]["live"]]["tokens"]]
            assert place in [each["place"] for each in text]


def test_a_free_token_and_the_opening_are_told_apart():
    events = [
        *recording()[:3],
        token("News", 1, "Just a", candidates=(" a", "b", "c"), free=True),
        token("News", 2, "Just a b", candidates=("a", " b", "c"), chosen=1),
    ]
    opening, free, paid = replay_screen(events)["texts"][0]
    assert opening == {"text": "Just", "place": None}
    assert (free["text"], free["free"], paid["text"], paid["free"]) == (" a", True, " b", False)


@given(st.lists(st.text(alphabet="ab �\n", max_size=6), min_size=1, max_size=6))
def test_whatever_the_texts_the_pieces_make_the_last_one(texts):
    opening = recording()[:3]
    events = [*opening, *(token("News", step, text) for step, text in enumerate(texts, 1))]
    pieces = replay_screen(events)["texts"][0]
    assert len([each for each in pieces if each["place"] is not None]) == len(texts)
    said = ["" if each["text"] == replays._SILENT else each["text"] for each in pieces]
    assert "".join(said) == texts[-1]


@pytest.mark.parametrize("story", STORIES)
def test_a_large_screen_is_cut_and_says_so(story, monkeypatch):
    """What is shown of it is its beginning."""
    whole = replay_screen(STORIES[story])
    size = len(json.dumps(whole["parts"]))
    monkeypatch.setattr(replays, "MOST_CHARACTERS", size // 2)
    made = replay_screen(STORIES[story])
    assert made["cut"]
    assert 0 < len(made["frames"]) < len(whole["frames"])
    assert made["frames"] == whole["frames"][: len(made["frames"])]
    assert len(json.dumps(made["parts"])) < size


def test_drafts_that_are_never_finished_are_looked_at_one_at_a_time():
    """Every draft in progress is gone through for each token, and a file may begin thousands."""
    begun = [recording()[0], *(DemoStarted("News", number) for number in range(1, 50))]
    assert len(replayed(begun).writing) == 1
