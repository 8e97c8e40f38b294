"""All measures of planted collections, with the toy embedder."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from mechanisms import confidence
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.disclosures import CLEAN_VALUES
from mechanisms.data.sources import read_table
from mechanisms.demos.demo_set import PUBLIC_ONLY
from mechanisms.records import Demonstration, Record
from research.__main__ import main
from research.measures.command import DEMONSTRATIONS, REAL_ROWS
from research.measures.measure import Measures
from tests.cli import command
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

LABELS = ("fruit", "sky")
WORDS = {"fruit": "red apple", "sky": "blue cloud"}
TEST = [Record(f"{WORDS[label]} {number}", label) for number in range(20) for label in LABELS]


def texts(swapped=False):
    named = dict(zip(LABELS, reversed(LABELS), strict=True)) if swapped else dict(zip(LABELS, LABELS, strict=True))
    return [Demonstration(f"{WORDS[label]} new {i}", named[label]) for i in range(4) for label in LABELS]


@pytest.fixture(scope="module")
def measures():
    return Measures(LABELS, [*TEST, Record("else", "other")], ToyEmbedder())


def test_texts_of_their_label_are_recognised_and_teach(measures):
    figures = measures.of(texts())
    assert (figures.texts, measures.rows) == (8, 40)
    assert figures.label_fidelity.value == figures.trained_on.value == measures.held_out.value == 1
    low, high = figures.trained_on.interval
    assert low < 1 == high
    assert figures.perplexity is None


def test_swapped_labels_are_not_recognised_and_mislead(measures):
    figures = measures.of(texts(swapped=True))
    assert figures.label_fidelity.value == figures.trained_on.value == 0
    assert figures.distinct == measures.of(texts()).distinct


# `measure` on the command line, on toy models.

COLOURS = ("red", "blue")
TASK = {"labels": list(COLOURS), "instruction": "Sort.", "template": {"text": "Note", "label": "Topic"}}
run = partial(command.run, program=main)
check_refusal = partial(command.check_refusal, program=main)


def write_set(path, texts, task=TASK) -> str:
    path.write_text(json.dumps({"demonstrations": [{"text": t, "label": y} for t, y in texts], "task": task}))
    return str(path)


def write_rows(path, word, count=10) -> str:
    rows = [f"{label} {word} {i},{label}" for i in range(count) for label in COLOURS]
    path.write_text("text,label\n" + "\n".join(rows))
    return str(path)


@pytest.fixture
def files(monkeypatch, tmp_path) -> dict[str, str]:
    monkeypatch.setattr("research.measures.command.load_embedder", ToyEmbedder)
    monkeypatch.setattr("research.measures.command.load_model", lambda name: ToyModel())
    return {
        "first": write_set(tmp_path / "first.json", [("red rose", "red"), ("blue sky", "blue")]),
        "second": write_set(tmp_path / "second.json", [("red as the secret 3", "red"), ("blue sea", "blue")]),
        "public": write_set(tmp_path / "public.json", [(f"{y} text {i}", y) for i in range(6) for y in COLOURS]),
        "test": write_rows(tmp_path / "test.csv", "stranger"),
        "train": write_rows(tmp_path / "train.csv", "known"),
        "private": write_rows(tmp_path / "private.csv", "as the secret"),
    }


def line(files, *rest) -> str:
    return f"measure {files['first']} {files['second']} --test {files['test']} --json {' '.join(rest)}"


def marks(path) -> tuple[str, ...]:
    rows = to_dataset(read_table(Path(path)), ColumnMapping("text", "label"), "any", COLOURS)
    return PrivacyLedger().rows.disclosures(fingerprint(rows))


def test_sets_are_pooled_and_every_arm_has_as_many_texts(capsys, files):
    code, out, err = run(capsys, line(files, "--public", files["public"], "--train", files["train"]))
    assert code == 0, err
    found = json.loads(out)
    assert (found["rows"], found["level"]) == (20, confidence.LEVEL)
    for name in (DEMONSTRATIONS, PUBLIC_ONLY, REAL_ROWS):
        arm = found[name]
        assert arm["texts"] == 4
        for figure in ("label_fidelity", "trained_on"):
            low, high = arm[figure]["interval"]
            assert 0 <= low <= arm[figure]["accuracy"] <= high <= 1
        assert 0 < arm["distinct_1"] <= arm["distinct_3"] <= 1
        assert not {"perplexity", "longest_copied"} & set(arm)


def test_a_copied_run_is_found_with_a_warning_and_the_rows_are_marked(capsys, files):
    assert marks(files["private"]) == ()
    code, out, err = run(capsys, line(files, "--public", files["public"], "--private", files["private"]))
    assert code == 0, err
    found = json.loads(out)
    assert found[DEMONSTRATIONS]["longest_copied"] == {"words": 5, "text_number": 3}
    assert found[PUBLIC_ONLY]["longest_copied"]["words"] == 1
    assert (found["private"], found["curator_only"]) == (False, True)
    assert "--private reads private rows without noise" in err
    assert CLEAN_VALUES in marks(files["private"])
    assert "secret" not in out + err


def test_a_test_file_with_private_rows_is_the_curators(capsys, files, tmp_path):
    data = to_dataset(read_table(Path(files["test"])), ColumnMapping("text", "label"), "letters", COLOURS)
    PrivacyLedger().rows.mark(fingerprint(data), CLEAN_VALUES)
    code, out, err = run(capsys, line(files))
    assert code == 0
    assert json.loads(out)["curator_only"]
    assert "'letters'" in err


def test_what_cannot_be_measured_gets_one_line(capsys, files, tmp_path):
    none = write_set(tmp_path / "none.json", [])
    other = write_set(tmp_path / "other.json", [("a", "x")], TASK | {"labels": ["x", "y"]})
    lone = write_set(tmp_path / "lone.json", [("a", "red")])
    few = write_rows(tmp_path / "few.csv", "few", 3)
    for line, message in (
        (f"measure {none} --test {files['test']}", "no demonstrations"),
        (f"measure {files['first']} {other} --test {files['test']}", "different tasks"),
        (f"measure {files['first']} --test {few}", "5 rows"),
        (f"measure {lone} --test {files['test']}", "two labels"),
        (f"measure {files['first']} --test {files['test']} --text-column body", "body"),
    ):
        check_refusal(capsys, line, 2, message)
