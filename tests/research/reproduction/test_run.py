"""A grid on toy models: what is computed, kept, refused and written."""

from __future__ import annotations

import csv
import math
from dataclasses import replace

import pytest

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.disclosures import NO_NOISE, SCORED
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import Accuracy
from mechanisms.evaluation.reader import LocalReader
from mechanisms.records import Dataset, Record
from research.reproduction import making, run
from research.reproduction.cells import METHODS, Preset, Setting
from research.reproduction.presets import PRESETS
from research.reproduction.run import CellRefused, Result, reproduce
from research.reproduction.table import page, tidy
from research.reproduction.tasks import TASKS
from research.runs import texts_written
from tests.runs.running import Speaking
from tests.toy_embedder import ToyEmbedder

LABELS = TASKS["trec"].labels
SECRET = "secretword"
SETTING = Setting(tokens=3, subsets=4, candidates=8)
GRID = Preset(
    "grid",
    settings={"trec": SETTING},
    methods={"gaussian": METHODS["gaussian"]},
    epsilons=(0.0, math.inf),
    runs=1,
    rows=6,
)
"""Without private cells: calibrating one takes seconds."""


class Model(Speaking):
    def __init__(self) -> None:
        super().__init__(sharpness=1.0, busy=10**6)


@pytest.fixture
def data(tmp_path):
    """A folder with a task's files; every row has the secret word."""
    (tmp_path / "data" / "trec").mkdir(parents=True)
    for name, count in (("train", 20), ("test", 2)):
        rows = [f"{SECRET} {name} {number},{label}" for label in LABELS for number in range(count)]
        (tmp_path / "data" / "trec" / f"{name}.csv").write_text("\n".join(["text,label", *rows, "other,Nothing"]))
    return tmp_path / "data"


def computed(data, tmp_path, grid=GRID, model=None, tell=lambda line: None, reader=None):
    (tmp_path / "out").mkdir(exist_ok=True)
    return list(reproduce(grid, data, tmp_path / "out", model or Model(), ToyEmbedder, tell, reader))


def kept(tmp_path):
    return (tmp_path / "out" / "cells.jsonl").read_text()


def test_every_cell_is_computed_once_and_a_grid_that_was_cut_off_goes_on(data, tmp_path, monkeypatch):
    told: list[str] = []
    computed(data, tmp_path, replace(GRID, epsilons=(0.0,)), tell=told.append)
    before = kept(tmp_path)
    done = computed(data, tmp_path, tell=told.append)
    assert kept(tmp_path).startswith(before)
    assert [each.cell for each in done] == list(GRID.cells())
    places = ("1 of 2", "2 of 2", "3 of 4", "4 of 4")
    assert told == [f"cell {place}: {each.cell.words}" for place, each in zip(places, done, strict=True)]
    for each in done:
        assert set(each.found) == {"raw", "contextual"}
        assert all(accuracy.total == 6 for accuracy in each.found.values())
        assert len(each.demonstrations) == (4 if each.cell.method == "public" else 0)
        assert each.claimed is None
    monkeypatch.setattr(run, "_computed", None)
    assert [each.to_json() for each in computed(data, tmp_path)] == [each.to_json() for each in done]


def test_no_row_of_the_file_is_kept(data, tmp_path):
    results = computed(data, tmp_path)
    assert SECRET not in kept(tmp_path) + tidy(results, "toy", GRID) + page(results, "toy", GRID)


@pytest.mark.slow
def test_a_private_cell_claims_what_it_was_asked_for_and_shows_the_labels_of_its_run(data, tmp_path):
    grid = replace(GRID, epsilons=(0.0, 1.0), runs=2)
    results = computed(data, tmp_path, grid)
    private = [each for each in results if each.cell.method == "gaussian"]
    assert len(private) == 2
    assert all(0.9 < each.claimed <= 1.0 for each in private)
    assert PrivacyLedger().history(private[0].cell.words) == []
    [noise] = {f"{each.noise:.3g}" for each in private}
    assert f"| gaussian: noise | **toy** |  | {noise} |" in page(results, "toy", grid)
    rows = list(csv.DictReader(tidy(results, "toy", GRID).splitlines()))
    assert [row["claimed_epsilon"] != "" for row in rows] == [row["method"] == "gaussian" for row in rows]
    shown = {}
    for each in results:
        if each.demonstrations:
            shown.setdefault(each.cell.run, set()).add(tuple(one.label for one in each.demonstrations))
    assert all(len(labels) == 1 for labels in shown.values())
    assert shown[1] != shown[2]
    assert all(len(set(*labels)) == 4 for labels in shown.values())


@pytest.mark.parametrize("what", ["model", "data", "setting"])
def test_a_folder_of_another_model_data_or_setting_is_refused_and_left_alone(data, tmp_path, what):
    grid, model = replace(GRID, epsilons=(0.0,)), Model()
    computed(data, tmp_path, grid)
    before = kept(tmp_path)
    if what == "model":
        model.sha256 = "1" * 64
    elif what == "data":
        with (data / "trec" / "test.csv").open("a") as file:
            file.write("\none more,Entity")
    else:
        grid = replace(grid, seed=1)
    with pytest.raises(UsageError, match="another preset, model, data or setting"):
        computed(data, tmp_path, grid, model)
    assert kept(tmp_path) == before


