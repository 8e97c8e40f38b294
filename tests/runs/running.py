"""Whole runs on toy models that remember what they were shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from mechanisms.accounting import Cap, PrivacyLedger, fingerprint
from mechanisms.accounting.ledger import LedgerRun
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.records import Dataset, Record
from mechanisms.runs.events import Drafting, PrivateDiagnostics, RunEvent, StageProgress
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.run import run
from mechanisms.runs.run_file import to_lines
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, SOURCES, VOTE, WORDS, WRITE, Recipe, RunSpec
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

LABELS = ("red", "blue")
INSTRUCTION = "Sort."
SHARES = {OPENINGS: 0.1, WORDS: 0.1, WRITE: 0.3, VOTE: 0.2, CALIBRATE: 0.15, SCORE: 0.15}
NOISE = {"noise-multiplier": 9.0}
"""Not calibrated, so that nothing is accounted twice."""
CAP = Cap(1000.0, 0.01)
SECRET = re.compile(r"secret (\d+)")
"""Every private text holds a number of its own behind this word."""
SYLLABLES = ("ba", "ke", "li", "mo", "nu", "pa", "re", "si", "to", "vu", "da", "fe")
OWN = (StageProgress, PrivateDiagnostics, Drafting)
"""For the curator's screen: no release."""


class Speaking(ToyModel):
    """Its tokens are words, one in eight the last of its sentence; it ends a text at times."""

    def decode(self, tokens) -> str:
        return " ".join(self._word(token) for token in tokens)

    def _word(self, token: int) -> str:
        return SYLLABLES[token % 12] + SYLLABLES[token // 12] + ("." if token % 8 == 0 else "")


def secrets(texts) -> set[int]:
    return {int(number) for text in texts for number in SECRET.findall(text)}


class Log(list[Any]):
    """What happened, in order: ("read", numbers of texts), ("charge", list, events), ("event", event)."""

    def read(self, texts) -> None:
        if found := secrets(texts):
            self.append(("read", found))

    def watch(self, monkeypatch) -> None:
        charge = LedgerRun.charge

        def watched(entry, name, events, part=""):
            self.append(("charge", name, events))
            charge(entry, name, events, part)

        monkeypatch.setattr(LedgerRun, "charge", watched)


class Answering:
    """A label's log-probability as a function of the prompt and the query."""

    def __init__(self, model, prefix: str, rows) -> None:
        self.model, self.prefix, self.rows = model, prefix, [bytes(row).decode() for row in rows]

    def score(self, continuation):
        label = bytes(continuation).decode().strip()
        return np.array([self.model.answer(self.prefix, row, label) for row in self.rows])


class Reading(Speaking):
    """Finds the label in the text."""

    def __init__(self, log: Log | None = None) -> None:
        super().__init__(sharpness=1.0, busy=10**6)
        self.log = Log() if log is None else log

    def answer(self, prefix: str, query: str, label: str) -> float:
        return 0.0 if label in query else -9.0

    def open(self, prefix, rows, length, room):
        shown = bytes(prefix).decode("ascii", "replace")
        self.log.read([shown, *(bytes(row).decode("ascii", "replace") for row in rows)])
        if shown.startswith(INSTRUCTION):
            return Answering(self, shown, rows)
        return super().open(prefix, rows, length, room)


class Embedding(ToyEmbedder):
    def __init__(self, log: Log | None = None) -> None:
        super().__init__()
        self.log = Log() if log is None else log

    def embed(self, texts):
        self.log.read(texts)
        return super().embed(texts)


def rows(count: int, wrong: int = 0, users: bool = False) -> list[Record]:
    """Texts that name their label, but for the first `wrong`, which name the other; three a user."""
    return [
        Record(f"The {LABELS[(i + (i < wrong)) % 2]} secret {i}", LABELS[i % 2], f"u{i // 3}" if users else None)
        for i in range(count)
    ]


def data(records, by_user: bool = False) -> Dataset:
    return Dataset("d", LABELS, tuple(records), "who" if by_user else None)


def spec(recipe: str = "both", split: str = "roles", without: tuple[str, ...] = (), **rest: Any) -> RunSpec:
    """Every stage of a recipe but some; small enough for a toy."""
    left_out = {WRITE, VOTE} - SOURCES[Recipe(recipe)] | set(without)
    values: dict[str, Any] = {
        "epsilon": 2.0,
        "recipe": recipe,
        "split": split,
        "shares": {stage: share for stage, share in SHARES.items() if stage not in left_out},
        "score": SCORE not in without,
        "kind": "note",
        "instruction": INSTRUCTION,
        "text_field": "Note",
        "label_field": "Topic",
        "shots": 1,
        "drafts": 3,
        "draft_tokens": 12,
        "written": 1,
        "subsets": 4,
        "tokens": 3,
        "candidates": 10,
        "parameters": NOISE if WRITE in SOURCES[Recipe(recipe)] else {},
    }
    return RunSpec.of(**values | rest)


def alone(**rest: Any) -> RunSpec:
    """Token by token, and nothing else."""
    return spec(
        "tokens",
        "epsilon",
        **{"shares": {WRITE: 1.0}, "score": False, "subsets": 6, "tokens": 5, "candidates": 8} | rest,
    )


def planned(dataset: Dataset, asked: RunSpec | None = None, **rest: Any) -> Plan:
    """A plan for a data set, which declares its own counts."""
    asked = asked or spec(**rest)
    sizes = {label: max(2, size) for label, size in dataset.counted_sizes().items()}
    return plan_for(asked if asked.sizes else asked.with_(sizes=sizes), dataset)


def ledger(by_user: bool = False) -> PrivacyLedger:
    made = PrivacyLedger()
    made.set_cap("d", "user:who" if by_user else "record", CAP)
    return made


def begun(dataset: Dataset, plan: Plan, log: Log | None = None, **rest: Any) -> Iterator[Any]:
    log = Log() if log is None else log
    used = {"model": Reading(log), "embedder": Embedding(log), "ledger": None, "randomness": SeededRandomness(1)} | rest
    used["ledger"] = used["ledger"] or ledger(dataset.by_user)
    for event in run(plan, dataset, **used):
        log.append(("event", event))
        yield event


# Runs as they were told, each made once.

KINDS = ("alone", "tokens", "vote", "both")
"""Token by token alone, and every recipe by roles."""


@cache
def _calibrated() -> Plan:
    return planned(data(rows(60)), alone(shots=2, written=2)).calibrated()


def asked_for(kind: str) -> tuple[Dataset, Plan]:
    """The data of a kind of run, and its plan."""
    records = data(rows(60))
    if kind == "alone":
        return records, _calibrated().for_content(fingerprint(records).content)
    return records, planned(records, spec(kind))


@cache
def told(kind: str) -> tuple[Any, ...]:
    """Everything that a private run tells its curator, clean values and progress included."""
    records, plan = asked_for(kind)
    return tuple(begun(records, plan, randomness=SecureRandomness(), curator=True))


@cache
def recorded(kind: str) -> tuple[RunEvent, ...]:
    """What of it may be recorded."""
    return tuple(event for event in told(kind) if not isinstance(event, OWN))


@cache
def file_of(kind: str) -> str:
    return to_lines(recorded(kind))
