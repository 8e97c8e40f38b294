"""Step 2 without a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpicl_ui.privacy.step import PrivacyStep
from tests.ui.tabs import in_page, owned


@pytest.fixture
def step(tmp_path: Path) -> PrivacyStep:
    return in_page(lambda: PrivacyStep(owned(tmp_path)))
