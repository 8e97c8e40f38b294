"""The first page: a recorded run that a certificate covers, played from its releases alone, and an example to try."""

from __future__ import annotations

import csv

import pytest

from dpicl_ui.welcome import MADE, RECORDED, ROW, frames
from mechanisms.data.sources import EXAMPLES
from mechanisms.files import bundled
from mechanisms.runs.events import TokenReleased
from mechanisms.runs.run_file import from_lines
from tests.ui.visit import SLOW, Journey, press, step, visiting


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
    with EXAMPLES[1].path.open(encoding="utf-8", newline="") as file:
        assert ROW in [row["text"] for row in csv.DictReader(file)]


def test_the_example_that_is_shown_is_one_of_the_recorded_run():
    *_, ended = from_lines(bundled(RECORDED).read_text("utf-8"))
    assert MADE in [each.text for each in ended.demo_set.demonstrations]


def test_no_row_of_the_example_stands_in_the_recorded_run():
    recorded = bundled(RECORDED).read_text("utf-8")
    with EXAMPLES[1].path.open(encoding="utf-8", newline="") as file:
        assert not any(row["text"] in recorded for row in csv.DictReader(file))


@pytest.mark.slow
def test_tokens_play_at_once_and_the_example_takes_their_place(tmp_path):
    with visiting(Journey(tmp_path, "")) as page:
        page.wait_for_selector("#welcome-live .bar-row")
        first = page.inner_text("#welcome-live .live-count")
        page.wait_for_function(f"document.querySelector('#welcome-live .live-count').innerText !== {first!r}")
        page.click("#welcome-play button")
        held = page.inner_text("#welcome-live .live-text")
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.inner_text("#welcome-live .live-text") == held
        page.click("#try-example")
        page.wait_for_selector("#step-3.current #generate:enabled", timeout=SLOW)
        page.click("#generate")  # the second click: what follows is live
        page.wait_for_selector("#stop:enabled", timeout=SLOW)
        press(page, "#stop:enabled", "#run-notice .notice")
        step(page, 1)
        page.wait_for_selector("#data-preview table")
        page.wait_for_selector("#welcome", state="hidden")
        page.wait_for_selector("#model-status .status.good", timeout=SLOW)
        page.click("#preview-drafts")
        page.wait_for_selector("#draft-preview .demo >> nth=3", timeout=SLOW)
        assert "Nothing of them was read" in page.inner_text("#draft-preview")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
