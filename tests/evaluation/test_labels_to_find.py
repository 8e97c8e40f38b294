"""A set with no label to find classifies nothing, through whichever door it is asked: it would be sure of its one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mechanisms import api
from mechanisms.demos.demo_set import DemoSet, to_text
from mechanisms.demos.signature import signed
from mechanisms.errors import UsageError
from mechanisms.records import Demonstration
from mechanisms.runs.score import of_demo_set
from tests.cli.command import check_refusal
from tests.exports.sets import demo_set, single
from tests.toy_model import ToyModel

ONE = single("the vote was close")
BOTH = demo_set(Demonstration("the vote was close", "News"), Demonstration("the match ended late", "Sport"))
ASKED = ["a text"]


DOORS: dict[str, Callable[[DemoSet], object]] = {
    "Python": lambda demos: api.classify(demos, ASKED, ToyModel()),
    "score": lambda demos: of_demo_set(demos),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_every_door_refuses_in_the_same_words_and_lets_labels_in(door):
    with pytest.raises(UsageError, match="at least two labels"):
        door(ONE)
    door(BOTH)


@pytest.mark.parametrize("where", ["--model nowhere", "--reader-url http://127.0.0.1:9 --reader-model any"])
def test_the_command_line_refuses_before_it_looks_for_a_model(capsys, tmp_path: Path, where):
    (tmp_path / "a.json").write_text(to_text(signed(ONE)), encoding="utf-8")
    (tmp_path / "test.csv").write_text("text,label\nx,News\n")
    check_refusal(capsys, f"evaluate {tmp_path}/a.json --test {tmp_path}/test.csv {where}", 2, "at least two labels")
    check_refusal(capsys, f"query {tmp_path}/a.json text {where}", 2, "at least two labels")
