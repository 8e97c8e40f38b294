"""How the demonstrations of a cell are made: public, private, without noise, or rows as they are.

The data set is public research data that plays the private file; `run.py` refuses rows that are somebody's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.inference import Embedder, LanguageModel
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record
from research.reproduction import cells
from research.reproduction.cells import Cell, Setting
from research.reproduction.tasks import TASKS, Task
from research.runs import texts_written, written

SHOWN = 4
"""Demonstrations in a prompt, each of another label (Tang et al. 2024, section 5.1)."""


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

    def _real(self, cell: Cell, task: Task, shown: tuple[str, ...], train: Sequence[Record]) -> Made:
        draws = np.random.default_rng([self._setting.seed, cell.run, 1])
        rows = {label: [each.text for each in train if each.label == label] for label in shown}
        chosen = (Demonstration(texts[int(draws.integers(len(texts)))], label) for label, texts in rows.items())
        return Made(tuple(chosen), task.reading)

    def _written(self, cell: Cell, task: Task, shown: tuple[str, ...], train: Sequence[Record]) -> Made:
        """Token by token: by a mechanism, without noise, or from public text."""
        setting, tokens = self._setting, self._setting.tokens or task.tokens
        data = Dataset(cell.words, shown, [each for each in train if each.label in shown])
        name, _, transform = cell.method.partition("+")
        made = texts_written(
            data,
            self._model,
            epsilon=_asked(cell),
            delta=setting.delta,
            mechanism=name,
            transform=transform or "none",
            **task.asked,
            shots=1,
            tokens=tokens,
            subsets=min(setting.subsets, *data.counted_sizes().values()),
            candidates=setting.candidates,
            max_record_tokens=task.max_record_tokens,
        )
        by_label = {each.label: each for each in made.demonstrations}
        return Made(tuple(by_label[label] for label in shown), task.reading, epsilon=_claimed(made.epsilon))

    def _voted(self, cell: Cell, task: Task, train: Sequence[Record]) -> Made:
        """The recipe, one demonstration of every label: its correction is for all of them."""
        made = written(
            Dataset(cell.words, task.labels, train),
            self._model,
            epsilon=_asked(cell),
            delta=self._setting.delta,
            recipe="vote",
            score=False,
            **task.asked,
            label_words={label: label for label in task.labels},
            instruction=task.instruction,
            text_field=task.text,
            label_field=task.label,
            shots=1,
            max_record_tokens=task.max_record_tokens,
            embedder=self._embedder(),
        )
        return Made(made.demonstrations, made.template, made.prior, _claimed(made.certificate.claim.epsilon))


def _asked(cell: Cell) -> float:
    return cell.epsilon if 0 < cell.epsilon < math.inf else 1.0  # a baseline promises nothing, whatever is asked


def _claimed(epsilon: float) -> float | None:
    return epsilon if 0 < epsilon < math.inf else None
