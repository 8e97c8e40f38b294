"""The page: its endpoints for programs, what it shows first, and that no browser translates it."""

from __future__ import annotations

import asyncio
import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from gradio.blocks import BlockContext
from playwright.sync_api import Page, sync_playwright

from dpicl_ui.frame.model_loader import Loaded, ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger, Ledgers, TabLedgers
from dpicl_ui.page import LARGEST_SET, build
from mechanisms.accounting import PrivacyLedger
from mechanisms.api import LONGEST_TEXT, MOST_TEXTS
from mechanisms.cli.main import main
from mechanisms.demos.demo_set import to_text
from mechanisms.demos.signature import signed
from mechanisms.runs.forecast import ModelSpeed
from tests.toy_model import ToyModel
from tests.ui.generate.recording import demo_set
from tests.ui.visit import SLOW, browser, serving

# What programs may ask for: three endpoints, no handler of the page, and one clear sentence where it cannot be.


PUBLIC = {"/classify", "/check_certificate", "/calibrate"}


def built(ledgers: Ledgers) -> gr.Blocks:
    loader = ModelLoader("none")
    loader._loaded = Loaded(ToyModel(), ModelSpeed(1e-3, 1e-3, 1e-3), 0)
    loader._done.set()

    async def made() -> gr.Blocks:
        return build(ledgers, loader)

    return asyncio.run(made())


def named(page: gr.Blocks) -> set[str]:
    return set(page.get_api_info()["named_endpoints"])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> gr.Blocks:
    return built(CuratorLedger(PrivacyLedger(tmp_path_factory.mktemp("home"))))


def asked(page: gr.Blocks, name: str, *values: Any) -> Any:
    [endpoint] = [each for each in page.fns.values() if each.api_name == name.removeprefix("/")]
    return endpoint.fn(*values)


def test_programs_are_offered_three_endpoints_and_no_handler_of_the_page(page: gr.Blocks):
    assert named(page) == PUBLIC
    assert not page.get_api_info()["unnamed_endpoints"]
    offered = [each for each in page.fns.values() if each.api_visibility != "private"]
    assert {f"/{each.api_name}" for each in offered} == PUBLIC
    assert all(each.queue for each in offered)
    ids = {each.api_name: (each.concurrency_id, each.concurrency_limit) for each in offered}
    assert ids["classify"] == ("model", 1)
    assert ids["check_certificate"] == ids["calibrate"] == ("calibrate", 2)


def test_strangers_programs_are_offered_nothing():
    assert named(built(TabLedgers())) == set()


@pytest.mark.slow
def test_a_program_asks_and_is_answered_as_on_the_command_line(page: gr.Blocks, tmp_path, capsys):
    text = to_text(signed(demo_set()))
    answers = asked(page, "/classify", text, ["one", "two"])
    assert [set(each["probabilities"]) for each in answers] == [set(demo_set().labels)] * 2
    assert all(each["label"] == max(each["probabilities"], key=each["probabilities"].get) for each in answers)
    (tmp_path / "demos.json").write_text(text, encoding="utf-8")
    main(["account", "--json", "--from", str(tmp_path / "demos.json")])
    assert asked(page, "/check_certificate", text) == json.loads(capsys.readouterr().out)
    line = "calibrate --json --epsilon 1 --delta 1e-5 --size 8000 --subsets 50 --tokens 20"
    main(line.split())
    found = asked(page, "/calibrate", 1.0, 1e-5, 8000, "gaussian", 50, 20)
    assert found == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("/classify", ("{", ["one"]), "demo set"),
        ("/classify", (7, ["one"]), "text of its file"),
        ("/classify", ("x" * (LARGEST_SET + 1), ["one"]), "text of its file"),
        ("/classify", ("SET", []), "1 to 64 texts"),
        ("/classify", ("SET", "one"), "1 to 64 texts"),
        ("/classify", ("SET", [1]), "1 to 64 texts"),
        ("/classify", ("SET", ["one"] * (MOST_TEXTS + 1)), "1 to 64 texts"),
        ("/classify", ("SET", ["x" * (LONGEST_TEXT + 1)]), "1 to 64 texts"),
        ("/check_certificate", ("[]",), "demo set"),
        ("/calibrate", ("much", 1e-5, 100), "epsilon needs a number"),
        ("/calibrate", (1, 2, 100), "elta"),
        ("/calibrate", (1, 1e-5, 0), "size must lie"),
        ("/calibrate", (1, 1e-5, 100, "public"), "nothing to calibrate"),
        ("/calibrate", (1, 1e-5, 100, "nothing"), "nothing"),
        ("/calibrate", (1, 1e-5, 100, "gaussian", 2.5), "whole number"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(page: gr.Blocks, name: str, values: tuple[Any, ...], words: str):
    given = [to_text(signed(demo_set())) if each == "SET" else each for each in values]
    with pytest.raises(gr.Error, match=words) as refused:
        asked(page, name, *given)
    assert "\n" not in str(refused.value)
    assert not refused.value.print_exception  # a traceback in the log may quote the request


# What the page shows before anything was pressed.


def page_at(home: Path) -> gr.Blocks:
    async def made() -> gr.Blocks:
        return build(CuratorLedger(PrivacyLedger(home)), ModelLoader("none"))

    return asyncio.run(made())


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


@pytest.mark.parametrize("button", ["measure", "leave-out"])
def test_that_something_was_measured_is_told_by_a_call_of_its_own(tmp_path, button):
    """Of two values that a handler yields within moments the browser may draw the last alone."""
    assert ["steps"] in told_after(page_at(tmp_path), button)


@pytest.mark.parametrize("button", ["measure", "leave-out"])
def test_the_confusion_matrix_is_drawn_by_a_call_of_its_own(tmp_path, button):
    assert any("confusion" in told for told in told_after(page_at(tmp_path), button))


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
