"""Tabs on small phones: a second run waits; a closed tab leaves nothing private behind; a run that a reload cut off
goes on; a finished one is neither lost by a reload nor replaced unasked, and is copied, with its cost at the side.

The server runs in this process, with a toy for a model, so that what it remembers can be looked at. All visit it in one
browser, one after the other.
"""

from __future__ import annotations

import gc
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from dpicl_ui import page as page_module
from dpicl_ui.data.state import DataState
from dpicl_ui.frame.model_loader import LoadedModel, ModelLoader
from dpicl_ui.frame.services import CuratorLedger, Sessions
from dpicl_ui.frame.theme import launch_options
from dpicl_ui.generate.kept_runs import KeptRuns
from dpicl_ui.page import build
from mechanisms.accounting import PrivacyLedger
from mechanisms.runs.text import Gate
from mechanisms.runs.work import Speed
from tests.ui.test_browser import messages, write_csv
from tests.ui.visit import ARGUMENTS, CHROMIUM, SLOW, Journey, findings, free_port, plan_by_token, press, step, watch
from tests.word_model import WordModel

pytestmark = pytest.mark.slow
CANARY = "canary 5f0c8e1b7d2a4c66"
LOST = "My invoice is lost."
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
KEPT = "kept"
USES = ("messages", "vllm", "openai", "prompt", "transformers")


class Paused(WordModel):
    """Goes on when it may; stops for that before a session."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()
        self.free.set()
        self.pause_at: int | None = None

    def open(self, *arguments: Any) -> Any:
        if len(self.opened) == self.pause_at:
            self.free.clear()
        assert self.free.wait(SLOW / 1000)
        return super().open(*arguments)


@dataclass
class Visit:
    """What was seen, and what the server held when a tab was open, and when it was closed."""

    folder: Path
    journey: Journey
    said: dict[str, str] = field(default_factory=dict)
    wide: list[int] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    open_tabs: list[int] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)
    texts: list[int] = field(default_factory=list)
    journals: list[Path] | None = None
    buttons: dict[str, list[str]] = field(default_factory=dict)
    runs: list[int] = field(default_factory=list)
    restored: list[bool] = field(default_factory=list)
    beside: list[bool] = field(default_factory=list)


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Visit:
    folder = tmp_path_factory.mktemp("tabs")
    visited = Visit(folder, Journey(folder, CANARY))
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        for name, place in (("DPICL_HOME", "home"), ("TMPDIR", "temp"), ("GRADIO_TEMP_DIR", "temp/gradio")):
            patch.setenv(name, str(folder / place))
        (folder / "temp").mkdir()
        patch.setattr(tempfile, "tempdir", None)
        patch.setattr(Gate, "reason", lambda gate, text: None)  # a toy writes no texts
        sessions, model, restore = Sessions(), Paused(), KeptRuns.restore

        def noted(*arguments: Any) -> bool:
            visited.restored.append(restore(*arguments))
            return visited.restored[-1]

        patch.setattr(KeptRuns, "restore", noted)
        patch.setattr(page_module, "Sessions", lambda: sessions)
        browser = playwright.chromium.launch(executable_path=CHROMIUM if CHROMIUM.exists() else None, args=ARGUMENTS)
        with served(folder, model) as port:
            go(browser, port, visited, sessions, model)
            visited.restored.clear()
            reload_at_the_end(browser, port, visited)
            browser.close()  # a page that is open when the server goes says so
    return visited


@contextmanager
def served(folder: Path, model: WordModel) -> Iterator[int]:
    loader = ModelLoader("none")
    loader._loaded = LoadedModel(model, Speed(1.0, 1.0, 1.0), 0, 0)
    loader._done.set()
    page = build(CuratorLedger(PrivacyLedger(folder / "home")), loader)
    port = free_port()
    page.launch(
        server_port=port, prevent_thread_lock=True, quiet=True, ssr_mode=False, run_history=False, **launch_options()
    )
    try:
        yield port
    finally:
        page.close()


@contextmanager
def opened(browser: Browser, port: int, visited: Visit) -> Iterator[Page]:
    """A tab in a browser profile of its own."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    watch(page, visited.journey, port)
    page.goto(f"http://127.0.0.1:{port}/")
    yield page
    context.close()


@contextmanager
def tab(browser: Browser, port: int, visited: Visit, name: str) -> Iterator[Page]:
    """A tab that is ready to generate a short run."""
    with opened(browser, port, visited) as page:
        choose(page, visited, name)
        yield page


