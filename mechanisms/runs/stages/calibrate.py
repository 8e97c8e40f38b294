"""The stage "calibrate": which labels does the model prefer, whatever it reads?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.noise import Floats
from mechanisms.runs.events import CandidateSet, CuratorEvent, PriorsReleased, StageProgress
from mechanisms.runs.forecast import Work
from mechanisms.runs.judging import FITTED, Correction, measured, preferences, rows_of, shares_of
from mechanisms.runs.recipe import Stage
from mechanisms.runs.recipe_forecast import Read, read_work, records, shown_of_sets, units
from mechanisms.runs.recipe_request import Events
from mechanisms.runs.stage import JudgingStep, PlannedStage, RunState
from mechanisms.runs.stages.vote import CLEARANCE
from mechanisms.tallies import LabelBias

REFINEMENTS = 2
"""Measurements of the exported set's prior; each reads with the correction so far, at a share of the epsilon."""
COMPARED = 1 / 3
"""Share of the stage's epsilon for the measurement before the choice; the exported set's fit gets the rest."""


@dataclass(frozen=True)
class Calibrate(PlannedStage):
    """Measures the mean label probabilities under each set before a choice, and under the exported set after it."""

    name = Stage.CALIBRATE
    place = 30
    title = "Calibrate"
    task_title = "Measuring the habit"
    question = "Measuring how much the model prefers each label."
    noun = "measuring which labels the model prefers"
    reads_sets = True
    wanted = 160
    parts = 7
    releases = (PriorsReleased,)

    @property
    def comparison(self) -> LabelBias | None:
        """The tally that measures the priors of all sets before the choice; None where nothing is chosen."""
        chooses = Stage.CHOOSE in self.request.recipe.shares
        return LabelBias(self.request.epsilon(self.name) * COMPARED) if chooses else None

    @property
    def refinements(self) -> tuple[LabelBias, ...]:
        """The tallies that fit the prior of the set that is exported, one after the other."""
        count = REFINEMENTS if self.comparison else REFINEMENTS + 1
        spent = COMPARED if self.comparison else 0.0
        return (LabelBias(self.request.epsilon(self.name) * (1 - spent) / count),) * count

    @property
    def events(self) -> Events:
        """See `PlannedStage.events`."""
        first = (self.comparison.event,) if self.comparison else ()
        return (*first, *(each.event for each in self.refinements))

    def reads(self) -> Sequence[Read]:
        """Before a choice each unit reads under one of the sets."""
        count = records(self.request, self.name)
        if self.comparison is None:
            return [Read(count, True, True)]
        sets = shown_of_sets(self.request)
        return [Read(count / len(sets), shown, True) for shown in sets]

    def work(self, together: int) -> Work:
        """See `PlannedStage.work`."""
        return read_work(self.request, self.reads())

    def warnings(self) -> Iterator[str]:
        """See `PlannedStage.warnings`."""
        who, request = "users" if self.request.by_user else "rows", self.request
        rows, noise = units(request, self.name) / len(request.labels), self.refinements[0].deviation
        if rows < CLEARANCE * noise:
            yield (
                f"About {rows:.2g} {who} a label calibrate, and the noise on them is {noise:.2g}: its "
                f"correction may be chance, and worse than none. More {who} or a larger epsilon for this stage help."
            )

    def task(self) -> str:
        """See `PlannedStage.task`."""
        return "measure the model's habit: which labels it prefers whatever it reads."

    def begin(self, state: RunState) -> Calibration:
        """See `PlannedStage.begin`."""
        return Calibration(self, state)


class Calibration(JudgingStep[Calibrate]):
    """The step."""

    def __init__(self, stage: Calibrate, state: RunState) -> None:
        super().__init__(stage, state)
        self._done = False

    def _events(self) -> Iterator[CuratorEvent]:
        if self._done:
            return
        tally = self._stage.comparison
        if tally is None:
            yield from self._state.judging.refine(self._stage.refinements)
        else:
            yield from self._compare(tally)

    def apply(self, event: CuratorEvent) -> None:
        """See `Step.apply`."""
        if not isinstance(event, PriorsReleased) or not self._state.sets:
            return
        self._done = True
        sets, tally = self._state.sets, self._stage.comparison
        if tally is None:
            self._state.judging.fit(event, self._stage.refinements)
            return
        noisy = measured(event, len(sets), len(self._stage.request.labels))
        for candidate, prior in zip(sets, noisy, strict=True):
            self._offer(candidate, prior, tally)

    def _compare(self, tally: LabelBias) -> Iterator[StageProgress | PriorsReleased]:
        """Measure the priors of all sets at once: each calibrator judges one of them, by a coin of its own."""
        judging, randomness = self._state.judging, self._state.randomness
        units, everyone = judging.everyone(Stage.CALIBRATE)
        labels, number = len(self._stage.request.labels), len(self._state.sets)
        judged = np.floor(randomness.uniform(len(units)) * number).astype(np.int64)
        cells = np.zeros((len(units), number, labels))
        for k, candidate in enumerate(self._state.sets):
            mine = everyone[judged == k]
            scores = yield from judging.read(Stage.CALIBRATE, candidate, mine, k / number, 1 / number)
            liked = preferences(scores, np.zeros(labels))
            cells[mine, k] = judging.of_units(liked, [units[i] for i in mine.tolist()])
        noisy = tally.release(cells.reshape(len(units), number * labels), randomness)
        priors = noisy.reshape(number, labels)
        shares = tuple((each.name, shares_of(of)) for each, of in zip(self._state.sets, priors, strict=True))
        yield PriorsReleased(shares, rows_of(priors))

    def _offer(self, candidate: CandidateSet, prior: Floats, tally: LabelBias) -> None:
        """The ways to read a set, given its noisy prior."""
        judging = self._state.judging
        judging.offsets[candidate.name, Correction.NONE] = np.zeros(len(prior))
        judging.offsets[candidate.name, Correction.CONTEXTUAL] = judging.reader.under(candidate).contextual
        for correction in FITTED:
            if correction is Correction.PRIOR or judging.unequal:
                judging.offsets[candidate.name, correction] = judging.step(correction, prior, tally)


STAGE = Calibrate
