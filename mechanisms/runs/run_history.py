"""The check of a run file's events: only what the run's certificate covers may be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import DEMONSTRATIONS, PUBLIC_ONLY, ZERO_SHOT, Score
from mechanisms.errors import UsageError
from mechanisms.records import Demonstration
from mechanisms.runs.certificate import Rebuilt
from mechanisms.runs.events import (
    CandidateSet,
    ChoiceReleased,
    DemoCompleted,
    DemoCutOff,
    DemoStarted,
    DraftsWritten,
    PriorsReleased,
    RunEvent,
    RunStarted,
    ScoreReleased,
    SetsMade,
    StageRelease,
    StageStarted,
    TokenReleased,
    VotesReleased,
)
from mechanisms.runs.judging import FITTED, Correction, fitted
from mechanisms.runs.recipe import Stage
from mechanisms.runs.sets import NONE
from mechanisms.runs.stage import stage_class, stage_of
from mechanisms.runs.stages.vote import Vote
from mechanisms.runs.verification import names_of_sets
from mechanisms.steps.mechanism import Norm
from mechanisms.tallies import masses

_LEAST_BALLOT = 3
"""The fewest drafts in a later ballot: one winner, and two to compare it with."""
_SAME_NOISE = 1e-9


def require(true: bool, otherwise: str) -> None:
    """Refuse a run file where a condition does not hold.

    Raises:
        UsageError: it does not.
    """
    if not true:
        raise UsageError(otherwise)


@dataclass(frozen=True)
class PermittedReleases:
    """The releases that a certificate covers, by kind.

    Attributes:
        run: the certificate's, built anew.
    """

    run: Rebuilt

    def begun(self, made: DemoSet) -> RunStarted:
        """The first event of the run that ended with a set."""
        nothing = replace(made, demonstrations=(), prior=None, score=None, choice=None)
        return self.run.request.started(nothing, None)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The run's, in their order."""
        return self.run.request.stages

    @property
    def shots(self) -> int:
        """Demonstrations of a label that are written token by token."""
        return self.run.request.written.plan.shots if self.run.request.written else 0

    @property
    def ballots(self) -> int:
        """Ballots of a label."""
        return self.run.staged.recipe.rounds if self.run.staged and Stage.VOTE in self.stages else 0

    def check_token(self, event: TokenReleased) -> None:
        """Check that a token is covered, and holds nothing beyond its mechanism's release.

        Raises:
            UsageError: it is not; the message says why.
        """
        written, count = self.run.request.written, len(event.candidates)
        require(written is not None and event.step <= written.plan.tokens, "a token out of its turn")
        assert written is not None
        require(event.chosen < count == len(event.public), "a token that is no candidate")
        require(count <= written.candidates, "more candidates than the certificate's")
        longest = written.mechanism.longest_trail
        require(len(event.trail) <= longest, "more on a token's trail than its mechanism releases")
        if event.scores is not None:
            require(len(event.scores) == count, "values that are not those of the candidates")
            norm = written.mechanism.sensitivity(written.plan.unit_rows).norm  # a selection pays for its winner alone
            require(norm is not Norm.RANGE, "values beside a token that its mechanism releases alone")

    def check_ballot(self, event: DraftsWritten, written: int) -> None:
        """Check that a ballot is of a covered round, with at most the recipe's drafts and those `written` before.

        Raises:
            UsageError: it is not.
        """
        require(event.round <= self.ballots, "a ballot that was not planned")
        recipe = self.run.staged
        most = max(_LEAST_BALLOT, recipe.recipe.drafts if recipe else 0) + written
        require(len(event.drafts) <= most, "more drafts than the recipe has")

    def check_noise(self, event: VotesReleased) -> None:
        """Check that votes have the accounted noise.

        Raises:
            UsageError: they state another one.
        """
        recipe = self.run.staged
        same = recipe is not None and math.isclose(event.noise, Vote(recipe).tally.deviation, rel_tol=_SAME_NOISE)
        require(same, "noise that is not the certificate's")

    def check_sets(self, names: tuple[str, ...], written: bool) -> None:
        """Check that the sets are the recipe's, in order; those of written texts only where some were written.

        Raises:
            UsageError: they are not.
        """
        recipe = self.run.staged
        known = [names_of_sets(recipe.recipe, words) for words in (1, 2)] if recipe else []
        if not written:
            known = [[name for name in of if not name.startswith("written ")] for of in known]
        require(list(names) in known, "sets that are not those of the recipe")

    def correction(self, choice: ChoiceReleased, refined: bool) -> str:
        """The correction that the set of a choice is read with, before it is fitted or after."""
        told = choice.chosen[1]
        request = self.run.staged
        counted = masses(request.sizes, request.recipe.weighing) if request else {}
        return told if told in FITTED or not refined else str(fitted([*counted.values()]))


