"""`synthesize --schema`: records from JSON Lines, with schema and certificate beside them."""

from __future__ import annotations

import json

import pytest

from mechanisms.data.record_schema import RecordSchema
from mechanisms.demos.demo_set import loads
from tests.cli.command import check_refusal, run

pytestmark = pytest.mark.usefixtures("small_model")
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 12},
        "year": {"type": "integer", "minimum": 1900, "maximum": 2029},
    },
    "required": ["title", "year"],
}
REST = "--labels Movie --epsilon 2 --delta 1e-5 --sizes counted --subsets 4 --tokens 3 --candidates 10"


@pytest.fixture
def files(tmp_path) -> str:
    rows = (json.dumps({"title": f"The Story {i}", "year": 1950 + i, "plot": "unseen"}) for i in range(20))
    (tmp_path / "movies.jsonl").write_text("\n".join(rows))
    (tmp_path / "movie.json").write_text(json.dumps(SCHEMA))
    return f"synthesize {tmp_path}/movies.jsonl --schema {tmp_path}/movie.json {REST}"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--labels A,B", "one kind"),
        ("--recipe vote", "leave out --recipe"),
        ("--min-tokens 3", "leave out --min-tokens"),
        ("--schema nowhere.json", "nowhere.json"),
        ("--unit-column nobody", "no column 'nobody'"),
        ("--out nowhere/films.jsonl", "Cannot write"),
    ],
)
def test_what_does_not_go_with_a_schema_is_refused(capsys, files, more, message):
    check_refusal(capsys, f"{files} {more}", 2, message)


def test_lines_are_written_of_records_alone(capsys, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\na,A\nb,B\n")
    line = f"synthesize {path} --labels A,B --epsilon 1 --delta 1e-5 --sizes counted --out {tmp_path}/a.jsonl"
    check_refusal(capsys, line, 2, "needs --schema")


@pytest.mark.slow
def test_a_schema_that_nothing_meets_is_refused_before_sizes_are_measured(capsys, files, tmp_path):
    year = SCHEMA["properties"]["year"] | {"maximum": 1800}
    edited = SCHEMA | {"properties": SCHEMA["properties"] | {"year": year}}
    (tmp_path / "movie.json").write_text(json.dumps(edited))
    line = files.replace("--sizes counted", "--count-epsilon 0.5")
    code, _, err = run(capsys, line)
    assert code == 2
    assert "No record can be written" in err
    code, out, _ = run(capsys, "ledger show --json")
    assert json.loads(out)["data_sets"] == []


@pytest.mark.slow
def test_from_lines_to_lines(capsys, files, tmp_path):
    code, _, err = run(capsys, f"{files} --shots 2 --out {tmp_path}/films.jsonl")
    assert code == 0, err
    schema = RecordSchema.read((tmp_path / "films.schema.json").read_text())
    assert schema == RecordSchema(SCHEMA)
    lines = (tmp_path / "films.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert all(schema.holds(line) for line in lines)
    demo_set = loads((tmp_path / "films.demos.json").read_text(encoding="utf-8"))
    assert [each.text for each in demo_set.demonstrations] == lines
    assert demo_set.schema == schema
    code, out, _ = run(capsys, f"account --json --from {tmp_path}/films.demos.json")
    assert (code, json.loads(out)["problems"], json.loads(out)["signature"]) == (0, [], "valid")
