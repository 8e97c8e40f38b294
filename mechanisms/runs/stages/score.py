"""The stage "score": how often is a unit's own label found, with the exported set and without it?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms import confidence
from mechanisms.demos import findings
from mechanisms.demos.findings import DEMONSTRATIONS, PUBLIC_ONLY, ZERO_SHOT
from mechanisms.noise import Floats
from mechanisms.runs.events import CandidateSet, CuratorEvent, ScoreReleased
from mechanisms.runs.forecast import Work
from mechanisms.runs.judging import right
from mechanisms.runs.recipe import Division, Stage
from mechanisms.runs.recipe_forecast import Read, read_work, records, units
from mechanisms.runs.recipe_request import Events
from mechanisms.runs.sets import PUBLIC
from mechanisms.runs.stage import JudgingStep, PlannedStage, RunState
from mechanisms.tallies import Score as ScoreTally
from mechanisms.tallies import Weighing, masses, weights

ARMS = 3
"""The most arms of a score: zero-shot, public only, and the set."""
_WIDE = 0.1
"""Half width above which an interval says too little; see `mechanisms.tallies.Estimate.wide`."""


_MOST_TIMES = 1000.0
"""The largest factor that is tried."""


def _least(enough: Callable[[float], bool]) -> float | None:
    """The least factor of at least 1 that is enough, to a percent; None where `_MOST_TIMES` is not."""
    low, high = 1.0, _MOST_TIMES
    if not enough(high):
        return None
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Score(PlannedStage):
    """Counts of right answers, for every combination of arms, with noise."""

    name = Stage.SCORE
    place = 50
    title = "Score"
    task_title = "Scoring"
    question = "Counting how often the {unit}s' labels are found."
    noun = "the score"
    reads_sets = True
    wanted = 130
    parts = 4
    releases = (ScoreReleased,)

    @property
    def tally(self) -> ScoreTally:
        """The tally of the score."""
        by_labels = self.request.recipe.weighing is Weighing.LABELS
        return ScoreTally(self.request.epsilon(self.name), self.request.by_user, by_labels)

    @property
    def events(self) -> Events:
        """See `PlannedStage.events`."""
        return (self.tally.event,)

    @property
    def margin(self) -> float:
        """Half the interval of a private accuracy near 1/2, expected from the public sizes; at most 1/2."""
        return self._margin(1.0, 1.0)

    def _margin(self, rows: float, epsilon: float) -> float:
        """`margin`, had the stage so many times the units and the run so many times the epsilon."""
        request, role = self.request, self.request.role(self.name) * rows
        counted, each = (of(request.sizes, request.recipe.weighing) for of in (masses, weights))
        mass = role * sum(counted.values())
        squares = role * sum(counted[label] * each[label] for label in counted)
        noise = 2 ** (ARMS - 1) * (self.tally.deviation / epsilon) ** 2 / 2
        return min(0.5, confidence.standard_errors() * math.sqrt(squares / 4 + noise) / mass)

    def reaching(self, margin: float) -> tuple[float | None, int]:
        """What a smaller margin takes: an epsilon of the run, or a number of units that score.

        The epsilon is None where no epsilon suffices: the rest of the margin is which units happen to score.
        """
        target, scoring = self.request.target.epsilon, units(self.request, self.name)
        by_rows = _least(lambda rows: self._margin(rows, 1.0) <= margin)
        by_noise = _least(lambda times: self._margin(1.0, times) <= margin)
        return None if by_noise is None else target * by_noise, math.ceil(scoring * (by_rows or _MOST_TIMES))

    def reads(self) -> Sequence[Read]:
        """Each unit reads under every arm that was not read before, where stages share all units."""
        shares, count = self.request.recipe.shares, records(self.request, self.name)
        opened = ARMS if Stage.CHOOSE in shares else 1 if Stage.CALIBRATE in shares else 0
        known = opened if self.request.recipe.division is Division.EPSILON else 0
        arms = (True, True, False)[:ARMS]  # the set, which was read first, public only, zero-shot
        return [Read(0.0 if i < known else count, shown, i >= opened) for i, shown in enumerate(arms)]

    def work(self, together: int) -> Work:
        """See `PlannedStage.work`."""
        return read_work(self.request, self.reads())

    def warnings(self) -> Iterator[str]:
        """See `PlannedStage.warnings`."""
        if self.margin > _WIDE:
            who = "users" if self.request.by_user else "rows"
            yield f"So few {who} score that the private accuracy will say little: its interval is wider than 20 points."

    def task(self) -> str:
        """See `PlannedStage.task`."""
        alone = self.request.recipe.division is Division.ROLES
        remark = "They took part in nothing else" if alone else "They took part in the choice too"
        return f"say how often the model finds their label. {remark}."

    def begin(self, state: RunState) -> Scoring:
        """See `PlannedStage.begin`."""
        return Scoring(self, state)


class Scoring(JudgingStep[Score]):
    """The step."""

    def apply(self, event: CuratorEvent) -> None:
        """See `Step.apply`."""
        if isinstance(event, ScoreReleased) and self._state.sets:
            self._state.judging.score = event.score

    def _events(self) -> Iterator[CuratorEvent]:
        judging, tally = self._state.judging, self._stage.tally
        if judging.score is not None:
            return
        units, everyone = judging.everyone(Stage.SCORE)
        truth, compared, columns = judging.reader.truth(units), self._compared(), []
        for k, (candidate, offset) in enumerate(compared.values()):
            scores = yield from judging.read(Stage.SCORE, candidate, everyone, k / len(compared), 1 / len(compared))
            columns.append(right(scores, offset, truth))
        contributions = judging.of_units(tally.cells(np.stack(columns, axis=1)), units)
        cells = tally.release(contributions, self._state.randomness)
        without, weighing = not judging.arm[0].demonstrations, self._stage.request.recipe.weighing
        found = findings.Score.of_table(tally, cells, list(compared), without, judging.held_out, weighing)
        yield ScoreReleased(found)

    def _compared(self) -> dict[str, tuple[CandidateSet, Floats]]:
        """The arms of the score; where no demonstrations were chosen, zero-shot is the exported set."""
        judging = self._state.judging
        arms = {
            name: (each, judging.baseline(each))
            for name, each in zip((ZERO_SHOT, PUBLIC_ONLY), (judging.without, judging.sets[1]), strict=True)
        }
        candidate = judging.arm[0]
        if candidate.demonstrations and candidate.name != PUBLIC:
            arms[DEMONSTRATIONS] = (candidate, judging.baseline(candidate))
        return arms


STAGE = Score
