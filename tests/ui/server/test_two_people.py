"""Two people on one server, each in a browser of their own: neither sees or spends what is the other's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from mechanisms.accounting import PrivacyLedger
from mechanisms.accounting.ledger import DEFAULT_CAP
from mechanisms.accounts import Accounts, owner_folder
from mechanisms.data.sources import EXAMPLES
from tests.ui.visit import ARGUMENTS, CHROMIUM, SLOW, Journey, serving, step, watch

EXAMPLE = EXAMPLES[0]
NAME = EXAMPLE.path.stem
pytestmark = pytest.mark.slow
PASSWORDS = {"Ada": "a long password", "Ben": "another password"}
SPENT, CAP = 0.25, 3.0
USED_BEFORE = "used before under"


@dataclass
class Visit:
    """What two people saw, and what the server said to nobody in particular."""

    folder: Path
    seen: dict[str, str] = field(default_factory=dict)
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    journey: Journey | None = None


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Visit:
    folder = tmp_path_factory.mktemp("people")
    (folder / "home").mkdir()
    accounts = Accounts(folder / "home" / "users")
    for name, password in PASSWORDS.items():
        accounts.add(name, password)
    visited = Visit(folder, journey=Journey(folder, canary=""))
    with serving(folder, DPICL_MODEL="no-such-model") as port:
        knock(visited, port)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM if CHROMIUM.exists() else None, args=ARGUMENTS
            )
            be_refused(browser, visited, port)
            with signed_in(browser, visited, port, "Ada") as ada, signed_in(browser, visited, port, "Ben") as ben:
                spend(ada, visited)
                look(ben, visited)
            browser.close()
    return visited


def knock(visited: Visit, port: int) -> None:
    """Ask for everything without signing in."""
    connection = HTTPConnection("127.0.0.1", port, timeout=SLOW / 1000)
    body = json.dumps({"data": [], "fn_index": 0, "session_hash": "tab"})
    questions = [
        ("GET", each) for each in ("/", "/config", "/gradio_api/info", "/gradio_api/queue/data?session_hash=x")
    ]
    questions += [("GET", f"/gradio_api/file={visited.folder / 'home' / 'users'}"), ("POST", "/gradio_api/upload")]
    questions += [("POST", f"/gradio_api/{each}") for each in ("queue/join", "run/predict", "call/take")]
    for method, path in questions:
        connection.request(method, path, body if method == "POST" else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        visited.answers[path.split("=")[0]] = answer.status, answer.read().decode()
    connection.close()


def sign_in(page: Page, name: str, password: str) -> None:
    page.get_by_label("username").fill(name)
    page.get_by_label("password").fill(password)
    page.get_by_role("button", name="Login").click()


def be_refused(browser: Browser, visited: Visit, port: int) -> None:
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{port}/")
    sign_in(page, "Ada", PASSWORDS["Ben"])
    page.get_by_text("Incorrect Credentials").wait_for()
    visited.seen["refused"] = page.content()
    page.context.close()


@contextmanager
def signed_in(browser: Browser, visited: Visit, port: int, name: str) -> Iterator[Page]:
    context = browser.new_context()
    page = context.new_page()
    assert visited.journey
    watch(page, visited.journey, port)
    page.goto(f"http://127.0.0.1:{port}/")
    sign_in(page, name, PASSWORDS[name])
    page.wait_for_selector("#footing .whose")
    yield page
    context.close()


def take_example(page: Page) -> None:
    page.click(f".examples button:has-text('{EXAMPLE.title}')")
    page.wait_for_selector("#data-preview table")
    page.check("#labels-public input")


def confirm(page: Page, name: str = NAME) -> None:
    """Use the data set under a name, with whatever else is chosen in step 1."""
    page.fill("#data-name input, #data-name textarea", name)
    page.press("#data-name input, #data-name textarea", "Tab")
    page.click("#confirm-data")
    page.wait_for_selector("#step-2.current")
    page.wait_for_selector(f"#budget .budget-name[title='{name}']")


def spend(page: Page, visited: Visit) -> None:
    take_example(page)
    page.click("#sizes label:has-text('Measure')")
    page.fill("#count-epsilon input", str(SPENT))
    page.press("#count-epsilon input", "Tab")
    page.wait_for_selector(f"#confirm-data:has-text('{SPENT:g}')")
    confirm(page)
    page.click("#step-2 button:has-text('Change the cap')")
    page.fill("#cap-epsilon input", str(CAP))
    page.click("#set-cap")
    page.wait_for_selector("#cap-notice .notice.good")
    visited.seen["Ada"] = page.inner_text("#budget")
    step(page, 1)
    page.click("#sizes label:has-text('Declare')")
    page.check("#counts-public input")
    confirm(page, "renamed")
    visited.seen["Ada renamed"] = page.inner_text("#budget")


def look(page: Page, visited: Visit) -> None:
    take_example(page)
    page.check("#counts-public input")
    confirm(page)
    visited.seen["Ben"] = page.inner_text("#budget")
    step(page, 1)
    confirm(page, "renamed")
    visited.seen["Ben renamed"] = page.inner_text("#budget")
    step(page, 6)
    page.wait_for_selector("#budget-standing .budget")
    visited.seen["Ben's page"] = page.inner_text("#step-6")


def ledger(visited: Visit, name: str, monkeypatch: pytest.MonkeyPatch) -> PrivacyLedger:
    monkeypatch.setenv("DPICL_HOME", str(visited.folder / "home"))
    return PrivacyLedger(owner_folder(name))


def test_what_one_spends_and_caps_the_other_does_not_see(visit: Visit):
    assert f"{SPENT:g} spent" in visit.seen["Ada"]
    assert f"of {CAP:g} left" in visit.seen["Ada"]
    assert "0 spent" in visit.seen["Ben"].splitlines()
    assert f"of {DEFAULT_CAP.epsilon:g} left" in visit.seen["Ben"]


def test_the_page_of_runs_shows_nobody_elses(visit: Visit):
    assert "0 spent" in visit.seen["Ben's page"]
    assert "Nothing has been spent yet" in visit.seen["Ben's page"]


def test_a_file_is_recognised_for_the_one_who_used_it_alone(visit: Visit):
    assert USED_BEFORE in visit.seen["Ada renamed"]
    assert USED_BEFORE not in visit.seen["Ben"] + visit.seen["Ben renamed"]


def test_each_has_a_ledger_and_the_installation_has_none(visit: Visit, monkeypatch):
    ada, ben = (ledger(visit, name, monkeypatch).snapshot(NAME, "user:patient") for name in PASSWORDS)
    assert (ada.epsilon, ada.cap.epsilon) == (pytest.approx(SPENT), CAP)
    assert (ben.epsilon, ben.cap.epsilon) == (0, DEFAULT_CAP.epsilon)
    assert not (visit.folder / "home" / "ledger.sqlite").exists()


def test_a_wrong_password_opens_nothing(visit: Visit):
    assert "Bring your labelled texts" not in visit.seen["refused"]


def test_without_signing_in_there_is_a_form_and_nothing_else(visit: Visit):
    status, page = visit.answers.pop("/")
    assert status == 200
    assert "auth_required" in page
    assert "upload-data" not in page
    assert len(visit.answers) == 8
    assert {path: status for path, (status, _) in visit.answers.items() if status not in (401, 404)} == {}


def test_no_other_host_is_asked_and_nothing_fails(visit: Visit):
    assert visit.journey
    assert visit.journey.foreign == []
    assert visit.journey.console == []
    assert "Traceback" not in (visit.folder / "log").read_text()
