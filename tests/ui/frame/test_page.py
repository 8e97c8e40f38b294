"""The page before anything was pressed: programs are offered nothing, and what is told by calls of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import gradio as gr
from gradio.blocks import BlockContext

from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger
from dpicl_ui.page import build
from mechanisms.accounting import PrivacyLedger


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
