"""The values that step 3 shows of a run: `view = reduce(view, event)`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from mechanisms.accounting import BudgetSnapshot
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import Score
from mechanisms.errors import UsageError
from mechanisms.records import Demonstration, person
from mechanisms.runs.best_of import first_of_each_label
from mechanisms.runs.certificate import rebuilt
from mechanisms.runs.events import (
    CandidateSet,
    ChoiceReleased,
    CuratorEvent,
    DemoCompleted,
    DemoCutOff,
    DemoStarted,
    Drafting,
    DraftsWritten,
    PriorsReleased,
    PrivateDiagnostics,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunStarted,
    RunStopped,
    ScoreReleased,
    SetKept,
    SetsMade,
    StageProgress,
    StageRelease,
    StageStarted,
    TokenReleased,
    VotesReleased,
)
from mechanisms.runs.recipe import Stage
from mechanisms.steps import TokenMechanism

# What the generation screen shows, as a value: `view = reduce(view, event)`.
#
# A recorded list of `RunEvent`s replays the whole screen without a model.

Recorded = TypeVar("Recorded")
Phase = Literal["idle", "waiting", "running", "completed", "stopped", "failed"]


@dataclass(frozen=True)
class Draft:
    """A demonstration in progress.

    Attributes:
        released: its tokens so far.
        private: the clean values behind the last token, for the curator's screen alone; None in every replay.
    """

    label: str
    number: int
    released: tuple[TokenReleased, ...] = ()
    private: PrivateDiagnostics | None = None

    @property
    def token(self) -> TokenReleased | None:
        """The last released token."""
        return self.released[-1] if self.released else None

    @property
    def before(self) -> str:
        """Its text without the last token."""
        return self.released[-2].text if len(self.released) > 1 else ""

    @property
    def clean(self) -> tuple[float, ...] | None:
        """The clean sum behind the last token."""
        return self.private.clean if self.private else None

    @property
    def text(self) -> str:
        """Its text, the last token included."""
        return self.token.text if self.token else ""


@dataclass(frozen=True)
class RunView:
    """State of the live screen.

    Attributes:
        demo_set: the run's set: empty while tokens are written, growing in a recipe, final at the end.
        shots, tokens, rows: demonstrations a label, tokens a demonstration, expected rows of a step.
        kept: demonstrations a label in the set; None if all that are written are kept.
        drafts: the demonstrations in progress, oldest first.
        last: the draft that was finished last.
        completed: events of whole demonstrations, in order.
        cut_off: events of demonstrations that a crash interrupted.
        released: tokens released so far in the whole run.
        budget: the ledger's state; None for a run that charges nothing.
        mechanism: the one that writes, as the certificate describes it; None if nothing is written token by token.
        message: why a run failed, or what it waits for.
        waited: the share of what it waits for that has arrived, 0 to 1.
    """

    phase: Phase = "idle"
    demo_set: DemoSet | None = None
    shots: int = 1
    tokens: int = 1
    rows: int = 1
    kept: int | None = None
    drafts: tuple[Draft, ...] = ()
    last: Draft | None = None
    completed: tuple[DemoCompleted, ...] = ()
    cut_off: tuple[DemoCutOff, ...] = ()
    released: int = 0
    budget: BudgetSnapshot | None = None
    mechanism: TokenMechanism | None = None
    message: str = ""
    waited: float = 0.0

    @property
    def finished(self) -> tuple[Demonstration, ...]:
        """Whole demonstrations, in order."""
        return tuple(each.demonstration for each in self.completed)

    @property
    def partly_forced(self) -> bool:
        """Whether some tokens are forced: by a schema, or by the name of the answer's field."""
        made = self.demo_set
        return made is not None and (made.schema is not None or made.template.output is not None)

    @property
    def shown(self) -> Draft | None:
        """The draft on the screen: the same one until it is finished."""
        return self.drafts[0] if self.drafts else self.last

    @property
    def planned(self) -> int:
        """Demonstrations in the whole run."""
        return self.shots * len(self.demo_set.labels) if self.demo_set else 0

    @property
    def progress(self) -> float:
        """Progress of the run, 0 to 1: finished demonstrations and tokens of the current one; before that, the share of
        what it waits for that has arrived.
        """
        if self.phase in ("completed", "waiting"):
            return 1.0 if self.phase == "completed" else self.waited
        steps = sum(draft.token.step for draft in self.drafts if draft.token) / self.tokens
        return min(1.0, (len(self.finished) + steps) / self.planned) if self.planned else 0.0

    def changed(self, label: str, number: int, **values: Any) -> RunView:
        """The view with one draft changed."""
        drafts = (
            replace(draft, **values) if (draft.label, draft.number) == (label, number) else draft
            for draft in self.drafts
        )
        return replace(self, drafts=tuple(drafts))

    def draft(self, label: str, number: int) -> Draft:
        """One of the drafts in progress."""
        return next(draft for draft in self.drafts if (draft.label, draft.number) == (label, number))


