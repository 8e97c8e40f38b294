"""`synthesize` of texts with answers, and of records."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import pytest

from mechanisms import api, confidence
from mechanisms.cli import synthesize
from mechanisms.data.record_schema import RecordSchema
from mechanisms.demos.demo_set import loads
from mechanisms.evaluation.completions import answering
from tests.cli.command import check_refusal, run
from tests.toy_model import VOCABULARY, ToyModel, ToySession

# `synthesize --output-column`, and what `query`, `evaluate` and `account` make of such a set.


SECRET = "zanzibar"
REST = "--epsilon 2 --delta 1e-5 --sizes counted --subsets 4 --tokens 12 --shots 2 --candidates 20"


class Plain(ToyModel):
    """Writes what a cell of a file can hold as it stands, and no spaces: an output of nothing else is none."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        plain = np.array([i == 10 or (chr(i).isprintable() and chr(i) not in ' "') for i in range(VOCABULARY)])
        session._row = lambda tokens: np.where(plain, ToySession._row(session, tokens), -100.0)
        return session


@pytest.fixture
def line(tmp_path, monkeypatch) -> str:
    rows = (f"who was it {i},T{i % 2},{SECRET}{i}" for i in range(20))
    path = tmp_path / "asked.csv"
    path.write_text("\n".join(["question,topic,answer", *rows]))

    @contextmanager
    def opened(model, engine):
        yield Plain()

    monkeypatch.setattr(synthesize, "opened", opened)
    monkeypatch.setattr(api, "load_model", lambda name: Plain())
    return f"synthesize {path} --text-column question {REST}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        "--labels Question --output-column answer --output-tokens 4 --max-output-tokens 6",
        "--labels Question --output-column answer --answers model --max-output-tokens 6",
        "--labels Question --output-field Answer --answers model",
        "--labels T0,T1 --label-column topic --output-column answer",
    ],
)
def test_from_a_file_to_a_set_and_its_use(capsys, line, tmp_path, more):
    path = tmp_path / "demos.json"
    code, out, err = run(capsys, f"{line} {more} --out {path}")
    assert code == 0, err
    text = path.read_text(encoding="utf-8")
    assert SECRET not in text + out + err
    demo_set = loads(text)
    assert demo_set.template.output == "Answer"
    assert len(demo_set.demonstrations) == 2 * len(demo_set.labels)
    assert all(each.output for each in demo_set.demonstrations)
    assert demo_set.certificate.parameters["outputs"]["answers"] == ("model" if "model" in more else "private")

    code, out, _ = run(capsys, f"account --json --from {path}")
    assert (code, json.loads(out)["problems"], json.loads(out)["signature"]) == (0, [], "valid")

    code, out, err = run(capsys, f"query {path} --json", "who knows")
    most = demo_set.certificate.parameters["outputs"]["max_tokens"]
    [answer] = answering(Plain(), demo_set.template, demo_set.demonstrations, most).answers(["who knows"])
    assert (code, json.loads(out)["answer"]) == (0, answer), err

    longer = "more than any answer has tokens"
    (tmp_path / "test.csv").write_text(f'question,said\none,{longer}\nwho knows,\nwho knows,"{answer}"\n')
    asked = f"evaluate {path} --test {tmp_path}/test.csv --text-column question --output-column said --json"
    code, out, err = run(capsys, asked)
    assert (code, out) == (2, "")
    assert "1 of 3 rows is left out: 1 with an empty output." in err
    code, out, err = run(capsys, f"{asked} --allow-left-out")
    assert code == 0, err
    document = json.loads(out)
    assert document["level"] == confidence.LEVEL
    assert document["rows"] == 2  # a row without an output cannot be compared
    assert document["private demonstrations"]["exact"]["accuracy"] == 0.5
    for arm in ("zero-shot", "public-only", "private demonstrations"):
        assert set(document[arm]) == {"exact", "f1"}
        assert document[arm]["exact"]["accuracy"] <= document[arm]["f1"]["accuracy"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--labels Q --answers model", "needs --output-column"),
        ("--labels Q --output-tokens 3", "needs --output-column"),
        ("--labels Q --output-field Answer", "Give the column"),
        ("--labels Q --output-column answer --answers model --output-tokens 3", "leave out --output-tokens"),
        ("--labels A,B --output-column answer", "one name"),
        ("--labels Q --output-column nothing", "no column 'nothing'"),
        ("--labels Q --output-column question", "different columns"),
        ("--labels Q --output-column answer --output-field Question", "name of its own"),
        ("--labels Q --output-column answer --output-tokens 12", "none is left for the text"),
        ("--labels Q --output-column answer --output-tokens 0", "at least 1 token"),
        ("--labels Q --output-column answer --max-output-tokens 0", "cap"),
        ("--labels Q --output-column answer --recipe vote", "leave out --recipe"),
        ("--labels Q --output-column answer --best-of 2", "two labels"),
        ("--labels Q --output-column answer --schema s.json", "a property of --schema"),
        ("--labels Q --output-column answer --label-column answer", "different columns"),
    ],
)
def test_what_does_not_go_together_is_refused(capsys, line, tmp_path, monkeypatch, more, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(
        '{"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}'
    )
    check_refusal(capsys, f"{line} {more}", 2, message)


@pytest.mark.slow
def test_sets_with_and_without_outputs_are_not_taken_for_each_other(capsys, line, tmp_path):
    said, labelled = tmp_path / "said.json", tmp_path / "labelled.json"
    plain = "--labels T0,T1 --label-column topic --recipe tokens"
    for path, more in ((said, "--labels Q --output-column answer"), (labelled, plain)):
        code, _, err = run(capsys, f"{line} {more} --out {path}")
        assert code == 0, err
    test = f"--test {tmp_path}/asked.csv --text-column question"
    elsewhere = "--reader-url http://127.0.0.1:9/v1 --reader-model any"
    for rest, message in (
        (f"{labelled} {test} --output-column answer", "leave out --output-column"),
        (f"{said} {test} --label-column topic", "--output-column"),
        (f"{said} {said} {test} --output-column answer", "a single set"),
        (f"{said} {test} --output-column nothing", "no column"),
        (f"{said} {test} --output-column answer {elsewhere}", "of this machine"),
    ):
        check_refusal(capsys, f"evaluate {rest}", 2, message)
    check_refusal(capsys, f"query {said} hello {elsewhere}", 2, "of this machine")
    code, _, err = run(capsys, f"evaluate {said} {test} --output-column answer --limit 2")
    assert code == 0
    assert "shares rows" in err  # the private file itself: for the curator alone


# `synthesize --schema`: records from JSON Lines, with schema and certificate beside them.

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 12},
        "year": {"type": "integer", "minimum": 1900, "maximum": 2029},
    },
    "required": ["title", "year"],
}
REST_OF_RECORDS = "--labels Movie --epsilon 2 --delta 1e-5 --sizes counted --subsets 4 --tokens 3 --candidates 10"


@pytest.fixture
def files(tmp_path) -> str:
    rows = (json.dumps({"title": f"The Story {i}", "year": 1950 + i, "plot": "unseen"}) for i in range(20))
    (tmp_path / "movies.jsonl").write_text("\n".join(rows))
    (tmp_path / "movie.json").write_text(json.dumps(SCHEMA))
    return f"synthesize {tmp_path}/movies.jsonl --schema {tmp_path}/movie.json {REST_OF_RECORDS}"


@pytest.mark.usefixtures("small_model")
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


@pytest.mark.usefixtures("small_model")
def test_lines_are_written_of_records_alone(capsys, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\na,A\nb,B\n")
    line = f"synthesize {path} --labels A,B --epsilon 1 --delta 1e-5 --sizes counted --out {tmp_path}/a.jsonl"
    check_refusal(capsys, line, 2, "needs --schema")


@pytest.mark.usefixtures("small_model")
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


@pytest.mark.usefixtures("small_model")
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
