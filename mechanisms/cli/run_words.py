"""A run's lines on standard error: public values and releases only."""

from __future__ import annotations

from collections.abc import Iterator

from mechanisms.accounting import Claim
from mechanisms.errors import printable
from mechanisms.rounding import percent_down, percent_up, rounded_up
from mechanisms.runs.events import (
    ChoiceReleased,
    CuratorEvent,
    DemoCompleted,
    DemoCutOff,
    DemoStarted,
    Drafting,
    DraftsWritten,
    PriorsReleased,
    RunCompleted,
    RunStarted,
    ScoreReleased,
    SetsMade,
    StageRelease,
    StageStarted,
    VotesReleased,
)
from mechanisms.runs.judging import among_in_words
from mechanisms.runs.recipe import Division, Recipe, Stage
from mechanisms.runs.recipe_request import RunRequest

_SHOWN = 60
"""Characters of a draft on a progress line."""


class Words:
    """The lines of one run, event by event."""

    def __init__(self, request: RunRequest, name: str) -> None:
        self._request, self._name, self._whole = request, name, 0

    def of(self, event: CuratorEvent) -> Iterator[str]:
        """The lines for an event."""
        match event:
            case Drafting(label, number, of):
                yield f"{label}: writing public drafts, label {number} of {of}"
            case RunStarted(budget=budget) if budget:
                spent = f"{rounded_up(budget.epsilon, 4)} of {budget.cap.epsilon:g}"
                yield f"'{self._name}' has spent {spent} before this run"
            case StageStarted(stage):
                yield f"{stage}: charged"
            case DemoStarted(label, number) if not self._request.stages:
                yield f"{label}, demonstration {number}: charged, writing"
            case DemoCompleted():
                self._whole += 1
                yield self._completed(event)
            case DemoCutOff():
                yield cut_off_in_words(event)
            case RunCompleted(demo_set) if self._keeps_the_best:
                yield f"kept {len(demo_set.demonstrations)} of {self._whole}: those whose label the model finds best"
            case _:
                yield from own_words(event) if isinstance(event, StageRelease) else _of_stages(event)

    @property
    def _keeps_the_best(self) -> bool:
        written = self._request.written
        return written is not None and written.kept is not None

    def _completed(self, event: DemoCompleted) -> str:
        shown = event.demonstration
        if self._request.stages or (written := self._request.written) is None:
            return f"{shown.label}, written: {_shortened(shown.text)}"
        return f"{self._whole} of {len(written.labels) * written.plan.shots} done"


def cut_off_in_words(event: DemoCutOff) -> str:
    """Whether a demonstration that was cut off is finished or left out."""
    how = "finished from public text alone" if event.finished else "left out"
    return f"{event.label}, demonstration {event.number}: cut off, {how}"


def claim_in_words(claim: Claim) -> str:
    """A run's cost by both accountants."""
    told = f"epsilon {rounded_up(claim.epsilon, 4)} (check {rounded_up(claim.check, 4)}) at delta {claim.delta:g}"
    return f"{told}. {claim.remark}" if claim.remark else told


def recipe_in_words(recipe: Recipe) -> str:
    """The division among the stages, and their shares."""
    shared = "the units" if recipe.division is Division.ROLES else "epsilon"
    shares = ", ".join(f"{stage} {rounded_up(recipe.shares[stage], 3)}" for stage in recipe.stages)
    voted = f"; drafts {recipe.drafts}, rounds {recipe.rounds}, sets {recipe.sets}"
    return (
        f"shares of {shared}: {shares}{voted if Stage.VOTE in recipe.shares else ''}; "
        f"all {recipe.weighing} count the same where they fit, choose and score"
    )


def own_words(event: StageRelease) -> list[str]:
    """What a stage says of an event of its own."""
    return [printable(line) for line in event.lines()]


def _of_stages(event: CuratorEvent) -> Iterator[str]:
    match event:
        case DraftsWritten(label, number, drafts):
            yield f"{label}, round {number}: {len(drafts)} drafts"
        case SetsMade(sets):
            for each in sets:
                yield f"set '{each.name}'"
                yield from (f"    {shown.label}: {_shortened(shown.text)}" for shown in each.demonstrations)
        case VotesReleased():
            best = ", ".join(f"{event.votes[place]:.0f}" for place in event.winners)
            yield f"{event.label}, round {event.round}: winners with {best} votes (noise {event.noise:.1f})"
        case PriorsReleased(priors):
            yield f"which labels the model prefers: measured under {', '.join(name for name, _ in priors)}"
        case ChoiceReleased(among, (chosen, correction)):
            counted = among_in_words(len(among), len({name for name, _ in among}))
            yield f"chosen among {counted}: '{chosen}', read with the correction '{correction}'"
        case ScoreReleased(score):
            for arm, found in score.arms.items():
                low, high = percent_down(found.interval[0], 1), percent_up(found.interval[1], 1)
                yield f"{arm}: accuracy {percent_down(found.accuracy, 1)}, between {low} and {high}"


def _shortened(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
