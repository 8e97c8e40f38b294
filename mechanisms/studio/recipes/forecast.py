"""How long a recipe will take on this machine, from public numbers and a short measurement of the model."""

from __future__ import annotations

from mechanisms.studio.recipes.drafts import WRITTEN
from mechanisms.studio.recipes.recipe import Division, Stage
from mechanisms.studio.recipes.request import RecipeRequest
from mechanisms.studio.recipes.sets import wordings
from mechanisms.studio.synthesis.forecast import ModelSpeed
from mechanisms.studio.synthesis.forecast import predicted_seconds as written_seconds

_FRAME = 20
"""Tokens around a text that is classified, roughly; what stands before it is read once for many."""
_PROMPT = 60
"""Tokens of the prompt for a draft, roughly."""
_CHARACTERS = 4
"""Of a token of a label, roughly."""
_READ = 1.0
"""What a label's further token costs, in positions: the whole vocabulary is asked after it."""
_ATTENDED = 1 / 1000
"""What a position costs more for each position before it, in positions: of the embedded model on a CPU. Under eighty
demonstrations that is several times the rest."""
_EMBEDDED = 0.15
"""A position of the embedding model in positions of a small language model, which has several times its parameters."""
ARMS = 3
"""Zero-shot, public only, and the set: what a score compares at most."""


def units(request: RecipeRequest, stage: Stage) -> float:
    """How many units a stage reads, expected from the public sizes; users are counted once for each of their labels."""
    return request.role(stage) * sum(request.sizes.values())


def competing(request: RecipeRequest) -> int:
    """Sets that stand in the choice: none in each wording, public only, winners of the vote, and what was written."""
    recipe, words = request.recipe, wordings(request.template, request.labels)
    voted = recipe.sets if Stage.VOTE in recipe.shares else 0
    return len(words) + 1 + voted + (min(2, recipe.sets) if Stage.WRITE in recipe.shares else 0)


def predicted_seconds(request: RecipeRequest, speed: ModelSpeed) -> float:
    """Seconds that a whole run takes, within a factor of about two."""
    return sum(seconds_by_part(request, speed).values())


def seconds_by_part(request: RecipeRequest, speed: ModelSpeed) -> dict[Stage | None, float]:
    """The same for the first drafts, which come before any stage (None), and for each stage, in their order."""
    recipe = request.recipe
    rounds = recipe.rounds if Stage.VOTE in recipe.shares else 1  # public only has drafts too
    steps = len(request.labels) * request.tokens
    drafting = len(request.labels) * WRITTEN * recipe.drafts * request.tokens * speed.row
    drafting += len(request.labels) * _PROMPT * speed.position + 2 * steps * speed.step
    parts: dict[Stage | None, float] = {None: drafting}
    for stage in recipe.stages:
        if stage is Stage.WRITE:
            parts[stage] = written_seconds(request.written, speed) if request.written else 0.0
        else:
            parts[stage] = _read(request, stage) * _positions(request, stage) * speed.position
    if Stage.VOTE in parts:
        parts[Stage.VOTE] = rounds * parts[Stage.VOTE] + (rounds - 1) * drafting
    return parts


def _positions(request: RecipeRequest, stage: Stage) -> float:
    """What reading one row costs, in positions of the model; a voter's text is embedded alone.

    To judge it the model reads it behind the demonstrations of a set, and every label's tokens behind it.
    """
    own = request.max_record_tokens + _FRAME
    if stage is Stage.VOTE:
        return own
    further = sum(max(0, round(len(label) / _CHARACTERS) - 1) for label in request.labels)
    shown = len(request.labels) * request.shots * (request.tokens + _FRAME)
    return (own + further) * (1 + _ATTENDED * shown) + _READ * further


def sets_read(request: RecipeRequest, stage: Stage) -> int:
    """Sets under which the language model reads a unit of a judging stage, at most; none is read twice.

    The stages share what they read where they share all units.
    """
    shares, shared = request.recipe.shares, request.recipe.division is Division.EPSILON
    chooses, calibrates = Stage.CHOOSE in shares, Stage.CALIBRATE in shares
    match stage:
        case Stage.CALIBRATE:  # under one set each, then all under the one that was chosen
            return 2 if chooses and not shared else 1
        case Stage.CHOOSE:
            return competing(request) - (1 if shared else 0)
        case _:
            known = (ARMS if chooses else 1 if calibrates else 0) if shared else 0
            return ARMS - known


def _read(request: RecipeRequest, stage: Stage) -> float:
    """Private rows that a stage reads, in passes of the language model."""
    rows = request.max_unit_records if request.by_user else 1
    return rows * units(request, stage) * (_EMBEDDED if stage is Stage.VOTE else sets_read(request, stage))
