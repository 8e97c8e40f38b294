"""Runs of the stages that judge sets, on stored scores: all is as in a run, but a model that answers from a table."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from unittest.mock import patch

import numpy as np

from mechanisms.accounting import PrivacyTarget
from mechanisms.demos.demo_set import Certificate, DemoSet
from mechanisms.evaluation.reader import Classifier
from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats, SecureRandomness
from mechanisms.records import Dataset, Record
from mechanisms.runs import judging
from mechanisms.runs.judging import Reader
from mechanisms.runs.recipe import Division, Recipe, Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.stage import RunState, stage_of
from research.benchmarks.stored import Rows, Stored
from research.benchmarks.worth import DELTA

JUDGES = (Stage.CALIBRATE, Stage.CHOOSE, Stage.SCORE)


class Recalled(Classifier):
    """Answers from a table: a text is the number of a row."""

    def __init__(self, contextual: Floats, scores: Floats) -> None:
        self.contextual, self._table = contextual, scores

    def reading(self, texts: Sequence[str]) -> Generator[int, None, Floats]:
        yield len(texts)
        return self._table[[int(text) for text in texts]]


class StoredReader(Reader):
    """A reader of stored scores, which stand where the model would."""

    def __init__(self, stored: Stored, labels: Sequence[str], max_record_tokens: int) -> None:
        super().__init__(cast(LanguageModel, stored), labels, max_record_tokens)
        for each, contextual, scores in zip(stored.sets, stored.contextual, stored.private.scores, strict=True):
            self._classifiers[each.name] = Recalled(contextual, scores)


@dataclass(frozen=True)
class Run:
    """What a run exported: which set, its accuracy on the test rows, and how wide the score's intervals are."""

    chosen: int
    accuracy: float
    width: float


def simulated(stored: Stored, recipe: Recipe, sizes: Mapping[str, int], epsilon: float) -> Run:
    """One run of the stages that judge, with fresh rows, coins and noise."""
    template = stored.sets[0].template
    request = RecipeRequest(
        labels=stored.labels,
        template=template,
        recipe=recipe,
        target=PrivacyTarget(epsilon, DELTA),
        sizes=sizes,
        content="",
    )
    # Units as a list: a data set would make each of them anew whenever it is looked at.
    listed = patch.object(judging, "units_of", lambda part, most: list(part.members))
    parts, model = drawn(stored, recipe, sum(sizes.values())), cast(LanguageModel, stored)
    nothing = cast(Any, None)  # nobody embeds, and nothing is charged or marked
    state = RunState(request, parts, model, nothing, SecureRandomness(), None, held_out=True, sets=tuple(stored.sets))
    with patch.object(judging, "Reader", StoredReader), listed:
        for stage in JUDGES:
            step = stage_of(request, stage).begin(state)
            for event in (each for together in step.events(nothing, (), None) for each in together):
                step.apply(event)
    made = state.kept(DemoSet((), stored.labels, template, cast(Certificate, None), "stored", ""))
    assert made.prior is not None
    assert made.score is not None
    words = [(each.demonstrations, each.template) for each in stored.sets]
    chosen = words.index((made.demonstrations, made.template))
    offset = np.array([made.prior[label] for label in stored.labels])
    widths = [high - low for low, high in (each.interval for each in made.score.arms.values())]
    return Run(chosen, accuracy(stored.test, chosen, offset), float(np.mean(widths)))


def drawn(stored: Stored, recipe: Recipe, rows: int) -> dict[Stage, Dataset]:
    """Who judges: each stage its own rows, of a number that chance gives a role; or all stages all rows."""
    random, truth = np.random.default_rng(), stored.private.truth

    def part(count: int) -> Dataset:
        chosen = random.integers(len(truth), size=count).tolist()
        return Dataset(stored.task, stored.labels, [Record(str(i), stored.labels[truth[i]]) for i in chosen])

    if recipe.division is Division.EPSILON:
        return dict.fromkeys(JUDGES, part(rows))
    shares = [recipe.shares[stage] for stage in JUDGES]
    counts = random.multinomial(rows, [*shares, 1 - sum(shares)])
    return {stage: part(count) for stage, count in zip(JUDGES, counts.tolist(), strict=False)}


def accuracy(rows: Rows, place: int, offset: Floats) -> float:
    return float(((rows.scores[place] + offset).argmax(axis=1) == rows.truth).mean())
