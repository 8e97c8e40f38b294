"""Two tabs and one model: the second run waits; a tab that is closed leaves nothing private behind, and a run that a
reload cut off goes on.

The server runs in this process, with a toy for a model, so that what it remembers can be looked at.
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
from dpicl_ui.frame.model_loader import Loaded, ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger, Sessions
from dpicl_ui.frame.theme import look
from dpicl_ui.page import build
from mechanisms.accounting import PrivacyLedger
from mechanisms.runs import writing
from mechanisms.runs.stage import Speed
from mechanisms.runs.text import Gate
from tests.toy_model import ToyModel
from tests.ui.test_browser import messages, write_csv
from tests.ui.visit import ARGUMENTS, CHROMIUM, SLOW, Journey, free_port, plan_by_token, press, watch

pytestmark = pytest.mark.slow
CANARY = "canary 5f0c8e1b7d2a4c66"
LOST = "My invoice is lost."
ROOT = "document.documentElement"


class Paused(ToyModel):
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
    overflow: int = 0
    open_tabs: list[int] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)
    texts: list[int] = field(default_factory=list)
    journals: list[Path] | None = None


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
        patch.setattr(writing, "whole_sentences", lambda text: text)
        sessions, model = Sessions(), Paused()
        patch.setattr(page_module, "Sessions", lambda: sessions)
        browser = playwright.chromium.launch(executable_path=CHROMIUM if CHROMIUM.exists() else None, args=ARGUMENTS)
        with served(folder, model) as port:
            go(browser, port, visited, sessions, model)
        browser.close()
    return visited


@contextmanager
def served(folder: Path, model: ToyModel) -> Iterator[int]:
    loader = ModelLoader("none")
    loader._loaded = Loaded(model, Speed(1.0, 1.0, 1.0), 0)
    loader._done.set()
    page = build(CuratorLedger(PrivacyLedger(folder / "home")), loader)
    port = free_port()
    page.launch(server_port=port, prevent_thread_lock=True, quiet=True, ssr_mode=False, run_history=False, **look())
    try:
        yield port
    finally:
        page.close()


@contextmanager
def tab(browser: Browser, port: int, visited: Visit, name: str) -> Iterator[Page]:
    """A tab in a browser of its own, ready to generate a short run."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    watch(page, visited.journey, port)
    page.goto(f"http://127.0.0.1:{port}/")
    choose(page, visited, name)
    yield page
    context.close()


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
            visited.overflow = two.evaluate(f"{ROOT}.scrollWidth - {ROOT}.clientWidth")
            model.free.set()
            for name, page in (("first", one), ("second", two)):
                page.wait_for_selector("#run-notice .notice", timeout=SLOW)
                visited.said[f"{name} run"] = page.inner_text("#run-notice")
            tables = [weakref.ref(each.of(DataState).confirmed.dataset) for each in sessions._sessions.values()]
            visited.open_tabs.append(len(sessions._sessions))
            visited.texts.append(texts_with(f"{LOST} {CANARY}"))
        gone(sessions, 1)
        visited.open_tabs.append(len(sessions._sessions))
    gone(sessions, 0)
    visited.open_tabs.append(len(sessions._sessions))
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
        before = set(sessions._sessions)
        page.reload()
        [journal] = (visited.folder / "home" / "journals").iterdir()
        visited.said["journal"] = journal.read_text(encoding="utf-8")
        ledger = PrivacyLedger(visited.folder / "home")
        until = time.monotonic() + SLOW / 1000
        while ledger.history("third")[-1]["status"] == "running":
            assert time.monotonic() < until, "the page was left, and its run goes on"
            page.wait_for_timeout(200)
            if before.isdisjoint(sessions._sessions):
                model.free.set()
        visited.journey.console[:] = console  # a page that is left says that its connections end
        choose(page, visited, "third")
        page.wait_for_selector("#cut-off-words p", timeout=SLOW)
        visited.said["cut off"] = page.inner_text("#cut-off-words")
        press(page, "#go-on", "#run-notice .notice")
        visited.said["gone on"] = page.inner_text("#run-notice")
        visited.said["its texts"] = page.inner_text("#finished")
        page.wait_for_selector("#go-on", state="hidden")
        visited.journals = list(journal.parent.iterdir())


def gone(sessions: Sessions, left: int) -> None:
    until = time.monotonic() + SLOW / 1000
    while len(sessions._sessions) > left:
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


def test_the_second_waits_and_its_run_ends(visit: Visit):
    assert visit.said["second"] == "Waiting for the model …"
    assert visit.said["first run"].startswith("Done.")
    assert visit.said["second run"].startswith("Done.")
    assert visit.overflow == 0


def test_nothing_that_is_said_holds_a_row(visit: Visit):
    assert CANARY not in "".join(visit.said.values())


def test_a_closed_tab_is_forgotten(visit: Visit):
    assert visit.open_tabs == [2, 1, 0]
    assert visit.held == [False, False]
    while_open, after = visit.texts
    assert while_open > 0
    assert after == 0


def test_a_run_that_a_reload_cut_off_goes_on_and_costs_what_one_run_costs(visit: Visit):
    assert "1 of 2 demonstrations was whole" in visit.said["cut off"]
    assert visit.said["gone on"].startswith("Done.")
    assert "2 of 2" in visit.said["its texts"]
    assert CANARY not in visit.said["journal"] + visit.said["cut off"]
    assert visit.journals == []
    ledger = PrivacyLedger(visit.folder / "home")
    once, again = (ledger.account(name, "record") for name in ("first", "third"))
    assert len(again.runs) == 1
    assert [run.counted for run in again.runs] == [run.counted for run in once.runs if run.counted]


def test_no_file_of_the_server_holds_a_row(visit: Visit):
    assert CANARY in (visit.folder / "first.csv").read_text(encoding="utf-8")
    secret = CANARY.removeprefix("canary ")
    needles = secret.encode(), secret.encode("utf-16-le")
    files = [*visit.journey.files("home", "temp")]
    assert files
    assert (visit.folder / "temp" / "gradio").is_dir()  # uploads came by here
    assert [str(path) for path in files if any(needle in path.read_bytes() for needle in needles)] == []


def test_nothing_fails_and_no_other_host_is_asked(visit: Visit):
    assert visit.journey.console == []
    assert visit.journey.foreign == []
