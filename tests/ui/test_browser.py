"""One journey through the real app in a real browser with a small model, then what it left behind.

The journey runs once, in three tabs of one browser that prefers German: the example in three clicks, a file without a
header from its upload to the budget, and a default run with all stages. Each test looks at one side of it. A canary
record travels with the data: it must be on the curator's screen and nowhere else.
"""

from __future__ import annotations

import csv
import json
import uuid
from pathlib import Path

import pytest
from playwright.sync_api import Page

from mechanisms.accounting import PrivacyLedger
from mechanisms.demos.demo_set import loads
from mechanisms.demos.signature import digest
from mechanisms.rounding import rounded_up
from mechanisms.runs.run_file import from_lines
from mechanisms.runs.verification import verify
from tests.ui.visit import (
    HOSTILE,
    SLOW,
    Journey,
    beyond_their_boxes,
    by_keys,
    by_token,
    confirm_data,
    fill,
    findings,
    planned,
    port_of,
    press,
    step,
    visiting,
    watch,
)

pytestmark = pytest.mark.slow
LABELS = ("Billing", "Delivery")
NAME, SECOND = "browser test", "a second file"
CHINESE = "申请贷款需要什么材料"
FEW = {"drafts": 4, "draft_tokens": 24, "tokens": 4, "max_record_tokens": 8}
TRANSLATABLE = "() => [...document.querySelectorAll('html, body, body *')].filter((each) => each.translate).length"
"""`translate` says what holds for an element, from whichever element around it."""
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def write_csv(path: Path, rows: list[tuple[str, str]], header: bool = True) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("message", "topic"), *rows] if header else rows)
    return path


def messages(count: int, first: int = 0) -> list[tuple[str, str]]:
    words = {"Billing": "The invoice of month {} is wrong, please refund it.", "Delivery": "Parcel {} has not arrived."}
    return [(words[label].format(i), label) for i in range(first, first + count) for label in LABELS]


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    folder = tmp_path_factory.mktemp("journey")
    seen = Journey(folder, f"canary{uuid.uuid4().hex}")
    with visiting(seen, locale="de-DE") as page:
        try_the_example(page, seen)
        own = another_tab(page, seen)
        bring_a_file(own, seen)
        run_token_by_token(own, seen)
        look_back(own, seen)
        export(own, seen)
        stop_a_second_run(own, seen)
        test_them(own, seen)
        budget(own, seen)
        walk_once_more(own, seen)
        third = another_tab(own, seen)
        bring_odd_files(third, seen)
        run_all_stages(third, seen)
        for each in page.context.pages:
            seen.storage += each.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    return seen


def another_tab(page: Page, seen: Journey) -> Page:
    made = page.context.new_page()
    watch(made, seen, port_of(page))
    made.goto(page.url)
    made.wait_for_selector("#model-status .status.good", timeout=SLOW)
    return made


def look(page: Page, seen: Journey, name: str) -> None:
    """What is wrong with the page for those who do not see it, on a desk and on a phone."""
    seen.inaccessible += [f"{name}: {each}" for each in findings(page)]
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        seen.overflow[name] = max(seen.overflow.get(name, 0), page.evaluate(WIDER))


# The first tab: three clicks to a live picture.


def try_the_example(page: Page, seen: Journey) -> None:
    page.wait_for_selector("#welcome-live .bar-row")
    first = page.inner_text("#welcome-live .live-count")
    page.wait_for_function(f"document.querySelector('#welcome-live .live-count').innerText !== {first!r}")
    page.click("#welcome-play button")
    held = page.inner_text("#welcome-live .live-text")
    look(page, seen, "first page")
    seen.shown["stands still"] = str(page.inner_text("#welcome-live .live-text") == held)
    page.wait_for_selector("#model-status .status.good", timeout=SLOW)
    page.click("#try-example")
    page.wait_for_selector("#step-3.current #generate:enabled", timeout=SLOW)
    page.click("#generate")  # the second click: what follows is live
    page.wait_for_selector("#stop:enabled", timeout=SLOW)
    press(page, "#stop:enabled", "#run-notice .notice")
    step(page, 1)
    page.wait_for_selector("#welcome", state="hidden")
    page.wait_for_selector("#draft-preview .demo >> nth=3", timeout=SLOW)


# The second tab: a file without a header, from its upload to the budget.


