"""What handlers leave behind: no file and no private text in a log; long jobs; and the page before a press."""

from __future__ import annotations

import ast
import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from gradio.blocks import BlockContext
from gradio.utils import diff
from gradio_client.utils import apply_diff
from hypothesis import example, given
from hypothesis import strategies as st

from dpicl_ui.evaluation.state import verified
from dpicl_ui.frame.files import taken
from dpicl_ui.frame.handlers import Job, JobControls, Jobs, guarded
from dpicl_ui.frame.inputs import PrivateCheckboxGroup, PrivateDropdown
from dpicl_ui.frame.internals import RELEASE, difference
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.services import CuratorLedger, Session, StepBar
from dpicl_ui.page import BAR, build
from mechanisms.accounting import PrivacyLedger
from mechanisms.errors import DataError, UsageError
from mechanisms.records import Demonstration
from tests.conftest import ROOT
from tests.ui.generate.recording import demo_set
from tests.ui.privacy.test_step import DATASET
from tests.ui.tabs import in_page, services, text_of, write

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


def test_a_generator_with_nothing_to_say_leaves_everything_as_it_is():
    def handler():
        yield from ()

    assert list(guarded(WHERE)(handler)()) == [{WHERE: gr.skip()}]


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
    return StepBar(BAR)


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


# Long jobs of a tab: ordered once, at work once, stopped by the tab's own button, and free again however they end.


class Counts(Jobs[int]):
    """Count up to the wanted number, which is not 13."""

    def refuse(self, wanted: int) -> None:
        if wanted == 13:
            raise UsageError("not 13")


class OtherCounts(Jobs[int]):
    """Another kind."""


TAB: Any = SimpleNamespace(session_hash="one", username=None)
NEXT: Any = SimpleNamespace(session_hash="two", username=None)


@pytest.fixture
def controls() -> JobControls[int]:
    return in_page(lambda: JobControls(services(), Counts, "Count", ("a", "b", "c")))


def counting(job: Job[int]) -> Iterator[Any]:
    for number in range(job.request):
        job.check("stopped")
        yield {"number": number}


def jobs(controls: JobControls[int], tab: Any = TAB) -> Counts:
    return controls._app.session(tab).of(Counts)


def test_an_order_is_worked_off_once(controls: JobControls[int]):
    jobs(controls).order(3)
    assert [each["number"] for each in controls.run(TAB, counting)] == [0, 1, 2]
    assert list(controls.run(TAB, counting)) == []


def test_the_last_of_two_orders_counts_and_none_is_taken_while_one_is_at_work(controls: JobControls[int]):
    jobs(controls).order(5)
    jobs(controls).order(2)
    running = controls.run(TAB, counting)
    next(running)
    assert jobs(controls).busy
    with pytest.raises(UsageError, match="wait"):
        jobs(controls).order(1)
    assert len(list(running)) == 1
    assert not jobs(controls).busy
    jobs(controls).order(1)


@pytest.mark.parametrize("how", ["button", "tab"])
def test_a_stop_ends_it_at_its_next_step_and_another_can_be_ordered(controls: JobControls[int], how: str):
    jobs(controls).order(5)
    running = controls.run(TAB, counting)
    next(running)
    if how == "button":
        controls.halt(TAB)
    else:
        jobs(controls).close()
    with pytest.raises(UsageError, match="stopped"):
        next(running)
    jobs(controls).order(1)
    assert len(list(controls.run(TAB, counting))) == 1, "the stop was meant for the job before"


def test_a_stop_reaches_no_other_tab_and_no_other_kind(controls: JobControls[int]):
    for tab in (TAB, NEXT):
        jobs(controls, tab).order(2)
    others = controls._app.session(TAB).of(OtherCounts)
    others.order(2)
    controls.halt(TAB)
    with others.taken() as other:
        assert not other.stop.is_set()
    assert len(list(controls.run(NEXT, counting))) == 2