def choose(page: Page, visited: Visit, name: str) -> None:
    rows = [(f"{LOST} {CANARY}", "Billing"), *messages(30)]
    page.set_input_files("#upload-data input[type=file]", write_csv(visited.folder / f"{name}.csv", rows))
    page.wait_for_selector("#data-preview table", timeout=SLOW)
    page.fill("#data-name input, #data-name textarea", name)
    plan_by_token(page, subsets=8, tokens=4)


def go(browser: Browser, port: int, visited: Visit, sessions: Sessions, model: Paused) -> None:
    with tab(browser, port, visited, "first") as one:
        with tab(browser, port, visited, "second") as two:
            model.free.clear()
            press(one, "#generate", "#stop:enabled")
            two.click("#generate")
            two.wait_for_selector("#run-notice .spinner", timeout=SLOW)
            visited.said["second"] = two.inner_text("#run-notice")
            visited.wide.append(two.evaluate(WIDER))
            model.free.set()
            for name, page in (("first", one), ("second", two)):
                page.wait_for_selector("#run-notice .notice", timeout=SLOW)
                visited.said[f"{name} run"] = page.inner_text("#run-notice")
            tables = [weakref.ref(each.of(DataState).confirmed.dataset) for each in sessions._open.values()]
            visited.open_tabs.append(len(sessions._open))
            visited.texts.append(texts_with(f"{LOST} {CANARY}"))
        gone(sessions, 1)
        visited.open_tabs.append(len(sessions._open))
    gone(sessions, 0)
    visited.open_tabs.append(len(sessions._open))
    reload_in_the_middle(browser, port, visited, sessions, model)
    gone(sessions, 0)
    visited.held, texts = remembered(tables)
    visited.texts.append(texts)


def remembered(tables: list[weakref.ref[Any]]) -> tuple[list[bool], int]:
    """Which tables are still there, and how many texts; the handler that closes a tab may be about to end."""
    until = time.monotonic() + 60
    while True:
        gc.collect()
        found = [each() is not None for each in tables], texts_with(f"{LOST} {CANARY}")
        if found == ([False] * len(tables), 0) or time.monotonic() > until:
            return found
        time.sleep(0.2)


def reload_in_the_middle(browser: Browser, port: int, visited: Visit, sessions: Sessions, model: Paused) -> None:
    with tab(browser, port, visited, "third") as page:
        model.pause_at = len(model.opened) + 3  # the second text's sessions, behind the first one's and the gate's
        press(page, "#generate", "#stop:enabled")
        page.wait_for_selector("#finished .demo", timeout=SLOW)
        console = [*visited.journey.console]
        before = set(sessions._open)
        page.reload()
        page.wait_for_selector("#left-runs .notice", timeout=SLOW)
        visited.said["left"] = page.inner_text("#left-runs")
        visited.said["file after a reload"] = page.inner_text("#reloaded")
        [journal] = (visited.folder / "home" / "journals").iterdir()
        visited.said["journal"] = journal.read_text(encoding="utf-8")
        ledger = PrivacyLedger(visited.folder / "home")
        until = time.monotonic() + SLOW / 1000
        while ledger.history("third")[-1]["status"] == "running":
            assert time.monotonic() < until, "the page was left, and its run goes on"
            page.wait_for_timeout(200)
            if before.isdisjoint(sessions._open):
                model.free.set()
        model.pause_at = None  # the run may have ended before it came there, and nobody else is to wait
        model.free.set()
        visited.journey.console[:] = console  # a page that is left says that its connections end
        choose(page, visited, "third")
        visited.said["file chosen again"] = page.inner_text("#reloaded").strip()
        page.wait_for_selector("#left-runs .notice", state="detached", timeout=SLOW)
        page.wait_for_selector("#cut-off-words p", timeout=SLOW)
        visited.said["cut off"] = page.inner_text("#cut-off-words")
        press(page, "#go-on", "#run-notice .notice")
        visited.said["gone on"] = page.inner_text("#run-notice")
        visited.said["its texts"] = page.inner_text("#finished")
        page.wait_for_selector("#go-on", state="hidden")
        visited.journals = list(journal.parent.iterdir())


def gone(sessions: Sessions, left: int) -> None:
    until = time.monotonic() + SLOW / 1000
    while len(sessions._open) > left:
        assert time.monotonic() < until, "a tab was closed, and its session is still there"
        time.sleep(0.2)