def bring_a_file(page: Page, seen: Journey) -> None:
    step(page, 3)
    seen.shown["closed step"] = page.inner_text("#step-3 .gate")
    step(page, 1)
    rows = [(f"My invoice is lost. {seen.canary} {HOSTILE}", "Billing"), *messages(30)]
    page.set_input_files("#upload-data input[type=file]", write_csv(seen.folder / "private.csv", rows, header=False))
    page.wait_for_selector("#data-look table")
    seen.shown["question"] = page.inner_text("#data-question")
    seen.shown["as header"] = page.inner_text("#data-look thead")
    look(page, seen, "question")
    page.click("#data-header label:has-text('It is a row')")
    page.wait_for_selector("#data-look thead:has-text('1')")
    press(page, "#data-read-so", "#data-preview table")
    seen.shown["preview"] = page.inner_text("#data-preview")
    seen.hacked = page.evaluate("window.hacked || null")
    seen.shown["translate"] = str([page.get_attribute("html", "translate"), page.evaluate(TRANSLATABLE)])
    seen.shown["language"] = str(page.get_attribute("html", "lang"))
    type_words(page, seen)
    page.fill("#data-name input, #data-name textarea", NAME)
    press(page, "#confirm-data", "#data-problem .notice")  # words that were typed last may clear it once
    seen.shown["unconfirmed"] = page.inner_text("#data-problem .notice")
    confirm_data(page)


def type_words(page: Page, seen: Journey) -> None:
    """Drafts come by themselves, and change with what is typed."""
    whole = """(before) => { const drafts = document.querySelector('#draft-preview'), now = drafts.innerText;
      const done = drafts.querySelectorAll('.demo').length === 2 && !drafts.querySelector('.spinner');
      return done && now !== before && now; }"""
    first = page.wait_for_function(whole, arg="", timeout=SLOW).json_value()
    page.locator("#writer textarea, #writer input").first.press_sequentially("a customer")
    page.wait_for_selector("#sentence-said:has-text('a customer')")
    seen.shown["drafts"] = page.wait_for_function(whole, arg=first, timeout=SLOW).json_value()


def run_token_by_token(page: Page, seen: Journey) -> None:
    page.wait_for_selector("#noise .picture-span", timeout=SLOW)
    page.focus("#epsilon input[type=range]")
    for key in ("Home", "End"):  # before the slider is let go, nothing is calibrated
        page.evaluate(
            """(end) => { const range = document.querySelector('#epsilon input[type=range]');
            range.value = end ? range.max : range.min; range.dispatchEvent(new Event('input')); }""",
            key == "End",
        )
        seen.shown[f"noise {key}"] = page.inner_text("#noise .live-axis >> nth=0")
    page.fill("#epsilon-number", "4")
    page.press("#epsilon-number", "Tab")
    page.wait_for_function("() => document.querySelector('#odds').innerText.includes('98.3%')")  # e^4 / (1 + e^4)
    by_token(page, subsets=8, tokens=6, max_record_tokens=12)
    look(page, seen, "privacy")
    step(page, 3)
    page.evaluate(
        """() => { window.tokensSeen = []; const count = document.querySelector('#live .live-count');
        new MutationObserver(() => window.tokensSeen.push(count.textContent)).observe(count, {childList: true}); }"""
    )
    page.click("#generate")
    page.wait_for_selector("#run-notice .notice", timeout=SLOW)
    page.wait_for_function("() => !document.querySelector('#budget').textContent.includes('no run yet')", timeout=SLOW)
    seen.tokens_seen = page.evaluate("window.tokensSeen")
    for name, place in (("run", "#run-notice"), ("chart", "#live .live-plot"), ("time", "#run-time")):
        seen.shown[name] = page.inner_text(place)


def look_back(page: Page, seen: Journey) -> None:
    """Through the run with keys and clicks, then the same out of its file."""
    replayed(page, seen, "replay")
    with page.expect_download() as download:
        page.click("#save-run")
    seen.run = seen.folder / "run.jsonl"
    download.value.save_as(seen.run)
    page.click("#steps .stepper:nth-child(1)")
    with page.expect_file_chooser() as chooser:
        page.click("#look-again")
    chooser.value.set_files(seen.run)
    page.wait_for_selector("#run-notice:has-text('A saved run')")
    page.wait_for_selector("#save-run", state="hidden")
    replayed(page, seen, "replay of the file")