def reduce(view: RunView, event: CuratorEvent) -> RunView:
    """The view after an event."""
    match event:
        case RunStarted():
            return _begun(event)
        case DemoStarted():
            return replace(view, drafts=(*view.drafts, Draft(event.label, event.number)), budget=event.budget)
        case TokenReleased():
            told = (*view.draft(event.label, event.number).released, event)
            more = replace(view, released=view.released + 1)
            return more.changed(event.label, event.number, released=told, private=None)
        case PrivateDiagnostics():
            return view.changed(event.label, event.number, private=event)
        case DemoCompleted():
            ended = view.draft(event.demonstration.label, event.number)
            others = tuple(draft for draft in view.drafts if draft is not ended)
            return replace(view, drafts=others, last=ended, completed=(*view.completed, event))
        case DemoCutOff():
            others = tuple(each for each in view.drafts if (each.label, each.number) != (event.label, event.number))
            drafts = view.drafts if event.finished else others
            return replace(view, drafts=drafts, cut_off=(*view.cut_off, event))
    return _ended(view, event)


def _begun(event: RunStarted) -> RunView:
    # In a recipe, written demonstrations have other lengths and counts than drafts: their own parameters hold here.
    written = event.demo_set.certificate.parameters.get("written", {}) if event.stages else {}
    return RunView(
        phase="running",
        demo_set=event.demo_set,
        shots=written.get("shots_per_label", event.shots),
        tokens=written.get("tokens", event.tokens),
        rows=event.expected_rows or written.get("subsets", 1),
        kept=event.kept,
        budget=event.budget,
        mechanism=mechanism_of(event.demo_set),
    )


def _ended(view: RunView, event: CuratorEvent) -> RunView:
    match event:
        case RunCompleted():
            return replace(view, phase="completed", demo_set=event.demo_set, budget=event.budget)
        case RunStopped():
            return replace(view, phase="stopped", demo_set=event.demo_set)
        case RunFailed():
            return replace(view, phase="failed", message=event.message)
    return view


def mechanism_of(demo_set: DemoSet) -> TokenMechanism | None:
    """The mechanism of a set's tokens, by its certificate; None where no token is written, or it is unknown."""
    try:
        written = rebuilt(demo_set).request.written
    except UsageError:
        return None
    return written.mechanism if written else None


def _whose(event: object) -> tuple[str, int] | None:
    """The demonstration that an event is about."""
    match event:
        case DemoStarted() | TokenReleased() | DemoCutOff():
            return event.label, event.number
        case DemoCompleted():
            return event.demonstration.label, event.number
        case _:
            return None


