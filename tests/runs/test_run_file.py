"""Run files: what was released comes back, nothing else is in them, and whatever else is loaded is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness
from mechanisms.runs import run_file
from mechanisms.runs.events import (
    DemoCompleted,
    DemoStarted,
    Drafting,
    PrivateDiagnostics,
    RunCompleted,
    RunFailed,
    RunStarted,
    RunStopped,
    SetsCompared,
    SetSoFar,
    StageProgress,
    StageStarted,
    TokenReleased,
)
from mechanisms.runs.run_file import from_lines, to_lines
from mechanisms.runs.stages.calibrate import PriorsReleased
from mechanisms.runs.stages.openings import OpeningsReleased
from mechanisms.runs.stages.score import ScoreReleased
from mechanisms.runs.stages.vote import VotesReleased
from mechanisms.runs.stages.words import WordsReleased
from mechanisms.runs.view import one_by_one
from tests.runs.running import KINDS, SECRET, alone, begun, data, file_of, planned, recorded, rows, told

pytestmark = pytest.mark.slow

LEDGER = (RunStarted, RunCompleted)


def without_ledger(events: Any) -> list[Any]:
    """Without what no file holds: the ledger's state, and the set before it was final."""
    kept = (each for each in events if not isinstance(each, SetSoFar))
    return [replace(each, budget=None) if isinstance(each, LEDGER) else each for each in kept]


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_comes_back_as_it_was_told(kind):
    read, events = from_lines(file_of(kind)), without_ledger(recorded(kind))
    assert read[1:] == events[1:]
    assert replace(read[0], demo_set=None) == replace(events[0], demo_set=None)
    assert read[0].demo_set.demonstrations == ()
    assert (read[0].demo_set.words, read[0].demo_set.directions) == (None, None)
    assert read[0].demo_set.certificate == events[0].demo_set.certificate
    assert to_lines(read) == file_of(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_in_it_but_what_was_released(kind):
    text, everything = file_of(kind), told(kind)
    assert not SECRET.search(text)
    private = [each for each in everything if isinstance(each, PrivateDiagnostics | StageProgress)]
    assert private, "the test shows nothing"
    assert to_lines([each for each in everything if not isinstance(each, Drafting)]) == text  # had they been recorded
    numbers = [number for each in private for number in getattr(each, "clean", ()) if number != round(number, 3)]
    assert [number for number in numbers if repr(number) in text] == []
    # Of fields alone: noise may release the public word "time".
    for word in ("budget", "clean_", "cap", "done", "time", "seconds", "remaining"):
        assert not re.search(rf'"{word}[^"]*":', text), word


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_run_comes_back_wherever_it_was_stopped(kind):
    events, made = recorded(kind), recorded(kind)[0].demo_set
    for place, event in enumerate(events[:-1]):
        if isinstance(event, SetSoFar):
            made = event.demo_set
            continue  # what it is kept for is told next
        end = RunStopped(made)
        assert from_lines(to_lines([*events[: place + 1], end]))[-1] == end


@pytest.mark.parametrize(
    "part", [lambda told: [], lambda told: told[:-1], lambda told: [*told[:-1], RunFailed("no")], lambda told: told[1:]]
)
def test_a_run_that_did_not_end_well_has_no_file(part):
    with pytest.raises(UsageError, match="no run to save"):
        to_lines(part(list(recorded("alone"))))


def test_a_run_without_privacy_has_no_file():
    *events, end = recorded("alone")
    certificate = replace(end.demo_set.certificate, private=False, reason="no noise")
    bare = replace(end, demo_set=replace(end.demo_set, certificate=certificate))
    with pytest.raises(UsageError, match="not private"):
        to_lines([*events, bare])
    with pytest.raises(UsageError, match="line 1: This run is not private"):
        from_lines(edited("alone", 0, lambda head: head["demo_set"]["privacy"].update(private=False, reason="x")))


def edited(kind: str, line: int, change: Callable[[Any], object]) -> str:
    lines = file_of(kind).splitlines()
    document = json.loads(lines[line])
    change(document)
    lines[line] = json.dumps(document)
    return "\n".join(lines) + "\n"


def place_of(kind: str, wanted: type) -> int:
    return next(i for i, event in enumerate(without_ledger(recorded(kind))) if isinstance(event, wanted))


TOKEN = place_of("alone", TokenReleased)
OPENINGS, WORDS, VOTES, SETS, PRIORS, SCORE = (
    place_of("vote", each)
    for each in (OpeningsReleased, WordsReleased, VotesReleased, SetsCompared, PriorsReleased, ScoreReleased)
)  # fmt: skip


def with_ballot(**fields: Any) -> Callable[[Any], object]:
    return lambda line: line["ballots"]["red"].update(fields)


ARM = {"accuracy": 0.5, "interval": [0.0, 1.0]}


def with_direction(of: Callable[[list[float]], list[float]]) -> Callable[[Any], object]:
    """Of the first label, in the set and nowhere else."""

    def change(head: Any) -> None:
        vectors = head["demo_set"]["directions"]["vectors"]
        vectors["red"] = of(vectors["red"])

    return change


def with_text(text: str) -> Callable[[Any], object]:
    return lambda head: head["demo_set"]["demonstrations"][0].update(text=text)


def with_fields(**fields: Any) -> Callable[[Any], object]:
    return lambda line: line.update(fields)


@pytest.mark.parametrize(
    ("kind", "line", "change", "message"),
    [
        ("alone", 0, with_fields(format="dpicl-run/3"), "format"),
        ("alone", 0, with_fields(format="dpicl-run/1"), "older version is not read: make it anew"),
        ("alone", 0, with_fields(more=1), "other fields"),
        ("alone", 0, with_fields(demo_set=[]), "line 1"),
        ("alone", 0, with_fields(unfinished="0" * 32), "has not ended"),
        ("alone", TOKEN, with_fields(scores=[1.0]), "values that are not"),
        ("alone", TOKEN, with_fields(chosen=8), "no candidate"),
        ("alone", TOKEN, with_fields(step=2), "out of its turn"),
        ("alone", TOKEN, with_fields(label="z"), "out of its turn"),
        ("alone", TOKEN, with_fields(clean=[1.0]), "clean"),
        ("alone", TOKEN, with_fields(scores=["1"] * 8), "scores/0"),
        ("alone", TOKEN, with_fields(event="completed"), f"line {TOKEN + 1}"),
        ("alone", TOKEN, with_fields(label="x" * 501), "label"),
        ("alone", TOKEN, with_fields(candidates=["x"] * 9, public=[1.0] * 9, scores=None, values=None), "more cand"),
        ("alone", -1, with_fields(event="token"), "field required"),
        ("vote", WORDS, lambda line: line["noise"].update(red=1e-9), "noise that is not the certificate's"),
        ("vote", WORDS, lambda line: line["directions"].pop("red"), "directions"),
        ("vote", WORDS, lambda line: line["words"].pop("red"), "words of other labels"),
        ("vote", WORDS, lambda line: line["words"].update(red=[{"word": "zyzzyva", "clears": 9.0}] * 3), "public list"),
        ("vote", WORDS, lambda line: line["words"].update(red=[{"word": "x", "clears": -1.0}]), "clears"),
        ("vote", WORDS, with_fields(middle=[2.0]), "unit vectors"),
        ("vote", WORDS, with_fields(clean=[1.0]), "clean"),
        ("vote", 0, with_direction(lambda of: [-each for each in of]), "not those that were released"),
        ("vote", 0, lambda head: head["demo_set"]["words"].update(red=["heart"] * 3), "not those that were released"),
        ("vote", 0, lambda head: head["demo_set"].pop("directions"), "not those that were released"),
        ("vote", VOTES, with_ballot(winners=[0, 0]), "not those of the ballot"),
        ("vote", VOTES, with_ballot(winners=[99]), "not those of the ballot"),
        ("vote", VOTES, with_ballot(votes=[]), "votes"),
        ("vote", VOTES, with_ballot(drafts=["x"] * 4, votes=[1.0] * 4), "not those of the ballot"),
        ("vote", VOTES, lambda line: line["ballots"].pop("red"), "votes of other labels"),
        ("vote", VOTES, with_fields(noise=0.0), "noise that is not the certificate's"),
        ("vote", SETS, with_fields(own=[{"text": "x", "label": "red"}]), "not in a ballot"),
        ("vote", SETS, with_fields(public=[{"text": "x", "label": "z"}]), "other labels"),
        ("vote", SETS, with_fields(public=[{"text": str(i), "label": "red"} for i in range(2)]), "larger than planned"),
        ("vote", PRIORS, with_fields(compared=[[1.0, 2.0]]), "compared"),
        ("vote", PRIORS, with_fields(refined=[[1.0], [2.0]]), "priors of other labels"),
        ("vote", SCORE, lambda line: line["score"]["arms"]["zero-shot"].update(interval=[0.9, 0.1]), "high to low"),
        ("vote", SCORE, lambda line: line["score"]["arms"]["zero-shot"].update(accuracy=0.123), "that was released"),
        ("vote", SCORE, lambda line: line["score"]["arms"].update(x=ARM), "not compared"),
        ("alone", 0, with_text("forged"), "was not written"),
        ("tokens", 0, with_text("forged"), "rows read under"),
        ("vote", 0, with_text("forged"), "not in a ballot"),
        ("alone", 0, lambda head: head["demo_set"]["privacy"]["parameters"].update(subsets=5), "is wrong: privacy"),
    ],
)
def test_what_cannot_have_been_told_is_refused_with_its_line(kind, line, change, message):
    with pytest.raises(UsageError, match=message):
        from_lines(edited(kind, line, change))


def test_a_demonstration_that_is_whole_cannot_be_cut_off_behind_it():
    lines = file_of("alone").splitlines()
    whole = place_of("alone", DemoCompleted)
    told = json.loads(lines[whole])
    key = {"label": told["demonstration"]["label"], "number": told["number"]}
    cut_off = json.dumps({"event": "cut off", **key, "finished": False})
    with pytest.raises(UsageError, match="not planned, or is cut off twice"):
        from_lines("\n".join([*lines[: whole + 1], cut_off, *lines[whole + 1 :]]) + "\n")


def test_a_file_that_is_cut_short_or_has_a_line_twice_is_refused():
    for kind in KINDS:
        lines = file_of(kind).splitlines()
        for place in range(1, len(lines)):
            twice = [*lines[:place], *lines[place - 1 :]]
            for broken in (lines[:place], twice):
                with pytest.raises(UsageError, match="This is not a dpicl-run/2 file"):
                    from_lines("\n".join(broken))


@pytest.mark.parametrize(
    "without",
    [DemoStarted, DemoCompleted, StageStarted, OpeningsReleased, WordsReleased, VotesReleased, ScoreReleased],
)
def test_a_run_that_is_not_complete_is_refused(without):
    place = place_of("both", without)
    lines = file_of("both").splitlines()
    with pytest.raises(UsageError, match="This is not a dpicl-run/2 file"):
        from_lines("\n".join([*lines[:place], *lines[place + 1 :]]))


def test_a_demonstration_is_asked_for_with_released_words_alone():
    place = place_of("both", DemoStarted)
    with pytest.raises(UsageError, match="words that were not released"):
        from_lines(edited("both", place, with_fields(words=["heart", "pulse"])))


def test_sizes_have_limits(monkeypatch):
    text = file_of("alone")
    for name, most in (("MOST_LINES", 3), ("LARGEST", 100)):
        with monkeypatch.context() as patched:
            patched.setattr(run_file, name, most)
            with pytest.raises(UsageError, match="too long for a run file"):
                to_lines(recorded("alone"))
            with pytest.raises(UsageError, match="too large"):
                from_lines(text)


def test_more_than_is_paid_for_is_refused():
    begun = json.dumps({"event": "demonstration begun", "label": "red", "number": 3})
    lines = file_of("alone").splitlines()
    with pytest.raises(UsageError, match="line 3: a demonstration that was not planned"):
        from_lines("\n".join([*lines[:2], begun, *lines[2:]]))
    refused = json.dumps({"event": "refused", "label": "red", "number": 1, "reason": "no words"})
    with pytest.raises(UsageError, match="line 3: a demonstration is refused that is not written"):
        from_lines("\n".join([*lines[:2], refused, *lines[2:]]))
    last = next(i for i, line in enumerate(lines) if '"step": 5' in line)
    more = lines[last].replace('"step": 5', '"step": 6')
    with pytest.raises(UsageError, match="out of its turn"):
        from_lines("\n".join([*lines[: last + 1], more, lines[-1]]))


def written_with(**settings: Any) -> list[Any]:
    records = data(rows(60))
    plan = planned(records, alone(parameters={}, **settings)).calibrated()
    return [each for each in begun(records, plan, randomness=SecureRandomness()) if not isinstance(each, SetSoFar)]


def test_values_stand_only_beside_tokens_whose_mechanism_releases_them():
    events = written_with(mechanism="noisy-max")
    place = next(i for i, event in enumerate(events) if isinstance(event, TokenReleased))
    read = [each for each in from_lines(to_lines(events)) if isinstance(each, TokenReleased)]
    assert all(each.scores is None and each.values is None for each in read)
    for field in ("scores", "values"):
        shown = replace(events[place], **{field: events[place].public})
        with pytest.raises(UsageError, match="releases alone"):
            from_lines(to_lines([*events[:place], shown, *events[place + 1 :]]))


def test_a_trail_is_that_of_its_mechanism_and_files_without_one_have_none():
    events = written_with(mechanism="adadpsyn")
    place = next(i for i, event in enumerate(events) if isinstance(event, TokenReleased))
    assert events[place].trail
    lines = to_lines(events).splitlines()
    [first, *_] = (i for i, line in enumerate(lines) if '"event": "token"' in line)
    assert from_lines("\n".join(lines))[first].trail == events[place].trail
    shorter = json.loads(lines[first])
    del shorter["trail"]
    lines[first] = json.dumps(shorter)
    assert from_lines("\n".join(lines))[first].trail == ()
    events[place] = replace(events[place], trail=((0.1, 1.0),) * 9)
    with pytest.raises(UsageError, match="trail"):
        from_lines(to_lines(events))
    for trail in ([[0.1, 1.0]], [[0.1]], [[0.1, float("inf")]]):
        with pytest.raises(UsageError, match="trail|JSON|json"):
            from_lines(edited("alone", TOKEN, with_fields(trail=trail)))


HOSTILE = (
    "NaN",
    "-Infinity",
    "1e999",
    "[" * 5000,
    '{"event":"stage","event":"stage"}',
    '"\\ud800"',
    "\x00",
    "",
    "null",
)


@pytest.mark.parametrize("line", HOSTILE)
def test_lines_that_are_no_json_are_refused(line):
    for place in (0, 3, -1):
        lines = file_of("vote").splitlines()
        lines[place] = line
        with pytest.raises(UsageError, match="line"):
            from_lines("\n".join(lines))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([2**70, -1, 10**9]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for name, item in inner for each in places(item, (*path, name)))]


@settings(max_examples=150)
@given(st.data(), st.sampled_from(KINDS), VALUES)
def test_a_file_with_anything_anywhere_is_read_or_refused_in_one_line(data, kind, value):
    lines = file_of(kind).splitlines()
    line = data.draw(st.integers(0, len(lines) - 1))
    document = json.loads(lines[line])
    *path, last = data.draw(st.sampled_from(places(document)[1:]))
    holder = document
    for name in path:
        holder = holder[name]
    holder[last] = value
    lines[line] = json.dumps(document)
    read_or_refused("\n".join(lines))


def read_or_refused(text: str) -> None:
    said = ""
    try:
        assert from_lines(to_lines(from_lines(text)))
    except UsageError as error:
        said = str(error)
    assert not said or said.startswith("This is not a dpicl-run/2 file")
    assert "\n" not in said
    assert len(said) < 500


def test_a_demonstration_may_be_written_in_any_turn():
    """Side by side or one by one: both are runs."""
    events = without_ledger(recorded("alone"))
    assert from_lines(to_lines(one_by_one(events)))[1:] == one_by_one(events)[1:]
