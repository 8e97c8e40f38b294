"""One visit to "Ask privately" in a real browser with a small model and a bundled file, and what it left."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from dpicl_ui.welcome import ROW
from mechanisms.accounting import PrivacyLedger
from mechanisms.data.sources import EXAMPLES, read_table
from tests.ui.accessible import by_keys, findings
from tests.ui.visit import HOSTILE, SLOW, Journey, press, step, visiting

pytestmark = pytest.mark.slow
EXAMPLE = EXAMPLES[0]
QUESTION = f"The rash on my arm itches. {HOSTILE}"


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    folder = tmp_path_factory.mktemp("visit")
    seen = Journey(folder, canary="")
    with visiting(seen) as page:
        reserve(page, seen)
        ask(page)
        look(page, seen)
    return seen


def reserve(page: Page, seen: Journey) -> None:
    step(page, 6)
    seen.shown["closed"] = page.inner_text("#step-6 .gate")
    step(page, 1)
    page.click(f".examples button:has-text('{EXAMPLE.title}')")
    page.wait_for_selector("#data-preview table")
    step(page, 6)
    page.wait_for_selector("#ask-effect .count-row.chosen", timeout=SLOW)
    seen.shown["effect"] = page.inner_text("#ask-effect")
    page.click("#ask-reserve")
    seen.shown["unconfirmed"] = page.inner_text("#ask-offer-notice .notice")
    page.check("#ask-labels-public input")
    seen.shown["promise"] = page.inner_text("#ask-outcome")
    seen.shown["runs before"] = str(runs(seen.folder))
    press(page, "#ask-reserve", "#ask-stop, #ask-question textarea")
    page.wait_for_selector("#ask-question textarea", timeout=SLOW)


def ask(page: Page) -> None:
    page.fill("#ask-question textarea", QUESTION)
    page.click("#ask-privately")
    page.wait_for_function(
        "(asked) => document.querySelector('#ask-answers h3')?.textContent === asked", arg=QUESTION, timeout=SLOW
    )


def look(page: Page, seen: Journey) -> None:
    seen.shown["answers"] = page.inner_text("#ask-answers")
    seen.shown["bars"] = str(page.locator("#ask-answers > * .votes").first.locator(".vote-bar").count())
    seen.shown["reserved"] = page.inner_text("#ask-reserved")
    seen.shown["question"] = page.input_value("#ask-question textarea")
    seen.hacked = page.evaluate("window.hacked || null")
    page.click("#ask-change")
    page.wait_for_selector("#ask-reserve")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(200)
    root = "document.documentElement"
    seen.overflow[6] = page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
    seen.inaccessible = [*findings(page), *by_keys(page)]


def runs(folder: Path) -> int:
    return PrivacyLedger(folder / "home").snapshot(EXAMPLE.path.stem, "user:patient").runs


def test_it_opens_with_a_file_and_before_anything_is_generated(visit: Journey):
    assert "step 1" in visit.shown["closed"]
    assert "label names become public" in visit.shown["unconfirmed"]


def test_price_and_effect_are_shown_before_anything_is_charged(visit: Journey):
    assert "epsilon 4" in visit.shown["promise"]
    assert "at least 5" in visit.shown["promise"]
    assert "bundled example" in visit.shown["effect"]
    assert visit.shown["runs before"] == "0"


def test_the_answer_is_bars_inside_one_reservation(visit: Journey):
    labels = set(read_table(EXAMPLE.path).frame[EXAMPLE.mapping.label])
    assert int(visit.shown["bars"]) == len(labels)
    assert all(label in visit.shown["answers"] for label in labels)
    assert "noise" in visit.shown["answers"].lower()
    assert "1 of 5 answers" in visit.shown["reserved"]
    assert runs(visit.folder) == 1
    assert visit.shown["question"] == ""


def test_the_question_is_drawn_as_text(visit: Journey):
    assert HOSTILE in visit.shown["answers"]
    assert visit.hacked is None


def test_no_row_is_left_anywhere(visit: Journey):
    rows = [text.encode() for text in read_table(EXAMPLE.path).frame[EXAMPLE.mapping.text] if text != ROW]
    files = [*visit.files("home", "temp", "profile"), visit.folder / "log"]
    assert len(files) > 10
    left = [path.name for path in files if any(row in content for content in [path.read_bytes()] for row in rows)]
    assert left == []


def test_no_other_host_is_asked_and_nothing_fails(visit: Journey):
    assert visit.foreign == []
    assert visit.console == []
    assert "Traceback" not in (visit.folder / "log").read_text()


def test_it_fits_a_small_phone(visit: Journey):
    assert visit.overflow == {6: 0}
    assert visit.inaccessible == []
