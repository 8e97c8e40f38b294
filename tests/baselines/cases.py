"""The cases: command lines with every option said that stays, so that no default decides what they do."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from tests.baselines.data import BLUE, RED


@dataclass(frozen=True)
class Cut:
    """A command whose model breaks down when it opens so many sessions, as in a crash."""

    line: str
    session: int


@dataclass(frozen=True)
class Case:
    """Commands that follow on one another, in a folder with the files of `data.py` and an empty ledger."""

    name: str
    steps: tuple[str | Cut, ...]


OWN = {
    "gaussian": {"temperature": 0, "top-p": 1, "prior-deviation": 0.1},
    "noisy-max": {},
    "adadpsyn": {
        "temperature": 0, "top-p": 1, "prior-deviation": 0.1, "sigma0": 10, "sigma2": 3, "refinements": 1,
        "theta": 0.1, "coverage": 0.55, "lambda": 0.2,
    },
    "blended-logits": {"clip": 10},
    "difference-clipping": {"temperature": 1},
    "svt-public": {"private-tokens": 2, "threshold": 0.3, "temperature": 1},
}  # fmt: skip
"""The parameters of each mechanism that calibration does not solve for."""
USUAL = {
    "name": "rows", "labels": "Red,Blue", "text-column": "text", "label-column": "topic", "max-record-tokens": 24,
    "max-unit-records": 3,
    "kind": "message", "writer": "a customer", "reader": "a shop", "relation": "about", "label-words": "Red=a red one",
    "instruction": "Sort the messages.", "text-field": "Message", "label-field": "Topic",
    "epsilon": 1, "delta": 1e-5, "sizes": "counted",
    "mechanism": "gaussian", "transform": "none", "scheme": "per-demonstration", "unit-rows": True, "subsets": 6,
    "tokens": 4, "min-tokens": 2, "shots-per-label": 2, "written": 2, "candidates": 10, "candidate-top-p": 1,
    "recipe": "tokens", "model": "toy-words", "engine": "local",
    "out": "demos.json", "journal": "run.jsonl",
}  # fmt: skip
PTA = {"transform": "pta", "alpha": 2, "pta-top-p": 1, "base": True}
STAGES = {"epsilon": 2, "drafts": 4, "draft-tokens": 12, "weighing": "rows", "score": "private"}
VOTE = STAGES | {"recipe": "vote", "split": "epsilon", "shares": "openings=.1,vote=.4,calibrate=.3,score=.2"}
BOTH = STAGES | {"recipe": "both", "split": "roles", "shares": "openings=.1,write=.3,vote=.2,calibrate=.2,score=.2"}
USERS, PER_TOKEN, MEASURED = {"unit-column": "user"}, {"scheme": "per-token"}, {"sizes": None, "count-epsilon": 0.25}
DECLARED = {"sizes": f"Red={RED + 50},Blue={BLUE + 50}"}
SUBSETS = {"unit-rows": None, "per-subset": 2, "subsets": 3}
RESUMED = {"journal": None, "resume": "run.jsonl"}
LEDGER = "ledger export --json"
AFTER = ("account --from demos.json --json", LEDGER)


def writing(*changes: dict[str, Any], file: str = "rows.csv") -> str:
    """A `synthesize` line: the usual options, and what differs from them; True is a flag alone, None leaves one out."""
    mechanism = next((each["mechanism"] for each in changes if "mechanism" in each), USUAL["mechanism"])
    whole = USUAL | OWN[mechanism]
    for each in changes:
        whole |= each
    parts = ["synthesize", file]
    for option, value in whole.items():
        if value is not None:
            parts.append(f"--{option}" if value is True else f"--{option} {shlex.quote(str(value))}")
    return " ".join(parts)


def run(name: str, *changes: dict[str, Any]) -> Case:
    """A run that is written down, and what the ledger and the accountants say afterwards."""
    return Case(name, (writing(*changes), *AFTER))


def resumed(name: str, session: int, *changes: dict[str, Any]) -> Case:
    """A run that breaks down on the way, and goes on; asked for with other options, it does not."""
    refused, goes_on = writing(*changes, RESUMED, {"tokens": 5}), writing(*changes, RESUMED)
    return Case(name, (Cut(writing(*changes), session), LEDGER, refused, goes_on, *AFTER))


CASES = (
    run("gaussian"),
    run("noisy-max", {"mechanism": "noisy-max"}, PER_TOKEN, SUBSETS, PTA),
    run("adadpsyn", {"mechanism": "adadpsyn", "refinements": 2}, USERS),
    run("blended-logits", {"mechanism": "blended-logits"}, PER_TOKEN, DECLARED),
    run("difference-clipping", {"mechanism": "difference-clipping"}, USERS, MEASURED),
    run("svt-public", {"mechanism": "svt-public", "epsilon": 4}),
    run("vote", VOTE, USERS),
    resumed("resumed", 8, {"model": "toy-alone"}, MEASURED, PER_TOKEN),
    resumed("resumed-in-stages", 20, BOTH),
    Case(
        "bad-input",
        (
            writing({"text-column": "message"}),
            writing(file="missing.csv"),
            writing({"labels": "Red,Green"}),
            writing({"sizes": None}),
            writing({"sizes": "Red=100"}),
            writing({"mechanism": "difference-clipping"}, PTA),
            writing({"noise-multiplier": 2}),
            writing(USERS, {"unit-column": "nobody"}),
            writing({"journal": None, "resume": "missing.jsonl"}),
            writing(VOTE, {"shares": "vote=.9,score=.2"}),
            "account --from rows.csv",
            "export missing.json --format csv --out x.csv",
            "ledger cap rows --epsilon 0.5 --delta 0.0001 --json",
            writing(),
            LEDGER,
        ),
    ),
)
QUICK = {"gaussian", "noisy-max", "blended-logits", "vote", "bad-input"}
"""What `make quick` looks at, on any kind of processor."""
