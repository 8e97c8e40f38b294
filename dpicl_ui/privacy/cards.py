"""The cards of step 2: durations, the stages, the guarantee, the noise and the time."""

from __future__ import annotations

import math
from typing import Any

from dpicl_ui.frame.tree import Tree, el, fact, notice
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.discovery import parameters
from mechanisms.rounding import rounded_down, rounded_up
from mechanisms.runs.advice import fewest_for_roles
from mechanisms.runs.preview import Preview
from mechanisms.runs.recipe import Division, Stage
from mechanisms.runs.recipe_forecast import choice_count, units
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.stage import stage_of
from mechanisms.runs.stages.score import Score
from mechanisms.runs.stages.vote import Vote
from mechanisms.tallies import Weighing

# Durations in words, foreseen and measured.


def duration(seconds: float) -> str:
    """A rough duration in words; minutes are rounded up, since the browser and other work take time from the model."""
    if seconds < 50:
        return f"about {max(5, 5 * round(seconds / 5))} seconds"
    if seconds < 75:
        return "about a minute"
    return f"about {math.ceil(seconds / 60)} minutes" if seconds < 5400 else f"about {seconds / 3600:.1f} hours"


def exactly(seconds: float) -> str:
    """A duration that was measured, in words."""
    whole = max(1, round(seconds))
    if whole < 120:
        return "1 second" if whole == 1 else f"{whole} seconds"
    return f"{whole // 60} minutes {whole % 60} seconds" if whole < 3600 else f"{whole / 3600:.1f} hours"


# A run in stages in words: who is asked for what, and what the answers can tell.

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
_NOTHING_KNOWN, _WEAK = 0.5, 5.0
"""Half an interval that says nothing, and an epsilon that nobody should be led to."""
_MANY = 12
"""Demonstrations in a prompt from which on the labels are what takes the time."""


def roughly(count: float) -> str:
    """A number in two digits: shares of public sizes are expectations."""
    digits = max(0, len(str(int(count))) - 2)
    return f"{round(count / 10**digits) * 10**digits:,}"


def stages_in_words(request: RecipeRequest) -> list[Tree]:
    """The task of each stage and the number of its units, in the order of the run."""
    unit = "user" if request.by_user else "row"
    remark = _ROLES if request.recipe.division is Division.ROLES else _EPSILON
    lines = [el("li", f"{_who(request, stage)} {stage_of(request, stage).task()}") for stage in request.recipe.stages]
    balanced = request.recipe.weighing is Weighing.LABELS
    return [
        el("ol.tasks", *lines),
        el("p.muted", remark.format(unit=unit, fewest=fewest_for_roles(len(request.labels)))),
        *([el("p.muted", _BY_LABELS)] if balanced else []),
    ]


def why_so_long(preview: Preview[RecipeRequest]) -> str:
    """The reason of a long duration, and what shortens it; empty for a short run."""
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
    sets = f"each of {choice_count(request)} sets of {shown}" if all_choose else shown
    told = f"mostly for reading {'all ' if all_choose else ''}rows behind {sets} demonstrations"
    return f"{told}: {' or '.join(shorter)} it is shorter" if shorter else told


def _who(request: RecipeRequest, stage: Stage) -> str:
    plural = "users" if request.by_user else "rows"
    if request.recipe.division is Division.EPSILON:
        return f"All {plural}, for epsilon {rounded_up(request.epsilon(stage), 2)},"
    # A user who has several labels was counted for each of them; measured sizes are upper bounds.
    at_most = " at most" if request.by_user or request.measured else ""
    return f"About {roughly(units(request, stage))} {plural}{at_most}"


def stage_facts(request: RecipeRequest) -> list[Tree]:
    """The expected noise of the stages, from public numbers alone."""
    shares, facts = request.recipe.shares, []
    if Stage.VOTE in shares:
        votes = [Vote(request).votes_a_draft(label) for label in request.labels]
        ends = (f"{each:.2g}" if each < 10 else roughly(each) for each in (min(votes), max(votes)))
        between = " to ".join(dict.fromkeys(ends))
        remark = f"votes that a draft gets on average: {between}"
        facts.append(fact("Noise on a draft's votes", f"± {rounded_up(Vote(request).tally.deviation, 2)}", remark))
    if (written := request.written) is not None:
        facts.append(
            fact(
                "Signal-to-noise of a token",
                rounded_down(written.signal_to_noise, 3),
                "of what is written token by token",
            )
        )
    if Stage.SCORE in shares:
        facts.append(fact("Private score", *expected_score(request)))
    return facts


