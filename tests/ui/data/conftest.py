"""Step 1 in a tab of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.data.tab import Tab


@pytest.fixture
def tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tab:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    return Tab(tmp_path)
