"""Presets: each runs end to end on random weights, and says what it sets, costs and claims."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace

import pytest

from mechanisms.accounting import Claim, claim
from mechanisms.records import Record
from mechanisms.steps import mechanism_class
from research.__main__ import main
from research.reproduction import command, dry, making, tiny
from research.reproduction.cells import LEAST_NOISE, Cell, Preset, Setting
from research.reproduction.dry import cost, demonstrations, noise_of
from research.reproduction.making import Maker
from research.reproduction.presets import GAO, PRESETS, TANG
from research.reproduction.tasks import TASKS
from research.runs import Texts, texts_written
from tests.cli.command import check_refusal, run
from tests.conftest import nightly_but
from tests.runs.running import Speaking
from tests.toy_embedder import ToyEmbedder

HERE = [name for name, each in PRESETS.items() if not each.elsewhere]
ELSEWHERE = [name for name, each in PRESETS.items() if each.elsewhere and name != "yamasaki-ginc"]


@pytest.fixture(scope="module")
def place():
    with tiny.place() as made:
        yield made


@pytest.fixture
def made(place, monkeypatch, tmp_path):
    """One folder of data and one model for all presets, but another one to write into for each."""
    monkeypatch.setattr(command, "place", lambda: nullcontext(place._replace(out=tmp_path)))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_but(HERE, every=3))
def test_a_preset_computes_all_its_cells(capsys, made, name):
    code, _, err = run(capsys, f"reproduce {name} --tiny", program=main)
    assert code == 0, err
    assert "left out" not in err
    cells = list(tiny.tiny(PRESETS[name]).cells())
    assert {each.method for each in cells if 0 < each.epsilon < math.inf} == set(PRESETS[name].methods) - {"vote"}
    assert len((made / name / "results.csv").read_text().splitlines()) > len(cells)


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_but(ELSEWHERE, every=3))
def test_a_preset_that_another_command_runs_is_run_by_it(capsys, made, name):
    code, out, err = run(capsys, f"reproduce {name} --tiny", program=main)
    assert code == 0, err
    assert f"python -m {PRESETS[name].elsewhere.command.split()[0]}" in err
    assert any(word in out for word in ("**model**", "zero-shot", "validates", "radius"))


def test_what_has_no_tiny_form_says_why(capsys, made):
    check_refusal(capsys, "reproduce yamasaki-ginc --tiny", 2, "trained first", program=main)


@pytest.mark.parametrize("name", PRESETS)
def test_a_dry_run_says_what_is_set_and_computes_nothing(capsys, monkeypatch, name):
    monkeypatch.setattr(dry, "claim", lambda event, delta: Claim(1.23, delta, "one", 1.23, "other"))
    monkeypatch.setattr(command, "load_model", None)
    preset = PRESETS[name]
    code, out, err = run(capsys, f"reproduce {name} --dry-run", program=main)
    assert code == 0, err
    assert preset.source in out
    assert all(remark in out for remark in preset.remarks)
    assert all(f"| {TASKS[task].title} | {each.scheme} |" in out for task, each in preset.settings.items())
    assert "hours" in out or name == "yamasaki-ginc"
    assert f"{preset.epsilons[-1]:g}" in out


# What a paper's noise costs by our accountants.


@pytest.mark.slow
def test_noise_costs_what_is_claimed_and_more_of_a_smaller_label():
    tang = replace(PRESETS["tang-1"], settings={"trec": TANG["trec"]}, epsilons=(8.0,))
    gao = replace(PRESETS["gao-2"], settings={"agnews": GAO["agnews"]}, epsilons=(8.0,))
    whole = {name: task.smallest for name, task in TASKS.items()}
    [found] = noise_of(tang, whole)
    assert found.noise == 0.51
    assert 0.85 * 8 <= found.here <= 8.01
    assert found.smallest == pytest.approx(48.2, rel=0.02)  # docs/pitfalls.md
    [found] = noise_of(gao, whole)  # no sigma of the baseline is given
    assert (found.method, found.claimed, found.smallest) == ("adadpsyn", 8, None)
    assert found.here == pytest.approx(4.23, rel=0.02)  # research/docs/mechanisms.md


@pytest.mark.parametrize(
    ("task", "shots", "written", "paid"),
    [("trec", 4, 4, 1), ("trec", 8, 12, 2), ("dbpedia", 12, 12, 1), ("mit_g", 4, 4, 4), ("mit_d", 1, 1, 1)],
)
def test_a_record_pays_for_the_demonstrations_of_its_label_and_for_all_where_labels_are_phrases(
    task, shots, written, paid
):
    assert demonstrations(Cell(task, "gaussian", 1.0, 1, shots)) == (written, paid)


def test_a_run_costs_more_with_more_rows_tokens_and_test_rows():
    preset = PRESETS["tang-1"]
    cell = Cell("agnews", "gaussian", 1.0, 1)

    def costs(rows=100, **more):
        return cost(cell, replace(preset, rows=rows, settings={"agnews": replace(TANG["agnews"], **more)}))

    usual = costs()
    assert usual.tokens == 4 * 100
    assert usual.prompts == 4 * 100 * 10 + 100
    for more in (costs(subsets=20), costs(tokens=200), costs(rows=200)):
        assert more.prompts > usual.prompts
        assert more.seconds > usual.seconds
    assert costs(subsets=20).memory > usual.memory
    assert cost(replace(cell, method="zero-shot"), replace(preset, rows=100)).tokens == 0


# What is written for a cell.

TRAIN = [Record(f"text {number}", label) for label in TASKS["mit_g"].labels for number in range(2)]


def maker(task: str, **setting) -> Maker:
    settings = {task: Setting(tokens=2, subsets=4, candidates=8, **setting)}
    return Maker(Speaking(sharpness=1.0, busy=10**6), ToyEmbedder, Preset("mine", settings=settings))


def test_more_shots_than_labels_show_each_label_before_one_comes_again():
    train = [Record(f"text {number}", label) for label in TASKS["trec"].labels for number in range(4)]
    made = maker("trec").make(Cell("trec", "public", 0.0, 1, 8), train)
    counts = Counter(each.label for each in made.demonstrations)
    assert sorted(counts.values()) == [1, 1, 1, 1, 2, 2]
    assert len({each.label for each in made.demonstrations[:6]}) == 6


def test_where_labels_are_phrases_all_rows_write_every_demonstration_and_pay_for_all(monkeypatch):
    asked = []

    def recorded(data, model, **given):
        asked.append((data, given))
        return texts_written(data, model, **given)

    monkeypatch.setattr(making, "texts_written", recorded)
    made = maker("mit_g").make(Cell("mit_g", "gaussian", 8.0, 1, 3), TRAIN)
    assert len(asked) == len(made.demonstrations) == 3
    for (data, given), shown in zip(asked, made.demonstrations, strict=True):
        assert data.labels == (shown.label,)
        assert [each.text for each in data.records] == [each.text for each in TRAIN]
        assert not given["solve"]
    [noise] = {given["parameters"]["noise-multiplier"] for _, given in asked}
    sampling = Setting(tokens=2, subsets=4).sampling("mit_g", 3)
    mechanism = mechanism_class("gaussian")(noise_multiplier=noise)
    together = claim(sampling.compose(mechanism.event, {"all": len(TRAIN)}, 1e-5), 1e-5).epsilon
    assert made.epsilon == pytest.approx(together, rel=1e-6)
    assert 0.9 * 8 < made.epsilon <= 8


def test_a_method_has_its_own_parameters_at_each_epsilon_and_none_of_noise_without_it(monkeypatch):
    asked = {}

    def recorded(data, model, **given):
        asked.update(given)
        return Texts(tuple(making.Demonstration("text", label) for label in data.labels), 1.0)

    monkeypatch.setattr(making, "texts_written", recorded)
    train = [Record(f"text {number}", label) for label in TASKS["trec"].labels for number in range(4)]

    def of(name, method, epsilon):
        asked.clear()
        Maker(Speaking(sharpness=1.0), ToyEmbedder, PRESETS[name]).make(Cell("trec", method, epsilon, 1), train)
        return asked

    found = of("gao-2", "adadpsyn", 8.0)
    assert found["parameters"] == {"refinements": 2, "lambda": 0.25, "sigma0": 15, "sigma2": 5, "sigma1": 1.09}
    assert (found["subsets"], found["per_subset"], found["tokens"], str(found["scheme"])) == (2, 2, 15, "per-token")
    assert of("tang-1", "gaussian", 1.0)["candidates"] is None
    found = of("yamasaki-2", "non-private+pta", math.inf)
    assert (found["mechanism"], found["transform"]) == ("non-private", "pta")
    assert found["parameters"] == {"alpha": 2.0, "base": True}
    for method in ("gaussian+top-p", "gaussian+pta+top-p", "gaussian+pta-no-base"):  # one rule for all of a table
        assert of("yamasaki-2", method, 1.0)["candidate_top_p"] == 0.9
    assert of("bhusal-1", "blended-logits", math.inf)["epsilon"] == LEAST_NOISE
