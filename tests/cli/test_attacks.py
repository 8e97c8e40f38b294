"""`audit mia`, `extract`, `canary`, `run`, and `score`, on toy models."""

from __future__ import annotations

import json

import pytest

from mechanisms import api
from mechanisms.accounting import Claim, PrivacyLedger, fingerprint
from mechanisms.audit.membership import NOTHING, RELEASED, ROWS
from mechanisms.cli import audit
from mechanisms.data.sizes import ATTACKED
from mechanisms.records import Dataset, Record
from tests.audit.test_extraction import Parrot
from tests.audit.test_membership import LABELS, Learning
from tests.cli.command import BANK, check_refusal, run
from tests.recipes.test_score_set import Honest
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

# `audit mia`, `extract`, `canary` and `run`: JSON, marks in the ledger, and no private text.


TASK = {"labels": list(LABELS), "instruction": "Sort.", "template": {"text": "Note", "label": "Topic"}}
DEMOS = [{"text": "a public text", "label": "red"}, {"text": "another", "label": "blue"}]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A private file, a held-out one, and a set by hand."""
    monkeypatch.setattr(api, "load_model", lambda name: Learning())
    for name in ("private", "other"):
        rows = [f"{name} note {i} to {name}{i}@example.org,{LABELS[i % 2]}" for i in range(24)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    (tmp_path / "demos.json").write_text(json.dumps({"demonstrations": DEMOS, "task": TASK}))
    return tmp_path


def marks() -> tuple[str, ...]:
    rows = tuple(Record(f"private note {i} to private{i}@example.org", LABELS[i % 2]) for i in range(24))
    return PrivacyLedger().rows.disclosures(fingerprint(Dataset("private", LABELS, rows)))


def told(capsys, line: str) -> dict:
    code, out, err = run(capsys, f"{line} --json")
    assert code == 0, err
    document = json.loads(out)
    assert (document["private"], document["curator_only"]) == (False, True)
    assert "private note" not in out + err
    assert "@" not in out + err
    assert marks() == (ATTACKED,)
    return document


def test_membership(capsys, files):
    line = f"audit mia {files}/private.csv {files}/demos.json --held-out {files}/other.csv --prompts 8"
    document = told(capsys, line)
    assert document["claim"] is None
    assert document[ROWS]["over references"]["auc"] > 0.9
    assert document[RELEASED]["over references"]["tpr_at_1%_fpr_allowed"] is None


def test_extraction(capsys, files, monkeypatch):
    monkeypatch.setattr(api, "load_model", lambda name: Parrot())
    document = told(capsys, f"audit extract {files}/private.csv {files}/demos.json --prompts 2 --answer-tokens 120")
    rates = {
        shown: document[shown]["e-mail address"]["answers_with_private_item"] for shown in (NOTHING, ROWS, RELEASED)
    }
    assert rates == {NOTHING: 0.0, ROWS: 1.0, RELEASED: 0.0}


def test_texts_of_one_kind_leak_as_well_and_tell_no_labels(capsys, files, monkeypatch):
    monkeypatch.setattr(api, "load_model", lambda name: Parrot())
    one = files / "one"
    one.mkdir()
    rows = [f"private note {i} to private{i}@example.org,mail" for i in range(24)]
    (one / "private.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    task = TASK | {"labels": ["mail"]}
    (one / "demos.json").write_text(json.dumps({"demonstrations": [DEMOS[0] | {"label": "mail"}], "task": task}))
    code, out, err = run(capsys, f"audit extract {one}/private.csv {one}/demos.json --prompts 1 --json")
    assert code == 0, err
    assert json.loads(out)[ROWS]["e-mail address"]["standing_in_prompts"] > 0
    (one / "alone.csv").write_text("\n".join(["text", *(row.removesuffix(",mail") for row in rows)]) + "\n")
    code, again, err = run(
        capsys, f"audit extract {one}/alone.csv {one}/demos.json --prompts 1 --json --label-column", ""
    )
    assert code == 0, err
    assert json.loads(again)[ROWS]["e-mail address"]["standing_in_prompts"] > 0
    line = f"audit mia {one}/private.csv {one}/demos.json --held-out {one}/private.csv"
    check_refusal(capsys, line, 2, "two labels")


def test_canaries(capsys, files, monkeypatch):
    monkeypatch.setattr(api, "load_model", lambda name: ToyModel())
    options = "--labels red,blue --epsilon 2 --delta 1e-5 --mechanism non-private --subsets 4 --tokens 3"
    document = told(capsys, f"audit canary {files}/private.csv {options} --canaries 4 --secrets 12")
    assert document["claim"] == {"epsilon": None, "delta": 1e-5}
    assert [document[shown]["verbatim"] for shown in (NOTHING, ROWS, RELEASED)] == [0, 4, 0]
    assert len(document[RELEASED]["exposure_bits"]) == 4


def test_a_claim_stands_beside_what_the_attack_reaches(capsys, files, monkeypatch):
    task, _ = audit._task(f"{files}/demos.json")
    monkeypatch.setattr(audit, "_task", lambda path: (task, Claim(1.0, 1e-5, "prv", 1.0, "pld")))
    line = f"audit mia {files}/private.csv {files}/demos.json --held-out {files}/other.csv --prompts 2"
    document = told(capsys, line)
    assert document["claim"] == {"epsilon": 1.0, "delta": 1e-5}
    assert document[RELEASED]["probability"]["tpr_at_1%_fpr_allowed"] == 0.0272
    assert document[ROWS]["probability"]["tpr_at_1%_fpr_allowed"] is None


@pytest.mark.slow
def test_one_run(capsys):
    code, out, err = run(capsys, "audit run noisy-max --canaries 64 --json")
    assert code == 0, err
    document = json.loads(out)
    assert document["holds"]
    assert document["canaries"] == 64


def test_refusals(capsys, files):
    check_refusal(capsys, "audit run vote --canaries 3", 2, "canaries can be audited")
    line = f"audit mia {files}/private.csv {files}/demos.json --held-out {files}/private.csv"
    check_refusal(capsys, line, 2, "too few rows of a label")
    check_refusal(capsys, f"audit extract {files}/none.csv {files}/demos.json", 2, "cannot be opened")


# `score` on the command line, on toy models.

FLOWERS = {"labels": ["red", "blue"], "instruction": "Sort.", "template": {"text": "Note", "label": "Topic"}}
BY_HAND = {
    "demonstrations": [{"text": "a rose", "label": "red"}, {"text": "the sky", "label": "blue"}],
    "task": FLOWERS,
}


@pytest.fixture
def line(monkeypatch, tmp_path) -> str:
    """Scores a small file with a set that was written by hand."""
    monkeypatch.setattr("mechanisms.api.load_model", lambda name: Honest())
    monkeypatch.setattr("mechanisms.api.load_embedder", ToyEmbedder)
    rows = [f"{('red', 'blue')[i % 2]} secret {i},{('red', 'blue')[i % 2]},user {i % 20}" for i in range(200)]
    (tmp_path / "rows.csv").write_text("text,label,who\n" + "\n".join(rows))
    (tmp_path / "set.json").write_text(json.dumps(BY_HAND))
    return f"score {tmp_path / 'rows.csv'} {tmp_path / 'set.json'} --delta 1e-5"


def test_a_set_by_hand_is_scored_and_charged(capsys, line):
    code, out, err = run(capsys, f"{line} --epsilon 4 --share 0.5 --prototypes-epsilon 3 --json")
    assert code == 0, err
    found = json.loads(out)
    assert list(found["arms"]) == ["zero-shot", "public-only", "demonstrations", "prototypes"]
    for arm in found["arms"].values():
        low, high = arm["interval"]
        assert 0 <= low <= arm["accuracy"] <= high <= 1
    assert found["arms"]["demonstrations"]["accuracy"] > 0.8
    assert found["rows"] == "private, and they may have taken part in what was chosen"
    assert (found["private"], found["unit"], found["share"]) == (True, "record", 0.5)
    assert found["epsilon"] == pytest.approx(4, abs=0.01)  # the larger of two disjoint parts
    assert list(found["event"]["lists"]) == ["score", "prototypes"]
    code, out, _ = run(capsys, "ledger show rows --json")
    assert json.loads(out)["data_sets"][0]["epsilon"] == pytest.approx(4, abs=0.01)
    assert "secret" not in out + err


def test_few_rows_are_said_to_be_few(capsys, line):
    code, out, err = run(capsys, f"{line} --epsilon 0.05 --json")
    assert code == 0
    widths = {name: arm["interval"][1] - arm["interval"][0] for name, arm in json.loads(out)["arms"].items()}
    said = {each.split(":")[0] for each in err.splitlines() if "too few rows" in each}
    assert said == {name for name, width in widths.items() if width > 0.2}


def test_users_are_the_unit(capsys, line):
    code, out, err = run(capsys, f"{line} --epsilon 2 --share 1 --unit-column who --json")
    assert code == 0, err
    found = json.loads(out)
    assert found["unit"] == "user:who"
    assert found["epsilon"] <= 2.0001
    assert found["event"]["lists"]["score"][0]["type"] == "laplace"


def test_a_score_over_the_cap_is_exit_code_three(capsys, line):
    run(capsys, "ledger cap rows --epsilon 0.5 --delta 1e-4")
    check_refusal(capsys, f"{line} --epsilon 2", 3, "allows epsilon 0.5")
    _, out, _ = run(capsys, "ledger export --json")
    assert json.loads(out)["runs"].get("rows", []) == []


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("--epsilon 0", "Epsilon"),
        ("--epsilon 1 --share 2", "share"),
        ("--epsilon 1 --share 1 --prototypes-epsilon 1", "below 1"),
        ("--epsilon 1 --prototypes-epsilon 0", "Epsilon"),
        ("--epsilon 1 --max-unit-records 0", "max unit records"),
        ("--epsilon 1 --text-column body", "body"),
    ],
)
def test_bad_usage_gets_one_line(capsys, line, rest, message):
    check_refusal(capsys, f"{line} {rest}", 2, message)
    _, out, _ = run(capsys, "ledger export --json")
    assert json.loads(out)["runs"] == {}


def test_a_file_that_is_no_set(capsys, tmp_path):
    (tmp_path / "set.json").write_text('{"task": {}}')
    check_refusal(capsys, f"score {BANK} {tmp_path / 'set.json'} --epsilon 1 --delta 1e-5", 2, "no set")
