"""Runs in stages on the command line, on toy models."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from mechanisms.cli.main import parser
from mechanisms.cli.options import spec_of
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.demos.demo_set import loads
from mechanisms.errors import ModelUnavailable
from mechanisms.records import Dataset, Record
from mechanisms.runs.completion import complete
from mechanisms.runs.events import SetSoFar
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.spec import RunSpec, Split
from mechanisms.runs.text import Gate
from mechanisms.runs.verification import verify
from tests.cli.command import BANK, check_refusal, run

SIZES = {"Cards": 900, "Fraud": 1500}
LINE = (
    f"synthesize {BANK} --text-column text --label-column topic --labels Cards,Fraud --allow-left-out --epsilon 2 "
    "--delta 1e-5 --candidates 10 --sizes Cards=900,Fraud=1500"
)
WRITING = "--subsets 4 --tokens 3"
QUICK = "--drafts 4 --draft-tokens 12"
DATA = Dataset("d", ("Cards", "Fraud"), (Record("a text", "Cards"),))


def spec(rest: str) -> RunSpec:
    return spec_of(parser().parse_args([*LINE.split(), *rest.split()]))


def planned(rest: str, measured: MeasuredSizes | None = None) -> Plan:
    return plan_for(spec(rest), DATA, measured)


def test_what_is_left_open_follows_from_the_sizes_and_what_is_said_stands():
    assert planned("--recipe vote").spec == complete(RunSpec.of(**said(recipe="vote")), SIZES)
    assert "score" not in planned("--recipe vote --score none").stages
    given = planned("--recipe both --drafts 9 --shares vote=.3,write=.2 --shots 3 --written 2").spec
    assert (given.drafts, given.shots, given.written, given.split) == (9, 3, 2, Split.ROLES)
    assert given.shares == {"write": 0.2, "vote": 0.3}


def said(**more: object) -> dict[str, object]:
    return {"epsilon": 2, "delta": 1e-5, "candidates": 10, "sizes": SIZES, **more}


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("--recipe vote --shares write=.5", "needs a share for the stage 'vote'"),
        ("--recipe vote --shares write=.5,vote=.2", "no stage 'write'"),
        ("--recipe vote --shares vote=.6,calibrate=.6", "more than 1"),
        ("--recipe vote --shares vote=.2,vote=.3", "twice"),
        ("--label-words red=fire --kind note --label-words blue=sky", "--label-words stands twice"),
        ("--recipe vote --shares vote", "--shares takes A=X,B=X"),
        ("--recipe vote --shares vote=much", "Shares (shares)"),
        ("--recipe vote --shares vote=.2,score=.2 --score none", "leave it out of the shares"),
        ("--recipe both --mechanism public", "private mechanism"),
        ("--recipe paint", "--recipe"),
        ("--shots 51", "shots-per-label"),
        ("--labels Cards --sizes Cards=900 --recipe vote --shares vote=.5,score=.2", "leave out the stage 'score'"),
        ("--count-epsilon 0.5", "not both"),
        ("--label-words Kards=cards", "no label 'Kards'"),
        ("--unit-column nobody", "no column 'nobody'"),
    ],
)
def test_bad_settings_get_one_line_before_anything_is_charged(capsys, rest, message):
    line = LINE.rpartition(" --sizes")[0] if "--sizes" in rest else LINE
    check_refusal(capsys, f"{line} {rest}", 2, message)
    _, out, _ = run(capsys, "ledger export --json")
    assert json.loads(out)["runs"] == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rest", "stages"),
    [
        ("--recipe vote", ["words", "vote", "calibrate", "score"]),
        (f"--recipe both --split epsilon --score none {WRITING}", ["words", "write", "vote", "calibrate"]),
        (f"--recipe tokens --shares write=.5,score=.2 {WRITING}", ["write", "score"]),
    ],
)
def test_from_csv_to_a_signed_set(capsys, tmp_path, toy_models, rest, stages):
    demos = tmp_path / "demos.json"
    asked = "--kind message --writer customer --reader bank --relation on --label-words Fraud=theft"
    code, out, err = run(capsys, f"{LINE} {rest} {QUICK} {asked} --out {demos}")
    assert (code, out) == (0, ""), err
    demo_set = loads(demos.read_text())
    assert [stage.name for stage in demo_set.stages] == stages
    assert demo_set.wording.to_json() == {
        "kind": "message", "writer": "customer", "reader": "bank", "relation": "on", "words": {"Fraud": "theft"},
        "exemplars": 6,
    }  # fmt: skip
    assert verify(demo_set).problems == ()
    assert all(f"stage {stage}" in err for stage in stages)
    code, out, err = run(capsys, f"account --from {demos} --json")
    assert (code, json.loads(out)["signature"]) == (0, "valid"), err


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (ModelUnavailable("No."), 4)])
@pytest.mark.parametrize("released", [False, True])
def test_a_run_that_ends_early_leaves_what_was_released(
    capsys, tmp_path, toy_models, monkeypatch, error, code, released
):
    whole, demos = tmp_path / "whole.json", tmp_path / "demos.json"
    assert run(capsys, f"{LINE} --recipe vote {QUICK} --out {whole}")[0] == 0
    kept = loads(whole.read_text())

    def ending(*_, **__):
        if released:
            yield SetSoFar(kept)
        raise error

    monkeypatch.setattr("mechanisms.runs.driver.run", ending)
    found, out, err = run(capsys, f"{LINE} --recipe vote {QUICK} --out {demos}")
    assert (found, out) == (code, ""), err
    assert demos.exists() == released == ("released before is kept" in err)
    if released:
        assert loads(demos.read_text()) == kept
        assert json.loads(demos.read_text())["signature"]


def test_a_run_whose_texts_are_all_refused_leaves_no_file(capsys, tmp_path, toy_models, monkeypatch):
    monkeypatch.setattr(Gate, "reason", lambda gate, text: "too few of its signs are letters")
    line = f"{LINE} --recipe tokens {WRITING} --out {tmp_path / 'demos.json'}"
    code, out, err = run(capsys, line)
    assert (code, out) == (2, "")
    assert "refused, too few of its signs are letters" in err
    assert "Nothing of this run is left to keep" in err
    assert not (tmp_path / "demos.json").exists()


def test_progress_tells_nothing_private(capsys, tmp_path, toy_models):
    secret = tmp_path / "secret.csv"
    rows = [f"Mr Smith number {i} of Elm Street,{'Cards' if i % 3 else 'Fraud'}" for i in range(37)]
    secret.write_text("text,topic\n" + "\n".join(rows))
    line = f"{LINE} --recipe vote {QUICK}".replace(str(BANK), str(secret))
    code, out, err = run(capsys, line, "--json")
    assert code == 0, err
    assert "winners with" in err
    for private in ("Smith", "Elm", r"(?<![\d.])37(?![\d.])"):  # a released share may well be 0.375
        assert not re.search(private, err)
        assert not re.search(private, json.dumps(json.loads(out)["demonstrations"]))


def test_a_public_run_opens_no_file_and_charges_nothing(capsys, toy_models):
    rest = "--labels Cards,Fraud --mechanism public --tokens 4 --kind message --json"
    for file in ("", "nowhere.csv"):
        code, out, err = run(capsys, f"synthesize {file} {rest}")
        assert code == 0, err
        document = json.loads(out)
        assert Counter(each["label"] for each in document["demonstrations"]) == {"Cards": 2, "Fraud": 2}
        assert (document["privacy"]["epsilon"], document["privacy"]["private"]) == (0, True)
    _, out, _ = run(capsys, "ledger export --json")
    assert json.loads(out)["runs"] == {}
    check_refusal(capsys, f"synthesize {rest.replace('public', 'gaussian')}", 2, "Give the FILE")