def texts_with(words: str) -> int:
    """How many texts that hold these words any list, mapping or object of this process refers to."""
    gc.collect()
    waiting, found = gc.get_objects(), 0
    known = {id(each) for each in waiting}
    while waiting:
        for each in gc.get_referents(waiting.pop()):
            kind = type(each)  # isinstance would ask what only pretends to be of a type
            if kind is str:
                found += words in each
            elif kind in (dict, list, tuple, set) and id(each) not in known:  # some are in no list of gc's
                known.add(id(each))
                waiting.append(each)
    return found


def reload_at_the_end(browser: Browser, port: int, seen: Visit) -> None:
    with tab(browser, port, seen, KEPT) as page:
        reload_and_replace(page, seen, lambda: opened(browser, port, seen))


def reload_and_replace(page: Page, seen: Visit, another: Any) -> None:
    page.click("#generate")
    page.wait_for_selector("#go-export", timeout=SLOW)
    looked(page, seen, "done")
    console = [*seen.journey.console]
    page.reload()
    page.wait_for_selector("#step-3.current")
    page.wait_for_selector("#replay .replay-range")
    page.wait_for_selector("#go-export")
    seen.journey.console[:] = console  # a page that is left says that its connections end
    looked(page, seen, "reloaded")
    with another() as other:  # with a key of its own
        answered(other, seen, 3)
        seen.said["elsewhere"] = other.inner_text("#steps")
        seen.said["file elsewhere"] = other.inner_text("#reloaded").strip()
    step(page, 5)
    page.wait_for_selector("#certificate .guarantee, #certificate dl, #certificate p")
    seen.said["certificate"] = page.inner_text("#certificate")
    for name in USES:
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
    choose(page, seen, KEPT)
    replace(page, seen)


def looked(page: Page, seen: Visit, name: str) -> None:
    page.wait_for_selector("#generate:has-text('Write another set')")
    seen.said[name] = page.inner_text("#run-notice")
    seen.said[f"{name}: texts"] = page.inner_text("#finished .demos")
    seen.buttons[name] = [
        page.get_attribute(f"#{each}", "class") or "" for each in ("generate", "go-test", "go-export")
    ]
    seen.wide.append(page.evaluate(WIDER))
    seen.found += findings(page)
    seen.said["storage"] = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")


def budget(page: Page, seen: Visit) -> None:
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
    seen.wide.append(page.evaluate(WIDER))
    seen.found += findings(page)
    page.keyboard.press("Escape")
    page.wait_for_selector("#step-6", state="hidden")
    seen.beside.append(page.evaluate("document.activeElement.matches('.stepper.beside')"))


def replace(page: Page, seen: Visit) -> None:
    ledger = PrivacyLedger(seen.folder / "home")
    page.click("#generate")
    page.wait_for_selector("#replacing-words .notice")
    seen.said["asked"] = page.inner_text("#replacing-words")
    looked(page, seen, "asked: screen")
    page.click("#keep-set")
    page.wait_for_selector("#replace-set", state="hidden")
    seen.runs.append(len(ledger.history(KEPT)))
    page.click("#generate")
    page.wait_for_selector("#replace-set")
    page.click("#replace-set")
    ended(page, ledger, seen.runs[-1])
    looked(page, seen, "replaced")
    seen.runs.append(len(ledger.history(KEPT)))
    with page.expect_download():
        page.click("#save-run")
    page.click("#generate")  # nothing is asked any more, and a toy's run may be over before anybody looks
    ended(page, ledger, seen.runs[-1])
    seen.runs.append(len(ledger.history(KEPT)))


def ended(page: Page, ledger: PrivacyLedger, before: int) -> None:
    """Wait for the end of one more run than `before`; a toy's may be over before the page has shown that it runs."""
    until = time.monotonic() + SLOW / 1000
    while len(runs := ledger.history(KEPT)) == before or runs[-1]["status"] == "running":
        assert time.monotonic() < until, "no further run has come to its end"
        page.wait_for_timeout(100)
    page.wait_for_selector("#generate:enabled", timeout=SLOW)
    page.wait_for_selector("#go-export", timeout=SLOW)


