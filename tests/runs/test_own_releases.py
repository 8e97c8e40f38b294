"""An event that stands in a stage's own file: in a run file, in words and on the screen, as every other one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from dpicl_ui.generate.cards import own_releases_card
from dpicl_ui.generate.run_view import looked_back, replay_recipe
from mechanisms.cli.replay import lines
from mechanisms.errors import UsageError
from mechanisms.runs.events import RunCompleted, RunEvent, ScoreReleased, StageRelease, StageStarted
from mechanisms.runs.recipe import Division, Kind
from mechanisms.runs.run_file import from_lines, to_lines
from mechanisms.runs.stages.score import Score
from tests.runs.runs import recipe_told


@dataclass(frozen=True)
class Counted(StageRelease):
    kind: ClassVar[str] = "counted"
    title: ClassVar[str] = "The count"

    counts: tuple[float, ...]

    def lines(self) -> tuple[str, ...]:
        return (f"counted: {self.counts}", "<b>")


COUNTED = Counted((1.5, -2.0))


@pytest.fixture(autouse=True)
def _scorers_count(monkeypatch):
    monkeypatch.setattr(Score, "releases", (ScoreReleased, Counted))


def with_counts(*counts: StageRelease, after: type = ScoreReleased) -> list[RunEvent]:
    def told() -> Iterator[RunEvent]:
        for event in recipe_told(Kind.VOTE, Division.ROLES):
            yield event
            if isinstance(event, after):
                yield from counts

    return list(told())


def test_it_comes_back_as_it_was_told():
    text = to_lines(with_counts(COUNTED))
    read = from_lines(text)
    assert [each for each in read if isinstance(each, StageRelease)] == [COUNTED]
    assert to_lines(read) == text


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (lambda: with_counts(), "not.*complete"),
        (lambda: with_counts(COUNTED, COUNTED), "told before"),
        (lambda: with_counts(COUNTED, after=StageStarted), "outside its stage"),
    ],
    ids=["missing", "twice", "in another stage"],
)
def test_what_its_stage_cannot_have_told_is_refused(events, words):
    with pytest.raises(UsageError, match=words):
        from_lines(to_lines(events()))


@pytest.mark.parametrize(
    "fields", [{"counts": [1.0], "more": 1}, {"counts": ["1"]}, {"counts": [float("nan")]}, {"counts": None}, {}]
)
def test_other_fields_and_values_of_other_types_are_refused_with_their_line(fields):
    told = to_lines(with_counts(COUNTED)).splitlines()
    [place] = [i for i, line in enumerate(told) if '"counted"' in line]
    told[place] = json.dumps({"event": "counted", **fields})
    with pytest.raises(UsageError, match=f"line {place + 1}: "):
        from_lines("\n".join(told))


def test_it_is_told_in_its_own_words_and_can_be_looked_back_at():
    events = with_counts(COUNTED)
    assert lines(COUNTED) == [f"  {line}" for line in COUNTED.lines()]
    moments = [event for event, view in looked_back(events) if view.own]
    assert [event for event in moments if not isinstance(event, RunCompleted)] == [COUNTED]
    card = json.dumps(own_releases_card(replay_recipe(events)))
    assert all(json.dumps(line) in card for line in COUNTED.lines())  # as text