def expected_score(request: RecipeRequest) -> tuple[str, str]:
    """The expected precision of the private score, and what it takes to improve it by a third; from public sizes."""
    score = Score(request)
    points = max(1, math.ceil(100 * score.margin))
    closer = max(1, round(2 * points / 3))
    remark = "sampling and noise together, 19 times of 20"
    if closer < points and score.margin < _NOTHING_KNOWN:
        epsilon, scoring = score.reaching(closer / 100)
        who = f"{roughly(scoring)} {'users' if request.by_user else 'rows'} that score"
        by_noise = "" if epsilon is None or epsilon > _WEAK else f"epsilon {rounded_up(epsilon, 2)} or "
        now = roughly(units(request, Stage.SCORE))
        remark += f"; to within {closer} points takes {by_noise}{who} instead of {now}"
    return f"to within about {points} points", remark


# What step 2 shows: the guarantee, the noise and the time.

CALIBRATING: list[Tree] = [
    el(
        "div.outcome.busy",
        el("div.card-head", el("h3", "What this run promises")),
        el("p.spinner", "Calibrating the noise with two accountants …", role="status"),
    )
]


def clarity(signal_to_noise: float) -> str:
    """Signal-to-noise of a token in words."""
    if signal_to_noise >= 10:
        return "clear: the noise rarely changes a token that the records agree on"
    if signal_to_noise >= 4:
        return "fair: only tokens that most records agree on stand out"
    return "poor: tokens will be close to random. Raise epsilon or M, or write fewer tokens"


def outcome(preview: Preview[Any]) -> list[Tree]:
    """The consequences of the settings."""
    claim, others, remark = preview.claim, list[Tree](), ""
    if preview.request.stages:
        facts, remark = stage_facts(preview.request), why_so_long(preview)
    else:
        solved, others = calibrated_values(preview.request.mechanism)
        signal = preview.request.signal_to_noise
        facts = [
            *solved,
            fact("Signal-to-noise of a token", rounded_down(signal, 3), clarity(signal)),
            *_kept(preview.request),
        ]
    seconds = duration(preview.seconds) if preview.seconds is not None else "known when the model is loaded"
    return [
        el(
            "div.outcome",
            el("div.card-head", el("h3", "What this run promises"), el("span.tag.public", "Part of the certificate")),
            el("p.guarantee", preview.guarantee),
            *(tree for warning in preview.warnings for tree in notice(warning, "warn")),
            el(
                "dl.facts",
                *facts,
                fact("Time on this machine", seconds, remark),
                fact(
                    "Epsilon by two accountants",
                    f"{rounded_up(claim.epsilon, 4)} ({claim.accountant})",
                    f"checked by {claim.check_accountant}: {rounded_up(claim.check, 4)}",
                ),
                *_measured(preview.request.measured),
            ),
            el("details", el("summary", "The mechanism's other values"), el("dl.facts", *others)) if others else None,
        )
    ]


def _kept(request: SynthesisRequest) -> list[Tree]:
    if request.kept is None:
        return []
    return [fact("Demonstrations for each label", f"{request.plan.shots} paid for, {request.kept} kept")]


def _measured(measured: MeasuredSizes | None) -> list[Tree]:
    if measured is None:
        return []
    sizes = ", ".join(f"{label}: {size:,}" for label, size in measured.sizes.items())
    remark = f"Upper bounds with noise. Counting has cost {measured.epsilon:g} of the epsilon above."
    return [fact("Label sizes as measured", sizes, remark)]


def refused(reason: str) -> list[Tree]:
    """The card for settings that allow no run."""
    return [el("div.outcome", el("div.card-head", el("h3", "No run with these settings")), *notice(reason))]


def calibrated_values(mechanism: Any) -> tuple[list[Tree], list[Tree]]:
    """A mechanism's parameters as calibrated, read-only: the one that was solved for, and the others."""
    solved, others = list[Tree](), list[Tree]()
    for each in parameters(mechanism):
        shown = fact(each.label, f"{getattr(mechanism, each.name):.4g}", each.help)
        (solved if each.name == mechanism.calibrated else others).append(shown)
    return solved, others
