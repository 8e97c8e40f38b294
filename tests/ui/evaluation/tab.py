"""Step 4 without a page: its handlers in a tab of their own, with toy models."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpicl_ui.evaluation.state import EvaluationState, PrototypesState, SetFigures
from dpicl_ui.evaluation.step import EvaluationStep
from dpicl_ui.frame.services import Sessions
from dpicl_ui.frame.tree import Tree
from mechanisms.accounting import PrivacyLedger
from mechanisms.data.sources import read_table
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.directions import Directions
from mechanisms.records import Dataset, Demonstration, Record
from tests.toy_embedder import ToyEmbedder
from tests.ui.generate.recording import demo_set
from tests.ui.tabs import confirm, in_page, services, text_of, write
from tests.word_model import WordModel

LABELS = ("News", "Sport")
WORDS = {"News": "minister vote", "Sport": "goal match"}
SET = demo_set(Demonstration("written", "News"), Demonstration("too", "Sport"))
SESSIONS = Sessions()


def rows(count: int, user: str | None = None) -> tuple[Record, ...]:
    return tuple(Record(f"{WORDS[LABELS[i % 2]]} {user} {i}", LABELS[i % 2], user) for i in range(count))


LETTERS = Dataset("letters", LABELS, rows(400))
FRESH = [f"{WORDS[LABELS[i % 2]]} later {i},{LABELS[i % 2]}" for i in range(20)]


class Counting(ToyEmbedder):
    """Counts the texts that it embeds."""

    count = 0

    def embed(self, texts):
        self.count += len(texts)
        return super().embed(texts)


EMBEDDER = Counting()
SAID = {"News": ("minister", "vote"), "Sport": ()}
_PLACES = EMBEDDER.embed([*WORDS.values()]).astype(np.float64)
DIRECTED = replace(SET, words=SAID, directions=Directions.of(EMBEDDER, LABELS, _PLACES - _PLACES.mean(axis=0)))
"""The set with what a run reads off the rows' embeddings."""
LOADER: Any = SimpleNamespace(model=WordModel, locked=True)


@functools.cache
def built(lasting: bool = True) -> EvaluationStep:
    """The step; each request brings its ledger along."""

    ledgers = SimpleNamespace(of=lambda request: request.ledger, lasting=lasting)
    embedder = SimpleNamespace(embedder=lambda: EMBEDDER)
    return in_page(lambda: EvaluationStep(services(ledgers, LOADER, embedder, SESSIONS)))


class Tab:
    """A tab in which a set is written, and a test file of twenty rows is there."""

    def __init__(
        self, folder: Path, dataset: Dataset = LETTERS, made: DemoSet = SET, step: EvaluationStep | None = None
    ) -> None:
        self.folder, self.step, self.ledger = folder, step or built(), PrivacyLedger(folder / "home")
        self.measurement, self.offer = self.step.measurement, self.step.prototypes
        self.request: Any = SimpleNamespace(session_hash=str(folder), username=None, ledger=self.ledger)
        self.session = SESSIONS.of(self.request)
        self.confirmed = confirm(self.session, dataset)
        write(self.session, made, dataset)
        self.bring(FRESH)

    @property
    def state(self) -> EvaluationState:
        return self.session.of(EvaluationState)

    @property
    def prototypes(self) -> PrototypesState:
        return self.session.of(PrototypesState)

    @property
    def scored(self) -> SetFigures:
        found = self.state.scored
        assert found is not None
        return found

    def bring(self, lines: list[str]) -> None:
        """Another test file."""
        (self.folder / "test.csv").write_text("\n".join(["text,label", *lines]), encoding="utf-8")
        self.state.table = read_table(self.folder / "test.csv")

    def upload(self, content: str | bytes) -> dict[Any, Any]:
        """The same through the page; what becomes of its components."""
        path = self.folder / "uploads" / "one" / "test.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return self.measurement._open_test(str(path), self.request)

    def values(self, text: Any = "text", label: Any = "label", **typed: Any) -> dict[Any, Any]:
        """What stands in the fields: by default, twenty rows are measured with the model that is here."""
        reader, measurement = self.step.reader, self.measurement
        return {
            measurement.text: text,
            measurement.label: label,
            measurement.limit: typed.get("limit", 100),
            self.step.query: typed.get("query", "hello"),
            self.step.by: typed.get("by", "model"),
            reader.who: typed.get("who", "here"),
            reader.address: typed.get("address", ""),
            reader.model: typed.get("model", "small"),
            reader.key: typed.get("key", ""),
        }

    def ask(self, **typed: Any) -> str:
        *_, last = self.step._ask(self.values(**typed), self.request)
        return text_of(last[self.step.answer])

    def measure(self, **typed: Any) -> dict[Any, Any]:
        """What the components have become in the end."""
        return functools.reduce(dict.__or__, self.measurement._measure(self.values(**typed), self.request))

    def notice(self, **typed: Any) -> str:
        """What is said before anything is measured."""
        measuring = self.measurement._measure(self.values(**typed), self.request)
        said = next(measuring)[self.measurement.test_notice]
        measuring.close()
        return text_of(said)

    def release(self, epsilon: Any = 0.5) -> dict[Any, Any]:
        """Press "Try it" of the class prototypes, and wait."""
        self.offer._order(epsilon, self.request)
        shown = [*self.offer._release(self.request), *self.measurement.add_prototypes(self.request)]
        return functools.reduce(dict.__or__, shown, {})

    def price(self, epsilon: Any = 0.5) -> tuple[str, bool]:
        """What the card of the class prototypes says, and whether it can be pressed."""
        shown = self.offer._look(epsilon, self.request)
        start = shown[self.offer.job.start].get_config()
        return " ".join(text_of(shown[self.offer.cost]).split()), start["interactive"]

    @property
    def spent(self) -> tuple[int, float]:
        now = self.ledger.snapshot(self.confirmed.dataset.name, self.confirmed.dataset.unit)
        return now.runs, now.epsilon


def bars(tree: Tree | list[Tree]) -> list[float]:
    """Shares of all bars, in order."""
    if isinstance(tree, str):
        return []
    children = tree if isinstance(tree, list) else tree["children"]
    own = [] if isinstance(tree, list) else [tree.get("numbers", {}).get("share")]
    return [share for share in own if share is not None] + [share for child in children for share in bars(child)]
