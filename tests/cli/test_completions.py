"""A set of one kind of text from a file to its use: `query` goes on with a text, `evaluate` tells perplexities."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from mechanisms import api
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.cli import synthesize
from mechanisms.cli.main import parser
from mechanisms.cli.synthesis_options import read_labelled
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.sizes import SCORED
from mechanisms.data.sources import read_table
from mechanisms.demos.demo_set import loads, to_text
from mechanisms.demos.signature import signed
from mechanisms.errors import DataError
from mechanisms.evaluation.completions import completing
from tests.cli.command import check_refusal, run
from tests.toy_model import ToyModel

WRITING = (
    "--text-column note --labels Note --epsilon 2 --delta 1e-5 --sizes counted --subsets 4 --tokens 12 --shots 2 "
    "--candidates 20"
)


@pytest.fixture
def notes(tmp_path, capsys, monkeypatch) -> str:
    """The path of a set of notes; the private file lies beside it."""
    kinds = (f"the order {i} is late,K{i % 2},u{i}" for i in range(20))
    (tmp_path / "private.csv").write_text("\n".join(["note,kind,who", *kinds]))

    @contextmanager
    def opened(model, engine):
        yield ToyModel()

    monkeypatch.setattr(synthesize, "opened", opened)
    monkeypatch.setattr(api, "load_model", lambda name: ToyModel())
    code, _, err = run(
        capsys,
        f"synthesize {tmp_path}/private.csv {WRITING} --out {tmp_path}/notes.json --label-column",
        "",
    )
    assert code == 0, err
    return f"{tmp_path}/notes.json"


@pytest.mark.slow
def test_a_query_is_gone_on_with(capsys, notes):
    with open(notes, encoding="utf-8") as file:
        demo_set = loads(file.read())
    code, out, err = run(capsys, f"query {notes} --json", "the parcel")
    [rest] = completing(ToyModel(), demo_set, demo_set.demonstrations).answers(["the parcel"])
    assert (code, json.loads(out)["completion"]) == (0, rest), err
    assert "label" not in json.loads(out)


@pytest.mark.slow
def test_texts_of_a_file_have_a_perplexity_behind_every_prompt(capsys, notes, tmp_path):
    (tmp_path / "test.csv").write_text("said\nthe parcel is here\n\nwhen will it come\n")
    code, out, err = run(capsys, f"evaluate {notes} --test {tmp_path}/test.csv --text-column said --json")
    assert code == 0, err
    document = json.loads(out)
    assert document["rows"] == 2
    assert "curator_only" not in document
    for arm in ("zero-shot", "public-only", "private demonstrations"):
        low, high = document[arm]["interval"]
        assert 1 < low <= document[arm]["perplexity"] <= high


@pytest.mark.slow
@pytest.mark.parametrize(("more", "rows"), [("", 3), ("--label-column=", 5), ("--label-column none", 0)])
def test_of_a_file_with_labels_the_sets_own_rows_are_read(capsys, notes, tmp_path, more, rows):
    lines = [f"number {i},{'Note' if i < 3 else 'Bill'}" for i in range(5)]
    (tmp_path / "test.csv").write_text("\n".join(["said,label", *lines]))
    asked = f"evaluate {notes} --test {tmp_path}/test.csv --text-column said --json {more}"
    if not rows:
        check_refusal(capsys, asked, 2, "no column 'none'")
        return
    code, out, err = run(capsys, f"{asked} --allow-left-out")
    assert (code, json.loads(out)["rows"]) == (0, rows), err
    assert ("2 of 5 rows are left out" in err) == (rows == 3)


def test_a_file_with_other_columns_is_not_taken_for_texts_alone(capsys, tmp_path):
    (tmp_path / "private.csv").write_text("note,kind\nlate,K\n")
    check_refusal(capsys, f"synthesize {tmp_path}/private.csv {WRITING}", 2, "no column 'label'")
    many = WRITING.replace("Note", "Note,Bill") + " --label-column="
    check_refusal(capsys, f"synthesize {tmp_path}/private.csv {many}", 2, "one name")


@pytest.mark.parametrize("kind", [None, ""])
@pytest.mark.parametrize("more", [{"label": "x"}, {"label": "Letter"}, {"note": 1}, {"text": "hi"}])
def test_one_line_of_a_file_without_a_header_does_not_decide_what_the_others_are(tmp_path, kind, more):
    """There would be no other row's record then: a sensitivity of the whole file."""

    def texts(lines) -> list[str]:
        path = tmp_path / "letters.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        asked = f"synthesize {path} --labels Letter --epsilon 1 --delta 1e-5 --sizes counted".split()
        options = parser().parse_args(asked + ([] if kind is None else ["--label-column", kind]))
        try:
            return [each.text for each in to_dataset(*read_labelled(options), "letters", ("Letter",)).records]
        except DataError:
            return []

    lines = [{"text": f"letter {i}"} for i in range(9)]
    before, after = texts(lines), texts([*lines, {"text": "one more", **more}])
    assert before == ([line["text"] for line in lines] if kind == "" else [])
    assert [each for each in after if each in before] == before
    assert len(after) <= len(before) + 1


