"""Step 2 without a page."""

from __future__ import annotations

import asyncio
from pathlib import Path

import gradio as gr
import pytest

from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger, Sessions
from dpicl_ui.frame.step_bar import StepBar
from dpicl_ui.page import PLACES
from dpicl_ui.privacy.step import PrivacyStep
from mechanisms.accounting import PrivacyLedger


@pytest.fixture
def step(tmp_path: Path) -> PrivacyStep:
    async def built() -> PrivacyStep:
        with gr.Blocks():
            ledgers = CuratorLedger(PrivacyLedger(tmp_path))
            return PrivacyStep(Sessions(), ledgers, ModelLoader("none"), StepBar(PLACES))

    return asyncio.run(built())