def replayed(page: Page, seen: Journey, name: str) -> None:
    def look() -> str:
        bars = page.inner_text("#live .live-plot").split("\n")
        return "\n".join([*(page.inner_text(place) for place in ("#replay .replay-where", "#live .live-count")), *bars])

    # A page is drawn part by part: this run's replay is there, and its tokens can be clicked.
    page.wait_for_selector("#replay .replay-where:has-text('The end')")
    page.wait_for_selector("#live .live-token")
    page.focus("#replay .replay-range")
    page.keyboard.press("Home")
    page.wait_for_selector("#replay .replay-where:has-text('(1 of')")
    places = [look()]
    page.get_by_role("button", name="One step forward").click()
    places.append(look())
    page.click("#live .live-token >> nth=0")
    places.append(look())
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(
        "was => document.querySelector('#replay .replay-where').textContent !== was", arg=places[-1].split("\n")[0]
    )
    page.evaluate("document.querySelector('#replay [aria-label=Pause]')?.click()")  # a slow machine has seen the end
    seen.shown[name] = "\n\n".join(places)


def export(page: Page, seen: Journey) -> None:
    seen.spent.append(spent(seen))
    step(page, 5)
    seen.shown["certificate"] = page.inner_text("#certificate")
    seen.export = saved(page, seen.folder / "export.json")
    page.click("#export-format input")
    page.click("[role=option]:has-text('Certificate')")
    page.wait_for_selector("#export-purpose:has-text('on one page')")
    saved(page, seen.folder / "certificate.html")


def saved(page: Page, target: Path) -> str:
    with page.expect_download() as download:
        page.click("#download")
    download.value.save_as(target)
    return target.read_text(encoding="utf-8")


def spent(seen: Journey) -> float:
    return PrivacyLedger(seen.folder / "home").snapshot(NAME, "record").epsilon


def stop_a_second_run(page: Page, seen: Journey) -> None:
    step(page, 2)
    fill(page, "tokens", 100)
    fill(page, "shots", 50)  # minutes of the small model: a slow page must be able to stop it
    planned(page)
    step(page, 3)
    page.click("#generate")
    page.wait_for_selector("#live .live-count:has-text('of at most 100')", timeout=SLOW)
    page.click("#stop")
    page.wait_for_selector("#run-notice .notice", timeout=SLOW)
    seen.shown["stop"] = page.inner_text("#run-notice")
    seen.spent.append(spent(seen))


def test_them(page: Page, seen: Journey) -> None:
    step(page, 4)
    page.set_input_files("#load-demos input[type=file]", seen.folder / "export.json")
    page.wait_for_selector("#load-notice .notice", timeout=SLOW)
    seen.shown["loaded"] = page.inner_text("#load-notice")
    page.fill("#query textarea", "Where is my parcel?")
    page.click("#ask")
    page.wait_for_selector("#answer .arm:nth-child(3)", timeout=SLOW)
    seen.shown["answer"] = page.inner_text("#answer")
    bring_test(page, write_csv(seen.folder / "shared.csv", messages(8)))
    page.click("#measure")
    page.wait_for_selector("#test-notice .notice.bad")
    seen.shown["shared"] = page.inner_text("#test-notice")
    bring_test(page, write_csv(seen.folder / "test.csv", messages(8, first=100)))
    page.click("#measure")
    page.wait_for_selector("#scores .score:nth-child(3)", timeout=SLOW)
    page.wait_for_selector("#steps .stepper.done:has-text('Test')")
    seen.shown["scores"] = page.inner_text("#scores")


test_them.__test__ = False  # type: ignore[attr-defined]


def bring_test(page: Page, path: Path) -> None:
    page.set_input_files("#upload-test input[type=file]", path)
    page.wait_for_selector("#test-notice .notice.good")


def budget(page: Page, seen: Journey) -> None:
    step(page, 6)
    page.wait_for_selector("#budget-runs tbody tr:nth-child(2)")
    seen.shown["budget"] = page.inner_text("#step-6")
    with page.expect_download() as download:
        page.click("#budget-csv")
    seen.shown["ledger"] = Path(download.value.path()).read_text(encoding="utf-8")


