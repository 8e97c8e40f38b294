"""The time that a recipe will take on this machine: each stage's work from public numbers, at measured speeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mechanisms.runs.drafts import FEWEST, WRITTEN
from mechanisms.runs.forecast import ModelSpeed, Work, written_work
from mechanisms.runs.reading_forecast import (
    FRAME,
    NAMES_READ,
    USUAL,
    prompt_work,
    reading_work,
    shown_tokens,
)
from mechanisms.runs.recipe import Stage
from mechanisms.runs.recipe_request import RecipeRequest, RunRequest, has_stages
from mechanisms.runs.sets import wordings
from mechanisms.runs.stage import stage_of

_PROMPT = 24
"""Approximate tokens of the prompt for a draft."""
_DRAWN = 2.0
"""Cost of a draft's token, in vocabularies of a row: the logits, and a draw from them."""


@dataclass(frozen=True)
class Read:
    """A set under which a stage reads records.

    Attributes:
        records: how many, expected from the public sizes.
        shown: whether the set has demonstrations.
        first: whether the stage is the first to open the set's prompt.
    """

    records: float
    shown: bool
    first: bool


def units(request: RecipeRequest, stage: Stage) -> float:
    """Units that a stage reads, expected from the public sizes; a user counts once for each label."""
    return request.role(stage) * sum(request.sizes.values())


def choice_count(request: RecipeRequest) -> int:
    """Sets that stand in the choice: none in each wording, public only, winners of the vote, and what was written."""
    recipe, words = request.recipe, wordings(request.template, request.labels, request.recipe.sets)
    voted = recipe.sets if Stage.VOTE in recipe.shares else 0
    return len(words) + 1 + voted + (min(2, recipe.sets) if Stage.WRITE in recipe.shares else 0)


def predicted_seconds(request: RunRequest, speed: ModelSpeed) -> float:
    """Seconds that a whole run takes."""
    return sum(seconds_by_part(request, speed).values())


def seconds_by_part(request: RunRequest, speed: ModelSpeed) -> dict[Stage | None, float]:
    """The same for the first drafts, which come before any stage that reads them (None), and for each stage.

    That of the writing is an upper bound: see `written_work`.
    """
    return {part: work.seconds(speed) for part, work in work_by_part(request, speed.together).items()}


def work_by_part(request: RunRequest, together: int) -> dict[Stage | None, Work]:
    """What the first drafts (None) and each stage ask of the models, in their order; see `ModelSpeed.together`.

    A run that writes token by token alone is its writing.
    """
    if not has_stages(request):
        return {Stage.WRITE: written_work(request, together)}
    return {None: _public_work(request)} | {stage: stage_of(request, stage).work(together) for stage in request.stages}


def _public_work(request: RecipeRequest) -> Work:
    recipe = request.recipe
    drafts = recipe.drafts if Stage.VOTE in recipe.shares else request.shots
    return drafting_work(request, drafts) + _longest_prompts(request)


def records(request: RecipeRequest, stage: Stage) -> float:
    """Records that a stage reads, expected from the public sizes."""
    return (request.max_unit_records if request.by_user else 1) * units(request, stage)


def shown_of_sets(request: RecipeRequest) -> Sequence[bool]:
    """For each set of the choice, whether it has demonstrations."""
    without = len(wordings(request.template, request.labels, request.recipe.sets))
    return [False] * without + [True] * (choice_count(request) - without)


def read_work(request: RecipeRequest, sets: Sequence[Read]) -> Work:
    """The work of reading records under sets; the first reading of a set opens its prompt."""
    return sum((_reading(request, each) for each in sets), Work())


def _reading(request: RecipeRequest, of: Read) -> Work:
    labels, cap = request.labels, request.max_record_tokens
    shown = _shown(request, USUAL) if of.shown else shown_tokens(request.template, labels, 0, 0)
    opened = prompt_work(labels, shown, cap) if of.first else Work()
    return opened + reading_work(labels, shown, of.records, cap)


def _shown(request: RecipeRequest, share: float) -> float:
    return shown_tokens(request.template, request.labels, request.shots, share * request.tokens)


def _longest_prompts(request: RecipeRequest) -> Work:
    """The work of checking that the longest prompt fits: with the longest possible drafts, and with the written ones.

    Drafts that come first are there by then.
    """
    work = prompt_work(request.labels, _shown(request, 1.0), request.max_record_tokens)
    return work * (2 if Stage.WRITE in request.recipe.stages else 1)


def drafting_work(request: RecipeRequest, drafts: int) -> Work:
    """A ballot of so many drafts for each label; about half of what is written is of use, and compared with names."""
    labels, wanted = len(request.labels), WRITTEN * max(FEWEST, drafts)
    tokens = USUAL * wanted * request.tokens
    embedded = labels * NAMES_READ + tokens / 2
    each = Work(
        positions=_PROMPT + FRAME / 2 * wanted,
        rows=tokens,
        steps=request.tokens,
        words=_DRAWN * tokens,
        embedded=embedded,
    )
    return each * labels
