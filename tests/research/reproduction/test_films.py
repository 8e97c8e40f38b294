"""Records of films: what counts as one, and the command."""

from __future__ import annotations

import json

import pytest

from mechanisms import api
from research.__main__ import main
from research.reproduction.films import report, rows_of
from tests.cli.command import run
from tests.toy_model import ToyModel

FILM = {"title": "One", "year": 1990, "genres": ["Drama"]}


@pytest.mark.parametrize(
    ("text", "parses", "validates"),
    [
        (json.dumps(FILM), True, True),
        (json.dumps(FILM | {"cast": []}), True, True),
        (json.dumps(FILM | {"year": "1990"}), True, False),
        (json.dumps(FILM | {"year": True}), True, False),
        (json.dumps(FILM | {"title": None}), True, False),
        (json.dumps(FILM | {"genres": [1]}), True, False),
        ('{"title": "One"}', True, False),
        ("[]", True, False),
        ("1990", True, False),
        (json.dumps(FILM)[:-1], False, False),
        ("", False, False),
    ],
)
def test_what_counts_as_a_film(text, parses, validates):
    found = report([text])
    assert (found["parses"]["accuracy"], found["validates"]["accuracy"]) == (parses, validates)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(api, "load_model", lambda name: ToyModel(sharpness=1.0, busy=10**6))
    (tmp_path / "wikimovies").mkdir()
    films = [FILM | {"title": f"Film {number}", "extract": "left out"} for number in range(30)]
    (tmp_path / "wikimovies" / "movies.jsonl").write_text("\n".join(map(json.dumps, films)))
    return tmp_path


def test_every_row_is_a_film_without_what_is_left_out(data):
    rows = [each.text for each in rows_of(data / "wikimovies" / "movies.jsonl").records]
    assert report(rows)["validates"]["accuracy"] == 1
    assert "left out" not in "".join(rows)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["8", "inf"])
def test_so_many_records_are_written_and_counted(capsys, data, epsilon):
    code, out, err = run(capsys, f"films {data} --records 2 --tokens 6 --epsilon {epsilon} --json", program=main)
    assert code == 0, err
    found = json.loads(out)
    assert found["records"] == len(found["texts"]) == 2
    assert found["validates"]["accuracy"] == 0  # of a model that says anything: a number parses, and is no film
