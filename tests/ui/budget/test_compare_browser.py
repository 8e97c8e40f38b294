"""Runs side by side in a real browser: columns come and go, nothing in a file runs, and a phone shows them all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page

from mechanisms.demos.findings import ArmScore, Score
from mechanisms.records import Demonstration
from mechanisms.runs.events import DemoCompleted, RunCompleted, RunEvent, ScoreReleased
from mechanisms.runs.run_file import to_lines
from tests.runs.runs import recorded
from tests.ui.accessible import findings
from tests.ui.generate.recording import demo_set, recording
from tests.ui.visit import HOSTILE, Journey, step, visiting

pytestmark = pytest.mark.slow
PLACES = "ABCD"


def hostile() -> str:
    """A run whose every text would do harm, were it markup or a template."""
    written = tuple(Demonstration(f"{HOSTILE} {number}", label) for number, label in enumerate(("News", "Sport")))
    made, left = replace(demo_set(*written), model_id=HOSTILE), list(written)
    events = list[RunEvent]()
    for event in recording():
        if isinstance(event, DemoCompleted):
            event = replace(event, demonstration=left.pop(0))
        elif hasattr(event, "demo_set"):
            event = replace(event, demo_set=made)
        events.append(event)
    assert isinstance(events[-1], RunCompleted)
    return to_lines(events)


def scored(kind: str, accuracy: float) -> str:
    """A recipe's run with a score that says something, which toy rows have not."""
    own = ArmScore(accuracy, (accuracy - 0.04, accuracy + 0.04))
    arms = {"zero-shot": ArmScore(0.5, (0.45, 0.55)), "public-only": own, "demonstrations": own}
    score = Score(arms, held_out=False)
    *events, end = recorded(kind)
    assert isinstance(end, RunCompleted)
    told = [replace(event, score=score) if isinstance(event, ScoreReleased) else event for event in events]
    return to_lines([*told, replace(end, demo_set=replace(end.demo_set, score=score))])


def load(page: Page, *files: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.click("#compare-load")
    chooser.value.set_files(files)


def standing(page: Page) -> dict[str, str]:
    return {
        place: page.inner_text(f"#compare-{place} h3")
        for place in PLACES
        if page.locator(f"#compare-{place}").filter(visible=True).count()
    }


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    folder = tmp_path_factory.mktemp("compare")
    seen = Journey(folder, "")
    texts = {"vote": scored("vote", 0.7), "both": scored("both", 0.8), "hostile": hostile(), "broken": "{}"}
    files = {name: folder / f"{name}.jsonl" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text, encoding="utf-8")
    with visiting(seen) as page:
        step(page, 6)
        page.click("#compare button:has-text('Compare runs')")
        load(page, *files.values())
        page.wait_for_selector("#compare-notice .notice")
        page.wait_for_selector("#compare-scores .js-plotly-plot")
        look(page, seen, "loaded")
        page.set_viewport_size({"width": 390, "height": 844})
        seen.overflow[390] = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        boxes = [page.locator(f"#compare-{place}").bounding_box() for place in "ABC"]
        seen.shown["lefts"] = str({round(box["x"]) for box in boxes if box})
        page.set_viewport_size({"width": 1280, "height": 900})
        seen.inaccessible = findings(page)
        page.click("#compare-A button:has-text('Remove')")
        page.wait_for_selector("#compare-C", state="hidden")
        look(page, seen, "removed")
        page.wait_for_selector("#compare-scores .js-plotly-plot", state="detached")
        load(page, files["vote"])
        page.wait_for_selector("#compare-C h3")
        page.wait_for_selector("#compare-scores .js-plotly-plot")
        look(page, seen, "again")
    return seen


def look(page: Page, seen: Journey, when: str) -> None:
    seen.shown[when] = " ".join(f"{place}={title}" for place, title in standing(page).items())
    seen.shown[f"{when}, said"] = page.inner_text("#compare-notice").strip()
    seen.shown[f"{when}, words"] = page.inner_text("#compare")
    seen.hacked = seen.hacked or page.evaluate("window.hacked || null")


def test_columns_come_and_go_in_their_order(visit: Journey):
    assert visit.shown["loaded"] == "A=A. vote.jsonl B=B. both.jsonl C=C. hostile.jsonl"
    assert visit.shown["removed"] == "A=A. both.jsonl B=B. hostile.jsonl"
    assert visit.shown["again"] == "A=A. both.jsonl B=B. hostile.jsonl C=C. vote.jsonl"


def test_what_is_no_run_file_is_refused_in_one_line(visit: Journey):
    assert visit.shown["loaded, said"].startswith("broken.jsonl: This is not a dpicl-run/1 file")
    assert "\n" not in visit.shown["loaded, said"]
    assert not visit.shown["removed, said"]


def test_nothing_in_a_file_runs_or_calls_home(visit: Journey):
    assert visit.shown["loaded, words"].count(HOSTILE) == 3
    assert visit.hacked is None
    assert (visit.console, visit.foreign) == ([], [])


def test_a_phone_has_them_one_below_the_other_and_everybody_can_use_them(visit: Journey):
    assert visit.overflow[390] <= 0
    assert visit.shown["lefts"].count(",") == 0
    assert visit.inaccessible == []


def test_no_file_stays_on_the_server(visit: Journey):
    assert [path.name for path in visit.files("temp", "home") if path.suffix == ".jsonl"] == []
