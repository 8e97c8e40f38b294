"""Whether events make a run: in an order in which they can have happened, and in agreement with the set they made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mechanisms.errors import UsageError
from mechanisms.records import Demonstration
from mechanisms.studio.recipes.corrections import Correction
from mechanisms.studio.recipes.events import (
    CandidateSet,
    ChoiceReleased,
    DraftsWritten,
    PriorsReleased,
    RecipeStarted,
    ScoreReleased,
    SetsMade,
    StageStarted,
    VotesReleased,
)
from mechanisms.studio.recipes.recipe import Stage
from mechanisms.studio.recipes.sets import NONE
from mechanisms.studio.runs.lines import RunEvent
from mechanisms.studio.runs.paid import Paid, holds
from mechanisms.studio.synthesis.demo_set import DemoSet
from mechanisms.studio.synthesis.events import DemoCompleted, DemoCutOff, DemoStarted, RunStarted, TokenReleased
from mechanisms.studio.synthesis.findings import DEMONSTRATIONS, PUBLIC_ONLY, ZERO_SHOT, Score

_Whose = tuple[str, int]

_WHEN = {
    SetsMade: tuple(Stage),
    PriorsReleased: (Stage.CALIBRATE, Stage.CHOOSE),
    ChoiceReleased: (Stage.CHOOSE,),
    ScoreReleased: (Stage.SCORE,),
}
"""The stages that a release may come in."""
_ARMS = {ZERO_SHOT, PUBLIC_ONLY, DEMONSTRATIONS}
_FIRST_JUDGED = 2
"""Place of the first set that private rows have made: after none, and public only."""


@dataclass
class Story:
    """What a run has told so far; `add` refuses what cannot come next.

    Attributes:
        begun: the run's first event.
        made: the set that it ended with.
        paid: what the certificate lets it tell.
        most: demonstrations that may be begun.
        known: demonstrations of which something was released.
    """

    begun: RunStarted | RecipeStarted
    made: DemoSet
    paid: Paid
    most: int
    steps: dict[_Whose, int] = field(default_factory=dict)
    whole: dict[_Whose, Demonstration] = field(default_factory=dict)
    cut_off: dict[_Whose, bool] = field(default_factory=dict)
    stage: Stage | None = None
    ballots: dict[_Whose, tuple[str, ...]] = field(default_factory=dict)
    voted: set[_Whose] = field(default_factory=set)
    sets: dict[str, CandidateSet] = field(default_factory=dict)
    measured: set[Stage] = field(default_factory=set)
    choice: ChoiceReleased | None = None
    score: Score | None = None
    known: set[Demonstration] = field(default_factory=set)

    def add(self, event: RunEvent) -> None:
        """One more event.

        Raises:
            UsageError: it cannot follow what was told before; the message says why.
        """
        match event:
            case DemoStarted() | TokenReleased() | DemoCompleted() | DemoCutOff():
                holds(self.stage in (None, Stage.WRITE), "a demonstration outside the stage that writes")
                self._write(event)
            case StageStarted():
                self._enter(event.stage)
            case DraftsWritten() | VotesReleased():
                holds(self.stage is Stage.VOTE, "a ballot outside the stage that votes")
                self._vote(event)
            case SetsMade() | PriorsReleased() | ChoiceReleased() | ScoreReleased():
                holds(self.stage in _WHEN[type(event)], "a release outside its stage")
                self._judge(event)
            case _:
                raise UsageError("an event that stands in no file")

    def end(self, stopped: bool) -> None:
        """The run has ended.

        Raises:
            UsageError: it was not stopped, and yet something is missing; or the set that it made is not what was told.
        """
        holds(stopped or self._complete, "the run ends before it is complete")
        self._end_of_choice()
        told = self.known | set(self.whole.values())
        holds(set(self.made.demonstrations) <= told, "the set has a demonstration that was not written")
        holds(self.made.score == self.score, "the set's score is not the one that was released")

    def _end_of_choice(self) -> None:
        made = self.made.choice
        holds((made is None) == (self.choice is None), "the set's choice is not the one that was released")
        if made is None or self.choice is None:
            return
        chosen, refined = self.sets[self.choice.chosen[0]], Stage.CHOOSE in self.measured
        same = (self.made.demonstrations, self.made.template) == (chosen.demonstrations, chosen.template)
        holds(same, "the set is not the one that was chosen")
        name = chosen.name if chosen.demonstrations else NONE
        told = (len(self.choice.among), name, self.paid.correction(self.choice, refined))
        same = (made.among, made.chosen, made.correction) == told
        holds(same, "the set's choice is not the one that was released")

    @property
    def _complete(self) -> bool:
        stages, labels = self.paid.stages, len(self.made.labels)
        written = len(self.whole) + sum(not finished for finished in self.cut_off.values())
        judged = {Stage.CALIBRATE: self.measured, Stage.CHOOSE: self.choice, Stage.SCORE: self.score}
        asked = not stages or (self.stage is stages[-1] and bool(self.sets))
        told = all(judged[stage] for stage in stages if stage in judged)
        return asked and told and (written, len(self.voted)) == (labels * self.paid.shots, labels * self.paid.ballots)

    def _cut(self, event: DemoCutOff) -> None:
        whose = (event.label, event.number)
        planned = event.label in self.made.labels and event.number <= self.paid.shots
        holds(planned and whose not in self.cut_off and whose not in self.whole, "a demonstration is cut off twice")
        holds(not event.finished or whose in self.steps, "a demonstration is finished that was not begun")
        self.cut_off[whose] = event.finished

    def _write(self, event: DemoStarted | TokenReleased | DemoCompleted | DemoCutOff) -> None:
        if isinstance(event, DemoCutOff):
            self._cut(event)
            return
        label = event.demonstration.label if isinstance(event, DemoCompleted) else event.label
        whose = (label, event.number)
        holds(self.cut_off.get(whose, True), "a demonstration goes on that was left out")
        if isinstance(event, DemoStarted):
            planned = label in self.made.labels and event.number <= self.paid.shots
            holds(planned, "a demonstration that was not planned")
            holds(len(self.steps) < self.most, "more demonstrations than a run file has")
            holds(whose not in self.steps, "a demonstration begins twice")
            self.steps[whose] = 0
            return
        holds(whose in self.steps and whose not in self.whole, "a demonstration goes on that is not being written")
        if isinstance(event, DemoCompleted):
            holds((event.demonstration.output is None) == (self.made.template.output is None), "outputs do not fit")
            self.whole[whose] = event.demonstration
            return
        holds(event.step == self.steps[whose] + 1 and whose not in self.cut_off, "a token out of its turn")
        self.paid.check_token(event)
        self.steps[whose] = event.step

    def _enter(self, stage: Stage) -> None:
        stages = self.paid.stages
        holds(stage in stages, "a stage that was not planned")
        done = stages.index(self.stage) if self.stage is not None else -1
        holds(stages.index(stage) == done + 1, "a stage out of its turn")
        self.stage = stage

    def _vote(self, event: DraftsWritten | VotesReleased) -> None:
        ballot = (event.label, event.round)
        if isinstance(event, DraftsWritten):
            holds(event.label in self.made.labels and ballot not in self.ballots, "a ballot that was not planned")
            self.paid.check_ballot(event, len(self.whole))
            self.ballots[ballot] = event.drafts
            return
        holds(ballot in self.ballots and ballot not in self.voted, "votes without a ballot")
        drafts, winners = self.ballots[ballot], event.winners
        distinct = len(set(winners)) == len(winners) and all(each < len(drafts) for each in winners)
        holds(len(event.votes) == len(drafts) and distinct, "votes that are not those of the ballot")
        self.paid.check_noise(event)
        self.voted.add(ballot)
        self.known |= {Demonstration(drafts[each], event.label) for each in winners}

    def _judge(self, event: SetsMade | PriorsReleased | ChoiceReleased | ScoreReleased) -> None:
        match event:
            case SetsMade(sets):
                holds(not self.sets, "sets that are there already")
                self.paid.check_sets(tuple(each.name for each in sets), bool(self.whole))
                self.sets = {each.name: each for each in sets}
                self.known |= {demonstration for each in sets for demonstration in each.demonstrations}
            case PriorsReleased(priors):
                self._prior(priors)
            case ChoiceReleased(among, chosen):
                known = all(name in self.sets and how in set(Correction) for name, how in among)
                once = chosen in among and len(set(among)) == len(among)
                holds(self.choice is None and known and once, "a choice of what did not compete")
                self.choice = event
            case ScoreReleased(score):
                ordered = all(arm.interval[0] <= arm.interval[1] for arm in score.arms.values())
                holds(self.score is None and ordered, "a second score, or an interval from high to low")
                holds(set(score.arms) <= _ARMS, "a score of what was not compared")
                self.score = score

    def _prior(self, priors: Sequence[tuple[str, tuple[float, ...]]]) -> None:
        """All sets are measured before the choice, and the one that is exported once more: each measurement is paid."""
        wanted = tuple(self.sets)
        if self.stage is Stage.CHOOSE:
            wanted = (self.choice.chosen[0],) if self.choice else ()
        elif Stage.CHOOSE not in self.paid.stages:
            wanted = wanted[_FIRST_JUDGED : _FIRST_JUDGED + 1]
        fits = all(len(values) == len(self.made.labels) for _, values in priors)
        holds(fits and wanted == tuple(name for name, _ in priors) != (), "priors of other sets, or of other labels")
        holds(self.stage is not None and self.stage not in self.measured, "priors that are there already")
        assert self.stage is not None
        self.measured.add(self.stage)
