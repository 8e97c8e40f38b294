"""A finished run in a real browser: not lost by a reload or a second press; tested, copied, and its cost at the side.

The server runs in this process, with a toy for a model.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from dpicl_ui.generate.kept_runs import KeptRuns
from mechanisms.accounting import PrivacyLedger
from mechanisms.runs.text import Gate
from tests.ui.accessible import findings
from tests.ui.server.test_two_tabs import CANARY, Visit, choose, served
from tests.ui.visit import ARGUMENTS, CHROMIUM, SLOW, Journey, step, watch
from tests.word_model import WordModel

pytestmark = pytest.mark.slow
NAME = "kept"


@dataclass
class Seen(Visit):
    """What was seen in a tab that was loaded twice, and in another."""

    buttons: dict[str, list[str]] = field(default_factory=dict)
    storage: str = ""
    wide: list[int] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    elsewhere: str = ""
    restored: list[bool] = field(default_factory=list)
    beside: list[bool] = field(default_factory=list)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("reload")
    visited = Seen(folder, Journey(folder, CANARY))
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        for name, place in (("DPICL_HOME", "home"), ("TMPDIR", "temp"), ("GRADIO_TEMP_DIR", "temp/gradio")):
            patch.setenv(name, str(folder / place))
        (folder / "temp").mkdir()
        patch.setattr(tempfile, "tempdir", None)
        restore = KeptRuns.restore

        def noted(*arguments: Any) -> bool:
            visited.restored.append(restore(*arguments))
            return visited.restored[-1]

        patch.setattr(KeptRuns, "restore", noted)
        patch.setattr(Gate, "reason", lambda gate, text: None)  # a toy writes no texts
        browser = playwright.chromium.launch(executable_path=CHROMIUM if CHROMIUM.exists() else None, args=ARGUMENTS)
        with served(folder, WordModel()) as port:

            def opened() -> Page:
                context = browser.new_context(viewport={"width": 390, "height": 844})
                context.grant_permissions(["clipboard-read", "clipboard-write"])
                page = context.new_page()
                watch(page, visited.journey, port)
                page.goto(f"http://127.0.0.1:{port}/")
                return page

            travel(opened, visited)
            browser.close()  # a page that is open when the server goes says so
    return visited


def travel(opened: Callable[[], Page], seen: Seen) -> None:
    page = opened()
    choose(page, seen, NAME)
    page.click("#generate")
    page.wait_for_selector("#go-export", timeout=SLOW)
    look(page, seen, "done")
    console = [*seen.journey.console]
    page.reload()
    page.wait_for_selector("#step-3.current")
    page.wait_for_selector("#replay .replay-range")
    page.wait_for_selector("#go-export")
    seen.journey.console[:] = console  # a page that is left says that its connections end
    look(page, seen, "reloaded")
    elsewhere(opened(), seen)
    step(page, 5)
    page.wait_for_selector("#certificate .guarantee, #certificate dl, #certificate p")
    seen.said["certificate"] = page.inner_text("#certificate")
    for name in ("prompt", "openai", "transformers"):
        page.click(f"#use-{name} button")
        page.wait_for_function(
            "shown => navigator.clipboard.readText().then((copied) => copied === shown)",
            arg=page.input_value(f"#use-{name} textarea"),
        )
        seen.said[f"copied {name}"] = page.evaluate("navigator.clipboard.readText()")
    budget(page, seen)
    step(page, 3)
    page.click("#generate")
    page.wait_for_selector("#run-notice .notice.bad")
    seen.said["without data"] = page.inner_text("#run-notice")
    step(page, 1)
    choose(page, seen, NAME)
    replace(page, seen)


def look(page: Page, seen: Seen, name: str) -> None:
    page.wait_for_selector("#generate:has-text('Write another set')")
    seen.said[name] = page.inner_text("#run-notice")
    seen.said[f"{name}: texts"] = page.inner_text("#finished .demos")
    seen.buttons[name] = [
        page.get_attribute(f"#{each}", "class") or "" for each in ("generate", "go-test", "go-export")
    ]
    seen.wide.append(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
    seen.found += findings(page)
    seen.storage = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")


def budget(page: Page, seen: Seen) -> None:
    """Opened beside a step, from top to bottom, and closed by a key."""
    page.click("#steps .stepper.beside")
    page.wait_for_selector("#budget-runs tbody tr")
    seen.said["budget"] = page.inner_text("#step-6")
    top, bottom = (f"document.querySelector('{each}').getBoundingClientRect()" for each in ("#step-6", "#steps nav"))
    for scrolled in (0, 400):
        page.evaluate(f"scrollTo(0, {scrolled})")
        page.wait_for_function(f"{top}.top >= {bottom}.bottom")
    page.evaluate("scrollTo(0, 0)")
    seen.beside = [page.locator(f"#step-{number}").is_visible() for number in (5, 6)]
    seen.wide.append(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
    seen.found += findings(page)
    page.keyboard.press("Escape")
    page.wait_for_selector("#step-6", state="hidden")
    seen.beside.append(page.evaluate("document.activeElement.matches('.stepper.beside')"))


def elsewhere(page: Page, seen: Seen) -> None:
    """Another tab, with a key of its own."""
    answered(page, seen, 3)
    seen.elsewhere = page.evaluate("document.querySelector('#steps').innerText")
    page.context.close()


def replace(page: Page, seen: Seen) -> None:
    ledger = PrivacyLedger(seen.folder / "home")
    page.click("#generate")
    page.wait_for_selector("#replacing-words .notice")
    seen.said["asked"] = page.inner_text("#replacing-words")
    look(page, seen, "asked: screen")
    page.click("#keep-set")
    page.wait_for_selector("#replace-set", state="hidden")
    seen.runs.append(len(ledger.history(NAME)))
    page.click("#generate")
    page.wait_for_selector("#replace-set")
    page.click("#replace-set")
    ended(page, ledger, seen.runs[-1])
    look(page, seen, "replaced")
    seen.runs.append(len(ledger.history(NAME)))
    with page.expect_download():
        page.click("#save-run")
    page.click("#generate")  # nothing is asked any more, and a toy's run may be over before anybody looks
    ended(page, ledger, seen.runs[-1])
    seen.runs.append(len(ledger.history(NAME)))


def ended(page: Page, ledger: PrivacyLedger, before: int) -> None:
    """Wait for the end of one more run than `before`; a toy's may be over before the page has shown that it runs."""
    until = time.monotonic() + SLOW / 1000
    while len(runs := ledger.history(NAME)) == before or runs[-1]["status"] == "running":
        assert time.monotonic() < until, "no further run has come to its end"
        page.wait_for_timeout(100)
    page.wait_for_selector("#generate:enabled", timeout=SLOW)
    page.wait_for_selector("#go-export", timeout=SLOW)


