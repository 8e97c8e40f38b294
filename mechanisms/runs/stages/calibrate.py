"""The stage "calibrate": which labels does the model prefer, independently of the text?

In a first measurement, the model reads each unit under one of three sets (no demonstrations, public ones, the run's
own), so that the score can correct all three in the same way. Two more measurements, each with all units, fit the
correction of the run's own set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as checked

from mechanisms.demos.demo_set import DEMONSTRATIONS
from mechanisms.errors import UsageError
from mechanisms.noise import Floats
from mechanisms.privacy_events import PrivacyEvent
from mechanisms.records import unit_nouns
from mechanisms.runs.completion import CLEARANCE
from mechanisms.runs.drafts import drafts_for
from mechanisms.runs.events import LINE, CuratorEvent, Numbers, Release
from mechanisms.runs.judging import preferences, step
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, WORDS
from mechanisms.runs.stage import PlannedStage
from mechanisms.runs.state import RunState
from mechanisms.runs.work import Work, drafting_work
from mechanisms.tallies import LabelBias

REFINEMENTS = 2
"""Measurements of the own set's prior after the first one; each applies the correction fitted so far."""
_SETS = 3


@checked(frozen=True, config=LINE)
class PriorsReleased(Release):
    """The model's preference for each label: noisy sums of its probabilities, in the order of the labels.

    Attributes:
        compared: the sums under each of the three sets, over the units that were read under it; shape (3, labels).
        refined: the sums under the run's own set over all units, one row for each refinement, each with the correction
            fitted so far; shape (2, labels).
    """

    compared: Annotated[tuple[Numbers, ...], Field(min_length=_SETS, max_length=_SETS)]
    refined: Annotated[tuple[Numbers, ...], Field(min_length=REFINEMENTS, max_length=REFINEMENTS)]
    event: Literal["priors"] = "priors"

    def lines(self) -> tuple[str, ...]:
        return ("which labels the model prefers: measured without demonstrations, with public ones and with the set",)


@dataclass(frozen=True)
class CalibrateStage(PlannedStage):
    """Measures mean label probabilities, to which the correction of the model's answers is fitted."""

    name = "calibrate"
    order = 30
    title = "Calibrate"
    question = "Measuring how much the model prefers each label."
    noun = "measuring which labels the model prefers"
    role_units = 160
    parts = 7
    releases = (PriorsReleased,)

    @property
    def tally(self) -> LabelBias:
        """The tally of each measurement, which is the same for the first one and for every refinement."""
        return LabelBias(self.plan.epsilon(self.name) / (1 + REFINEMENTS))

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.tally.event,) * (1 + REFINEMENTS)

    def work(self) -> Work:
        return reading_work(self, 1 / _SETS, 1 / _SETS, 1.0)

    def warnings(self) -> Iterator[str]:
        who, plan = unit_nouns(self.plan.unit), self.plan
        rows, noise = plan.units(self.name) / len(plan.labels), self.tally.deviation
        if rows < CLEARANCE * noise:
            yield (
                f"About {rows:.2g} {who} a label calibrate, and the noise on them is {noise:.2g}: the correction may "
                f"be chance, and worse than none. More {who} or a larger epsilon for this stage help."
            )

    def task(self) -> str:
        return "measure the model's habit: which labels it prefers whatever it reads."

    def check(self, event: PriorsReleased) -> None:
        if {len(each) for each in (*event.compared, *event.refined)} != {len(self.plan.labels)}:
            raise UsageError("priors of other labels")

    def ask(self, state: RunState) -> Iterator[CuratorEvent]:
        yield from state.compare()
        judging, randomness, name, tally = state.judging, state.randomness, self.name, self.tally
        units, everyone = judging.everyone(name)
        labels = len(self.plan.labels)
        judged = np.floor(randomness.uniform(len(units)) * _SETS).astype(np.int64)
        cells = np.zeros((len(units), _SETS, labels))
        # All units are read under the own set first, in full batches; units assigned to it are not read again below.
        scores = yield from judging.log_probabilities(name, DEMONSTRATIONS, everyone, 0, 3 / 5)
        for k, shown in enumerate(judging.sets):
            mine = everyone[judged == k]
            of_mine = yield from judging.log_probabilities(name, shown, mine, (3 + k) / 5, 1 / 5)
            cells[mine, k] = judging.of_units(preferences(of_mine, np.zeros(labels)), [units[i] for i in mine.tolist()])
        compared = tally.release(cells.reshape(len(units), _SETS * labels), randomness).reshape(_SETS, labels)
        offset, refined = step(compared[-1], judging.target, tally.deviation), []
        for _ in range(REFINEMENTS):
            noisy = tally.release(judging.of_units(preferences(scores, offset), units), randomness)
            refined.append(noisy)
            offset = offset + step(noisy, judging.target, tally.deviation)
        yield PriorsReleased(_rows(compared), _rows(refined))

    def take(self, state: RunState, event: PriorsReleased) -> None:
        judging, deviation = state.judging, self.tally.deviation
        for shown, noisy in zip(judging.sets, event.compared, strict=True):
            judging.corrections[shown] = step(np.array(noisy), judging.target, deviation)
        for noisy in event.refined:
            judging.corrections[DEMONSTRATIONS] += step(np.array(noisy), judging.target, deviation)


def _rows(noisy: Sequence[Floats] | Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(each.tolist()) for each in noisy)


def reading_work(stage: PlannedStage, zero_shot: float, public: float, own: float) -> Work:
    """The work of a stage that reads units under the three sets; each argument is the share of units for one set."""
    plan = stage.plan
    rows = plan.units(stage.name)
    # Measured: a text takes four fifths of the cap, each further token of a label's name costs two more positions,
    # empty rows fill a quarter of the batches, and a model reads half as fast after a prompt of 2,400 tokens.
    letters, labels = sum(map(len, plan.labels)), len(plan.labels)
    query = 1.25 * (0.8 * plan.spec.max_record_tokens + 10 + 2 * max(0.0, letters / 5 - labels))
    shown = plan.spec.shots * labels * (0.7 * plan.spec.draft_tokens + 8)
    behind = 1 + shown / 2400
    sets = 2 * shown * (1 + shown / 1500)
    reading = Work(read=rows * query * (zero_shot + behind * (public + own)) + sets)
    first = CALIBRATE if CALIBRATE in plan.shares else SCORE
    if stage.name != first or {OPENINGS, WORDS}.isdisjoint(plan.shares):
        return reading
    # The first of these stages writes the public set. Without openings and words the ballot's drafts serve as that set.
    return reading + drafting_work(len(plan.labels), drafts_for(plan.spec.shots), plan.spec.draft_tokens)


STAGE = CalibrateStage
