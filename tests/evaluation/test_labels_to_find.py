"""A set with no label to find classifies nothing, through whichever door it is asked: it would be sure of its one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mechanisms import api
from mechanisms.api import probabilities
from mechanisms.data.record_schema import RecordSchema
from mechanisms.demos.demo_set import DemoSet, to_text
from mechanisms.demos.signature import signed
from mechanisms.errors import UsageError
from mechanisms.records import Demonstration
from mechanisms.runs.score import of_demo_set, with_choice
from tests.cli.command import check_refusal
from tests.toy_model import ToyModel
from tests.ui.generate.recording import demo_set

SCHEMA = RecordSchema({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]})
ONE = replace(demo_set(), labels=("News",)).with_demonstrations((Demonstration("the vote was close", "News"),))
OF_RECORDS = replace(ONE.with_demonstrations((Demonstration('{"title": "Up"}', "News"),)), schema=SCHEMA)
BOTH = demo_set(Demonstration("the vote was close", "News"), Demonstration("the match ended late", "Sport"))
SETS = {"records": (OF_RECORDS, "holds records of a schema"), "one label": (ONE, "at least two labels")}
ASKED = ["a text"]


DOORS: dict[str, Callable[[DemoSet], object]] = {
    "Python": lambda demos: api.classify(demos, ASKED, ToyModel()),
    "HTTP": lambda demos: probabilities(demos, ToyModel(), ASKED),
    "score": lambda demos: with_choice(of_demo_set(demos)),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize(("demos", "said"), SETS.values(), ids=SETS)
def test_every_door_refuses_in_the_same_words_and_lets_labels_in(door, demos, said):
    with pytest.raises(UsageError, match=said):
        door(demos)
    door(BOTH)


ELSEWHERE = "--reader-url http://127.0.0.1:9 --reader-model any"


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize(
    ("demos", "said", "asked", "where"),
    [
        (OF_RECORDS, "holds records of a schema", "holds records of a schema", "--model nowhere"),
        (OF_RECORDS, "holds records of a schema", "holds records of a schema", ELSEWHERE),
        (ONE, "one kind of text", "of this machine", ELSEWHERE),  # here, it is gone on with
    ],
)
def test_the_command_line_refuses_before_it_looks_for_a_model(
    capsys, tmp_path: Path, demos, said, asked, where, second
):
    for name, each in {"a.json": demos, "both.json": BOTH}.items():
        (tmp_path / name).write_text(to_text(signed(each)), encoding="utf-8")
    (tmp_path / "test.csv").write_text("text,label\nx,News\n")
    files = f"{tmp_path}/both.json {tmp_path}/a.json" if second else f"{tmp_path}/a.json"
    check_refusal(capsys, f"evaluate {files} --test {tmp_path}/test.csv {where}", 2, said)
    check_refusal(capsys, f"query {tmp_path}/a.json text {where}", 2, asked)
