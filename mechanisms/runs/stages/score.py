"""The stage "score": how often is a unit's label predicted right, with the set, with public text and with neither?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from pydantic.dataclasses import dataclass as checked

from mechanisms import confidence
from mechanisms.demos.demo_set import DEMONSTRATIONS, DIRECTIONS, PUBLIC_ONLY, ZERO_SHOT, Score
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import truth_of
from mechanisms.privacy_events import PrivacyEvent
from mechanisms.records import unit_nouns
from mechanisms.rounding import percent_down, percent_up
from mechanisms.runs.events import LINE, CuratorEvent, Release
from mechanisms.runs.judging import right
from mechanisms.runs.spec import WORDS
from mechanisms.runs.stage import PlannedStage
from mechanisms.runs.stages.calibrate import reading_work
from mechanisms.runs.state import RunState
from mechanisms.runs.work import Work
from mechanisms.tallies import ScoreTally, Weighing, masses, weights

_WIDE = 0.1
"""The half width above which an interval is too wide to be of use; see `mechanisms.tallies.Estimate.wide`."""


@checked(frozen=True, config=LINE)
class ScoreReleased(Release):
    """How often the labels of the scoring rows are predicted right."""

    score: Score
    event: Literal["score"] = "score"

    def lines(self) -> tuple[str, ...]:
        told = []
        for arm, found in self.score.arms.items():
            low, high = percent_down(found.interval[0], 1), percent_up(found.interval[1], 1)
            told.append(f"{arm}: accuracy {found.stated}, between {low} and {high}")
        return tuple(told)


@dataclass(frozen=True)
class ScoreStage(PlannedStage):
    """Noisy counts of right answers, for every combination of arms."""

    name = "score"
    order = 50
    title = "Score"
    question = "Counting how often the {unit}s' labels are found."
    noun = "the score"
    role_units = 300
    parts = 4
    releases = (ScoreReleased,)

    @property
    def tally(self) -> ScoreTally:
        by_labels = self.plan.spec.weighing is Weighing.LABELS
        return ScoreTally(self.plan.epsilon(self.name), self.plan.by_user, by_labels)

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.tally.event,)

    @property
    def arms(self) -> tuple[str, ...]:
        """The compared arms: the sets with which the model reads rows and, if they are released, the directions."""
        return (ZERO_SHOT, PUBLIC_ONLY, DEMONSTRATIONS, *((DIRECTIONS,) if WORDS in self.plan.shares else ()))

    @property
    def margin(self) -> float:
        """Half the interval of a private accuracy near 1/2, expected from the public sizes; at most 1/2."""
        plan, role = self.plan, self.plan.unit_share(self.name)
        assert plan.spec.weighing is not None
        counted, each = (of(plan.sizes, plan.spec.weighing) for of in (masses, weights))
        mass = role * sum(counted.values())
        squares = role * sum(counted[label] * each[label] for label in counted)
        noise = 2 ** (len(self.arms) - 1) * self.tally.deviation**2 / 2
        return min(0.5, confidence.standard_errors() * math.sqrt(squares / 4 + noise) / mass)

    def work(self) -> Work:
        of_directions = self.plan.units(self.name) if DIRECTIONS in self.arms else 0.0
        return reading_work(self, 1.0, 1.0, 1.0) + Work(embedded=of_directions)

    def warnings(self) -> Iterator[str]:
        if self.margin > _WIDE:
            who = unit_nouns(self.plan.unit)
            yield f"So few {who} score that the private accuracy will say little: its interval is wider than 20 points."

    def task(self) -> str:
        alone = "They took part in nothing else" if self.plan.by_roles else "They took part in the other stages too"
        return f"say how often the model finds their label. {alone}."

    def check(self, event: ScoreReleased) -> None:
        ordered = all(arm.interval[0] <= arm.interval[1] for arm in event.score.arms.values())
        if set(event.score.arms) != set(self.arms) or not ordered:
            raise UsageError("a score of what was not compared, or an interval from high to low")

    def ask(self, state: RunState) -> Iterator[CuratorEvent]:
        yield from state.compare()
        judging, tally, name, weighing = state.judging, self.tally, self.name, self.plan.spec.weighing
        assert weighing is not None
        units, everyone = judging.everyone(name)
        truth, columns = truth_of(self.plan.labels, chain.from_iterable(units)), []
        for k, shown in enumerate(judging.sets):
            scores = yield from judging.log_probabilities(
                name, shown, everyone, k / len(judging.sets), 1 / len(judging.sets)
            )
            columns.append(right(scores, judging.correction(shown), truth))
        if DIRECTIONS in self.arms:
            assert state.directions is not None
            assert state.embedder is not None
            texts = [record.text for record in chain.from_iterable(units)]
            columns.append(state.directions.nearest(texts, state.embedder) == truth)
        contributions = judging.of_units(tally.cells(np.stack(columns, axis=1)), units)
        cells = tally.release(contributions, state.randomness)
        yield ScoreReleased(Score.of_table(tally, cells, self.arms, False, judging.held_out, weighing))

    def take(self, state: RunState, event: ScoreReleased) -> None:
        state.judging.score = event.score


STAGE = ScoreStage
