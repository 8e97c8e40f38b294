"""`synthesize --output-column`, and what `query`, `evaluate` and `account` make of such a set."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import pytest

from mechanisms import api, confidence
from mechanisms.cli import synthesize
from mechanisms.demos.demo_set import loads
from mechanisms.evaluation.completions import answering
from tests.cli.command import check_refusal, run
from tests.toy_model import VOCABULARY, ToyModel, ToySession

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
        (f"{said} {test} --output-column answer --shots 1", "a single, whole set"),
        (f"{said} {said} {test} --output-column answer", "a single, whole set"),
        (f"{said} {test} --output-column nothing", "no column"),
        (f"{said} {test} --output-column answer {elsewhere}", "of this machine"),
    ):
        check_refusal(capsys, f"evaluate {rest}", 2, message)
    check_refusal(capsys, f"query {said} hello {elsewhere}", 2, "of this machine")
    code, _, err = run(capsys, f"evaluate {said} {test} --output-column answer --limit 2")
    assert code == 0
    assert "shares rows" in err  # the private file itself: for the curator alone
