"""The page before anything was pressed: programs are offered nothing, and what is told by calls of their own."""

from __future__ import annotations

import ast
import asyncio
from importlib.metadata import version
from pathlib import Path

import gradio as gr
from gradio.blocks import BlockContext

from dpicl_ui.frame.internals import RELEASE
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.services import CuratorLedger
from dpicl_ui.page import build
from mechanisms.accounting import PrivacyLedger
from tests.conftest import ROOT


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


# Gradio's insides.


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
