"""Step 2 without a page."""

from __future__ import annotations

import asyncio
from pathlib import Path

import gradio as gr
import pytest

from dpicl_ui.frame.sessions import CuratorLedger, Sessions
from dpicl_ui.privacy.step import PrivacyStep
from mechanisms.accounting import PrivacyLedger
from tests.ui.tabs import services


@pytest.fixture
def step(tmp_path: Path) -> PrivacyStep:
    async def built() -> PrivacyStep:
        with gr.Blocks():
            ledgers = CuratorLedger(PrivacyLedger(tmp_path))
            return PrivacyStep(services(Sessions(), ledgers))

    return asyncio.run(built())
