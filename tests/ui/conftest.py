"""What goes on in the background of a page by itself is tested where it is the subject, and rests elsewhere."""

import pytest

from dpicl_ui.frame import model_loader


@pytest.fixture(autouse=True)
def measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_loader, "_AGAIN", ())
