"""What the page shows before anything was pressed."""

from __future__ import annotations

import asyncio

import gradio as gr
from gradio.blocks import BlockContext

from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger
from dpicl_ui.page import build
from mechanisms.accounting import PrivacyLedger


def test_no_layout_is_hidden_in_a_way_that_gradio_shows(tmp_path):
    """A column that is "hidden" from the start is drawn: its buttons would stand there before there is a run."""

    async def made() -> gr.Blocks:
        return build(CuratorLedger(PrivacyLedger(tmp_path)), ModelLoader("none"))

    layouts = [each for each in asyncio.run(made()).blocks.values() if isinstance(each, BlockContext)]
    assert any(getattr(each, "visible", True) is False for each in layouts)
    assert [each.elem_id for each in layouts if getattr(each, "visible", True) == "hidden"] == []
