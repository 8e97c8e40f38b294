"""What a recipe's run will cost, promise and be able to tell, before it starts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mechanisms import confidence
from mechanisms.accounting import Claim, PrivacyTarget
from mechanisms.runs.advice import CLEARANCE, EXCESS
from mechanisms.runs.forecast import ModelSpeed
from mechanisms.runs.preview import guarantee, target_warnings
from mechanisms.runs.recipe import Stage
from mechanisms.runs.recipe_forecast import ARMS, predicted_seconds, units
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.tallies.weighing import masses, weights

_WIDE = 0.1
"""Half an interval that tells too little, as `mechanisms.tallies.Estimate.wide` has it."""


@dataclass(frozen=True)
class RecipePreview:
    """A request that can be run, with its consequences.

    Attributes:
        request: what the stage "write" needs is calibrated; all other noise follows from epsilon alone.
        claim: what it costs.
        seconds: predicted duration, None while the model's speed is unknown.
        guarantee: the promise in one plain sentence.
        warnings: what the curator should know, one line each.
    """

    request: RecipeRequest
    claim: Claim
    seconds: float | None
    guarantee: str
    warnings: tuple[str, ...]

    def timed(self, speed: ModelSpeed) -> RecipePreview:
        """The same with its predicted duration."""
        return replace(self, seconds=predicted_seconds(self.request, speed))


def preview_recipe(request: RecipeRequest, speed: ModelSpeed | None = None) -> RecipePreview:
    """Make a request ready to run, and say what follows.

    Raises:
        AccountingError: no noise meets the target, or the accountants disagree.
    """
    ready = calibrated(request)
    claim = ready.claim()
    return RecipePreview(
        request=ready,
        claim=claim,
        seconds=predicted_seconds(ready, speed) if speed else None,
        guarantee=guarantee(claim, request.by_user),
        warnings=(*target_warnings(ready.target, ready.sizes), *_warnings(ready)),
    )


def calibrated(request: RecipeRequest) -> RecipeRequest:
    """The same request, its writing apportioned, and with the least noise that its epsilon allows."""
    ready = apportioned(request)
    return ready if ready.written is None else replace(ready, written=ready.written.calibrated())


def apportioned(request: RecipeRequest) -> RecipeRequest:
    """The same request, its writing on its share of the units or of epsilon."""
    if (written := request.written) is None:
        return request
    # What counting has cost is part of the target: calibration takes it off again.
    part = PrivacyTarget(request.spent + request.epsilon(Stage.WRITE), request.target.delta)
    plan = replace(written.plan, share=request.role(Stage.WRITE))
    return replace(request, written=replace(written, target=part, plan=plan))


def votes_a_draft(request: RecipeRequest, label: str) -> float:
    """Votes that a draft of a label gets on average in one round."""
    return request.role(Stage.VOTE) * request.sizes[label] / request.recipe.drafts


def score_margin(request: RecipeRequest) -> float:
    """Half the interval of a private accuracy near 1/2, expected from the public sizes; at most 1/2."""
    counted, each = (of(request.sizes, request.recipe.weighing) for of in (masses, weights))
    mass = request.role(Stage.SCORE) * sum(counted.values())
    squares = request.role(Stage.SCORE) * sum(counted[label] * each[label] for label in counted)
    noise = 2 ** (ARMS - 1) * request.score.deviation**2 / 2
    return min(0.5, confidence.standard_errors() * math.sqrt(squares / 4 + noise) / mass)


def _warnings(request: RecipeRequest) -> Iterator[str]:
    shares, who = request.recipe.shares, "users" if request.by_user else "rows"
    if Stage.VOTE in shares:
        label = min(request.sizes, key=lambda each: request.sizes[each])
        votes, noise = votes_a_draft(request, label), request.votes.deviation
        if EXCESS * votes < CLEARANCE * noise:
            yield (
                f"A draft of '{label}' gets about {votes:.2g} votes, and the noise on them is {noise:.2g}: its winners "
                f"may be chance. Fewer drafts, more {who} or a larger epsilon help."
            )
    if Stage.CALIBRATE in shares:
        rows = units(request, Stage.CALIBRATE) / len(request.labels)
        noise = request.refinements[0].deviation
        if rows < CLEARANCE * noise:
            yield (
                f"About {rows:.2g} {who} a label calibrate, and the noise on them is {noise:.2g}: its "
                f"correction may be chance, and worse than none. More {who} or a larger epsilon for this stage help."
            )
    if Stage.SCORE in shares and score_margin(request) > _WIDE:
        yield f"So few {who} score that the private accuracy will say little: its interval is wider than 20 points."
