"""The stage "choose": which set, read with which correction, finds most units' labels?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.errors import UsageError
from mechanisms.runs.events import ChoiceReleased, CuratorEvent, PriorsReleased
from mechanisms.runs.forecast import Work
from mechanisms.runs.judging import Correction, right, ways
from mechanisms.runs.recipe import Division, Stage
from mechanisms.runs.recipe_forecast import Read, choice_count, read_work, records, shown_of_sets
from mechanisms.runs.recipe_request import Events
from mechanisms.runs.stage import JudgingStep, PlannedStage, RunState
from mechanisms.runs.stages.calibrate import Calibrate
from mechanisms.tallies import Choice


@dataclass(frozen=True)
class Choose(PlannedStage):
    """One choice among all arms; then the exported set's correction is fitted, at the cost of the calibrators."""

    name = Stage.CHOOSE
    place = 40
    title = "Choose"
    task_title = "Choosing"
    question = "The {unit}s judge whole sets: which one finds my label best?"
    noun = "the choice"
    reads_sets = True
    wanted = 120
    parts = 5
    releases = (ChoiceReleased, PriorsReleased)

    @property
    def tally(self) -> Choice:
        """The tally of the choice."""
        return Choice(self.request.epsilon(self.name))

    @property
    def events(self) -> Events:
        """See `PlannedStage.events`."""
        return (self.tally.event,)

    def reads(self) -> Sequence[Read]:
        """Each unit reads under every set, and the calibrators under the chosen one."""
        request, sets = self.request, shown_of_sets(self.request)
        count, shared = records(request, self.name), request.recipe.division is Division.EPSILON
        unread = count * (1 - 1 / len(sets)) if shared else count
        chosen = 0.0 if shared else records(request, Stage.CALIBRATE) * (1 - 1 / len(sets))
        return [*(Read(unread, shown, False) for shown in sets), Read(chosen, True, False)]

    def work(self, together: int) -> Work:
        """See `PlannedStage.work`."""
        return read_work(self.request, self.reads())

    def task(self) -> str:
        """See `PlannedStage.task`."""
        read = ways(self.request.sizes, self.request.recipe.weighing)
        return (
            f"choose which of {choice_count(self.request)} sets, each read in {read} ways, serves best: to have no "
            "demonstrations is a choice, too."
        )

    def begin(self, state: RunState) -> Choosing:
        """See `PlannedStage.begin`."""
        return Choosing(self, state)


class Choosing(JudgingStep[Choose]):
    """The step."""

    def __init__(self, stage: Choose, state: RunState) -> None:
        super().__init__(stage, state)
        self._fitted, self._refinements = False, Calibrate(stage.request).refinements

    def _events(self) -> Iterator[CuratorEvent]:
        if not self._state.judging.among:
            yield from self._choose()
        if not self._fitted:
            yield from self._state.judging.refine(self._refinements)

    def apply(self, event: CuratorEvent) -> None:
        """See `Step.apply`."""
        if not self._state.sets:
            return
        judging = self._state.judging
        match event:
            case PriorsReleased():
                self._fitted = True
                judging.fit(event, self._refinements)
            case ChoiceReleased(among, (name, correction)):
                candidate = next((each for each in self._state.sets if each.name == name), None)
                if candidate is None or (name, correction) not in judging.offsets:
                    raise UsageError("The run's file tells of a choice that did not stand in it.")
                judging.arm, judging.among = (candidate, Correction(correction)), len(among)
            case _:
                pass

    def _choose(self) -> Iterator[CuratorEvent]:
        judging, sets = self._state.judging, self._state.sets
        units, everyone = judging.everyone(Stage.CHOOSE)
        truth, columns, number = judging.reader.truth(units), [], len(sets)
        arms = [(each, way) for each in sets for way in Correction if (each.name, way) in judging.offsets]
        for k, candidate in enumerate(sets):
            scores = yield from judging.read(Stage.CHOOSE, candidate, everyone, k / number, 1 / number)
            columns += [
                right(scores, judging.offsets[of.name, correction], truth).astype(np.float64)
                for of, correction in arms
                if of is candidate
            ]
        contributions = judging.of_units(np.stack(columns, axis=1), units)
        names = tuple((each.name, str(how)) for each, how in arms)
        yield ChoiceReleased(names, names[self._stage.tally.release(contributions, self._state.randomness)])


STAGE = Choose
