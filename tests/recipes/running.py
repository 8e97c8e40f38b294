"""Whole runs on toy models that remember what they were shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from mechanisms.accounting import Cap, PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.accounting.ledger import LedgerRun
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, PromptTemplate, Record
from mechanisms.runs import run as recipe_run
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.sets import wordings
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class
from tests.recipes.test_drafts import Speaking
from tests.toy_embedder import ToyEmbedder

LABELS = ("red", "blue")
TEMPLATE = PromptTemplate("Sort.", "Note", "Topic")
SHARES = {Stage.WRITE: 0.3, Stage.VOTE: 0.2, Stage.CALIBRATE: 0.2, Stage.CHOOSE: 0.1, Stage.SCORE: 0.2}
EVERY = {stage: SHARES.get(stage, 1.0) / (len(Stage) - len(SHARES) + 1) for stage in Stage}
"""Of all stages that have a file, whether or not they take part in a run that nobody asks more of."""
CAP = Cap(1000.0, 0.01)
SECRET = re.compile(r"secret (\d+)")
"""Every private text holds a number of its own behind this word."""


def secrets(texts) -> set[int]:
    return {int(number) for text in texts for number in SECRET.findall(text)}


class Log(list[Any]):
    """What happened, in order: ("read", numbers of texts), ("charge", list, events), ("event", event)."""

    def read(self, texts) -> None:
        if found := secrets(texts):
            self.append(("read", found))

    def watch(self, monkeypatch) -> None:
        charge = LedgerRun.charge

        def watched(run, name, events, part=""):
            self.append(("charge", name, events))
            charge(run, name, events, part)

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

    def __init__(self, log: Log) -> None:
        super().__init__(sharpness=1.0, busy=10**6)
        self.log = log

    def answer(self, prefix: str, query: str, label: str) -> float:
        return 0.0 if label in query else -9.0

    def open(self, prefix, rows, length, room):
        shown = bytes(prefix).decode("ascii", "replace")
        self.log.read([shown, *(bytes(row).decode("ascii", "replace") for row in rows)])
        if shown.startswith(tuple(each.instruction for each in wordings(TEMPLATE, LABELS, 3))):
            return Answering(self, shown, rows)
        return super().open(prefix, rows, length, room)


class Embedding(ToyEmbedder):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log

    def embed(self, texts):
        self.log.read(texts)
        return super().embed(texts)


def rows(count: int, wrong: int = 0, users: bool = False) -> list[Record]:
    """Texts that name their label, but for the first `wrong`, which name the other; three a user."""
    return [
        Record(f"{LABELS[(i + (i < wrong)) % 2]} secret {i}", LABELS[i % 2], f"u{i // 3}" if users else None)
        for i in range(count)
    ]


def data(records, by_user: bool = False) -> Dataset:
    return Dataset("d", LABELS, tuple(records), "who" if by_user else None)


def recipe(kind: Kind, division: Division, without: tuple[Stage, ...] = (), **rest: Any) -> Recipe:
    left_out = {Kind.VOTE: {Stage.WRITE}, Kind.TOKENS: {Stage.VOTE}, Kind.BOTH: set[Stage]()}[kind] | set(without)
    shares = {stage: share for stage, share in SHARES.items() if stage not in left_out}
    return Recipe(kind, division, **{"shares": shares, "drafts": 3, "sets": 2} | rest)


def planned(dataset: Dataset, used: Recipe, epsilon: float = 2.0, **rest: Any) -> RecipeRequest:
    """A request for a data set; its noise of writing is not calibrated, so that nothing is accounted twice."""
    target, content = PrivacyTarget(epsilon, 1e-5), fingerprint(dataset).content
    sizes = {label: max(2, size) for label, size in dataset.counted_sizes().items()}
    written = None
    if Stage.WRITE in used.shares:
        share = used.shares[Stage.WRITE] if used.division is Division.ROLES else 1.0
        plan = SamplingPlan(subsets=4, tokens=3, share=share)
        noisy = mechanism_class("gaussian")(noise_multiplier=9.0)
        written = SynthesisRequest(
            labels=LABELS,
            template=TEMPLATE,
            plan=plan,
            mechanism=noisy,
            target=target,
            sizes=sizes,
            content=content,
            by_user=dataset.by_user,
            candidates=10,
        )
    return RecipeRequest(
        labels=LABELS,
        template=TEMPLATE,
        recipe=used,
        target=target,
        sizes=sizes,
        content=content,
        by_user=dataset.by_user,
        **{"tokens": 12, "written": written} | rest,
    )


def ledger(by_user: bool = False) -> PrivacyLedger:
    made = PrivacyLedger()
    made.set_cap("d", "user:who" if by_user else "record", CAP)
    return made


def begun(dataset: Dataset, request: RecipeRequest, log: Log | None = None, **rest: Any) -> Iterator[Any]:
    log = Log() if log is None else log
    used = {"model": Reading(log), "embedder": Embedding(log), "ledger": None, "randomness": SeededRandomness(1)} | rest
    used["ledger"] = used["ledger"] or ledger(dataset.by_user)
    for event in recipe_run.synthesize(dataset, request, **used):
        log.append(("event", event))
        yield event
