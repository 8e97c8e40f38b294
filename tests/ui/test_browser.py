"""One journey through the real app in a real browser with a small model, then what it left behind.

The journey runs once; each test looks at one side of it. A canary record travels with the data: it must be on the
curator's screen and nowhere else.
"""

from __future__ import annotations

import csv
import json
import uuid
from pathlib import Path

import pytest
from playwright.sync_api import Page

from mechanisms.accounting import PrivacyLedger
from mechanisms.demos.signature import digest
from mechanisms.rounding import rounded_up
from mechanisms.runs.run_file import from_lines
from tests.ui.accessible import beyond_their_boxes, by_keys, findings
from tests.ui.visit import HOSTILE, SLOW, Journey, by_token, confirm_data, fill, planned, step, visiting

pytestmark = pytest.mark.slow
LABELS = ("Billing", "Delivery")
NAME = "browser test"


def write_csv(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("message", "topic"), *rows])
    return path


def messages(count: int, first: int = 0) -> list[tuple[str, str]]:
    words = {"Billing": "The invoice of month {} is wrong, please refund it.", "Delivery": "Parcel {} has not arrived."}
    return [(words[label].format(i), label) for i in range(first, first + count) for label in LABELS]


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    folder = tmp_path_factory.mktemp("journey")
    seen = Journey(folder, f"canary {uuid.uuid4().hex}")
    with visiting(seen) as page:
        travel(page, seen)
    return seen


def travel(page: Page, seen: Journey) -> None:
    choose_data(page, seen)
    choose_privacy(page, tokens=6)
    generate(page, seen)
    look_back(page, seen)
    seen.spent.append(spent(seen))
    export(page, seen)
    stop_a_second_run(page, seen)
    seen.spent.append(spent(seen))
    ask(page, seen)
    measure(page, seen)
    budget(page, seen)
    walk_once_more(page, seen)
    seen.storage = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")


def spent(seen: Journey) -> float:
    return PrivacyLedger(seen.folder / "home").snapshot(NAME, "record").epsilon


def choose_data(page: Page, seen: Journey) -> None:
    step(page, 3)
    seen.shown["closed step"] = page.inner_text("#step-3 .gate")
    step(page, 1)
    rows = [(f"My invoice is lost. {seen.canary} {HOSTILE}", "Billing"), *messages(30)]
    page.set_input_files("#upload-data input[type=file]", write_csv(seen.folder / "private.csv", rows))
    page.wait_for_selector("#data-preview table")
    seen.shown["preview"] = page.inner_text("#data-preview")
    seen.hacked = page.evaluate("window.hacked || null")
    page.fill("#data-name input, #data-name textarea", NAME)
    page.click("#confirm-data")
    seen.shown["unconfirmed"] = page.inner_text("#data-problem .notice")
    confirm_data(page)


def choose_privacy(page: Page, tokens: int) -> None:
    page.fill("#epsilon-number", "4")
    page.press("#epsilon-number", "Tab")
    page.wait_for_function("() => document.querySelector('#odds').innerText.includes('98.3%')")  # e^4 / (1 + e^4)
    by_token(page, subsets=8, tokens=tokens, max_record_tokens=12)


def generate(page: Page, seen: Journey) -> None:
    step(page, 3)
    page.evaluate(
        """() => { window.tokensSeen = []; const count = document.querySelector('#live .live-count');
        new MutationObserver(() => window.tokensSeen.push(count.textContent)).observe(count, {childList: true}); }"""
    )
    page.click("#generate")
    page.wait_for_selector("#run-notice .notice", timeout=SLOW)
    seen.tokens_seen = page.evaluate("window.tokensSeen")
    seen.shown["run"] = page.inner_text("#run-notice")
    seen.shown["chart"] = page.inner_text("#live .live-plot")
    seen.shown["time"] = page.inner_text("#run-time")


def look_back(page: Page, seen: Journey) -> None:
    """Through the run with keys and clicks, then the same out of its file."""
    replayed(page, seen, "replay")
    with page.expect_download() as download:
        page.click("#save-run")
    seen.run = seen.folder / "run.jsonl"
    download.value.save_as(seen.run)
    with page.expect_file_chooser() as chooser:
        page.click("#load-run")
    chooser.value.set_files(seen.run)
    page.wait_for_selector("#run-notice:has-text('A saved run')")
    page.wait_for_selector("#save-run", state="hidden")
    replayed(page, seen, "replay of the file")