def answered(page: Page, seen: Seen, pages: int) -> None:
    """Wait until so many pages have asked for a run."""
    until = time.monotonic() + SLOW / 1000
    while len(seen.restored) < pages:
        assert time.monotonic() < until, "a page was opened, and did not ask for its run"
        page.wait_for_timeout(100)


def test_a_reload_shows_the_run_and_its_set_again_and_neither_data_nor_rows(seen: Seen):
    assert seen.said["done"].startswith("Done.")
    assert "loaded anew" in seen.said["reloaded"]
    assert seen.said["reloaded: texts"] == seen.said["done: texts"]
    assert "epsilon" in seen.said["certificate"]
    assert "step 1" in seen.said["without data"]
    assert CANARY not in "".join(seen.said.values()) + seen.storage


def test_the_prompt_and_the_code_are_copied_with_the_set_in_them(seen: Seen):
    first = seen.said["done: texts"].split("\n")[1]
    assert "from openai import OpenAI" in seen.said["copied openai"]
    assert "from transformers import pipeline" in seen.said["copied transformers"]
    assert all(first in seen.said[f"copied {name}"] for name in ("prompt", "openai", "transformers"))


def test_the_budget_opens_at_the_side_of_a_step(seen: Seen):
    assert seen.beside == [True, True, True]
    assert "Download as CSV" in seen.said["budget"]
    assert "All runs then" in seen.said["budget"]


def test_another_tab_gets_nothing(seen: Seen):
    assert seen.restored == [False, True, False]
    assert "done" not in seen.elsewhere.lower()


def test_after_a_run_the_next_step_comes_first(seen: Seen):
    for name in ("done", "reloaded", "replaced"):
        start, test, export = seen.buttons[name]
        assert "secondary" in start
        assert "primary" in test
        assert "primary" in export


def test_a_second_press_asks_and_only_who_agrees_pays_again(seen: Seen):
    assert "neither exported nor saved" in seen.said["asked"]
    assert "costs its epsilon again" in seen.said["asked"]
    assert seen.said["asked: screen: texts"] == seen.said["done: texts"]
    assert seen.runs == [1, 2, 3]


def test_it_is_there_for_everybody_and_no_wider_than_a_phone(seen: Seen):
    assert seen.wide == [0] * len(seen.wide)
    assert seen.found == []
    assert seen.journey.console == []
    assert seen.journey.foreign == []
