"""The engine's bench runs to its end, in both settings, on the example and on other texts."""

from __future__ import annotations

import re

import pytest

from research.benchmarks import engine
from tests.small_model import small_model

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("texts", [False, True], ids=["example", "other texts"])
def test_the_bench_measures_both_settings(texts, tmp_path, monkeypatch, capsys):
    path = tmp_path / "other.csv"
    path.write_text("text,label\n" + "A text of a few words for the bench.,World\n" * 40, encoding="utf-8")
    more = ["--texts", str(path)] if texts else []
    monkeypatch.setattr("sys.argv", ["engine", "--quick", "--model", small_model(), *more])
    engine.main()
    said = capsys.readouterr().out
    assert engine.DEMONSTRATION in said
    assert engine.TOKEN in said
    figures = re.findall(r"^  [^:]+: ([\d.e+-]+)", said, re.MULTILINE)
    assert len(figures) >= 18
    assert all(float(each) >= 0 for each in figures)