@pytest.mark.slow
def test_a_refused_evaluation_marks_no_row(capsys, notes, tmp_path):
    check_refusal(
        capsys, f"evaluate {notes} --test {tmp_path}/private.csv --text-column note --limit 1", 2, "two texts"
    )
    rows = to_dataset(read_table(tmp_path / "private.csv"), ColumnMapping("note", "kind"), "private", ())
    assert SCORED not in PrivacyLedger().rows.disclosures(fingerprint(rows))
    code, _, err = run(capsys, f"evaluate {notes} --test {tmp_path}/private.csv --text-column note --limit 2")
    assert code == 0, err
    assert SCORED in PrivacyLedger().rows.disclosures(fingerprint(rows))


@pytest.mark.slow
@pytest.mark.parametrize("reason", [None, "there is no noise"])
def test_what_is_computed_from_a_set_that_is_not_private_says_so(capsys, notes, tmp_path, reason):
    with open(notes, encoding="utf-8") as file:
        demo_set = loads(file.read())
    certificate = replace(demo_set.certificate, private=False, reason=reason)
    (tmp_path / "shown.json").write_text(to_text(signed(replace(demo_set, certificate=certificate))))
    (tmp_path / "test.csv").write_text("said\nthe parcel is here\nwhen will it come\n")
    for asked in (f"evaluate {tmp_path}/shown.json --test {tmp_path}/test.csv --text-column said --json",
                  f"query {tmp_path}/shown.json parcel --json"):  # fmt: skip
        code, out, err = run(capsys, asked)
        assert code == 0, err
        document = json.loads(out)
        assert (document["private"], document["curator_only"]) == (False, True)
        assert document["reason"] == reason or reason is None


@pytest.mark.slow
def test_figures_of_the_private_file_are_the_curators_alone(capsys, notes, tmp_path):
    code, out, err = run(capsys, f"evaluate {notes} --test {tmp_path}/private.csv --text-column note --limit 3 --json")
    assert (code, json.loads(out)["curator_only"]) == (0, True), err
    assert "shares rows" in err


@pytest.mark.slow
def test_what_needs_labels_is_refused(capsys, notes, tmp_path):
    test = f"--test {tmp_path}/private.csv --text-column note"
    elsewhere = "--reader-url http://127.0.0.1:9 --reader-model any"
    check_refusal(capsys, f"evaluate {notes} {test} {elsewhere}", 2, "one kind of text")
    check_refusal(capsys, f"evaluate {notes} {notes} {test}", 2, "one kind of text")
    check_refusal(capsys, f"evaluate {notes} {test} --output-column note", 2, "leave out --output-column")
    check_refusal(capsys, f"evaluate {notes} {test} --limit 1", 2, "two texts")
