"""A file without a header in a real browser, from the question to the exported set; then an encoding, and labels."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path

import pytest
from playwright.sync_api import Page

from mechanisms.runs.verification import verify
from tests.ui.accessible import findings
from tests.ui.visit import SLOW, Journey, plan_by_token, press, step, visiting

pytestmark = pytest.mark.slow
PICTURES = os.environ.get("DPICL_READING_PICTURES")
"""A folder in which the pictures of a visit are left."""
CHINESE = "申请贷款需要什么材料"


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    folder = tmp_path_factory.mktemp("reading")
    seen = Journey(folder, f"canary{uuid.uuid4().hex} lost a card in the old harbour")
    with visiting(seen) as page:
        without_header(page, seen)
        write(page, seen)
        in_chinese(page, seen)
        spelled(page, seen)
    return seen


def bring(page: Page, seen: Journey, name: str, content: bytes) -> None:
    path = seen.folder / name
    path.write_bytes(content)
    page.set_input_files("#upload-data input[type=file]", path)


def look(page: Page, seen: Journey, name: str) -> None:
    page.wait_for_timeout(300)
    seen.inaccessible += [f"{name}: {each}" for each in findings(page)]
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


def without_header(page: Page, seen: Journey) -> None:
    rows = [seen.canary, *(f"a letter about a thing {i}" for i in range(39))]
    bring(
        page, seen, "letters.csv", "".join(f"{row},{('card', 'loan')[i % 2]}\n" for i, row in enumerate(rows)).encode()
    )
    page.wait_for_selector("#data-look table")
    seen.shown["question"] = page.inner_text("#data-question")
    seen.shown["as header"] = page.inner_text("#data-look thead")
    look(page, seen, "headerless-asked")
    page.click("#data-header label:has-text('It is a row')")
    page.wait_for_selector("#data-look thead:has-text('1')")
    seen.shown["as row"] = page.inner_text("#data-look")
    look(page, seen, "headerless-as-row")
    press(page, "#data-read-so", "#data-preview table")
    seen.shown["opened"] = page.inner_text("#data-preview")
    seen.shown["kind"] = page.input_value("#kind input")
    look(page, seen, "headerless-opened")


def write(page: Page, seen: Journey) -> None:
    page.fill("#data-name input, #data-name textarea", "letters")
    plan_by_token(page, subsets=8, tokens=4)
    page.click("#generate")
    page.wait_for_selector("#run-notice .notice", timeout=SLOW)
    step(page, 5)
    with page.expect_download() as download:
        page.click("#download")
    seen.export = Path(download.value.path()).read_text(encoding="utf-8")


def in_chinese(page: Page, seen: Journey) -> None:
    step(page, 1)
    rows = "".join(f"{CHINESE} {i},{('投诉', '咨询')[i % 2]}\n" for i in range(40))
    bring(page, seen, "chinese.csv", f"text,label\n{rows}".encode("gb18030"))
    page.wait_for_selector(f"#data-look:has-text('{CHINESE}')")
    seen.shown["stays"] = page.inner_text("#data-notice")
    seen.shown["encoding"] = page.input_value("#data-encoding input")
    look(page, seen, "encoding-asked")
    press(page, "#data-read-so", f"#data-preview:has-text('{CHINESE}')")
    seen.shown["chinese"] = page.inner_text("#data-facts")


def spelled(page: Page, seen: Journey) -> None:
    labels = ["card", "Card", "card\u200b", "card", "loan"]
    rows = "".join(f"a letter about {i},{labels[i % 5]}\n" for i in range(40)) + "nan,card\n" * 5
    bring(page, seen, "spelled.csv", f"text,label\n{rows}".encode())
    page.wait_for_selector("#labels-alike:has-text('Card')")
    look(page, seen, "labels-alike")
    page.click("#merge-labels")
    page.wait_for_selector("#merge-labels", state="hidden")
    seen.shown["merged"] = page.inner_text("#data-facts")
    page.check("#declared-public input")
    page.click("#confirm-data")
    seen.shown["unconfirmed"] = page.inner_text("#data-problem .notice")
    page.check("#allow-left-out input")
    press(page, "#confirm-data", "#step-2.current")


def test_a_first_line_that_looks_like_a_row_is_asked_about_and_shown_both_ways(journey: Journey):
    assert "looks like a row" in journey.shown["question"]
    assert journey.canary not in journey.shown["question"]
    assert journey.canary in journey.shown["as header"]
    assert journey.canary in journey.shown["as row"]
    assert "40 rows" in journey.shown["opened"]
    assert journey.shown["kind"] == "text"


def test_a_private_row_stands_in_no_prompt_and_in_no_export(journey: Journey):
    word = journey.canary.split()[0]
    assert journey.demo_set.template.instruction == "Classify each text as card or loan."
    assert journey.demo_set.certificate.private
    assert not verify(journey.demo_set).problems
    assert word not in journey.export
    assert "harbour" not in journey.export
    assert json.loads(journey.export)["task"]["template"] == {"text": "Text", "label": "Label"}
    assert not [file.name for file in journey.files("home", "temp") if word.encode() in file.read_bytes()]


def test_an_encoding_is_proposed_and_the_file_before_is_said_to_stay(journey: Journey):
    assert "stays open" in journey.shown["stays"]
    assert journey.shown["encoding"] == "gb18030"
    assert "投诉" in journey.shown["chinese"]


def test_labels_that_look_alike_are_one_after_a_click_and_rows_left_out_want_a_tick(journey: Journey):
    assert "5 of 45 rows are left out" in journey.shown["merged"]
    assert "Card" not in journey.shown["merged"]
    assert "Go on without the rows" in journey.shown["unconfirmed"]


def test_the_question_is_accessible_and_nothing_leaves_the_page(journey: Journey):
    assert journey.inaccessible == []
    assert journey.foreign == []
    assert journey.console == []
