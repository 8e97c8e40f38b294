"""A data set of the hub where a command takes a file."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cli.command import BANK, check_refusal, run
from tests.hub import Repository, lead_to, serving

REST = (
    "--text-column text --label-column topic --labels Cards,Fraud --allow-left-out --sizes Cards=900,Fraud=1500 "
    "--recipe tokens --epsilon 2 --delta 1e-5 --subsets 4 --tokens 3 --candidates 10"
)


@pytest.fixture(autouse=True)
def _served(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with serving({"ada/bank": Repository(main={"data/train.csv": BANK.read_bytes()})}) as hub:
        lead_to(hub.url, monkeypatch)
        yield


@pytest.mark.slow
def test_a_run_is_charged_to_the_data_set_by_its_own_name(capsys, toy_models, tmp_path):
    code, _, err = run(capsys, f"synthesize hf://datasets/ada/bank/train {REST} --out {tmp_path}/demos.json")
    assert code == 0, err
    code, out, _ = run(capsys, "ledger show --json")
    assert [each["name"] for each in json.loads(out)["data_sets"]] == ["ada/bank"]


def test_a_split_that_is_not_there_is_refused_in_one_line(capsys):
    told = "ask for ada/bank/NAME, where NAME is one of these: data/train"
    check_refusal(capsys, f"synthesize hf://datasets/ada/bank/dev {REST}", 2, told)