def walk_once_more(page: Page, seen: Journey) -> None:
    """By keys alone, on a small phone."""
    for number in (1, 2, 3, 4, 5, 6):
        page.set_viewport_size({"width": 390, "height": 844})
        page.focus(f"#steps .stepper:nth-child({number})")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#step-{number}.current")
        page.wait_for_selector(f"#steps .stepper:nth-child({number}):focus")
        seen.overflow[f"step {number}"] = page.evaluate(WIDER)
        shut = page.locator(f"#steps .stepper:nth-child({number}).shut").count()
        seen.inaccessible += [f"step {number} is closed"] * shut
        seen.inaccessible += [f"step {number}: {each}" for each in [*findings(page), *by_keys(page)]]
        page.set_viewport_size({"width": 360, "height": 740})
        seen.inaccessible += [f"step {number}: '{each}' leaves its box" for each in beyond_their_boxes(page)]


# The third tab: an encoding, labels that look alike, and a run with all stages.


def bring_odd_files(page: Page, seen: Journey) -> None:
    def bring(name: str, content: bytes) -> None:
        path = seen.folder / name
        path.write_bytes(content)
        page.set_input_files("#upload-data input[type=file]", path)

    rows = "".join(f"{CHINESE} {i},{('投诉', '咨询')[i % 2]}\n" for i in range(40))
    bring("chinese.csv", f"text,label\n{rows}".encode("gb18030"))
    page.wait_for_selector(f"#data-look:has-text('{CHINESE}')")
    seen.shown["encoding"] = page.input_value("#data-encoding input")
    press(page, "#data-read-so", f"#data-preview:has-text('{CHINESE}')")
    seen.shown["chinese"] = page.inner_text("#data-facts")
    labels = ["card", "Card", "card\u200b", "card", "loan"]
    spelled = "".join(f"a letter about {i},{labels[i % 5]}\n" for i in range(40)) + "nan,card\n" * 5
    bring("spelled.csv", f"text,label\n{spelled}".encode())
    page.wait_for_selector("#labels-alike:has-text('Card')")
    look(page, seen, "labels alike")
    page.fill("#data-name input, #data-name textarea", SECOND)  # which is told before the labels are merged
    page.click("#merge-labels")
    page.wait_for_selector("#merge-labels", state="hidden")
    seen.shown["merged"] = page.inner_text("#data-facts")
    page.check("#declared-public input")
    press(page, "#confirm-data", "#data-problem .notice")
    seen.shown["left out"] = page.inner_text("#data-problem .notice")
    page.check("#allow-left-out input")
    press(page, "#confirm-data", "#step-2.current")


def run_all_stages(page: Page, seen: Journey) -> None:
    page.wait_for_selector("#outcome .guarantee", timeout=SLOW)
    page.click("button:has-text('For experts')")
    for name, value in FEW.items():
        fill(page, name, value)
    planned(page)
    page.wait_for_selector("#checks :text('Rows do not say')", timeout=SLOW)  # it is looked at anew behind each plan
    seen.shown["stages"], seen.shown["checks"] = page.inner_text("#stages"), page.inner_text("#checks")
    step(page, 3)
    page.click("#generate")
    page.wait_for_selector("#run-notice .notice", timeout=3 * SLOW)
    for name, place in (("all stages", "#run-notice"), ("votes", "#votes"), ("score", "#own-score")):
        seen.shown[name] = page.inner_text(place)
    look(page, seen, "all stages")
    step(page, 5)
    saved(page, seen.folder / "second.json")


# What it left.


def test_the_first_page_plays_a_run_that_can_be_held_and_a_closed_step_says_why(journey: Journey):
    assert journey.shown["stands still"] == "True"
    assert "step 1" in journey.shown["closed step"]


def test_a_first_line_that_looks_like_a_row_is_asked_about_and_shown_both_ways(journey: Journey):
    assert "looks like a row" in journey.shown["question"]
    assert journey.canary not in journey.shown["question"]
    assert journey.canary in journey.shown["as header"]
    assert "61 rows" in journey.shown["preview"]
    assert journey.canary in journey.shown["preview"]
    assert HOSTILE in journey.shown["preview"]
    assert journey.hacked is None
    assert "tick it if all of it may become public" in journey.shown["unconfirmed"]


def test_the_browsers_own_translator_is_told_to_stay_away_and_the_page_is_english(journey: Journey):
    """It would send the page, private rows included, to whoever made the browser."""
    assert journey.shown["translate"] == "['no', 0]"
    assert journey.shown["language"] == "en"