@pytest.mark.parametrize("ending", ["closed", "failed"])
def test_however_it_ends_the_steps_are_closed_and_it_is_free_again(controls: JobControls[int], ending: str):
    told: list[str] = []

    def steps(job: Job[int]) -> Iterator[Any]:
        try:
            yield {"number": 0}
            raise RuntimeError
        finally:
            told.append("recorded")

    jobs(controls).order(1)
    running: Any = controls.run(TAB, steps)
    next(running)
    if ending == "closed":  # what Gradio does for a tab that is gone
        running.close()
    else:
        with pytest.raises(RuntimeError):
            next(running)
    assert told == ["recorded"]
    assert not jobs(controls).busy


# The page before anything was pressed: programs are offered nothing, and what is told by calls of their own.


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


def test_progress_is_written_to_the_one_component_that_the_browser_finds_first(tmp_path):
    made = page_at(tmp_path)
    written = {each._id for handler in made.fns.values() for each in handler.show_progress_on or handler.outputs}
    assert [made.blocks[each].elem_id for each in written] == ["model-status"]
    assert {handler.show_progress for handler in made.fns.values() if handler.fn} == {"hidden"}


def test_a_press_is_answered_at_once_and_the_run_it_begins_waits_in_the_models_queue(tmp_path: Path):
    page = page_at(tmp_path)
    [button] = [each for each in page.blocks.values() if each.elem_id == "generate"]
    [press] = [each for each in page.fns.values() if (button._id, "click") in each.targets]
    assert not press.queue
    begins = {(each._id, "change") for each in press.outputs}
    runs = [each for each in page.fns.values() if begins & set(each.targets)]
    assert [(each.queue, each.concurrency_id, each.trigger_mode) for each in runs] == [(True, "model", "once")]
    assert max(len(each.inputs) for each in runs) > 10


def test_settings_are_calibrated_only_after_they_closed_step_3(tmp_path: Path):
    """A closing that comes last drops the plan that was calibrated, and nothing makes another."""
    page = page_at(tmp_path)
    [epsilon] = [each for each in page.blocks.values() if each.elem_id == "epsilon"]
    [closing] = [each for each in page.fns.values() if (epsilon._id, "release") in each.targets]
    [calibrating] = [each for each in page.fns.values() if each.trigger_after == closing._id]
    assert len(closing.targets) > 40
    assert not closing.queue
    assert {closing.trigger_mode, calibrating.trigger_mode} == {"always_last"}
    calibrate = [each for each in page.fns.values() if each.concurrency_id == "calibrate"]
    assert calibrating in calibrate
    assert not any({*each.targets} & {*closing.targets} for each in calibrate)


# Gradio's insides.

VALUES = st.recursive(
    st.text("ab", max_size=2) | st.integers(0, 2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("xy"), inner),
    max_leaves=12,
)
SHORTER = ([["a", "b"], ["c", "d"]], [["a"], ["c"]])


@example(*SHORTER)
@given(VALUES, VALUES)
def test_the_page_gets_what_was_yielded_whatever_was_there_before(old: Any, new: Any):
    assert apply_diff(old, difference(old, new)) == new


def test_gradios_own_difference_is_still_wrong_where_two_lists_become_shorter():
    """Otherwise `difference` is needed no more."""
    old, new = SHORTER
    assert apply_diff(old, diff(old, new)) != new


HOME = ROOT / "dpicl_ui/frame/internals.py"
INSIDES = {"fns", "blocks", "state_holder", "show_progress_on", "default_config"}
"""Attributes of a page that Gradio does not document."""


def of_gradio(path: Path) -> set[str]:
    """What a file takes from inside Gradio: its modules, and attributes of a page."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    modules = {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    modules |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return {each for each in modules if each.startswith("gradio.")} | attributes & INSIDES


def test_the_release_of_gradio_is_the_one_that_its_insides_were_read_in():
    assert version("gradio").startswith(f"{RELEASE}."), f"read {HOME.name} against this release, then change its name"


def test_one_file_names_gradios_insides():
    used = {path: found for path in [ROOT / "app.py", *(ROOT / "dpicl_ui").rglob("*.py")] if (found := of_gradio(path))}
    assert used.pop(HOME) >= {"gradio.routes", "state_holder"}
    assert used == {}
