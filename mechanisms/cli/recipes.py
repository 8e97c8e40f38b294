"""`synthesize` in stages: the request that the options describe, and what a person is told while it runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import closing

from mechanisms.accounting import Claim, PrivacyLedger, rounded_up
from mechanisms.cli.going_on import cut_off_line, goes_on, resumed_stages
from mechanisms.cli.output import progress
from mechanisms.cli.recipe_options import recipe_of
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import printable
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness
from mechanisms.records import Dataset
from mechanisms.runs.events import DemoCompleted, DemoCutOff
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.judging import among_in_words
from mechanisms.runs.recipe import Division, Recipe, Stage
from mechanisms.runs.recipe_events import (
    ChoiceReleased,
    CuratorRecipeEvent,
    Drafting,
    DraftsWritten,
    PriorsReleased,
    RecipeCompleted,
    RecipeStarted,
    ScoreReleased,
    SetKept,
    SetsMade,
    StageStarted,
    VotesReleased,
)
from mechanisms.runs.recipe_preview import preview_recipe
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.run import run_recipe

_SHOWN = 60
"""Characters of a draft on a progress line."""


def recipe_request(options: argparse.Namespace, base: SynthesisRequest) -> RecipeRequest:
    """The recipe's request, its writing not calibrated for its share yet.

    Args:
        options: what the command line says.
        base: what they would describe without stages: task, sizes, target, mechanism and plan.

    Raises:
        UsageError: a number is out of range, or the stages do not fit together.
    """
    left = base.target.epsilon - (base.measured.epsilon if base.measured else 0.0)
    recipe = recipe_of(options, base.sizes, left)
    return RecipeRequest.of(base, recipe, options.draft_tokens)


def run_in_stages(
    dataset: Dataset,
    request: RecipeRequest,
    model: LanguageModel,
    embedder: Embedder,
    ledger: PrivacyLedger,
    randomness: Randomness,
    keep: Callable[[DemoSet, RecipeCompleted | None], None],
    journal: RunJournal | None,
) -> None:
    """Calibrate the writing, run all stages, and tell about them on standard error.

    Args:
        keep: gets the set, and the run's end; without one of a run that was interrupted or failed, if anything was
            released before.
        journal: where the run is written down, and what is gone on with.

    Raises:
        StudioError: the run is refused, or could not go on.
    """
    request, claimed, warnings = _ready(request, journal)
    progress(
        f"epsilon {rounded_up(claimed.epsilon, 4)} (check {rounded_up(claimed.check, 4)}) at delta {claimed.delta:g}"
    )
    progress(_in_words(request.recipe))
    for warning in warnings:
        progress(warning)
    last: SetKept | RecipeCompleted | None = None
    try:
        with closing(run_recipe(dataset, request, model, embedder, ledger, randomness, journal=journal)) as run:
            for event in run:
                if isinstance(event, SetKept | RecipeCompleted):
                    last = event
                for line in _lines(event, dataset.name):
                    progress(line)
    finally:
        if isinstance(last, SetKept):
            progress("ended early: what was released before is kept, with the certificate of the whole run")
        if last is not None:
            keep(last.demo_set, last if isinstance(last, RecipeCompleted) else None)


def _ready(request: RecipeRequest, journal: RunJournal | None) -> tuple[RecipeRequest, Claim, tuple[str, ...]]:
    """The request calibrated, or as it was when the run was cut off; its claim, and warnings."""
    if journal is not None and goes_on(journal):
        going_on = resumed_stages(journal, request)
        return going_on, going_on.claim(), ()
    ready = preview_recipe(request)
    return ready.request, ready.claim, ready.warnings


def _in_words(recipe: Recipe) -> str:
    shared = "the units" if recipe.division is Division.ROLES else "epsilon"
    shares = ", ".join(f"{stage} {recipe.shares[stage]:.3g}" for stage in recipe.stages)
    voted = f"; drafts {recipe.drafts}, rounds {recipe.rounds}, sets {recipe.sets}"
    return (
        f"shares of {shared}: {shares}{voted if Stage.VOTE in recipe.shares else ''}; "
        f"all {recipe.weighing} count the same where they fit, choose and score"
    )


def _lines(event: CuratorRecipeEvent, name: str) -> Iterator[str]:
    """What may be told of an event: public values and releases only."""
    match event:
        case Drafting(label, number, of):
            yield f"{label}: writing public drafts, label {number} of {of}"
        case RecipeStarted(budget=budget) if budget:
            yield f"'{name}' has spent {budget.epsilon:.4g} of {budget.cap.epsilon:g} before this run"
        case StageStarted(stage):
            yield f"{stage}: charged"
        case DraftsWritten(label, number, drafts):
            yield f"{label}, round {number}: {len(drafts)} drafts"
        case DemoCompleted(demonstration):
            yield f"{demonstration.label}, written: {_shortened(demonstration.text)}"
        case SetsMade(sets):
            for each in sets:
                yield f"set '{each.name}'"
                yield from (f"    {shown.label}: {_shortened(shown.text)}" for shown in each.demonstrations)
        case _:
            yield from _released(event)


def _released(event: CuratorRecipeEvent) -> Iterator[str]:
    match event:
        case DemoCutOff():
            yield cut_off_line(event)
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
                low, high = found.interval
                yield f"{arm}: accuracy {found.accuracy:.3f}, between {low:.3f} and {high:.3f}"


def _shortened(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
