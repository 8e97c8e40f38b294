"""The options of a recipe: where demonstrations come from, and what its stages share."""

from __future__ import annotations

import argparse
from typing import Any

from mechanisms.errors import UsageError
from mechanisms.runs.defaults import RECIPE
from mechanisms.runs.recipe import Division, Kind, Stage
from mechanisms.runs.recipe_request import MOST_SHOTS, RecipeRequest
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


def asks_for_stages(options: argparse.Namespace) -> bool:
    """Whether the options ask for a run in stages, whatever is usual."""
    return options.recipe not in (None, Kind.TOKENS) or options.shares is not None or options.split is not None


def check_staged(options: argparse.Namespace, staged: bool) -> None:
    """Refuse what only a run in stages has where there are none, and what none of them knows where there are.

    Raises:
        UsageError: such an option is given.
    """
    if staged and options.best_of != 1:
        raise UsageError("--best-of is for a run without stages: in stages all that is written stands in the ballot.")
    if not staged and (given := [name for name in _OWN if getattr(options, name) is not None]):
        raise UsageError(f"--{given[0].replace('_', '-')} needs --recipe vote or both, or --shares, or --split.")


def asked_of_stages(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of a `RunSpec` that the options fix.

    Raises:
        UsageError: a share is no number, or no stage's; a private score is asked for and has no share.
    """
    shares = None if options.shares is None else _shares(options.shares)
    if options.score == _NO_SCORE and shares is not None and Stage.SCORE in shares:
        raise UsageError("--score none leaves out the stage 'score': leave it out of --shares too.")
    if options.score == "private" and shares is not None and Stage.SCORE not in shares:
        raise UsageError("--score private needs a share for the stage 'score'.")
    return {
        "recipe": options.recipe and Kind(options.recipe),
        "score": options.score != _NO_SCORE,
        "division": options.split and Division(options.split),
        "shares": shares,
        "drafts": options.drafts,
        "rounds": options.rounds,
        "sets": options.sets,
        "weighing": options.weighing and Weighing(options.weighing),
        "draft_tokens": options.draft_tokens,
    }


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
