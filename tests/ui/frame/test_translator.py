"""The page declines the browser's offer to translate it, wherever on it private rows stand."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.ui.visit import SLOW, browser, serving

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
