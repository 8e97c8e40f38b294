"""How the demonstrations of a cell are made: public, private, without noise, or rows as they are.

The data set is public research data that plays the private file. A run is therefore charged to a ledger of its own,
which is thrown away; `guard.py` refuses rows that are somebody's.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mechanisms.accounting import Cap, PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.demos.demo_set import DemoSet
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record
from mechanisms.runs.advice import proposed
from mechanisms.runs.events import RunCompleted
from mechanisms.runs.public_demonstrations import written_publicly
from mechanisms.runs.recipe import Kind
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import MIN_TOKENS, SynthesisRequest
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class, transform_class
from research.reproduction import cells
from research.reproduction.cells import Cell, Setting
from research.reproduction.tasks import TASKS, Task

SHOWN = 4
"""Demonstrations in a prompt, each of another label (Tang et al. 2024, section 5.1)."""
_ROOM = 2.0
"""Of a ledger's cap, over what one run costs: each of the ledger's bounds has a part of delta only."""


@dataclass(frozen=True, repr=False)
class Made:
    """Demonstrations, and how they are read.

    Attributes:
        template: words of the prompt that classifies.
        prior: the correction that was measured for them; None where none was.
        epsilon: what the run claims; None where it promises nothing or reads nothing.
    """

    demonstrations: tuple[Demonstration, ...]
    template: PromptTemplate
    prior: Mapping[str, float] | None = None
    epsilon: float | None = None


class Maker:
    """Makes cells with one model and one setting.

    Args:
        embedder: loaded when a recipe asks for it.
    """

    def __init__(self, model: LanguageModel, embedder: Callable[[], Embedder], setting: Setting) -> None:
        self._model, self._embedder, self._setting = model, embedder, setting

    def make(self, cell: Cell, train: Sequence[Record]) -> Made:
        """The demonstrations of a cell.

        Args:
            train: plays the private file.

        Raises:
            StudioError: the run is refused, or the model cannot do it.
        """
        task = TASKS[cell.task]
        shown = self._shown(cell, task)
        match cell.method:
            case cells.ZERO_SHOT:
                return Made((), task.reading)
            case cells.PUBLIC:
                return self._public(task, shown)
            case cells.REAL:
                return self._real(cell, task, shown, train)
            case cells.VOTE:
                return self._voted(cell, task, train)
            case _:
                return self._written(cell, task, shown, train)

    def _shown(self, cell: Cell, task: Task) -> tuple[str, ...]:
        """The labels that a run's prompt shows, the same for every method: it needs to write no others."""
        drawn = np.random.default_rng([self._setting.seed, cell.run]).permutation(len(task.labels))
        return tuple(task.labels[place] for place in drawn[:SHOWN])

    def _tokens(self, task: Task) -> int:
        return self._setting.tokens or task.tokens

    def _public(self, task: Task, shown: tuple[str, ...]) -> Made:
        like, tokens = [Demonstration("", label) for label in shown], self._tokens(task)
        return Made(written_publicly(like, shown, task.writing, self._model, tokens, MIN_TOKENS), task.reading)

    def _real(self, cell: Cell, task: Task, shown: tuple[str, ...], train: Sequence[Record]) -> Made:
        draws = np.random.default_rng([self._setting.seed, cell.run, 1])
        rows = {label: [each.text for each in train if each.label == label] for label in shown}
        chosen = (Demonstration(texts[int(draws.integers(len(texts)))], label) for label, texts in rows.items())
        return Made(tuple(chosen), task.reading)

    def _written(self, cell: Cell, task: Task, shown: tuple[str, ...], train: Sequence[Record]) -> Made:
        """Token by token: by a mechanism, or without noise."""
        setting, tokens = self._setting, self._tokens(task)
        dataset = Dataset(cell.name, shown, [each for each in train if each.label in shown])
        name, _, transform = cell.method.partition("+")
        request = SynthesisRequest(
            labels=shown,
            template=task.writing,
            plan=SamplingPlan(subsets=setting.subsets, tokens=tokens),
            mechanism=mechanism_class(name)(),
            transform=transform_class(transform or "none")(),
            target=_target(cell, setting),
            sizes=dataset.counted_sizes(),
            content=fingerprint(dataset).content,
            candidates=setting.candidates,
            max_record_tokens=task.max_record_tokens,
            min_tokens=min(MIN_TOKENS, tokens),
        ).calibrated()
        with tempfile.TemporaryDirectory() as folder:
            events = synthesize(dataset, request, self._model, _ledger(folder, dataset, request.target))
            [made] = [event.demo_set for event in events if isinstance(event, RunCompleted)]
        by_label = {each.label: each for each in made.demonstrations}
        return Made(tuple(by_label[label] for label in shown), task.reading, epsilon=_claimed(made))

    def _voted(self, cell: Cell, task: Task, train: Sequence[Record]) -> Made:
        """The recipe, one demonstration of every label: its correction is for all of them."""
        dataset, target = Dataset(cell.name, task.labels, train), _target(cell, self._setting)
        sizes = dataset.counted_sizes()
        request = RecipeRequest(
            labels=task.labels,
            template=PromptTemplate(task.instruction, task.text, task.kind),
            recipe=proposed(Kind.VOTE, sizes, target.epsilon, score=False),
            target=target,
            sizes=sizes,
            content=fingerprint(dataset).content,
            max_record_tokens=task.max_record_tokens,
        )
        with tempfile.TemporaryDirectory() as folder:
            ledger = _ledger(folder, dataset, target)
            events = synthesize(dataset, request, self._model, ledger, embedder=self._embedder())
            [made] = [event.demo_set for event in events if isinstance(event, RunCompleted)]
        return Made(made.demonstrations, made.template, made.prior, _claimed(made))


def _target(cell: Cell, setting: Setting) -> PrivacyTarget:
    return PrivacyTarget(cell.epsilon if cell.releasable else 1.0, setting.delta)


def _ledger(folder: str, dataset: Dataset, target: PrivacyTarget) -> PrivacyLedger:
    """One that has room for this run alone."""
    ledger = PrivacyLedger(Path(folder))
    ledger.set_cap(dataset.name, dataset.unit, Cap(_ROOM * target.epsilon, _ROOM * target.delta))
    return ledger


def _claimed(made: DemoSet) -> float | None:
    epsilon = made.certificate.claim.epsilon
    return epsilon if math.isfinite(epsilon) else None
