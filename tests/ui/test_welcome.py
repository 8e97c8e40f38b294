"""The first page: a recorded run that a certificate covers, played from its releases alone, and an example to try."""

from __future__ import annotations

import csv

from dpicl_ui.welcome import MADE, RECORDED, ROW, frames
from mechanisms.data.sources import BANK
from mechanisms.files import bundled
from mechanisms.runs.events import TokenReleased
from mechanisms.runs.run_file import from_lines


def test_the_recorded_run_is_private_and_every_token_of_it_is_played():
    events = list(from_lines(bundled(RECORDED).read_text("utf-8")))  # refuses a certificate that does not hold
    made, tokens = events[-1].demo_set, [each for each in events if isinstance(each, TokenReleased)]
    assert made.certificate.private
    assert len(frames()) == len(tokens)
    for frame, token in zip(
        frames(), sorted(tokens, key=lambda each: (made.labels.index(each.label), each.step)), strict=True
    ):
        chosen = [bar for bar in frame["chart"]["bars"] if bar["chosen"]]
        assert len(chosen) == 1
        assert len(frame["chart"]["bars"]) <= 8
        assert frame["chart"]["clean"] is False
        assert chosen[0]["value"] == round(token.scores[token.chosen], 1)


def test_the_row_that_is_shown_is_one_of_the_example():
    with BANK.path.open(encoding="utf-8", newline="") as file:
        assert ROW in [row["text"] for row in csv.DictReader(file)]


def test_the_example_that_is_shown_is_one_of_the_recorded_run():
    *_, ended = from_lines(bundled(RECORDED).read_text("utf-8"))
    assert MADE in [each.text for each in ended.demo_set.demonstrations]


def test_no_row_of_the_example_stands_in_the_recorded_run():
    recorded = bundled(RECORDED).read_text("utf-8")
    with BANK.path.open(encoding="utf-8", newline="") as file:
        assert not any(row["text"] in recorded for row in csv.DictReader(file))