def test_a_reader_reads_what_another_model_writes(data, tmp_path, monkeypatch):
    writer, reader, read = Model(), Model(), []

    def recorded(model, *given):
        read.append(model)
        return LocalReader(model, *given)

    monkeypatch.setattr(run, "LocalReader", recorded)
    grid = replace(GRID, epsilons=(0.0,))
    computed(data, tmp_path, grid, writer, reader=reader)
    assert read == [reader] * 2
    reader.sha256 = "1" * 64
    with pytest.raises(UsageError, match="another preset, model, data or setting"):
        computed(data, tmp_path, grid, writer, reader=reader)


def test_noise_stands_beside_that_of_the_paper_and_runs_that_differ_as_least_and_most():
    grid = replace(PRESETS["tang-1"], settings={"trec": SETTING}, epsilons=(1.0,), runs=2)
    found = {"contextual": Accuracy(1, 2)}
    both = zip(grid.cells(), (1.33, 9.17), strict=True)
    cells = [Result(cell, found, 1.0, 0.0, noise=noise) for cell, noise in both]
    lines = [line for line in page(cells, "toy", grid).splitlines() if line.startswith("| gaussian: noise")]
    assert "**toy**" in lines[0]
    assert "| 1.33 to 9.17 |" in lines[0]
    assert "Tang et al. 2024, table 1" in lines[1]
    assert "| 1.36 |" in lines[1]


def test_a_cell_that_is_refused_leaves_the_others(data, tmp_path, monkeypatch):
    def refused(data, *given, **asked):
        if asked["mechanism"] == "public":
            return texts_written(data, *given, **asked)
        raise UsageError("the model is too small")

    monkeypatch.setattr(making, "texts_written", refused)
    told = computed(data, tmp_path)
    refusals = [each for each in told if isinstance(each, CellRefused)]
    assert [(each.cell.method, each.reason) for each in refusals] == [("non-private", "the model is too small")]
    assert len(told) == 4


def test_rows_of_a_private_data_set_are_refused_and_others_marked(data, tmp_path):
    ledger = PrivacyLedger()
    strange = Dataset("mine", LABELS, [Record(f"{SECRET} train 3", "Entity")])
    grid = replace(GRID, epsilons=(0.0,))
    computed(data, tmp_path, grid)
    assert ledger.rows.disclosures(fingerprint(strange)) == (NO_NOISE,)
    tested = Dataset("tested", LABELS, [Record(f"{SECRET} test 1", "Entity")])
    assert ledger.rows.disclosures(fingerprint(tested)) == (SCORED,)
    with ledger.transaction() as database:
        ledger.rows.record(database, fingerprint(strange))
    with pytest.raises(UsageError, match="'mine'"):
        computed(data, tmp_path, replace(grid, runs=2))


@pytest.mark.slow
def test_the_recipe_is_read_with_its_own_correction(data, tmp_path):
    settings = {"trec": replace(SETTING, tokens=12)}
    grid = replace(GRID, methods={"vote": METHODS["vote"]}, epsilons=(8.0,), settings=settings)
    [done] = computed(data, tmp_path, grid)
    assert set(done.found) == {"raw", "contextual", "prior"}
    assert 0 < done.claimed <= 8.0


def test_tables_hold_every_cell_and_the_papers_figures(data, tmp_path):
    results = computed(data, tmp_path)
    rows = list(csv.DictReader(tidy(results, "toy | model", GRID).splitlines()))
    assert len(rows) == 4 * 2
    assert {row["method"] for row in rows} == {each.cell.method for each in results}
    for row in rows:
        assert float(row["accuracy"]) == pytest.approx(int(row["right"]) / int(row["rows"]), abs=1e-4)
    text = page(results, "toy | model", GRID)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert any("GPT-3 Babbage" in line and "50.7 ± 4.1" in line for line in lines)
    assert sum("**toy / model**" in line for line in lines) == 4
    assert not any("adadpsyn" in line or "1-shot" in line for line in lines)  # the preset has neither
    assert "TREC" in text
    assert "AG News\n" not in text


def test_a_slot_counts_where_the_answer_is_its_phrase(tmp_path, monkeypatch):
    """Whatever its case and a final stop; a test row may have a phrase that nothing was written for."""
    labels = [*TASKS["mit_g"].labels, "noir"]
    (tmp_path / "data" / "mit_g").mkdir(parents=True)
    for name in ("train", "test"):
        rows = [f"{name} film {number},{label}" for number, label in enumerate(labels)]
        (tmp_path / "data" / "mit_g" / f"{name}.csv").write_text("\n".join(["text,label", *rows]))
    said = {f"test film {number}": f" {label.title()}." for number, label in enumerate(labels)}
    said["test film 0"] += " And more."
    monkeypatch.setattr(run, "answers", lambda model, template, shown, texts, *caps: map(said.get, texts))
    grid = replace(GRID, settings={"mit_g": SETTING}, epsilons=(0.0,), rows=None)
    results = computed(tmp_path / "data", tmp_path, grid)
    assert [each.cell.method for each in results] == ["zero-shot", "public"]
    assert all(each.found == {run.EXACT: Accuracy(10, 11)} for each in results)
    assert "GPT-3 Babbage" in page(results, "toy", grid)
