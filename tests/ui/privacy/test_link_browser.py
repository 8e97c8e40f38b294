"""A plan's link in a real browser: copied in one tab, opened in others, by a friend and by an enemy.

The server runs in this process, with a toy for a model: nothing here asks it anything.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from mechanisms.accounting import PrivacyLedger
from tests.toy_model import ToyModel
from tests.ui.accessible import by_keys, findings
from tests.ui.server.test_two_tabs import served
from tests.ui.test_browser import fill, messages, write_csv
from tests.ui.visit import ARGUMENTS, CHROMIUM, HOSTILE, SLOW, Journey, press, step, watch

pytestmark = pytest.mark.slow
NAMES = ("Billing", "Delivery", "browser-link", "topic", "message")
_SETTINGS = """() => [...document.querySelectorAll('#step-2 input, #step-2 textarea')]
  .filter((each) => each.checkVisibility() && !each.closest('#plan-link')).map((each) =>
    [each.type, ['radio', 'checkbox'].includes(each.type) ? each.checked : each.value])"""


@dataclass
class Visit:
    """What was seen in the tabs."""

    folder: Path
    journey: Journey
    link: str = ""
    settings: list[list[object]] = field(default_factory=list)
    promises: list[str] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)
    address: dict[str, str] = field(default_factory=dict)
    inaccessible: list[str] = field(default_factory=list)
    overflow: int = 1
    hacked: object = None


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Visit:
    folder = tmp_path_factory.mktemp("links")
    visited = Visit(folder, Journey(folder, ""))
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        for name, place in (("DPICL_HOME", "home"), ("TMPDIR", "temp"), ("GRADIO_TEMP_DIR", "temp/gradio")):
            patch.setenv(name, str(folder / place))
        (folder / "temp").mkdir()
        patch.setattr(tempfile, "tempdir", None)
        browser = playwright.chromium.launch(executable_path=CHROMIUM if CHROMIUM.exists() else None, args=ARGUMENTS)
        with served(folder, ToyModel()) as port:
            copied(opened(browser, port, visited), visited)
            taken_over(opened(browser, port, visited, visited.link.partition("#")[2]), visited)
            refused(opened(browser, port, visited, f"plan=1&epsilon=9&mechanism={HOSTILE}"), visited)
            browser.close()  # before the server: what is open would miss it
    return visited


def opened(browser: Browser, port: int, visited: Visit, plan: str = "") -> Page:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    watch(page, visited.journey, port)
    page.goto(f"http://127.0.0.1:{port}/#{plan}")
    page.wait_for_selector("#upload-data input[type=file]", state="attached")
    return page


def confirm_data(page: Page, visited: Visit) -> None:
    file = write_csv(visited.folder / "browser-link.csv", messages(30))
    page.set_input_files("#upload-data input[type=file]", file)
    page.wait_for_selector("#data-preview table", timeout=SLOW)
    page.check("#labels-public input")
    page.check("#counts-public input")
    press(page, "#confirm-data", "#step-2.current")
    page.wait_for_selector("#outcome .guarantee", timeout=SLOW)


def copied(page: Page, visited: Visit) -> None:
    confirm_data(page, visited)
    page.click("#recipe label:has-text('Token by token')")
    page.fill("#epsilon-number", "2.5")
    page.press("#epsilon-number", "Tab")
    fill(page, "subsets", 9)
    fill(page, "tokens", 7)
    page.click("#step-2 button:has-text('Mechanism and sampling')")
    page.click("#mechanism label:has-text('Public text where the rows agree')")
    page.wait_for_selector("#outcome .guarantee:has-text('factor of 12.'):visible", timeout=SLOW)
    until_calibrated(page)
    visited.settings.append(page.evaluate(_SETTINGS))
    visited.promises.append(page.inner_text("#outcome"))
    page.focus("#copy-link")
    while page.locator("#plan-link input").count() == 0:  # a key is dropped while a handler is ending
        page.keyboard.press("Enter")
        page.wait_for_timeout(1000)
    visited.link = page.input_value("#plan-link input")
    visited.inaccessible = [*findings(page), *by_keys(page)]
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(300)
    root = "document.documentElement"
    visited.overflow = page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")


def until_calibrated(page: Page) -> None:
    """Wait for a promise that stays: the one before stands until the settings have been heard of."""
    shown, times = "", 0
    while times < 5:
        page.wait_for_selector("#outcome .guarantee", timeout=SLOW)
        before, shown = shown, page.inner_text("#outcome")
        times = times + 1 if shown == before else 0
        page.wait_for_timeout(1000)


def taken_over(page: Page, visited: Visit) -> None:
    page.wait_for_selector("#link-notice .notice.info", timeout=SLOW)
    visited.said["at first"] = page.inner_text("#link-notice")
    visited.address["at first"] = page.url
    visited.inaccessible += findings(page)
    confirm_data(page, visited)
    page.wait_for_selector("#link-notice .notice:has-text('in step 2')", timeout=SLOW)
    page.click("#step-2 button:has-text('Mechanism and sampling')")
    until_calibrated(page)
    visited.settings.append(page.evaluate(_SETTINGS))
    visited.promises.append(page.inner_text("#outcome"))
    step(page, 3)
    visited.said["step 3"] = page.inner_text("#step-3")


def refused(page: Page, visited: Visit) -> None:
    page.wait_for_selector("#link-notice .notice.bad", timeout=SLOW)
    visited.said["refused"] = page.inner_text("#link-notice .notice.bad")
    visited.hacked = page.evaluate("window.hacked || null")
    confirm_data(page, visited)
    until_calibrated(page)
    visited.said["after the refusal"] = page.input_value("#epsilon-number")


def test_the_other_tab_has_the_same_settings_and_promises_the_same(visit: Visit):
    assert len(visit.settings[0]) > 20
    assert visit.settings[0] == visit.settings[1]
    assert visit.promises[0] == visit.promises[1]
    assert "epsilon 2.5" in visit.said["at first"]


def test_a_link_holds_no_name_and_no_prompt_and_leaves_the_address(visit: Visit):
    plan = visit.link.partition("#")[2]
    assert plan.startswith("plan=1&epsilon=2.5&")
    assert not [name for name in NAMES if name.lower() in plan.lower()]
    assert "#" not in visit.address["at first"]


def test_a_hostile_link_is_one_line_and_changes_nothing(visit: Visit):
    assert "nothing was taken" in visit.said["refused"]
    assert "\n" not in visit.said["refused"]
    assert visit.said["after the refusal"] == "1"
    assert visit.hacked is None


def test_nothing_ran_and_nothing_was_spent(visit: Visit):
    assert "Whole demonstrations are collected here" in visit.said["step 3"]
    assert PrivacyLedger(visit.folder / "home").snapshot("browser-link", "record").runs == 0


def test_everybody_can_use_it(visit: Visit):
    assert visit.inaccessible == []
    assert visit.overflow == 0


def test_nothing_fails_and_no_other_host_is_asked(visit: Visit):
    assert visit.journey.console == []
    assert visit.journey.foreign == []