def test_drafts_come_by_themselves_and_the_picture_of_the_noise_moves_before_the_slider_is_let_go(journey: Journey):
    assert all(label in journey.shown["drafts"] for label in LABELS)
    low, high = (float(journey.shown[f"noise {key}"].rpartition("±")[2]) for key in ("Home", "End"))
    assert low > 10 * high


def test_tokens_appear_live(journey: Journey):
    assert len({text for text in journey.tokens_seen if text.startswith("token ")}) >= 2
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
    page = (journey.folder / "certificate.html").read_text(encoding="utf-8")
    assert digest(journey.export) in page
    assert journey.canary not in page


def test_a_private_row_stands_in_no_prompt_and_in_no_export(journey: Journey):
    assert journey.demo_set.template.instruction == "Classify each text as Billing or Delivery."
    assert journey.canary not in journey.export
    assert json.loads(journey.export)["task"]["template"] == {"text": "Text", "label": "Label"}


def test_a_stopped_run_stays_spent(journey: Journey):
    assert "stays spent" in journey.shown["stop"]
    assert journey.spent[0] > 0
    assert journey.spent[1] > journey.spent[0]


def test_an_export_is_loaded_checked_and_answers(journey: Journey):
    assert "computed again and holds" in journey.shown["loaded"]
    assert "This installation wrote the file, and it is unchanged" in journey.shown["loaded"]
    assert "Zero-shot" in journey.shown["answer"]
    assert any(label in journey.shown["answer"] for label in LABELS)
    assert "16 test rows" in journey.shown["scores"]
    assert "Private data sets contain every row" in journey.shown["shared"]


def test_the_ledgers_page_and_its_file_hold_both_runs(journey: Journey):
    assert f"{rounded_up(journey.spent[1], 3)} spent" in journey.shown["budget"]
    rows = list(csv.DictReader(journey.shown["ledger"].splitlines()))
    assert [float(row["joint_epsilon"]) for row in rows] == pytest.approx(journey.spent)
    assert journey.canary not in journey.shown["ledger"]


def test_an_encoding_is_proposed_and_labels_that_look_alike_are_one_after_a_click(journey: Journey):
    assert journey.shown["encoding"] == "gb18030"
    assert "投诉" in journey.shown["chinese"]
    assert "5 of 45 rows are left out" in journey.shown["merged"]
    assert "Card" not in journey.shown["merged"]
    assert "Go on without the rows" in journey.shown["left out"]


def test_every_stage_says_what_it_asks_and_leaves_its_picture(journey: Journey):
    for word in ("token by token", "vote", "measure", "say how often"):
        assert word in journey.shown["stages"]
    assert "Rows do not say what their labels are about" in journey.shown["checks"]
    assert all(label in journey.shown["votes"] for label in ("card", "loan"))
    assert "own rows" in journey.shown["score"]
    made = loads((journey.folder / "second.json").read_text(encoding="utf-8"))
    assert journey.shown["all stages"].startswith("Done.")
    assert [stage.name for stage in made.stages] == ["write", "vote", "calibrate", "score"]
    assert made.score is not None
    assert len(made.demonstrations) == 4
    assert verify(made).problems == ()
    assert 0 < PrivacyLedger(journey.folder / "home").snapshot(SECOND, "record").epsilon <= 1 + 1e-6


def test_the_canary_is_nowhere_but_on_the_screen(journey: Journey):
    assert journey.canary in (journey.folder / "private.csv").read_text(encoding="utf-8")
    secret = journey.canary.removeprefix("canary")
    needles = (secret.encode(), secret.encode("utf-16-le"))
    files = [
        *journey.files("home", "temp", "profile"),
        *(journey.folder / name for name in ("log", "export.json", "second.json")),
        journey.run,
    ]
    assert len(files) > 10
    assert [str(path) for path in files if any(needle in path.read_bytes() for needle in needles)] == []
    assert secret not in journey.storage + journey.export


def test_uploads_leave_no_file(journey: Journey):
    assert not [each for each in journey.files("temp") if each.suffix in (".csv", ".json") and each.stat().st_size]


def test_nothing_is_asked_of_other_hosts_and_the_console_is_clean(journey: Journey):
    assert journey.foreign == []
    assert journey.console == []
    assert "Traceback" not in (journey.folder / "log").read_text()


def test_every_step_is_there_for_those_who_do_not_see_it_and_for_keys(journey: Journey):
    assert journey.inaccessible == []
    assert journey.overflow == dict.fromkeys(journey.overflow, 0)