def one_by_one(events: Iterable[Recorded]) -> list[Recorded]:
    """A recording, reordered so that each demonstration is complete before the next begins."""
    recorded = list(events)
    order = {_whose(event): place for place, event in enumerate(recorded) if isinstance(event, DemoStarted)}
    places = [place for place, event in enumerate(recorded) if _whose(event)]
    written = sorted((recorded[place] for place in places), key=lambda event: order.get(_whose(event), len(recorded)))
    for place, event in zip(places, written, strict=True):
        recorded[place] = event
    return recorded


# What step 3 shows of any run, as a value: `view = reduce_recipe(view, event)`.
#
# A run that only writes token by token has no stages: all of its state is `view.run`.


@dataclass(frozen=True)
class Ballot:
    """A label's drafts in a round, and the votes on them once they are released."""

    label: str
    round: int
    drafts: tuple[str, ...]
    votes: VotesReleased | None = None


@dataclass(frozen=True)
class RecipeView:
    """State of step 3.

    Attributes:
        run: what every run has, and the tokens of the stage "write".
        stages: of a recipe; empty if only tokens are written.
        shots: demonstrations a label that a recipe makes.
        stage: the current or the last stage.
        done: its rough progress, for the curator's screen alone; None in every replay.
        drafting: which public drafts are being written between two stages, in words; for the curator's screen alone.
        ballots: in the order in which their drafts were written.
        ballot: the one that changed last.
        sets: those that compete in the choice, in their public order.
        priors: by set, the noisy mean probability of each label.
        own: releases of stages that have events of their own.
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
    own: tuple[StageRelease, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The task's labels, in their public order."""
        return self.run.demo_set.labels if self.run.demo_set else ()

    @property
    def unit(self) -> str:
        """The word for a unit: "row" or "user"."""
        return person(self.run.demo_set.certificate.unit) if self.run.demo_set else "row"

    @property
    def ended(self) -> bool:
        """Whether the run's set is final."""
        return self.run.phase in ("completed", "stopped")

    @property
    def writing(self) -> bool:
        """Whether the screen shows tokens."""
        judged = self.stage is Stage.VOTE or self.ballot is not None or bool(self.sets)
        return not self.stages or (Stage.WRITE in self.stages and not judged)

    @property
    def without(self) -> bool:
        """Whether the choice was to have no demonstrations."""
        return self.chosen is not None and not self.chosen.demonstrations

    @property
    def chosen(self) -> CandidateSet | None:
        """The chosen set."""
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
        """The set from what is released so far; None before the run has begun."""
        if self.run.demo_set is None or self.stages or self.ended:
            return self.run.demo_set
        # With `best of`, the first ones until the best are known.
        most = dict.fromkeys(self.labels, self.run.kept) if self.run.kept is not None else None
        finished = self.run.finished if most is None else first_of_each_label(self.run.finished, most)
        return self.run.demo_set.with_demonstrations(finished)

    @property
    def made(self) -> DemoSet | None:
        """The set that may be exported now; None before anything is released."""
        known = self.kept and (self.kept.demonstrations or self.kept.choice or self.run.phase == "completed")
        return self.kept if known else None


def reduce_recipe(view: RecipeView, event: CuratorEvent) -> RecipeView:
    """The view after an event."""
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
        case StageRelease():
            return replace(view, own=(*view.own, event))
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
    StageRelease,
    RunCompleted,
    RunStopped,
)


def looked_back(events: Iterable[RunEvent]) -> Iterator[tuple[RunEvent, RecipeView]]:
    """Each place of a replay with its view: every token, every release, the end."""
    yield from ((event, view) for event, view in _one_after_the_other(events) if isinstance(event, _MOMENTS))


def _one_after_the_other(events: Iterable[RunEvent]) -> Iterator[tuple[RunEvent, RecipeView]]:
    """Every event and the view after it, with one draft at a time: a file may begin any number and finish none."""
    view = RecipeView()
    for event in one_by_one(events):
        if isinstance(event, DemoStarted):  # the one before may have been cut off
            view = replace(view, run=replace(view.run, drafts=()))
        view = reduce_recipe(view, event)
        yield event, view
