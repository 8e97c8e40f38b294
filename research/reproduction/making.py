"""Makes the demonstrations of a cell: public, private, without noise, or real rows.

The data set is public research data that stands in for the private file; `run.py` refuses rows of a private data set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.inference import Embedder, LanguageModel
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record
from research.reproduction import cells
from research.reproduction.cells import LEAST_NOISE, Cell, Preset
from research.reproduction.tasks import TASKS, Task
from research.runs import texts_planned, texts_written, written


@dataclass(frozen=True, repr=False)
class Made:
    """Demonstrations, with the settings for their evaluation.

    Attributes:
        template: the words of the classification prompt.
        prior: their measured correction; None if there is none.
        epsilon: the run's claim; None without a guarantee or without private rows.
        noise: the calibrated parameter; None if there is none.
    """

    demonstrations: tuple[Demonstration, ...]
    template: PromptTemplate
    prior: Mapping[str, float] | None = None
    epsilon: float | None = None
    noise: float | None = None


class Maker:
    """Makes the cells of a preset with one model.

    Args:
        embedder: is loaded if a recipe needs it.
    """

    def __init__(self, model: LanguageModel, embedder: Callable[[], Embedder], preset: Preset) -> None:
        self._model, self._embedder, self._preset = model, embedder, preset

    def make(self, cell: Cell, train: Sequence[Record]) -> Made:
        """The demonstrations of a cell.

        Args:
            train: the rows that stand in for the private file.

        Raises:
            StudioError: the run is refused, or the model does not support it.
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
        """The labels in a run's prompt, the same for every method; only these have to be written.

        A label is repeated only after all have been used (Tang et al. 2024, section 5.1: without replacement).
        """
        draws, found = np.random.default_rng([self._preset.seed, cell.run]), list[str]()
        while len(found) < cell.shots:
            found += (task.labels[place] for place in draws.permutation(len(task.labels)))
        return tuple(found[: cell.shots])

    def _real(self, cell: Cell, task: Task, shown: tuple[str, ...], train: Sequence[Record]) -> Made:
        draws = np.random.default_rng([self._preset.seed, cell.run, 1])
        rows = {label: [each.text for each in train if each.label == label] for label in shown}
        chosen = (Demonstration(rows[label][int(draws.integers(len(rows[label])))], label) for label in shown)
        return Made(tuple(chosen), task.reading)

    def _written(self, cell: Cell, task: Task, shown: tuple[str, ...], train: Sequence[Record]) -> Made:
        """Token by token: by a mechanism, without noise, or from public text.

        If labels are phrases of their texts, every demonstration is written from all rows (Tang et al. 2024, section 3:
        D^y = D), which pay for all of them.
        """
        labels, setting = tuple(dict.fromkeys(shown)), self._preset.settings[cell.task]
        counts = {label: shown.count(label) for label in labels}
        asked = {
            "delta": setting.delta,
            "epsilon": _asked(cell),
            **task.asked,
            **self._preset.asked(cell),
            "tokens": setting.tokens or task.tokens,
            "scheme": setting.scheme,
            "per_subset": setting.per_subset,
            "candidates": setting.candidates,
            "max_record_tokens": task.max_record_tokens,
        }
        if task.slots:
            whole = texts_planned(
                _all_as(labels[0], train, cell), **asked, shots=len(shown), subsets=self._rows(cell, len(train))
            )
            asked |= {"parameters": whole.spec.parameters, "solve": False, "subsets": whole.sampling.rows_per_token}
            runs = [
                texts_written(_all_as(label, train, cell), self._model, **asked, shots=counts[label])
                for label in labels
            ]
            epsilon = whole.claim().epsilon
        else:
            data = Dataset(cell.words, labels, [each for each in train if each.label in labels])
            rows = self._rows(cell, min(data.counted_sizes().values()))
            runs = [texts_written(data, self._model, **asked, shots=max(counts.values()), subsets=rows)]
            epsilon = runs[0].epsilon
        written = [each for made in runs for each in made.demonstrations]
        texts = {label: iter([each for each in written if each.label == label]) for label in labels}
        return Made(tuple(next(texts[label]) for label in shown), task.reading, None, _claimed(epsilon), runs[0].noise)

    def _rows(self, cell: Cell, units: int) -> int:
        """M, or the number of records if that is smaller."""
        setting = self._preset.settings[cell.task]
        return max(1, min(setting.subsets, units // (setting.per_subset or 1)))

    def _voted(self, cell: Cell, task: Task, train: Sequence[Record]) -> Made:
        """The recipe "vote", with one demonstration of every label, because its correction is for all labels."""
        made = written(
            Dataset(cell.words, task.labels, train),
            self._model,
            epsilon=_asked(cell),
            delta=self._preset.settings[cell.task].delta,
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


def _all_as(label: str, train: Sequence[Record], cell: Cell) -> Dataset:
    """All rows as rows of one given label, on which no row has an influence."""
    return Dataset(cell.words, (label,), [Record(each.text, label) for each in train])


def _asked(cell: Cell) -> float:
    if math.isinf(cell.epsilon) and not cell.method.startswith(cells.WITHOUT_NOISE):
        return LEAST_NOISE
    return cell.epsilon if 0 < cell.epsilon < math.inf else 1.0  # a baseline has no guarantee, whatever the settings


def _claimed(epsilon: float) -> float | None:
    return epsilon if 0 < epsilon < math.inf else None
