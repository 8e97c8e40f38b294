"""Whether events make a run: in an order in which they can have happened, and in agreement with the set they made."""

from __future__ import annotations

from dataclasses import dataclass, field

from mechanisms.errors import UsageError
from mechanisms.records import Demonstration
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
from mechanisms.studio.runs.lines import RunEvent
from mechanisms.studio.synthesis.demo_set import DemoSet
from mechanisms.studio.synthesis.events import DemoCompleted, DemoStarted, RunStarted, TokenReleased
from mechanisms.studio.synthesis.findings import Score

_Whose = tuple[str, int]

_WHEN = {
    SetsMade: tuple(Stage),
    PriorsReleased: (Stage.CALIBRATE, Stage.CHOOSE),
    ChoiceReleased: (Stage.CHOOSE,),
    ScoreReleased: (Stage.SCORE,),
}
"""The stages that a release may come in."""


def _holds(true: bool, otherwise: str) -> None:
    if not true:
        raise UsageError(otherwise)


@dataclass
class Story:
    """What a run has told so far; `add` refuses what cannot come next.

    Attributes:
        begun: the run's first event.
        made: the set that it ended with.
    """

    begun: RunStarted | RecipeStarted
    made: DemoSet
    steps: dict[_Whose, int] = field(default_factory=dict)
    whole: dict[_Whose, Demonstration] = field(default_factory=dict)
    stage: Stage | None = None
    ballots: dict[_Whose, int] = field(default_factory=dict)
    voted: set[_Whose] = field(default_factory=set)
    sets: dict[str, CandidateSet] = field(default_factory=dict)
    choice: ChoiceReleased | None = None
    score: Score | None = None

    def add(self, event: RunEvent) -> None:
        """One more event.

        Raises:
            UsageError: it cannot follow what was told before; the message says why.
        """
        match event:
            case DemoStarted() | TokenReleased() | DemoCompleted():
                _holds(self.stage in (None, Stage.WRITE), "a demonstration outside the stage that writes")
                self._write(event)
            case StageStarted():
                self._enter(event.stage)
            case DraftsWritten() | VotesReleased():
                _holds(self.stage is Stage.VOTE, "a ballot outside the stage that votes")
                self._vote(event)
            case SetsMade() | PriorsReleased() | ChoiceReleased() | ScoreReleased():
                _holds(self.stage in _WHEN[type(event)], "a release outside its stage")
                self._judge(event)
            case _:
                raise UsageError("an event that stands in no file")

    def end(self, stopped: bool) -> None:
        """The run has ended.

        Raises:
            UsageError: it was not stopped, and yet something is missing; or the set that it made is not what was told.
        """
        _holds(stopped or self._complete, "the run ends before it is complete")
        if isinstance(self.begun, RunStarted):
            told = set(self.whole.values())
            _holds(set(self.made.demonstrations) <= told, "the set has a demonstration that was not written")
        if self.choice is not None:
            chosen = self.sets[self.choice.chosen[0]]
            _holds(self.made.demonstrations == chosen.demonstrations, "the set is not the one that was chosen")
        _holds(self.made.score == self.score, "the set's score is not the one that was released")

    @property
    def _complete(self) -> bool:
        stages = self.begun.stages if isinstance(self.begun, RecipeStarted) else ()
        wanted = self._tokens[0] * len(self.made.labels) if not stages or Stage.WRITE in stages else 0
        asked = len(self.voted) == len(self.ballots) and (not stages or self.stage is stages[-1])
        return len(self.whole) == wanted and asked

    @property
    def _tokens(self) -> tuple[int, int]:
        """Demonstrations a label that are written token by token, and tokens of each."""
        written = self.made.certificate.parameters.get("written", {}) if isinstance(self.begun, RecipeStarted) else {}
        return written.get("shots_per_label", self.begun.shots), written.get("tokens", self.begun.tokens)

    def _write(self, event: DemoStarted | TokenReleased | DemoCompleted) -> None:
        label = event.demonstration.label if isinstance(event, DemoCompleted) else event.label
        whose, (shots, tokens) = (label, event.number), self._tokens
        if isinstance(event, DemoStarted):
            _holds(label in self.made.labels and event.number <= shots, "a demonstration that was not planned")
            _holds(whose not in self.steps, "a demonstration begins twice")
            self.steps[whose] = 0
            return
        _holds(whose in self.steps and whose not in self.whole, "a demonstration goes on that is not being written")
        if isinstance(event, DemoCompleted):
            _holds((event.demonstration.output is None) == (self.made.template.output is None), "outputs do not fit")
            self.whole[whose] = event.demonstration
            return
        _holds(event.step == self.steps[whose] + 1 <= tokens, "a token out of its turn")
        count = len(event.candidates)
        _holds(event.chosen < count == len(event.public), "a token that is no candidate")
        _holds(event.scores is None or len(event.scores) == count, "values that are not those of the candidates")
        self.steps[whose] = event.step

    def _enter(self, stage: Stage) -> None:
        stages = self.begun.stages if isinstance(self.begun, RecipeStarted) else ()
        _holds(stage in stages, "a stage that was not planned")
        done = stages.index(self.stage) if self.stage is not None else -1
        _holds(stages.index(stage) == done + 1, "a stage out of its turn")
        self.stage = stage

    def _vote(self, event: DraftsWritten | VotesReleased) -> None:
        ballot = (event.label, event.round)
        if isinstance(event, DraftsWritten):
            _holds(event.label in self.made.labels and ballot not in self.ballots, "a ballot that was not planned")
            self.ballots[ballot] = len(event.drafts)
            return
        _holds(ballot in self.ballots and ballot not in self.voted, "votes without a ballot")
        count = self.ballots[ballot]
        distinct = len(set(event.winners)) == len(event.winners) and all(each < count for each in event.winners)
        _holds(len(event.votes) == count and distinct, "votes that are not those of the ballot")
        self.voted.add(ballot)

    def _judge(self, event: SetsMade | PriorsReleased | ChoiceReleased | ScoreReleased) -> None:
        match event:
            case SetsMade(sets):
                _holds(not self.sets and len({each.name for each in sets}) == len(sets), "sets that are there already")
                self.sets = {each.name: each for each in sets}
            case PriorsReleased(priors):
                fits = all(name in self.sets and len(values) == len(self.made.labels) for name, values in priors)
                _holds(fits, "priors of no set, or of other labels")
            case ChoiceReleased(among, chosen):
                known = chosen in among and all(name in self.sets for name, _ in among)
                _holds(self.choice is None and known, "a choice of what did not compete")
                self.choice = event
            case ScoreReleased(score):
                ordered = all(arm.interval[0] <= arm.interval[1] for arm in score.arms.values())
                _holds(self.score is None and ordered, "a second score, or an interval from high to low")
                self.score = score