def replayed(page: Page, seen: Journey, name: str) -> None:
    def look() -> str:
        bars = page.inner_text("#live .live-plot").split("\n")
        return "\n".join([*(page.inner_text(place) for place in ("#replay .replay-where", "#live .live-count")), *bars])

    page.wait_for_selector("#live .live-token")  # the replay is there: it draws what can be clicked
    page.focus("#replay .replay-range")
    page.keyboard.press("Home")
    places = [look()]
    page.get_by_role("button", name="One step forward").click()
    places.append(look())
    page.click("#live .live-token >> nth=0")
    places.append(look())
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(
        "was => document.querySelector('#replay .replay-where').textContent !== was", arg=places[-1].split("\n")[0]
    )
    page.get_by_role("button", name="Pause").click()
    seen.shown[name] = "\n\n".join(places)


def export(page: Page, seen: Journey) -> None:
    step(page, 5)
    seen.shown["certificate"] = page.inner_text("#certificate")
    with page.expect_download() as download:
        page.click("#download")
    target = seen.folder / "export.json"
    download.value.save_as(target)
    seen.export = target.read_text(encoding="utf-8")
    page.click("#export-format input")
    page.click("[role=option]:has-text('Certificate')")
    page.wait_for_selector("#export-purpose:has-text('on one page')")
    with page.expect_download() as download:
        page.click("#download")
    download.value.save_as(seen.folder / download.value.suggested_filename)


def stop_a_second_run(page: Page, seen: Journey) -> None:
    step(page, 2)
    fill(page, "tokens", 100)
    fill(page, "shots", 16)  # a minute of the small model
    planned(page)
    step(page, 3)
    page.click("#generate")
    page.wait_for_function(
        "() => document.querySelector('#live .live-count').textContent.startsWith('token ') "
        "&& document.querySelector('#live').querySelector('.live-count').textContent.includes('of at most 100')",
        timeout=SLOW,
    )
    page.click("#stop")
    page.wait_for_selector("#run-notice .notice", timeout=SLOW)
    seen.shown["stop"] = page.inner_text("#run-notice")


def ask(page: Page, seen: Journey) -> None:
    step(page, 4)
    page.set_input_files("#load-demos input[type=file]", seen.folder / "export.json")
    page.wait_for_selector("#load-notice .notice", timeout=SLOW)
    seen.shown["loaded"] = page.inner_text("#load-notice")
    page.fill("#query textarea", "Where is my parcel?")
    page.click("#ask")
    page.wait_for_selector("#answer .arm:nth-child(3)", timeout=SLOW)
    seen.shown["answer"] = page.inner_text("#answer")


def measure(page: Page, seen: Journey) -> None:
    bring_test(page, write_csv(seen.folder / "shared.csv", messages(8)))
    page.click("#measure")
    page.wait_for_selector("#test-notice .notice.bad")
    seen.shown["shared"] = page.inner_text("#test-notice")
    bring_test(page, write_csv(seen.folder / "test.csv", messages(8, first=100)))
    page.click("#measure")
    page.wait_for_selector("#scores .score:nth-child(3)", timeout=SLOW)
    page.wait_for_selector("#steps .stepper.done:has-text('Test')")
    seen.shown["scores"] = page.inner_text("#scores")


def budget(page: Page, seen: Journey) -> None:
    step(page, 6)
    page.wait_for_selector("#budget-runs tbody tr:nth-child(2)")
    seen.shown["budget"] = page.inner_text("#step-6")
    with page.expect_download() as download:
        page.click("#budget-csv")
    seen.shown["ledger"] = Path(download.value.path()).read_text(encoding="utf-8")


def bring_test(page: Page, path: Path) -> None:
    page.set_input_files("#upload-test input[type=file]", path)
    page.wait_for_selector("#test-notice .notice.good")


def walk_once_more(page: Page, seen: Journey) -> None:
    """By keys alone, on a small phone."""
    for number in (1, 2, 3, 4, 5, 6):
        page.set_viewport_size({"width": 390, "height": 844})
        page.focus(f"#steps .stepper:nth-child({number})")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#step-{number}.current")
        page.wait_for_selector(f"#steps .stepper:nth-child({number}):focus")
        root = "document.documentElement"
        seen.overflow[number] = page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
        shut = page.locator(f"#steps .stepper:nth-child({number}).shut").count()
        seen.inaccessible += [f"step {number} is closed"] * shut
        seen.inaccessible += [f"step {number}: {each}" for each in [*findings(page), *by_keys(page)]]
        page.set_viewport_size({"width": 360, "height": 740})
        seen.inaccessible += [f"step {number}: '{each}' leaves its box" for each in beyond_their_boxes(page)]


