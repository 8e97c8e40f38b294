"""What a run will cost, promise and be able to tell, before it starts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

from mechanisms import confidence
from mechanisms.accounting import Claim, PrivacyTarget, rounded_up
from mechanisms.runs.advice import CLEARANCE, EXCESS
from mechanisms.runs.forecast import ModelSpeed
from mechanisms.runs.recipe import Stage
from mechanisms.runs.recipe_forecast import ARMS, predicted_seconds, units
from mechanisms.runs.recipe_request import RecipeRequest, RunRequest
from mechanisms.runs.request import SynthesisRequest
from mechanisms.tallies import masses, weights

_WIDE = 0.1
"""Half an interval that tells too little, as `mechanisms.tallies.Estimate.wide` has it."""


Request = TypeVar("Request", bound=RunRequest)


@dataclass(frozen=True)
class Preview(Generic[Request]):
    """A calibrated request with its consequences.

    Attributes:
        request: calibrated.
        claim: what it costs.
        seconds: predicted duration, None while the model's speed is unknown.
        guarantee: the promise in one plain sentence.
        warnings: what the curator should know, one line each.
    """

    request: Request
    claim: Claim
    seconds: float | None
    guarantee: str
    warnings: tuple[str, ...]

    def timed(self, speed: ModelSpeed | None) -> Preview[Request]:
        """The same with the duration that a model's speed predicts; without one where no speed is known."""
        return replace(self, seconds=predicted_seconds(self.request, speed) if speed else None)


def preview(request: Request, speed: ModelSpeed | None = None) -> Preview[Request]:
    """Calibrate a request and say what follows.

    Raises:
        AccountingError: no noise meets the target, or the accountants disagree.
    """
    calibrated = cast("Request", request.calibrated())  # of the same kind
    claim = calibrated.claim()
    more = _of_stages(calibrated) if isinstance(calibrated, RecipeRequest) else _of_tokens(calibrated)
    warnings = (*target_warnings(calibrated.target, calibrated.sizes), *more)
    return Preview(calibrated, claim, None, guarantee(claim, request.by_user), warnings).timed(speed)


def guarantee(claim: Claim, by_user: bool) -> str:
    """The promise of a claim in one plain sentence."""
    if math.isinf(claim.epsilon):
        return "No guarantee: what is written shows the private file's own text. It is for your screen only."
    whose = "all rows of any one user" if by_user else "any one row"
    if claim.epsilon == 0:
        return "The private file is not looked at: nothing about it can show."
    factor = math.exp(claim.epsilon)
    times = f"{math.ceil(factor):,}" if 100 <= factor < 1e6 else rounded_up(factor, 3)
    return (
        f"Whatever an attacker knows, adding or removing {whose} changes the probability of any released result by at "
        f"most a factor of {times} (epsilon {rounded_up(claim.epsilon, 4)}), apart from a failure "
        f"probability of {rounded_up(claim.delta, 2)} (delta)."
    )


def suggested_delta(size: int) -> float:
    """A delta well under 1 / n for a public size n: the power of ten at most 1 / (10 n), and at most 1e-5."""
    return min(1e-5, 10.0 ** -math.ceil(math.log10(10 * size)))


def target_warnings(target: PrivacyTarget, sizes: Mapping[str, int]) -> list[str]:
    """What is weak about a target for a data set of public label sizes, one line each."""
    warnings = []
    if target.delta > 1 / sum(sizes.values()):
        warnings.append("Delta is larger than 1 / n: it allows one row to be published outright. Choose a smaller one.")
    if target.epsilon >= 5:
        warnings.append(f"Epsilon {target.epsilon:g} is a weak guarantee: 5 and more is for tests.")
    return warnings


def _of_tokens(request: SynthesisRequest) -> Iterator[str]:
    smallest = min(request.sizes.values())
    if request.plan.expected_sample > smallest:
        label = min(request.sizes, key=lambda each: request.sizes[each])
        yield (
            f"'{label}' has {smallest} units, fewer than the {request.plan.expected_sample} that a sample expects: "
            "all of them join each time. A smaller M leaves less noise to add."
        )


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


def _of_stages(request: RecipeRequest) -> Iterator[str]:
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
