"""Who starts the server decides whether there is a reader elsewhere."""

from __future__ import annotations

import pytest

from dpicl_ui.server.serving import MODEL, URL, reader_elsewhere
from mechanisms.errors import UsageError


@pytest.mark.parametrize(
    ("url", "model", "why"),
    [
        ("https://h.example", "", "needs both"),
        ("", "small", "needs both"),
        ("http://h.example", "small", "must begin with https"),
    ],
)
def test_half_a_reader_or_an_open_line_is_refused(monkeypatch, url, model, why):
    monkeypatch.setenv(URL, url)
    monkeypatch.setenv(MODEL, model)
    with pytest.raises(UsageError, match=why):
        reader_elsewhere()


def test_there_is_none_unless_both_are_said(monkeypatch):
    for name in (URL, MODEL):
        monkeypatch.delenv(name, raising=False)
    assert reader_elsewhere() is None
    monkeypatch.setenv(URL, "https://h.example/v1")
    monkeypatch.setenv(MODEL, "small")
    reader = reader_elsewhere()
    assert reader is not None
    assert reader.name == "small at h.example"
