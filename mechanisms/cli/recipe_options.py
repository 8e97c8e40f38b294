"""The options of a recipe: where demonstrations come from, and what its stages share."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace

from mechanisms.errors import UsageError
from mechanisms.runs.advice import proposed
from mechanisms.runs.defaults import RECIPE
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage
from mechanisms.runs.recipe_request import MOST_SHOTS, RecipeRequest
from mechanisms.runs.request import SynthesisRequest
from mechanisms.tallies import Weighing

_NO_SCORE = "none"
_OWN = ("drafts", "rounds", "sets", "score", "draft_tokens", "weighing")
"""Options that mean nothing where demonstrations are only written token by token."""


def add_recipe_options(parser: argparse.ArgumentParser) -> None:
    """Recipe, ballots, sets, and how units or epsilon are shared."""
    group = parser.add_argument_group("recipe", "a run in stages; what is left out is planned from the sizes")
    group.add_argument(
        "--recipe",
        choices=[*Kind],
        help=f"default: {RECIPE}; tokens for what has no stages: records, outputs, a single label, --best-of, more "
        f"than {MOST_SHOTS} shots, a mechanism that is not private",
    )
    group.add_argument("--drafts", type=int, metavar="J", help="public drafts of each label in a ballot")
    group.add_argument("--rounds", type=int, metavar="R", help="ballots; later drafts see the winners before")
    group.add_argument("--sets", type=int, metavar="K", help="sets of winners to choose from, beside none and public")
    group.add_argument(
        "--draft-tokens", type=int, metavar="T", help=f"tokens of a draft (default: {RecipeRequest.tokens})"
    )
    group.add_argument(
        "--split",
        choices=[*Division],
        help="what stages share: units, each with one role (default where they are many), or epsilon",
    )
    group.add_argument("--shares", metavar="write=.5,vote=.2,...", help="of each stage: of the units, or of epsilon")
    group.add_argument(
        "--weighing",
        choices=[*Weighing],
        help="what counts the same where rows fit, choose and score (default: labels where the largest one has more "
        "than twice an even share, else rows)",
    )
    group.add_argument("--score", choices=["private", _NO_SCORE], help="none: leave out the last stage")


def in_stages(options: argparse.Namespace) -> bool:
    """Whether the run is a recipe's: a plain token by token run has no stages to share anything.

    Raises:
        UsageError: an option is given that only a recipe has.
    """
    staged = options.recipe != Kind.TOKENS or options.shares is not None or options.split is not None
    if not staged:
        if given := [name for name in _OWN if getattr(options, name) is not None]:
            raise UsageError(f"--{given[0].replace('_', '-')} needs --recipe vote or both, or --shares, or --split.")
        return False
    return True


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


def recipe_of(options: argparse.Namespace, sizes: Mapping[str, int], epsilon: float) -> Recipe:
    """The recipe that the options describe; what they leave open is planned.

    Args:
        sizes: declared or measured units of each label.
        epsilon: what the stages may cost together.

    Raises:
        UsageError: a number is out of range, or a stage is missing, unknown or too many.
    """
    usual = Division.ROLES if options.shares is not None else None
    division = Division(options.split) if options.split else usual
    recipe = proposed(Kind(options.recipe), sizes, epsilon, options.score != _NO_SCORE, division)
    if options.shares is not None:
        recipe = replace(recipe, shares=_shares(options.shares))
    if options.score == _NO_SCORE and Stage.SCORE in recipe.shares:
        raise UsageError("--score none leaves out the stage 'score': leave it out of --shares too.")
    if options.score == "private" and Stage.SCORE not in recipe.shares:
        raise UsageError("--score private needs a share for the stage 'score'.")
    asked = {name: getattr(options, name) for name in ("drafts", "rounds", "sets")}
    asked["weighing"] = options.weighing and Weighing(options.weighing)
    return replace(recipe, **{name: value for name, value in asked.items() if value is not None})


def _shares(text: str) -> dict[Stage, float]:
    shares: dict[Stage, float] = {}
    try:
        for part in text.split(","):
            name, share = part.split("=")
            stage = Stage(name.strip())
            if stage in shares:
                raise UsageError(f"--shares names the stage '{stage}' twice.")
            shares[stage] = float(share)
    except ValueError as error:
        stages = ", ".join(Stage)
        raise UsageError(f"--shares takes STAGE=SHARE, separated by commas; the stages are {stages}.") from error
    return shares
