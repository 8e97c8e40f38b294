"""The papers' attacks: they find what is planted, in prompts and in texts, and nothing where nothing is."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import api
from research.__main__ import main
from research.attacks import command, extraction, membership
from research.attacks.extraction import addresses
from research.attacks.membership import areas
from research.reproduction.cells import Method, Preset, Setting
from research.reproduction.tasks import TASKS
from tests.cli.command import run
from tests.toy_model import ToyModel

OWN = Preset("own", settings={"dbpedia": Setting()}, methods={"gaussian": Method.of("gaussian")})
LABELS = TASKS["dbpedia"].labels
WHOLE = st.lists(st.integers(-3, 3), min_size=2, max_size=8)


@given(WHOLE, st.integers(1, 7))
def test_an_area_is_the_share_of_pairs_that_are_told_apart(found, members):
    members = min(members, len(found) - 1)
    own, others = found[:members], found[members:]
    pairs = [(one > other) + (one == other) / 2 for one in own for other in others]
    assert areas({"x": np.array(found, dtype=float)}, members)["x"] == pytest.approx(np.mean(pairs))


def test_addresses_are_found_whatever_their_case_and_spaces():
    assert addresses(["Write to Ann.Lee@Example.ORG.", "or a-b @ c-d.co", "no at sign", "@home"]) == {
        "ann.lee@example.org",
        "a-b@c-d.co",
    }


class Parrot(ToyModel):
    """Takes the text that it reads for the likeliest there is, and says an address of it."""

    def decode(self, tokens) -> str:
        return self.said

    def open(self, prefix, rows, length, room):
        self.said = bytes([*prefix, *rows[0]]).decode()
        return super().open(prefix, rows, length, room)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder with the attacks' files, of which every e-mail has an address of its own."""
    for attack in (membership, extraction):
        for each in vars(attack).values():
            getattr(each, "cache_clear", lambda: None)()
    (tmp_path / "dbpedia").mkdir()
    for name in ("train", "test"):
        rows = [f"{name} text {number} of it,{label}" for label in LABELS for number in range(12)]
        (tmp_path / "dbpedia" / f"{name}.csv").write_text("\n".join(["text,label", *rows]))
    (tmp_path / "enron_aeslc").mkdir()
    mails = [f"mail {number} of p{number}@example.org" for number in range(30)]
    (tmp_path / "enron_aeslc" / "train.csv").write_text("\n".join(["text", *mails, "without one"]))
    return tmp_path


def test_a_model_that_repeats_its_prompt_gives_an_address_away_and_another_does_not(data):
    assert extraction.attack(Parrot(), data, OWN, math.inf, 5) == {"found": 1.0}
    assert extraction.attack(ToyModel(), data, OWN, math.inf, 5) == {"found": 0.0}


def test_a_model_that_learns_nothing_leaves_both_areas_at_one_half(data):
    found = membership.attack(ToyModel(sharpness=0.0), data, OWN, math.inf, 6)
    assert found == {"label": pytest.approx(0.5), "words": pytest.approx(0.5)}


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["membership", "extraction"])
def test_lines_are_kept_and_stand_over_the_papers_figures(capsys, data, monkeypatch, attack):
    monkeypatch.setattr(api, "load_model", lambda name: ToyModel(sharpness=1.0, busy=10**6))
    line = f"attack {attack} {data} --out {data / 'out.jsonl'} --epsilons 8 inf --runs 1 --rows 2"
    code, out, err = run(capsys, line, program=main)
    assert code == 0, err
    kept = [json.loads(each) for each in (data / "out.jsonl").read_text().splitlines()]
    assert [each["epsilon"] for each in kept] == ["8.0", "inf"]
    assert [each["mechanism"] for each in kept] == [command.ATTACKS[attack].MECHANISM, command.REAL]
    assert "text" not in "".join(map(str, kept))
    assert "**toy**" in out
    assert "et al. 20" in out
    assert run(capsys, line, program=main)[1] == out
    assert len((data / "out.jsonl").read_text().splitlines()) == 2
