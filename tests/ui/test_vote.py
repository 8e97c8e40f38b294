"""The default run, with few drafts, in a real browser with the embedded model: openings, tokens, vote, score."""

from __future__ import annotations

import csv
import uuid
from pathlib import Path

import pytest
from playwright.sync_api import Page

from mechanisms.accounting import PrivacyLedger
from mechanisms.inference.models.listing import EMBEDDED
from mechanisms.runs.verification import verify
from tests.ui.visit import HOSTILE, SLOW, Journey, confirm_data, fill, planned, step, visiting

pytestmark = pytest.mark.slow
LABELS = ("Billing", "Delivery")
FEW = {"drafts": 4, "draft_tokens": 24, "tokens": 4, "max_record_tokens": 8}


def write_csv(seen: Journey) -> Path:
    words = {"Billing": "The invoice of month {} is wrong.", "Delivery": "Parcel {} has not arrived."}
    rows = [(words[label].format(i), label) for i in range(8) for label in LABELS]
    path = seen.folder / "private.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("message", "topic"), (f"{seen.canary} {HOSTILE}", "Billing"), *rows])
    return path


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    folder = tmp_path_factory.mktemp("vote")
    seen = Journey(folder, f"canary {uuid.uuid4().hex}")
    with visiting(seen, DPICL_MODEL=EMBEDDED) as page:
        travel(page, seen)
    return seen


def travel(page: Page, seen: Journey) -> None:
    page.set_input_files("#upload-data input[type=file]", write_csv(seen))
    page.wait_for_selector("#data-preview table")
    page.fill("#data-name input, #data-name textarea", "vote")
    confirm_data(page)
    seen.shown["proposal"] = page.inner_text("#stages")
    page.click("button:has-text('For experts')")
    page.fill("#epsilon-number", "4")
    page.press("#epsilon-number", "Tab")
    for name, value in FEW.items():
        fill(page, name, value)
    planned(page)
    step(page, 3)
    page.click("#generate")
    page.wait_for_selector("#openings .noisy-row", timeout=SLOW)
    seen.shown["openings"] = page.inner_text("#openings")
    page.wait_for_selector("#run-notice .notice", timeout=3 * SLOW)
    for name, place in (
        ("run", "#run-notice"), ("finished", "#finished"), ("votes", "#votes"),
        ("score", "#own-score"),
    ):  # fmt: skip
        seen.shown[name] = page.inner_text(place)
    step(page, 4)
    page.wait_for_timeout(500)
    seen.shown["test"] = page.inner_text("#step-4")
    step(page, 5)
    with page.expect_download() as download:
        page.click("#download")
    download.value.save_as(seen.folder / "export.json")
    seen.export = (seen.folder / "export.json").read_text(encoding="utf-8")
    seen.hacked = page.evaluate("window.hacked || null")
    page.set_viewport_size({"width": 390, "height": 844})
    for number in range(1, 6):
        step(page, number)
        page.wait_for_timeout(200)
        root = "document.documentElement"
        seen.overflow[number] = page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")


def test_the_proposal_says_what_every_stage_asks(journey: Journey):
    for word in ("how their texts begin", "token by token", "vote", "measure", "say how often"):
        assert word in journey.shown["proposal"]


def test_every_stage_leaves_its_picture(journey: Journey):
    assert "deviations clear of the noise" in journey.shown["openings"] or "No opening" in journey.shown["openings"]
    assert all(label in journey.shown["votes"] for label in LABELS)


def test_the_run_ends_with_a_set_and_a_score(journey: Journey):
    made = journey.demo_set
    assert journey.shown["run"].startswith("Done.")
    assert [stage.name for stage in made.stages] == ["openings", "write", "vote", "calibrate", "score"]
    assert made.baselines is not None
    assert made.score is not None
    assert made.prior is not None
    assert set(made.prior) == set(LABELS)
    assert len(made.demonstrations) == 2 * len(LABELS)
    shown = " ".join(journey.shown["finished"].split())  # a browser shows several spaces as one
    for each in made.demonstrations:
        assert " ".join(each.text.split()) in shown


def test_the_score_of_the_own_rows_stands_in_both_steps(journey: Journey):
    for shown in (journey.shown["score"], journey.shown["test"]):
        assert "Zero-shot" in shown
        assert "own rows" in shown


def test_the_export_holds_and_the_ledger_was_charged(journey: Journey):
    made = journey.demo_set
    assert verify(made).problems == ()
    assert made.certificate.private
    assert made.certificate.claim.epsilon <= 4
    spent = PrivacyLedger(journey.folder / "home").snapshot("vote", "record").epsilon
    assert 0 < spent <= 4 + 1e-6


def test_the_canary_is_nowhere_and_nothing_hostile_ran(journey: Journey):
    secret = journey.canary.removeprefix("canary ").encode()
    files = [*journey.files("home", "temp", "profile"), journey.folder / "log", journey.folder / "export.json"]
    assert [str(path) for path in files if secret in path.read_bytes()] == []
    assert journey.hacked is None
    assert journey.foreign == []
    assert journey.console == []
    assert "Traceback" not in (journey.folder / "log").read_text()


def test_no_step_is_wider_than_a_small_phone(journey: Journey):
    assert journey.overflow == dict.fromkeys(range(1, 6), 0)
