"""The page: what it shows first, that programs are offered nothing, and that no browser translates it."""

from __future__ import annotations

import asyncio
import csv
from dataclasses import dataclass, field
from pathlib import Path

import gradio as gr
import pytest
from gradio.blocks import BlockContext
from playwright.sync_api import Page, sync_playwright

from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger
from dpicl_ui.page import build
from mechanisms.accounting import PrivacyLedger
from tests.ui.visit import SLOW, browser, serving

# What the page shows before anything was pressed.


def page_at(home: Path) -> gr.Blocks:
    async def made() -> gr.Blocks:
        return build(CuratorLedger(PrivacyLedger(home)), ModelLoader("none"))

    return asyncio.run(made())


def test_programs_are_offered_no_handler_of_the_page(tmp_path):
    made = page_at(tmp_path)
    assert made.get_api_info() == {"named_endpoints": {}, "unnamed_endpoints": {}}
    assert {each.api_visibility for each in made.fns.values()} == {"private"}


def test_no_layout_is_hidden_in_a_way_that_gradio_shows(tmp_path):
    """A column that is "hidden" from the start is drawn: its buttons would stand there before there is a run."""
    layouts = [each for each in page_at(tmp_path).blocks.values() if isinstance(each, BlockContext)]
    assert any(getattr(each, "visible", True) is False for each in layouts)
    assert [each.elem_id for each in layouts if getattr(each, "visible", True) == "hidden"] == []


def told_after(made: gr.Blocks, button: str) -> list[list[str | None]]:
    """The names of what each call behind a press of the button updates."""
    [of_button] = [each._id for each in made.blocks.values() if each.elem_id == button]
    [pressed] = [each for each in made.fns.values() if (of_button, "click") in each.targets]
    behind = [each for each in made.fns.values() if each.trigger_after == pressed._id]
    return [[each.elem_id for each in told.outputs] for told in behind]


def test_that_something_was_measured_is_told_by_a_call_of_its_own(tmp_path):
    """Of two values that a handler yields within moments the browser may draw the last alone."""
    told = told_after(page_at(tmp_path), "measure")
    assert ["steps"] in told
    assert ["confusion"] in told


def test_progress_is_written_to_the_one_component_that_the_browser_finds_first(tmp_path):
    made = page_at(tmp_path)
    written = {each._id for handler in made.fns.values() for each in handler.show_progress_on or handler.outputs}
    assert [made.blocks[each].elem_id for each in written] == ["model-status"]
    assert {handler.show_progress for handler in made.fns.values() if handler.fn} == {"hidden"}


# The page declines the browser's offer to translate it, wherever on it private rows stand.

ROW = "Mein Paket ist nicht angekommen."
TRANSLATABLE = "() => [...document.querySelectorAll('html, body, body *')].filter((each) => each.translate).length"
"""`translate` says what holds for an element, from whichever element around it."""
OFFER = "meta[name=google][content=notranslate]"


@dataclass
class Seen:
    """What a browser saw that would translate: at first, and with private rows on the page."""

    folder: Path
    translate: list[str | None] = field(default_factory=list)
    offers: list[int] = field(default_factory=list)
    translatable: list[int] = field(default_factory=list)
    languages: list[str | None] = field(default_factory=list)
    preview: str = ""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    seen = Seen(tmp_path_factory.mktemp("translator"))
    with serving(seen.folder) as port, sync_playwright() as playwright:
        context = browser(playwright, seen.folder, "de-DE")
        page = context.pages[0]
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector("#upload-data input[type=file]", state="attached", timeout=SLOW)
        page.wait_for_selector("html[translate=no]", state="attached")  # Gradio runs what stands in the head late
        look(page, seen)
        bring_rows(page, seen)
        look(page, seen)
        context.close()
    return seen


def look(page: Page, seen: Seen) -> None:
    seen.translate.append(page.get_attribute("html", "translate"))
    seen.offers.append(page.locator(OFFER).count())
    seen.translatable.append(page.evaluate(TRANSLATABLE))
    seen.languages.append(page.get_attribute("html", "lang"))


def bring_rows(page: Page, seen: Seen) -> None:
    path = seen.folder / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("message", "topic"), *[(ROW, "Delivery"), (ROW, "Billing")] * 4])
    page.set_input_files("#upload-data input[type=file]", path)
    page.wait_for_selector("#data-preview table")
    seen.preview = page.inner_text("#data-preview")


@pytest.mark.slow
def test_the_browsers_own_translator_is_told_to_stay_away(seen: Seen):
    """It would send the page, private rows included, to whoever made the browser."""
    assert ROW in seen.preview
    assert seen.translate == ["no", "no"]
    assert seen.offers == [1, 1]


@pytest.mark.slow
def test_no_element_of_the_page_may_be_translated(seen: Seen):
    assert seen.translatable == [0, 0]


@pytest.mark.slow
def test_the_page_says_that_it_is_english_whatever_the_browser_prefers(seen: Seen):
    assert seen.languages == ["en", "en"]
