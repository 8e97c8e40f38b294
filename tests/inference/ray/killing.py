"""Runs of the real model whose few rows fill several chunks, and workers that are killed (SIGKILL) meanwhile."""

from __future__ import annotations

import copy
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import psutil

from mechanisms.accounting import BudgetSnapshot, PrivacyLedger
from mechanisms.inference.engine.memory import DeviceRoom
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.language_model import LanguageModel
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, Record
from mechanisms.runs.events import TokenReleased
from mechanisms.runs.plan import plan_for
from mechanisms.runs.run import run
from mechanisms.runs.spec import RunSpec
from mechanisms.sampling import Scheme

CANARY = "quetzalcoatlus beside a zinfandel"


@dataclass(frozen=True)
class SmallChunks(DeviceRoom):
    """Chunks so small that a test's few rows fill several."""

    def chunk(self, computed: int, held: int) -> int:
        return 4


def in_small_chunks(model: TransformersModel) -> TransformersModel:
    small = copy.copy(model)
    small.room = SmallChunks(**{field.name: getattr(model.room, field.name) for field in fields(DeviceRoom)})
    return small


@dataclass(frozen=True)
class Written:
    """What a run left: tokens with their scores, the ledger's charges, and what they cost together."""

    tokens: list[TokenReleased]
    charges: list[tuple[str, str]]
    total: BudgetSnapshot


def written(
    model: LanguageModel,
    scheme: Scheme,
    folder: Path,
    tokens: int = 3,
    labels: tuple[str, ...] = ("a", "b"),
    released: Callable[[int], None] = lambda count: None,
) -> Written:
    """One demonstration of each label; `released` is told of every token, how many there are by then."""
    dataset = Dataset("d", labels, tuple(Record(f"text {i} {CANARY}", label) for i in range(30) for label in labels))
    spec = RunSpec.of(
        recipe="tokens",
        sizes="counted",
        scheme=scheme,
        subsets=9,
        per_subset=1,
        tokens=tokens,
        min_tokens=tokens,
        shots=1,
        parameters={"noise-multiplier": 3.0},
        candidates=8,
        max_record_tokens=12,
        instruction="Classify.",
    )
    ledger, told = PrivacyLedger(folder), []
    for event in run(plan_for(spec, dataset), dataset, model, ledger, SeededRandomness(3)):
        if isinstance(event, TokenReleased):
            told.append(event)
            released(len(told))
    with sqlite3.connect(folder / "ledger.sqlite") as database:
        charges = database.execute("SELECT list, event FROM charges ORDER BY rowid").fetchall()
    database.close()
    return Written(told, charges, ledger.snapshot("d", "record"))


def workers() -> list[psutil.Process]:
    """This process's workers that have loaded the model, the longest there first: it holds rows wherever any are."""
    children = psutil.Process().children(recursive=True)
    loaded = [
        each for each in children if (title := _title(each)).startswith("ray::Worker") and "__init__" not in title
    ]
    return sorted(loaded, key=psutil.Process.create_time)


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


class Killer:
    """Kills the worker that has been there longest at a random moment of each step, from the second one on.

    Args:
        kills: how many, one in each step.
        seconds: that a step takes when nobody is killed.
        seed: of the moments.
    """

    def __init__(self, kills: int, seconds: float, seed: int = 1) -> None:
        self.kills, self.seconds, self.victims = kills, seconds, list[int]()
        self._draw, self._timer = random.Random(seed), threading.Timer(0.0, lambda: None)
        self._timer.start()

    def __call__(self, count: int) -> None:
        """A token was released: what follows is the next step."""
        self._timer.join()  # a kill that came too late for its step comes before the next
        if count <= self.kills:
            self._timer = threading.Timer(self._draw.uniform(0, self.seconds), self._kill)
            self._timer.start()

    def _kill(self) -> None:
        # One that has been killed may still be there; or the kill came so late that nobody has loaded the model since.
        while not (there := [each for each in workers() if each.pid not in self.victims]):
            time.sleep(0.05)
        victim = there[0]
        victim.kill()
        self.victims.append(victim.pid)
