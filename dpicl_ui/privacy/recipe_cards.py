"""A run in stages in words: who is asked for what, and what the answers can tell."""

from __future__ import annotations

from dpicl_ui.frame.cards import fact
from dpicl_ui.frame.tree import Tree, el
from mechanisms.runs.advice import FEWEST_FOR_ROLES
from mechanisms.runs.judging import ways
from mechanisms.runs.preview import Preview, score_margin, votes_a_draft
from mechanisms.runs.recipe import Division, Stage
from mechanisms.runs.recipe_forecast import competing, units
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.tallies import Weighing

_ROLES = "Each {unit} has one task only, given by a secret key: so every task may use the whole epsilon."
_EPSILON = (
    "The tasks share epsilon, since every {unit} takes part in all of them, as in files of fewer than {fewest:,}: "
    "that takes longer than where each has one task."
)
_BY_LABELS = (
    "The largest label has more than twice an even share, so each label, and not each row, counts the same where rows "
    "measure, choose and score."
)
_LONG = 1800
_MANY = 12
"""Demonstrations in a prompt from which on the labels are what takes the time."""


def roughly(count: float) -> str:
    """A number in two digits: shares of public sizes are expectations."""
    digits = max(0, len(str(int(count))) - 2)
    return f"{round(count / 10**digits) * 10**digits:,}"


def stages_in_words(request: RecipeRequest) -> list[Tree]:
    """What each stage asks of how many, in the order in which the run asks."""
    unit = "user" if request.by_user else "row"
    remark = _ROLES if request.recipe.division is Division.ROLES else _EPSILON
    lines = [el("li", f"{_who(request, stage)} {_task(request, stage)}") for stage in request.recipe.stages]
    balanced = request.recipe.weighing is Weighing.LABELS
    return [
        el("ol.tasks", *lines),
        el("p.muted", remark.format(unit=unit, fewest=FEWEST_FOR_ROLES)),
        *([el("p.muted", _BY_LABELS)] if balanced else []),
    ]


def why_so_long(preview: Preview[RecipeRequest]) -> str:
    """What a long run spends its time on, and what makes it shorter; nothing of a short one."""
    if preview.seconds is None or preview.seconds < _LONG:
        return ""
    request, shares = preview.request, preview.request.recipe.shares
    shown, shorter = len(request.labels) * request.shots, []
    all_choose = request.recipe.division is Division.EPSILON and Stage.CHOOSE in shares
    if all_choose and Stage.WRITE in shares:
        shorter.append("where rows vote on drafts alone, which leaves fewer sets")
    if Stage.SCORE in shares and not all_choose:  # whose rows are read for the score, and for nothing else
        shorter.append("without the private score")
    if shown > _MANY:
        shorter.append("with fewer or shorter label names")
    sets = f"each of {competing(request)} sets of {shown}" if all_choose else shown
    told = f"mostly for reading {'all ' if all_choose else ''}rows behind {sets} demonstrations"
    return f"{told}: {' or '.join(shorter)} it is shorter" if shorter else told


def _who(request: RecipeRequest, stage: Stage) -> str:
    plural = "users" if request.by_user else "rows"
    if request.recipe.division is Division.EPSILON:
        return f"All {plural}, for epsilon {request.epsilon(stage):.2g},"
    # A user who has several labels was counted for each of them; measured sizes are upper bounds.
    about = "At most about" if request.by_user or request.measured else "About"
    return f"{about} {roughly(units(request, stage))} {plural}"


def _task(request: RecipeRequest, stage: Stage) -> str:
    recipe = request.recipe
    match stage:
        case Stage.WRITE:
            return "may join in writing demonstrations, token by token."
        case Stage.VOTE:
            rounds = f", in {recipe.rounds} rounds" if recipe.rounds > 1 else ""
            return f"vote for the one of {recipe.drafts} drafts of their label that is most like them{rounds}."
        case Stage.CALIBRATE:
            return "measure the model's habit: which labels it prefers whatever it reads."
        case Stage.CHOOSE:
            read = ways(request.sizes, recipe.weighing)
            return (
                f"choose which of {competing(request)} sets, each read in {read} ways, serves best: to have no "
                "demonstrations is a choice, too."
            )
        case Stage.SCORE:
            alone = recipe.division is Division.ROLES
            remark = "They took part in nothing else" if alone else "They took part in the choice too"
            return f"say how often the model finds their label. {remark}."


def stage_facts(request: RecipeRequest) -> list[Tree]:
    """What the noise leaves to be seen, expected from public numbers alone."""
    shares, facts = request.recipe.shares, []
    if Stage.VOTE in shares:
        votes = [votes_a_draft(request, label) for label in request.labels]
        between = " to ".join(dict.fromkeys((roughly(min(votes)), roughly(max(votes)))))
        remark = f"a draft gets about {between} votes on average"
        facts.append(fact("Noise on a draft's votes", f"± {request.votes.deviation:.2g}", remark))
    if (written := request.written) is not None:
        facts.append(
            fact("Signal-to-noise of a token", f"{written.signal_to_noise:.3g}", "of what is written token by token")
        )
    if Stage.SCORE in shares:
        remark = "sampling and noise together, 19 times of 20"
        facts.append(fact("Private score", f"to within about {100 * score_margin(request):.0f} points", remark))
    return facts
