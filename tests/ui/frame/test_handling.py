"""What handlers leave behind: no file, no private text in a log, and reasons for closed steps."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpicl_ui.frame.handlers import guarded
from dpicl_ui.frame.inputs import PrivateCheckboxGroup, PrivateDropdown, taken
from dpicl_ui.frame.services import Session, StepBar
from dpicl_ui.page import PLACES
from dpicl_ui.test.state import verified
from mechanisms.errors import DataError
from mechanisms.records import Demonstration
from tests.ui.generate.recording import demo_set
from tests.ui.privacy.test_form import DATASET
from tests.ui.tabs import write
from tests.ui.trees import text_of

SECRET = "the patient is Canary Q. Person"


WHERE: Any = "the component that shows errors"


@pytest.fixture
def uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "uploads"
    (folder / "hash").mkdir(parents=True)
    (folder / "hash" / "private.csv").write_text(SECRET)
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(folder))
    return folder


@pytest.mark.parametrize("fails", [False, True])
def test_an_upload_does_not_outlive_its_reading(uploads: Path, fails: bool):
    def read() -> None:
        with taken(str(uploads / "hash" / "private.csv")) as path:
            assert path.read_text() == SECRET
            if fails:
                raise DataError("unreadable")

    if fails:
        with pytest.raises(DataError):
            read()
    else:
        read()
    assert list(uploads.iterdir()) == []


@pytest.mark.parametrize(
    "named",
    [
        "",
        "hash",
        "..",
        "../ledger.sqlite",
        "hash/link",
        "hash/../../ledger.sqlite",
        "hash/x",
        "/.dockerenv",
        "/etc/hostname",
        "x" * 5000,
    ],
)
def test_a_request_may_name_any_path_and_touches_none_but_an_upload(uploads: Path, named: str):
    ledger = uploads.parent / "ledger.sqlite"
    ledger.write_text("what was spent")
    (uploads / "hash" / "link").symlink_to(ledger)
    with pytest.raises(DataError, match="did not arrive"), taken(str(uploads / named)):
        pass
    assert ledger.read_text() == "what was spent"
    assert (uploads / "hash" / "private.csv").read_text() == SECRET


def test_a_defect_is_logged_without_its_message(caplog):
    def handler():
        raise ValueError(SECRET)

    with caplog.at_level(logging.DEBUG):
        shown = text_of(guarded(WHERE)(handler)()[WHERE])
    assert "ValueError" in shown
    assert "ValueError" in caplog.text
    assert SECRET not in shown + caplog.text


def test_a_generator_that_fails_still_restores_its_buttons():
    def handler():
        yield {WHERE: []}
        raise DataError("No.")

    updates = list(guarded(WHERE, lambda: {"button": True})(handler)())
    assert text_of(updates[-1][WHERE]) == "No."
    assert updates[-1]["button"] is True


def test_closing_a_guarded_generator_closes_what_it_runs():
    closed = []

    def handler():
        try:
            yield {WHERE: []}
        finally:
            closed.append(True)

    running = guarded(WHERE, dict)(handler)()
    next(running)
    running.close()
    assert closed == [True]


@pytest.fixture
def bar() -> StepBar:
    return StepBar(PLACES)


def test_closed_steps_say_why_and_testing_is_always_open(bar: StepBar):
    steps = bar.value(Session())["steps"]
    assert [bool(step["why"]) for step in steps] == [False, True, True, False, True, False]


def test_a_closed_step_is_not_called_done(bar: StepBar):
    session = Session()
    write(session, demo_set(Demonstration("a", "News")), DATASET)
    generate = bar.value(session)["steps"][2]
    assert (generate["done"], generate["note"]) == (False, "closed")


@pytest.mark.parametrize(("share", "kind"), [(1.0, "good"), (0.999, "bad")])
def test_a_loaded_set_is_accounted_anew(share, kind):
    made = demo_set(Demonstration("a", "News"))
    true = made.certificate.claim
    certificate = replace(made.certificate, claim=replace(true, epsilon=true.epsilon * share))
    line, shown = verified(replace(made, certificate=certificate))
    assert shown == kind
    assert "\n" not in line
    assert ("privacy/epsilon" in line) == (kind == "bad")


@pytest.mark.parametrize("made", [PrivateDropdown, PrivateCheckboxGroup])
def test_a_choice_that_came_late_is_dropped_without_a_word_of_what_there_is(made, caplog):
    group = made is PrivateCheckboxGroup
    choice = made(choices=["News", SECRET], value=[] if group else "News")
    late = choice.preprocess(["Cardiology", "News"] if group else "Cardiology")
    assert late == (["News"] if group else None)
    assert choice.preprocess([SECRET] if group else SECRET) == ([SECRET] if group else SECRET)
    assert choice.get_block_name() == ("checkboxgroup" if group else "dropdown")
    assert SECRET not in caplog.text
