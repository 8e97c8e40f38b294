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

from mechanisms.accounting import PrivacyLedger
from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness
from mechanisms.runs import run_file
from mechanisms.runs.events import (
    ChoiceReleased,
    DemoCompleted,
    DemoStarted,
    Drafting,
    DraftsWritten,
    PriorsReleased,
    PrivateDiagnostics,
    RunCompleted,
    RunFailed,
    RunStarted,
    RunStopped,
    ScoreReleased,
    SetKept,
    SetsMade,
    StageProgress,
    StageStarted,
    TokenReleased,
    VotesReleased,
)
from mechanisms.runs.recipe import Division, Kind, Stage
from mechanisms.runs.run import synthesize
from mechanisms.runs.run_file import from_lines, to_lines
from mechanisms.runs.sets import NONE
from mechanisms.steps import mechanism_class
from tests.runs.runs import KINDS, SECRET, file_of, recipe_told, recorded, told
from tests.synthesis.test_synthesize import dataset, request
from tests.toy_model import ToyModel

pytestmark = pytest.mark.slow

LEDGER = (RunStarted, DemoStarted, RunCompleted, RunStarted, StageStarted, RunCompleted)


def without_ledger(events: Any) -> list[Any]:
    """Without what no file holds: the ledger's state, and the set before it was final."""
    kept = (each for each in events if not isinstance(each, SetKept))
    return [replace(each, budget=None) if isinstance(each, LEDGER) else each for each in kept]


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_comes_back_as_it_was_told(kind):
    read, events = from_lines(file_of(kind)), without_ledger(recorded(kind))
    assert read[1:] == events[1:]
    assert replace(read[0], demo_set=None) == replace(events[0], demo_set=None)
    assert read[0].demo_set.demonstrations == ()
    assert read[0].demo_set.certificate == events[0].demo_set.certificate
    assert to_lines(read) == file_of(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_in_it_but_what_was_released(kind):
    text, everything = file_of(kind), told(kind)
    assert SECRET not in text
    private = [each for each in everything if isinstance(each, PrivateDiagnostics | StageProgress)]
    assert private
    assert to_lines([each for each in everything if not isinstance(each, Drafting)]) == text  # had they been recorded
    numbers = [number for each in private for number in getattr(each, "clean", ()) if number != round(number, 3)]
    assert [number for number in numbers if repr(number) in text] == []
    for word in ("budget", "clean_", "cap", '"done"', "time", "seconds", "remaining"):
        assert f'"{word}' not in text.replace('"label', "")


def test_marks_that_are_known_by_now_stand_on_it():
    made = from_lines(to_lines(recorded("vote"), ("shown since",)))[-1].demo_set
    assert made.certificate.disclosures == tuple(
        sorted({*recorded("vote")[-1].demo_set.certificate.disclosures, "shown since"})
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_run_comes_back_wherever_it_was_stopped(kind):
    events, made = recorded(kind), recorded(kind)[0].demo_set
    for place, event in enumerate(events[:-1]):
        if isinstance(event, SetKept):
            made = event.demo_set
            continue  # what it is kept for is told next
        end = RunStopped(made)
        assert from_lines(to_lines([*events[: place + 1], end]))[-1] == end


@pytest.mark.parametrize(
    "part", [lambda told: [], lambda told: told[:-1], lambda told: [*told[:-1], RunFailed("no")], lambda told: told[1:]]
)
def test_a_run_that_did_not_end_well_has_no_file(part):
    with pytest.raises(UsageError, match="no run to save"):
        to_lines(part(list(recorded("tokens"))))


def test_a_run_without_privacy_has_no_file():
    *events, end = recorded("tokens")
    certificate = replace(end.demo_set.certificate, private=False, reason="no noise")
    bare = replace(end, demo_set=replace(end.demo_set, certificate=certificate))
    with pytest.raises(UsageError, match="not private"):
        to_lines([*events, bare])
    with pytest.raises(UsageError, match="line 1: This run is not private"):
        from_lines(edited("tokens", 0, lambda head: head["demo_set"]["privacy"].update(private=False, reason="x")))


def edited(kind: str, line: int, change: Callable[[Any], object]) -> str:
    lines = file_of(kind).splitlines()
    document = json.loads(lines[line])
    change(document)
    lines[line] = json.dumps(document)
    return "\n".join(lines) + "\n"


def place_of(kind: str, wanted: type) -> int:
    return next(i for i, event in enumerate(without_ledger(recorded(kind))) if isinstance(event, wanted))


TOKEN, VOTES = place_of("tokens", TokenReleased), place_of("vote", VotesReleased)
DRAFTS, SETS = place_of("vote", DraftsWritten), place_of("vote", SetsMade)
PRIORS, CHOICE = place_of("vote", PriorsReleased), place_of("vote", ChoiceReleased)


@pytest.mark.parametrize(
    ("kind", "line", "change", "message"),
    [
        ("tokens", 0, {"format": "dpicl-run/2"}, "format"),
        ("tokens", 0, {"more": 1}, "other fields"),
        ("tokens", 0, {"run": {"shots": 1}}, "line 1: run: missing"),
        ("tokens", 0, {"run": None}, "line 1: run"),
        ("tokens", 0, {"demo_set": []}, "line 1"),
        ("tokens", TOKEN, {"scores": [1.0]}, "values that are not"),
        ("tokens", TOKEN, {"chosen": 8}, "no candidate"),
        ("tokens", TOKEN, {"chosen": -1}, "chosen"),
        ("tokens", TOKEN, {"chosen": True}, "chosen"),
        ("tokens", TOKEN, {"step": 2}, "out of its turn"),
        ("tokens", TOKEN, {"label": "z"}, "not being written"),
        ("tokens", TOKEN, {"clean": [1.0]}, "extra forbidden"),
        ("tokens", TOKEN, {"event": "clean"}, "union tag invalid"),
        ("tokens", TOKEN, {"scores": ["1"] * 8}, "scores/0"),
        ("tokens", TOKEN, {"scores": [1e300] * 8}, "scores/0"),
        ("tokens", TOKEN, {"event": "completed"}, f"line {TOKEN + 1}"),
        ("tokens", -1, {"event": "token"}, "missing"),
        ("vote", VOTES, {"winners": [0, 0]}, "not those of the ballot"),
        ("vote", VOTES, {"winners": [99]}, "not those of the ballot"),
        ("vote", VOTES, {"votes": []}, "votes"),
        ("vote", VOTES, {"noise": -1.0}, "noise"),
        ("vote", VOTES, {"round": 7}, "without a ballot"),
        ("vote", VOTES, {"noise": 0.0}, "noise that is not the certificate's"),
        ("vote", DRAFTS, {"round": 3}, "ballot that was not planned"),
        ("vote", DRAFTS, {"drafts": ["x"] * 4}, "more drafts"),
        ("vote", PRIORS, {"priors": [["none", [0.5, 0.5]]] * 6}, "priors of other sets"),
        ("vote", CHOICE + 1, {"priors": [["none", [0.5, 0.5]], ["none", [0.5, 0.5]]]}, "priors of other sets"),
        ("vote", CHOICE, {"among": [["none", "x"]], "chosen": ["none", "x"]}, "did not compete"),
        ("tokens", TOKEN, {"candidates": ["x"] * 9, "public": [1.0] * 9, "scores": [1.0] * 9}, "more candidates"),
        ("tokens", TOKEN, {"label": "x" * 501}, "label"),
    ],
)
def test_what_cannot_have_been_told_is_refused_with_its_line(kind, line, change, message):
    with pytest.raises(UsageError, match=message):
        from_lines(edited(kind, line, lambda document: document.update(change)))


def test_a_file_that_is_cut_short_or_has_a_line_twice_is_refused():
    for kind in KINDS:
        lines = file_of(kind).splitlines()
        for place in range(1, len(lines)):
            twice = [*lines[:place], *lines[place - 1 :]]
            for broken in (lines[:place], twice):
                with pytest.raises(UsageError, match="This is not a dpicl-run/1 file"):
                    from_lines("\n".join(broken))


@pytest.mark.parametrize("without", [DemoStarted, DemoCompleted, StageStarted, VotesReleased, DraftsWritten, SetsMade])
def test_a_run_that_is_not_complete_is_refused(without):
    place = place_of("both", without)
    lines = file_of("both").splitlines()
    with pytest.raises(UsageError, match="This is not a dpicl-run/1 file"):
        from_lines("\n".join([*lines[:place], *lines[place + 1 :]]))


def test_a_set_that_is_not_what_was_told_is_refused():
    with pytest.raises(UsageError, match="was not written"):
        from_lines(edited("tokens", 0, lambda head: head["demo_set"]["demonstrations"][0].update(text="forged")))
    none = recorded("vote")[-1].demo_set.choice.chosen == NONE  # which falls by noise
    with pytest.raises(UsageError, match="the choice was to have none" if none else "not the one that was chosen"):
        from_lines(
            edited("vote", 0, lambda head: head["demo_set"].update(demonstrations=[{"text": "x", "label": "red"}]))
        )
    score = place_of("vote", type(recorded("vote")[-2]))
    with pytest.raises(UsageError, match="not the one that was released"):
        from_lines(edited("vote", score, lambda line: line["score"]["arms"]["zero-shot"].update(accuracy=0.123)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_line_says_nothing_that_the_certificate_does_not(kind):
    """What a page shows of a run's extent is what was paid for."""
    for name, value in json.loads(file_of(kind).splitlines()[0])["run"].items():
        other = value[:-1] if isinstance(value, list) else (value or 1) + 1
        with pytest.raises(UsageError, match=f"line 1: run/{name}"):
            from_lines(edited(kind, 0, lambda head: head["run"].update({name: other})))  # noqa: B023


def test_more_than_is_paid_for_is_refused_whatever_the_first_line_says():
    begun = json.dumps({"event": "demonstration begun", "label": "a", "number": 3})
    lines = file_of("tokens").splitlines()
    with pytest.raises(UsageError, match="line 2: a demonstration that was not planned"):
        from_lines("\n".join([lines[0], begun, *lines[1:]]))
    last = next(i for i, line in enumerate(lines) if '"step":5' in line)
    more = lines[last].replace('"step":5', '"step":6')
    with pytest.raises(UsageError, match="out of its turn"):
        from_lines("\n".join([*lines[: last + 1], more, lines[-1]]))


def test_a_file_has_so_many_demonstrations_and_no_more(monkeypatch):
    text = file_of("tokens")
    monkeypatch.setattr(run_file, "MOST_DEMONSTRATIONS", 3)
    with pytest.raises(UsageError, match="more demonstrations than a run file has"):
        from_lines(text)
    with pytest.raises(UsageError, match="too long for a run file"):  # what cannot be read is not written
        to_lines(recorded("tokens"))


def test_values_stand_only_beside_tokens_whose_mechanism_releases_them():
    noisy_max = request(mechanism=mechanism_class("noisy-max")()).calibrated()
    told = list(synthesize(dataset(), noisy_max, ToyModel(), PrivacyLedger(), SecureRandomness()))
    place = next(i for i, event in enumerate(told) if isinstance(event, TokenReleased))
    assert from_lines(to_lines(told))[place].scores is None
    told[place] = replace(told[place], scores=told[place].public)
    with pytest.raises(UsageError, match="releases alone"):
        from_lines(to_lines(told))


def test_a_trail_is_that_of_its_mechanism_and_files_of_before_have_none():
    made = request(mechanism=mechanism_class("adadpsyn")(refinements=2)).calibrated()
    told = list(synthesize(dataset(), made, ToyModel(), PrivacyLedger(), SecureRandomness()))
    place = next(i for i, event in enumerate(told) if isinstance(event, TokenReleased))
    assert told[place].trail
    assert from_lines(to_lines(told))[place] == told[place]
    lines = [line for line in to_lines(told).splitlines() if '"event":"token"' in line]
    older = to_lines(told).replace(lines[0], re.sub(r',"trail":[^}]*', "", lines[0]))
    assert from_lines(older)[place].trail == ()
    told[place] = replace(told[place], trail=((0.1, 1.0),) * 3)
    with pytest.raises(UsageError, match="trail"):
        from_lines(to_lines(told))
    for trail in ([[0.1, 1.0]], [[0.1]], [[0.1, float("inf")]]):
        with pytest.raises(UsageError, match="trail|JSON|json"):
            from_lines(edited("tokens", TOKEN, lambda document, trail=trail: document.update(trail=trail)))


@pytest.mark.parametrize(
    ("kind", "division", "without"),
    [
        (Kind.TOKENS, Division.ROLES, ()),
        (Kind.TOKENS, Division.ROLES, (Stage.CALIBRATE, Stage.CHOOSE, Stage.SCORE)),
        (Kind.VOTE, Division.EPSILON, (Stage.CHOOSE,)),
        (Kind.VOTE, Division.ROLES, (Stage.CALIBRATE, Stage.CHOOSE)),
    ],
)
def test_a_recipe_of_any_kind_comes_back(kind, division, without):
    events = recipe_told(kind, division, *without)
    assert from_lines(to_lines(events))[1:] == without_ledger(events)[1:]


def test_a_choice_or_a_prior_is_told_once():
    lines = file_of("vote").splitlines()
    for place in (PRIORS, CHOICE, CHOICE + 1):
        with pytest.raises(UsageError, match=f"line {place + 2}: "):
            from_lines("\n".join([*lines[: place + 1], *lines[place:]]))


@pytest.mark.parametrize("field", ["among", "chosen", "correction", None])
def test_a_choice_that_is_not_the_one_that_was_told_is_refused(field):
    def other(head: Any) -> None:
        choice = head["demo_set"]["choice"]
        others = {
            "among": choice["among"] + 1,
            "chosen": "voted 1" if choice["chosen"] != "voted 1" else "voted 2",
            "correction": "contextual",  # never of the set that is exported: it is fitted
        }
        if field is None:
            del head["demo_set"]["choice"]
        else:
            choice[field] = others[field]

    with pytest.raises(UsageError, match="the set's choice is not the one that was released"):
        from_lines(edited("vote", 0, other))


def test_sets_are_those_of_the_recipe():
    for change in ("x" * 500, "voted 2"):
        with pytest.raises(UsageError, match="sets that are not those of the recipe"):
            from_lines(edited("vote", SETS, lambda line: line["sets"][0].update(name=change)))  # noqa: B023


def test_a_score_has_no_arms_but_those_that_are_compared():
    place = place_of("vote", ScoreReleased)
    arm = {"accuracy": 0.5, "interval": [0.0, 1.0]}
    with pytest.raises(UsageError, match="not compared"):
        from_lines(edited("vote", place, lambda line: line["score"]["arms"].update(x=arm)))


def test_a_run_that_no_file_could_be_read_of_is_not_saved(monkeypatch):
    monkeypatch.setattr(run_file, "MOST_LINES", 3)
    with pytest.raises(UsageError, match="too long for a run file"):
        to_lines(recorded("tokens"))


def test_a_certificate_that_does_not_hold_is_refused():
    def cheaper(head: Any) -> None:
        head["demo_set"]["privacy"]["parameters"]["subsets"] = 5
        head["run"]["expected_rows"] = 5

    with pytest.raises(UsageError, match="its certificate is wrong: privacy"):
        from_lines(edited("tokens", 0, cheaper))


def test_sizes_have_limits(monkeypatch):
    text = file_of("tokens")
    monkeypatch.setattr(run_file, "MOST_LINES", 3)
    with pytest.raises(UsageError, match="too many"):
        from_lines(text)
    monkeypatch.setattr(run_file, "LARGEST", 100)
    with pytest.raises(UsageError, match="too large"):
        from_lines(text)


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


@settings(max_examples=150)
@given(st.sampled_from(KINDS), st.integers(0, 20_000), st.integers(0, 40), st.text(max_size=8))
def test_a_file_with_other_characters_is_read_or_refused_in_one_line(kind, start, length, text):
    whole = file_of(kind)
    start %= len(whole)
    read_or_refused(whole[:start] + text + whole[start + length :])


@given(st.text())
def test_any_text_is_refused(text):
    with pytest.raises(UsageError):
        from_lines(text)


def read_or_refused(text: str) -> None:
    said = ""
    try:
        assert from_lines(to_lines(from_lines(text)))
    except UsageError as error:
        said = str(error)
    assert not said or said.startswith("This is not a dpicl-run/1 file")
    assert "\n" not in said
    assert len(said) < 500


def test_a_demonstration_may_be_written_in_any_turn():
    """Side by side or one by one: both are runs."""
    *events, end = recorded("tokens")
    order = sorted(
        (each for each in events if isinstance(each, DemoStarted | TokenReleased | DemoCompleted)),
        key=lambda each: (getattr(each, "label", None) or each.demonstration.label, each.number),
    )
    assert without_ledger([events[0], *order, end])[1:] == from_lines(to_lines([events[0], *order, end]))[1:]
