"""`evaluate` in cells and with two sets: what is computed, what is kept, what is refused."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace

import pytest

from mechanisms import api
from mechanisms.records import Demonstration
from tests.cli.command import run
from tests.toy_model import ToyModel
from tests.ui.generate.recording import demo_set

SET = demo_set(*(Demonstration(f"{label} {number}", label) for label in ("News", "Sport") for number in range(2)))
SET = replace(SET, prior={"News": -100.0, "Sport": 100.0})


class Counting(ToyModel):
    sessions = 0

    def open(self, prefix, rows, length, room):
        Counting.sessions += bool(bytes(prefix).startswith(b"Classify."))
        return super().open(prefix, rows, length, room)


@pytest.fixture
def evaluated(capsys, monkeypatch, tmp_path):
    """Runs `evaluate` with the toy model; gives its code, document and messages."""
    rows = "".join(f"text {i},{'News' if i % 2 else 'Sport'}\n" for i in range(6))
    (tmp_path / "test.csv").write_text(f"text,label\n{rows}")
    (tmp_path / "set.json").write_text(SET.dumps())
    (tmp_path / "other.json").write_text(replace(SET, prior=None, demonstrations=SET.demonstrations[::-1]).dumps())
    monkeypatch.setattr(api, "load_model", lambda name: Counting())
    monkeypatch.chdir(tmp_path)

    def called(*rest, sets=("set.json",), test="test.csv"):
        Counting.sessions = 0
        code, out, err = run(capsys, "evaluate", *sets, "--test", test, "--json", *rest)
        return code, json.loads(out) if out else None, err

    return called


def table(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_table_and_plot_have_places_of_their_own(evaluated, tmp_path):
    code, _, err = evaluated("--out", "r", "--plot", str(tmp_path / "r"))
    assert (code, Counting.sessions) == (2, 0)
    assert "give each a place of its own" in err


def test_a_grid_has_every_cell_in_every_reading(evaluated, tmp_path):
    code, document, err = evaluated("--shots", "1", "2", "8", "--orders", "1", "--out", "r.csv", "--plot", "p.html")
    assert code == 0, err
    assert "--shots 8 is left out" in err
    assert (document["rows"], document["cells"], document["computed"], document["seed"]) == (6, 9, 9, 0)
    lines = table(tmp_path / "r.csv")
    assert len(lines) == 9 * 2 + 1
    assert [(line["shots"], line["order"]) for line in lines if line["reading"] == "prior"] == [("2", "0")]
    assert document["private demonstrations, shots 1"]["raw"]["orders"] == 2
    page = (tmp_path / "p.html").read_text()
    assert not re.findall(r"<(?:script|link)[^>]*(?:src|href)=", page)
    assert "private demonstrations, contextual" in page


def test_a_run_goes_on_where_it_was_cut_off_and_a_second_one_reads_nothing(evaluated, tmp_path):
    asked = ("--shots", "1", "2", "--orders", "1", "--out", "r.csv")
    whole = evaluated(*asked)[1]
    lines = (tmp_path / "r.csv").read_text().splitlines(keepends=True)
    _, again, err = evaluated(*asked)
    assert (again["computed"], Counting.sessions) == (0, 0)
    assert "9 of 9 cells" in err
    (tmp_path / "r.csv").write_text("".join(lines[:5]))  # the header, and two cells
    _, resumed, _ = evaluated(*asked)
    assert resumed["computed"] == 7
    assert (tmp_path / "r.csv").read_text() == "".join(lines)
    assert resumed | {"computed": 9} == again | {"computed": 9} == whole


def test_a_table_of_another_set_or_test_file_is_refused(evaluated, tmp_path):
    assert evaluated("--out", "r.csv")[0] == 0
    code, document, err = evaluated("--out", "r.csv", sets=("other.json",))
    assert (code, document) == (2, None)
    assert "figures of another demo set" in err
    code, _, err = evaluated("--out", "r.csv", "--limit", "4")
    assert code == 2
    assert "another test file" in err
    (tmp_path / "notes.csv").write_text("text,label\n")
    code, _, err = evaluated("--out", "notes.csv")
    assert code == 2
    assert "was not written by evaluate" in err
    assert (tmp_path / "notes.csv").read_text() == "text,label\n"


@pytest.mark.parametrize("option", ["--out", "--plot"])
@pytest.mark.parametrize("read", ["test.csv", "set.json"])
def test_what_is_read_is_not_written_over(evaluated, tmp_path, option, read):
    before = (tmp_path / read).read_bytes()
    code, _, err = evaluated(option, read)
    assert code == 2
    assert "is an input file" in err
    assert (tmp_path / read).read_bytes() == before


def test_two_sets_are_compared_on_the_same_rows(evaluated):
    code, document, err = evaluated(sets=("set.json", "other.json"))
    assert code == 0, err
    assert document["rows"] == 6
    assert (document["first"]["file"], document["second"]["file"]) == ("set.json", "other.json")
    assert set(document) >= {"raw", "contextual", "as read"}
    assert document["as read"]["first"]["accuracy"] == 0.5  # its correction says "Sport" to everything
    assert 0 < document["as read"]["mcnemar_p"] <= 1
    same = evaluated(sets=("set.json", "set.json"))[1]
    assert same["raw"]["mcnemar_p"] == 1


@pytest.mark.parametrize(
    ("sets", "rest", "said"),
    [
        (("set.json",) * 3, (), "one set, or two"),
        (("set.json",) * 2, ("--orders", "2"), "compared whole"),
        (("set.json",), ("--shots", "0"), "at least 1"),
        (("set.json",), ("--plot", "nowhere/p.html"), "Cannot write"),
    ],
)
def test_what_cannot_be_is_refused_before_a_row_is_read(evaluated, sets, rest, said):
    code, document, err = evaluated(*rest, sets=sets)
    assert (code, document, Counting.sessions) == (2, None, 0)
    assert said in err
