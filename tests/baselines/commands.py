"""Command lines with every option said, so that no default decides what they do; and what a case consists of."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cut:
    """A command whose model breaks down when it opens so many sessions, as in a crash."""

    line: str
    session: int


@dataclass(frozen=True)
class Edit:
    """A file is changed by hand, at a field with slashes for depth."""

    file: str
    field: str
    value: Any


@dataclass(frozen=True)
class Case:
    """Commands that follow on one another, in a folder with the files of `data.py` and an empty ledger."""

    name: str
    steps: tuple[str | Cut | Edit, ...]


OWN = {
    "gaussian": {"temperature": 0, "top-p": 1},
    "noisy-max": {},
    "adadpsyn": {"sigma0": 10, "sigma2": 3, "refinements": 1, "theta": 0.1, "coverage": 0.55, "lambda": 0.2},
    "blended-logits": {"clip": 10},
    "difference-clipping": {"temperature": 1},
    "svt-public": {"private-tokens": 2, "threshold": 0.3, "temperature": 1},
    "public": {},
    "non-private": {},
}
"""The parameters of each mechanism that calibration does not solve for."""
PTA = {"transform": "pta", "alpha": 2, "pta-top-p": 1, "base": True}
DATA = {
    "name": "rows", "labels": "Red,Blue", "text-column": "text", "label-column": "topic", "max-record-tokens": 24,
    "max-unit-records": 3,
}  # fmt: skip
PROMPT = {"instruction": "Sort the messages.", "text-field": "Message", "label-field": "Topic"}
PRICE = {"epsilon": 1, "delta": 1e-5, "sizes": "counted"}
PLAN = {
    "mechanism": "gaussian", "transform": "none", "scheme": "per-demonstration", "unit-rows": True, "subsets": 6,
    "tokens": 4, "shots-per-label": 2, "candidates": 10, "min-tokens": 2,
}  # fmt: skip
WRITING = {"recipe": "tokens", "best-of": 1, "model": "toy-words", "engine": "local"}
STAGES = {
    "drafts": 3, "rounds": 1, "sets": 1, "draft-tokens": 12, "weighing": "rows", "score": "private", "epsilon": 2,
}  # fmt: skip
ROLES = {"recipe": "vote", "split": "roles", "shares": "vote=.5,calibrate=.2,choose=.15,score=.15", **STAGES}
TOKEN_STAGES = ROLES | {
    "recipe": "tokens", "shares": "write=.6,calibrate=.2,choose=.1,score=.1", "drafts": None, "rounds": None,
    "sets": None,
}  # fmt: skip
EPSILON = {"recipe": "vote", "split": "epsilon", "shares": "vote=.3,calibrate=.3,choose=.2,score=.2", **STAGES}
OUT = {"out": "demos.json", "journal": "run.jsonl"}
ANSWERED = {
    "name": "answered", "labels": "Request", "label-column": "", "output-column": "item", "output-field": "Item",
    "answers": "private", "output-tokens": 2, "max-output-tokens": 4, "label-field": "Kind", "min-tokens": 1,
}  # fmt: skip
RECORDS = {
    "name": "records", "labels": "Visit", "text-column": None, "label-column": None, "schema": "schema.json",
    "min-tokens": None, "text-field": "Record", "label-field": "Kind", "model": "toy", "tokens": 24,
    "out": "made.jsonl", "max-record-tokens": 32,
}  # fmt: skip
ALONE = {"name": "texts", "labels": "Note", "label-column": "", "label-field": "Kind"}
USERS, SUBSETS = {"unit-column": "user"}, {"unit-rows": None, "per-subset": 2, "subsets": 3}

ACCOUNT, LEDGER = "account --from demos.json --json", "ledger export --json"
REPLAY = "replay run.jsonl --json"
AFTER = (ACCOUNT, LEDGER)
ANSWERING = {
    "model": "toy-words", "mechanism": "knn-votes", "retrieval": "threshold", "threshold": 0.5, "shards": 4,
    "neighbours": 2, "queries": 20, "epsilon": 1, "delta": 1e-5, "max-query-tokens": 24, "answer-tokens": 4,
    "json": True,
}  # fmt: skip
KEYWORDS = {
    "mechanism": "keywords", "labels": None, "fewest-keywords": 3, "most-keywords": 5, "selection-share": 0.2,
    "epsilon": 4,
}  # fmt: skip
PLANNED = {
    "size": 1000, "tokens": 2, "prompt-tokens": 50, "per-subset": 1, "shots-per-label": 1, "epsilon": 1,
    "delta": 1e-5, "max-prompt-tokens": 400,
}  # fmt: skip
FORMATS = ("certificate", "csv", "dspy", "hugging-face", "langchain", "openai", "prompt", "promptfoo")
READING = {"text-column": "text", "label-column": "topic", "limit": 10, "model": "toy-words"}
SCORING = {
    "text-column": "text", "label-column": "topic", "name": "rows", "epsilon": 2, "delta": 1e-5, "share": 0.2,
    "max-record-tokens": 24, "max-unit-records": 3, "model": "toy-words", "json": True,
}  # fmt: skip


def command(first: str, /, *words: str, **options: Any) -> str:
    """A command line: True is a flag alone, None leaves an option out."""
    parts = [first, *(shlex.quote(word) for word in words)]
    for option, value in options.items():
        if value is not None:
            parts.append(f"--{option}" if value is True else f"--{option} {shlex.quote(str(value))}")
    return " ".join(parts)


def writing(file: str = "rows.csv", *changes: dict[str, Any]) -> str:
    """A `synthesize` line: the usual options, and what differs from them."""
    whole: dict[str, Any] = DATA | PROMPT | PRICE | PLAN | WRITING | OUT
    own = OWN[next((each["mechanism"] for each in changes if "mechanism" in each), PLAN["mechanism"])]
    for each in (own, *changes):
        whole |= each
    return command("synthesize", file, **whole)


def run(name: str, *changes: dict[str, Any], file: str = "rows.csv") -> Case:
    """A run that is written down, and what the ledger and the accountants say afterwards."""
    return Case(name, (writing(file, *changes), *AFTER))


def staged(name: str, *changes: dict[str, Any]) -> Case:
    """`run` in stages: without the options that only a run of tokens has."""
    return run(name, {"best-of": None}, *changes)


def asking(question: str, *changes: dict[str, Any], **others: Any) -> str:
    """An `answer` line; without a question it needs a file of them."""
    usual: dict[str, Any] = {name: value for name, value in DATA.items() if name != "max-unit-records"}
    usual |= PROMPT | ANSWERING
    for each in (*changes, others):
        usual |= each
    return command("answer", *filter(None, ("rows.csv", question)), **usual)