def test_a_closed_step_says_why(journey: Journey):
    assert "step 1" in journey.shown["closed step"]


def test_the_curator_sees_the_file_and_must_confirm_what_becomes_public(journey: Journey):
    assert journey.canary in journey.shown["preview"]
    assert HOSTILE in journey.shown["preview"]
    assert journey.hacked is None
    assert "Tick the box" in journey.shown["unconfirmed"]


def test_tokens_appear_live(journey: Journey):
    assert len({text for text in journey.tokens_seen if text.startswith("token ")}) >= 3
    assert journey.shown["run"].startswith("Done.")
    assert journey.shown["chart"].strip()


def test_a_run_is_looked_at_again_step_by_step_also_out_of_its_file(journey: Journey):
    places = journey.shown["replay"].split("\n\n")
    first, second, clicked = (place.split("at most 6") for place in places)
    assert first[0].startswith("Billing, token 1 (1 of ")
    assert "(2 of " in second[0]
    assert second[1] != first[1]
    assert clicked in (first, second)  # a text of one token has its first place where it ends
    assert journey.shown["replay of the file"] == journey.shown["replay"]
    assert journey.shown["time"].startswith("Took ")
    events = from_lines(journey.run.read_text(encoding="utf-8"))
    assert events[-1].demo_set == journey.demo_set


def test_the_export_is_a_private_demo_set(journey: Journey):
    made = journey.demo_set
    assert made.certificate.private
    assert not made.certificate.disclosures
    assert [each.label for each in made.demonstrations] == list(LABELS)
    assert made.certificate.claim.epsilon <= 4
    assert made.certificate.parameters["tokens"] == 6
    assert "label counts declared public" in made.certificate.public_inputs
    assert json.loads(journey.export)["format"] == "dpicl-demos/2"
    assert rounded_up(made.certificate.claim.epsilon, 4) in journey.shown["certificate"]


def test_the_certificate_on_paper_names_the_file(journey: Journey):
    page = (journey.folder / "certificate.html").read_text(encoding="utf-8")
    assert digest(journey.export) in page
    assert journey.canary not in page


def test_a_stopped_run_stays_spent(journey: Journey):
    assert "stays spent" in journey.shown["stop"]
    assert journey.spent[0] > 0
    assert journey.spent[1] > journey.spent[0]


def test_the_ledgers_page_and_its_file_hold_both_runs(journey: Journey):
    assert f"{rounded_up(journey.spent[1], 3)} spent" in journey.shown["budget"]
    rows = list(csv.DictReader(journey.shown["ledger"].splitlines()))
    assert [float(row["joint_epsilon"]) for row in rows] == pytest.approx(journey.spent)
    assert journey.canary not in journey.shown["ledger"]


def test_an_export_is_loaded_checked_and_answers(journey: Journey):
    assert "accounted anew and holds" in journey.shown["loaded"]
    assert "Written by this installation and unchanged" in journey.shown["loaded"]
    assert "Zero-shot" in journey.shown["answer"]
    assert any(label in journey.shown["answer"] for label in LABELS)
    assert "16 test rows" in journey.shown["scores"]


def test_rows_that_were_written_from_are_not_measured(journey: Journey):
    assert "Private data sets have every row" in journey.shown["shared"]


def test_the_canary_is_nowhere_but_on_the_screen(journey: Journey):
    private = journey.folder / "private.csv"
    assert journey.canary in private.read_text(encoding="utf-8")
    secret = journey.canary.removeprefix("canary ")
    needles = (secret.encode(), secret.encode("utf-16-le"))
    files = [
        *journey.files("home", "temp", "profile"),
        journey.folder / "log",
        journey.folder / "export.json",
        journey.run,
    ]
    assert len(files) > 10
    assert [str(path) for path in files if any(needle in path.read_bytes() for needle in needles)] == []
    assert secret not in journey.storage + journey.export


def test_uploads_leave_no_file(journey: Journey):
    assert [
        path.name for path in journey.files("temp") if path.suffix in (".csv", ".json") and path.stat().st_size
    ] == []


def test_nothing_is_asked_of_other_hosts_and_the_console_is_clean(journey: Journey):
    assert journey.foreign == []
    assert journey.console == []
    assert "Traceback" not in (journey.folder / "log").read_text()


def test_every_step_is_there_for_those_who_do_not_see_it_and_for_keys(journey: Journey):
    assert journey.inaccessible == []


def test_no_step_is_wider_than_a_small_phone(journey: Journey):
    assert journey.overflow == dict.fromkeys((1, 2, 3, 4, 5, 6), 0)
