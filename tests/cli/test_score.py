"""`score` on the command line, on toy models."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import check_refusal, run
from tests.runs.test_score_set import Honest
from tests.toy_embedder import ToyEmbedder

FLOWERS = {"labels": ["red", "blue"], "instruction": "Sort.", "template": {"text": "Note", "label": "Topic"}}
BY_HAND = {
    "demonstrations": [{"text": "a rose", "label": "red"}, {"text": "the sky", "label": "blue"}],
    "task": FLOWERS,
}


@pytest.fixture
def line(monkeypatch, tmp_path) -> str:
    """Scores a small file with a set that was written by hand."""
    monkeypatch.setattr("mechanisms.api.load_model", lambda name: Honest())
    monkeypatch.setattr("mechanisms.api.load_embedder", ToyEmbedder)
    rows = [f"{('red', 'blue')[i % 2]} secret {i},{('red', 'blue')[i % 2]},user {i % 20}" for i in range(200)]
    (tmp_path / "rows.csv").write_text("text,label,who\n" + "\n".join(rows))
    (tmp_path / "set.json").write_text(json.dumps(BY_HAND))
    return f"score {tmp_path / 'rows.csv'} {tmp_path / 'set.json'} --delta 1e-5"


def test_a_set_by_hand_is_scored_and_charged(capsys, line):
    code, out, err = run(capsys, f"{line} --epsilon 4 --share 0.5 --prototypes-epsilon 3 --json")
    assert code == 0, err
    found = json.loads(out)
    assert list(found["arms"]) == ["zero-shot", "public-only", "demonstrations", "prototypes"]
    for arm in found["arms"].values():
        low, high = arm["interval"]
        assert 0 <= low <= arm["accuracy"] <= high <= 1
    assert found["arms"]["demonstrations"]["accuracy"] > 0.8
    assert found["rows"] == "private, and they may have taken part in what was chosen"
    assert (found["private"], found["unit"], found["share"]) == (True, "record", 0.5)
    assert found["epsilon"] == pytest.approx(4, abs=0.01)  # the larger of two disjoint parts
    assert list(found["event"]["lists"]) == ["score", "prototypes"]
    code, out, _ = run(capsys, "ledger show rows --json")
    assert json.loads(out)["data_sets"][0]["epsilon"] == pytest.approx(4, abs=0.01)
    assert "secret" not in out + err


def test_few_rows_are_said_to_be_few(capsys, line):
    code, out, err = run(capsys, f"{line} --epsilon 0.05 --json")
    assert code == 0
    widths = {name: arm["interval"][1] - arm["interval"][0] for name, arm in json.loads(out)["arms"].items()}
    said = {each.split(":")[0] for each in err.splitlines() if "too few rows" in each}
    assert said == {name for name, width in widths.items() if width > 0.2}


def test_a_score_over_the_cap_is_exit_code_three(capsys, line):
    run(capsys, "ledger cap rows --epsilon 0.5 --delta 1e-4")
    check_refusal(capsys, f"{line} --epsilon 2", 3, "allows epsilon 0.5")
    _, out, _ = run(capsys, "ledger export --json")
    assert json.loads(out)["runs"].get("rows", []) == []


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("--epsilon 0", "Epsilon"),
        ("--epsilon 1 --share 2", "share"),
        ("--epsilon 1 --share 1 --prototypes-epsilon 1", "below 1"),
        ("--epsilon 1 --prototypes-epsilon 0", "Epsilon"),
        ("--epsilon 1 --text-column body", "body"),
    ],
)
def test_bad_usage_gets_one_line(capsys, line, rest, message):
    check_refusal(capsys, f"{line} {rest}", 2, message)
    _, out, _ = run(capsys, "ledger export --json")
    assert json.loads(out)["runs"] == {}