# Whether events make a run: in an order in which they can have happened, and in agreement with the set they made.

_DemonstrationKey = tuple[str, int]

_ARMS = {ZERO_SHOT, PUBLIC_ONLY, DEMONSTRATIONS}
_FIRST_JUDGED = 2
"""The place of the first set made from private rows: after none and public only."""


@dataclass
class RunHistory:
    """The events of a run so far; `add` refuses one that cannot come next.

    Attributes:
        begun: the run's first event.
        made: the set that it ended with.
        paid: what the certificate lets it tell.
        most: demonstrations that may be begun.
        known: demonstrations of which something was released.
        own: what stages have released by events of their own.
    """

    begun: RunStarted
    made: DemoSet
    paid: PermittedReleases
    most: int
    steps: dict[_DemonstrationKey, int] = field(default_factory=dict)
    whole: dict[_DemonstrationKey, Demonstration] = field(default_factory=dict)
    cut_off: dict[_DemonstrationKey, bool] = field(default_factory=dict)
    stage: Stage | None = None
    ballots: dict[_DemonstrationKey, tuple[str, ...]] = field(default_factory=dict)
    voted: set[_DemonstrationKey] = field(default_factory=set)
    sets: dict[str, CandidateSet] = field(default_factory=dict)
    measured: set[Stage] = field(default_factory=set)
    choice: ChoiceReleased | None = None
    score: Score | None = None
    known: set[Demonstration] = field(default_factory=set)
    own: list[tuple[Stage, StageRelease]] = field(default_factory=list)

    def add(self, event: RunEvent) -> None:
        """Add an event.

        Raises:
            UsageError: it cannot follow what was told before; the message says why.
        """
        match event:
            case DemoStarted() | TokenReleased() | DemoCompleted() | DemoCutOff():
                require(self.stage in (None, Stage.WRITE), "a demonstration outside the stage that writes")
                self._write(event)
            case StageStarted():
                self._enter(event.stage)
            case DraftsWritten() | VotesReleased():
                require(self.stage is Stage.VOTE, "a ballot outside the stage that votes")
                self._vote(event)
            case SetsMade() | PriorsReleased() | ChoiceReleased() | ScoreReleased():
                anywhere = isinstance(event, SetsMade) and self.stage is not None
                released = self.stage is not None and isinstance(event, stage_class(self.stage).releases)
                require(anywhere or released, "a release outside its stage")
                self._judge(event)
            case StageRelease():
                self._release(event)
            case _:
                raise UsageError("an event that stands in no file")

    def end(self, stopped: bool) -> None:
        """End the run.

        Raises:
            UsageError: it was not stopped, and yet something is missing; or the set that it made is not what was told.
        """
        require(stopped or self._complete, "the run ends before it is complete")
        self._end_of_choice()
        told = self.known | set(self.whole.values())
        require(set(self.made.demonstrations) <= told, "the set has a demonstration that was not written")
        require(self.made.score == self.score, "the set's score is not the one that was released")

    def _end_of_choice(self) -> None:
        made = self.made.choice
        require((made is None) == (self.choice is None), "the set's choice is not the one that was released")
        if made is None or self.choice is None:
            return
        chosen, refined = self.sets[self.choice.chosen[0]], Stage.CHOOSE in self.measured
        same = (self.made.demonstrations, self.made.template) == (chosen.demonstrations, chosen.template)
        require(same, "the set is not the one that was chosen")
        name = chosen.name if chosen.demonstrations else NONE
        told = (len(self.choice.among), name, self.paid.correction(self.choice, refined))
        same = (made.among, made.chosen, made.correction) == told
        require(same, "the set's choice is not the one that was released")

    @property
    def _complete(self) -> bool:
        stages, labels = self.paid.stages, len(self.made.labels)
        written = len(self.whole) + sum(not finished for finished in self.cut_off.values())
        judged = {Stage.CALIBRATE: self.measured, Stage.CHOOSE: self.choice, Stage.SCORE: self.score}
        asked = not stages or (self.stage is stages[-1] and bool(self.sets))
        told = all(judged[stage] for stage in stages if stage in judged)
        told = told and all(self._own_told(stage) for stage in stages)
        return asked and told and (written, len(self.voted)) == (labels * self.paid.shots, labels * self.paid.ballots)

    def _cut(self, event: DemoCutOff) -> None:
        key = (event.label, event.number)
        planned = event.label in self.made.labels and event.number <= self.paid.shots
        require(planned and key not in self.cut_off and key not in self.whole, "a demonstration is cut off twice")
        require(not event.finished or key in self.steps, "a demonstration is finished that was not begun")
        self.cut_off[key] = event.finished

    def _write(self, event: DemoStarted | TokenReleased | DemoCompleted | DemoCutOff) -> None:
        if isinstance(event, DemoCutOff):
            self._cut(event)
            return
        label = event.demonstration.label if isinstance(event, DemoCompleted) else event.label
        key = (label, event.number)
        require(self.cut_off.get(key, True), "a demonstration goes on that was left out")
        if isinstance(event, DemoStarted):
            planned = label in self.made.labels and event.number <= self.paid.shots
            require(planned, "a demonstration that was not planned")
            require(len(self.steps) < self.most, "more demonstrations than a run file has")
            require(key not in self.steps, "a demonstration begins twice")
            self.steps[key] = 0
            return
        require(key in self.steps and key not in self.whole, "a demonstration goes on that is not being written")
        if isinstance(event, DemoCompleted):
            require((event.demonstration.output is None) == (self.made.template.output is None), "outputs do not fit")
            self.whole[key] = event.demonstration
            return
        require(event.step == self.steps[key] + 1 and key not in self.cut_off, "a token out of its turn")
        self.paid.check_token(event)
        self.steps[key] = event.step

    def _release(self, event: StageRelease) -> None:
        stage, recipe = self.stage, self.paid.run.staged
        require(stage is not None and isinstance(event, stage_class(stage).releases), "a release outside its stage")
        assert stage is not None
        assert recipe is not None
        stage_of(recipe, stage).check(event, [each for of, each in self.own if of is stage])
        self.own.append((stage, event))

    def _own_told(self, stage: Stage) -> bool:
        """Whether a stage has told one of each type of its own events, at least."""
        wanted = {each for each in stage_class(stage).releases if issubclass(each, StageRelease)}
        return wanted <= {type(event) for of, event in self.own if of is stage}

    def _enter(self, stage: Stage) -> None:
        stages = self.paid.stages
        require(stage in stages, "a stage that was not planned")
        done = stages.index(self.stage) if self.stage is not None else -1
        require(stages.index(stage) == done + 1, "a stage out of its turn")
        self.stage = stage

    def _vote(self, event: DraftsWritten | VotesReleased) -> None:
        ballot = (event.label, event.round)
        if isinstance(event, DraftsWritten):
            require(event.label in self.made.labels and ballot not in self.ballots, "a ballot that was not planned")
            self.paid.check_ballot(event, len(self.whole))
            self.ballots[ballot] = event.drafts
            return
        require(ballot in self.ballots and ballot not in self.voted, "votes without a ballot")
        drafts, winners = self.ballots[ballot], event.winners
        distinct = len(set(winners)) == len(winners) and all(each < len(drafts) for each in winners)
        require(len(event.votes) == len(drafts) and distinct, "votes that are not those of the ballot")
        self.paid.check_noise(event)
        self.voted.add(ballot)
        self.known |= {Demonstration(drafts[each], event.label) for each in winners}

    def _judge(self, event: SetsMade | PriorsReleased | ChoiceReleased | ScoreReleased) -> None:
        match event:
            case SetsMade(sets):
                require(not self.sets, "sets that are there already")
                self.paid.check_sets(tuple(each.name for each in sets), bool(self.whole))
                self.sets = {each.name: each for each in sets}
                self.known |= {demonstration for each in sets for demonstration in each.demonstrations}
            case PriorsReleased(priors):
                self._prior(priors)
            case ChoiceReleased(among, chosen):
                known = all(name in self.sets and how in set(Correction) for name, how in among)
                once = chosen in among and len(set(among)) == len(among)
                require(self.choice is None and known and once, "a choice of what did not compete")
                self.choice = event
            case ScoreReleased(score):
                ordered = all(arm.interval[0] <= arm.interval[1] for arm in score.arms.values())
                require(self.score is None and ordered, "a second score, or an interval from high to low")
                require(set(score.arms) <= _ARMS, "a score of what was not compared")
                self.score = score

    def _prior(self, priors: Sequence[tuple[str, tuple[float, ...]]]) -> None:
        """All sets are measured before the choice, and the one that is exported once more: each measurement is paid."""
        wanted = tuple(self.sets)
        if self.stage is Stage.CHOOSE:
            wanted = (self.choice.chosen[0],) if self.choice else ()
        elif Stage.CHOOSE not in self.paid.stages:
            wanted = wanted[_FIRST_JUDGED : _FIRST_JUDGED + 1]
        fits = all(len(values) == len(self.made.labels) for _, values in priors)
        require(fits and wanted == tuple(name for name, _ in priors) != (), "priors of other sets, or of other labels")
        require(self.stage is not None and self.stage not in self.measured, "priors that are there already")
        assert self.stage is not None
        self.measured.add(self.stage)
