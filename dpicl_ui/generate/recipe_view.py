"""What step 3 shows of any run, as a value: `view = reduce_recipe(view, event)`.

A run that writes token by token and nothing else is one without stages: all there is of it is `view.run`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from dpicl_ui.generate.run_view import RunView, one_by_one, reduce
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import Score
from mechanisms.records import Demonstration, person
from mechanisms.runs.best_of import first
from mechanisms.runs.events import (
    CandidateSet,
    ChoiceReleased,
    CuratorEvent,
    DemoStarted,
    Drafting,
    DraftsWritten,
    PriorsReleased,
    RunCompleted,
    RunEvent,
    RunStarted,
    RunStopped,
    ScoreReleased,
    SetKept,
    SetsMade,
    StageProgress,
    StageStarted,
    TokenReleased,
    VotesReleased,
)
from mechanisms.runs.recipe import Stage


@dataclass(frozen=True)
class Ballot:
    """A label's drafts in a round, and the votes on them once they are released."""

    label: str
    round: int
    drafts: tuple[str, ...]
    votes: VotesReleased | None = None


@dataclass(frozen=True)
class RecipeView:
    """The state of step 3.

    Attributes:
        run: what every run has, and the tokens of the stage "write".
        stages: of a recipe; none where only tokens are written.
        shots: demonstrations a label that a recipe makes.
        stage: the one under way, or the last one.
        done: roughly how far it is, curator's screen only; None in every replay.
        drafting: which public drafts are being written between two stages, in words; curator's screen only.
        ballots: in the order in which their drafts were written.
        ballot: the one that something happened to last.
        sets: those that stand in the choice, in their public order.
        priors: by set, the noisy mean probability of each label.
    """

    run: RunView = field(default_factory=RunView)
    stages: tuple[Stage, ...] = ()
    shots: int = 1
    stage: Stage | None = None
    done: float | None = None
    drafting: str = ""
    ballots: tuple[Ballot, ...] = ()
    ballot: Ballot | None = None
    sets: tuple[CandidateSet, ...] = ()
    priors: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    choice: ChoiceReleased | None = None
    score: Score | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The task's labels, in their public order."""
        return self.run.demo_set.labels if self.run.demo_set else ()

    @property
    def unit(self) -> str:
        """What a unit is called: "row" or "user"."""
        return person(self.run.demo_set.certificate.unit) if self.run.demo_set else "row"

    @property
    def ended(self) -> bool:
        """The run's set is final."""
        return self.run.phase in ("completed", "stopped")

    @property
    def writing(self) -> bool:
        """Tokens are what there is to see."""
        judged = self.stage is Stage.VOTE or self.ballot is not None or bool(self.sets)
        return not self.stages or (Stage.WRITE in self.stages and not judged)

    @property
    def without(self) -> bool:
        """No demonstrations were found to serve best."""
        return self.chosen is not None and not self.chosen.demonstrations

    @property
    def chosen(self) -> CandidateSet | None:
        """The set that was found to serve best."""
        name = self.choice.chosen[0] if self.choice else None
        return next((each for each in self.sets if each.name == name), None)

    @property
    def demonstrations(self) -> tuple[Demonstration, ...]:
        """The run's demonstrations as far as they are known: written, then voted for, then chosen, then final."""
        if not self.stages and not self.ended:
            return self.run.finished
        return self.kept.demonstrations if self.kept else ()

    @property
    def kept(self) -> DemoSet | None:
        """The set with everything that has been released for it; None before the run has begun."""
        if self.run.demo_set is None or self.stages or self.ended:
            return self.run.demo_set
        # Of several to keep the best of: those that came first, until the best are known.
        most = dict.fromkeys(self.labels, self.run.kept) if self.run.kept is not None else None
        finished = self.run.finished if most is None else first(self.run.finished, most)
        return self.run.demo_set.with_demonstrations(finished)

    @property
    def made(self) -> DemoSet | None:
        """The set as it may be exported now; None as long as nothing is known of it."""
        known = self.kept and (self.kept.demonstrations or self.kept.choice or self.run.phase == "completed")
        return self.kept if known else None


def reduce_recipe(view: RecipeView, event: CuratorEvent) -> RecipeView:
    """The view after one more event."""
    match event:
        case Drafting():
            return _drafting(view, event)
        case RunStarted():
            return RecipeView(run=reduce(view.run, event), stages=event.stages, shots=event.shots)
        case StageStarted():
            return replace(view, stage=event.stage, done=None, drafting="", run=replace(view.run, budget=event.budget))
        case StageProgress():
            return replace(view, done=min(1.0, max(0.0, event.done)))
        case DraftsWritten() | VotesReleased():
            return _balloted(view, event)
        case RunCompleted() | RunStopped():
            return replace(view, run=reduce(view.run, event), done=None, drafting="")
        case SetsMade() | SetKept() | PriorsReleased() | ChoiceReleased() | ScoreReleased():
            return _found(view, event)
    return replace(view, run=reduce(view.run, event))


def _drafting(view: RecipeView, event: Drafting) -> RecipeView:
    message, done = f"Public drafts: {event.label}, label {event.number} of {event.of}", (event.number - 1) / event.of
    if view.run.phase == "running":  # between the stages of a run that wrote token by token before
        return replace(view, drafting=message, done=done)
    return RecipeView(RunView(phase="waiting", message=message, waited=done))


def _balloted(view: RecipeView, event: DraftsWritten | VotesReleased) -> RecipeView:
    if isinstance(event, DraftsWritten):
        ballot = Ballot(event.label, event.round, event.drafts)
        return replace(view, ballots=(*view.ballots, ballot), ballot=ballot)
    place = next(i for i, each in enumerate(view.ballots) if (each.label, each.round) == (event.label, event.round))
    ballot = replace(view.ballots[place], votes=event)
    return replace(view, ballots=(*view.ballots[:place], ballot, *view.ballots[place + 1 :]), ballot=ballot)


def _found(view: RecipeView, event: SetsMade | SetKept | PriorsReleased | ChoiceReleased | ScoreReleased) -> RecipeView:
    match event:
        case SetKept():
            return replace(view, run=replace(view.run, demo_set=event.demo_set))
        case SetsMade():
            return replace(view, sets=event.sets)
        case PriorsReleased():
            return replace(view, priors={**view.priors, **dict(event.priors)})
        case ChoiceReleased():
            return replace(view, choice=event)
        case ScoreReleased():
            return replace(view, score=event.score)


def replay_recipe(events: Iterable[RunEvent]) -> RecipeView:
    """The screen after recorded events."""
    last = deque(_one_after_the_other(events), maxlen=1)
    return last[0][1] if last else RecipeView()


_MOMENTS = (
    TokenReleased,
    DraftsWritten,
    VotesReleased,
    SetsMade,
    PriorsReleased,
    ChoiceReleased,
    ScoreReleased,
    RunCompleted,
    RunStopped,
)


def looked_back(events: Iterable[RunEvent]) -> Iterator[tuple[RunEvent, RecipeView]]:
    """Each place of a recording that can be looked back at, and the view there: every token, every release, the end."""
    yield from ((event, view) for event, view in _one_after_the_other(events) if isinstance(event, _MOMENTS))


def _one_after_the_other(events: Iterable[RunEvent]) -> Iterator[tuple[RunEvent, RecipeView]]:
    """Every event and the view after it, with one draft at a time: a file may begin any number and finish none."""
    view = RecipeView()
    for event in one_by_one(events):
        if isinstance(event, DemoStarted):  # the one before may have been cut off
            view = replace(view, run=replace(view.run, drafts=()))
        view = reduce_recipe(view, event)
        yield event, view