def answered(page: Page, seen: Visit, pages: int) -> None:
    """Wait until so many pages have asked for a run."""
    until = time.monotonic() + SLOW / 1000
    while len(seen.restored) < pages:
        assert time.monotonic() < until, "a page was opened, and did not ask for its run"
        page.wait_for_timeout(100)


def test_the_second_waits_and_its_run_ends(visit: Visit):
    assert visit.said["second"] == "Waiting for the model …"
    assert visit.said["first run"].startswith("Done.")
    assert visit.said["second run"].startswith("Done.")


def test_a_closed_tab_is_forgotten(visit: Visit):
    assert visit.open_tabs == [2, 1, 0]
    assert visit.held == [False, False]
    while_open, after = visit.texts
    assert while_open > 0
    assert after == 0


def test_a_run_that_a_reload_cut_off_goes_on_and_costs_what_one_run_costs(visit: Visit):
    assert "A run on 'third'" in visit.said["left"]
    assert "choose its file or example again" in visit.said["left"]
    assert "1 of 2 demonstrations was complete" in visit.said["cut off"]
    assert visit.said["gone on"].startswith("Done.")
    assert "2 of 2" in visit.said["its texts"]
    assert CANARY not in visit.said["journal"] + visit.said["cut off"] + visit.said["left"]
    assert visit.journals == []
    ledger = PrivacyLedger(visit.folder / "home")
    once, again = (ledger.account(name, "record") for name in ("first", "third"))
    assert len(again.runs) == 1
    assert [run.counted for run in again.runs] == [run.counted for run in once.runs if run.counted]


def test_a_reload_says_that_it_dropped_the_file_until_one_is_chosen_again(visit: Visit):
    assert "reloaded" in visit.said["file after a reload"]
    assert "choose the file again" in visit.said["file after a reload"]
    assert visit.said["file chosen again"] == visit.said["file elsewhere"] == ""
    assert not any(each in visit.said["storage"] for each in (CANARY, ".csv"))


def test_no_file_of_the_server_holds_a_row(visit: Visit):
    assert CANARY in (visit.folder / "first.csv").read_text(encoding="utf-8")
    secret = CANARY.removeprefix("canary ")
    assert secret not in "".join(visit.said.values())
    needles = secret.encode(), secret.encode("utf-16-le")
    files = [*visit.journey.files("home", "temp")]
    assert files
    assert (visit.folder / "temp" / "gradio").is_dir()  # uploads came by here
    assert [str(path) for path in files if any(needle in path.read_bytes() for needle in needles)] == []


def test_a_reload_shows_the_run_and_its_set_again_and_neither_data_nor_rows(visit: Visit):
    assert visit.said["done"].startswith("Done.")
    assert "was reloaded" in visit.said["reloaded"]
    assert visit.said["reloaded: texts"] == visit.said["done: texts"]
    assert "epsilon" in visit.said["certificate"]
    assert "step 1" in visit.said["without data"]


def test_the_prompt_and_the_code_are_copied_with_the_set_in_them(visit: Visit):
    first = visit.said["done: texts"].split("\n")[1]
    assert all("openai.OpenAI(" in visit.said[f"copied {name}"] for name in ("vllm", "openai"))
    assert "from transformers import pipeline" in visit.said["copied transformers"]
    assert all(first in visit.said[f"copied {name}"] for name in USES)


def test_the_budget_opens_at_the_side_of_a_step(visit: Visit):
    assert visit.beside == [True, True, True]
    assert "Download as CSV" in visit.said["budget"]
    assert "All runs then" in visit.said["budget"]


def test_another_tab_gets_nothing(visit: Visit):
    assert visit.restored == [False, True, False]
    assert "done" not in visit.said["elsewhere"].lower()


def test_after_a_run_the_next_step_comes_first(visit: Visit):
    for name in ("done", "reloaded", "replaced"):
        start, test, export = visit.buttons[name]
        assert "secondary" in start
        assert "primary" in test
        assert "primary" in export


def test_a_second_press_asks_and_only_who_agrees_pays_again(visit: Visit):
    assert "neither exported nor saved" in visit.said["asked"]
    assert "costs its epsilon again" in visit.said["asked"]
    assert visit.said["asked: screen: texts"] == visit.said["done: texts"]
    assert visit.runs == [1, 2, 3]


def test_it_is_there_for_everybody_and_no_wider_than_a_phone(visit: Visit):
    assert visit.wide == [0] * len(visit.wide)
    assert visit.found == visit.journey.console == visit.journey.foreign == []
