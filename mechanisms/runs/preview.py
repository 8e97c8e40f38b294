"""A run's cost, guarantee, time and warnings, before it starts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

from mechanisms.accounting import Claim, PrivacyTarget
from mechanisms.rounding import rounded_up
from mechanisms.runs.advice import MOST_CORRECTED_LABELS
from mechanisms.runs.forecast import ModelSpeed
from mechanisms.runs.recipe_forecast import predicted_seconds
from mechanisms.runs.recipe_request import RecipeRequest, RunRequest, has_stages
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.stage import stage_of

Request = TypeVar("Request", bound=RunRequest)

_MANY_LABELS = (
    "With {} labels a small model answers many texts wrongly, with or without demonstrations. Class prototypes need no "
    "language model: compare them in step 4 of the app, or with `score --prototypes-epsilon`."
)
"""Measured with 77 labels, for which prototypes did better: research/docs/worth.md."""


@dataclass(frozen=True)
class Preview(Generic[Request]):
    """A calibrated request with its claim, time, guarantee and warnings.

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
    """Calibrate a request and preview its run.

    Raises:
        AccountingError: no noise meets the target, or the accountants disagree.
    """
    calibrated = cast("Request", request.calibrated())  # of the same kind
    claim = calibrated.claim()
    more = _of_stages(calibrated) if has_stages(calibrated) else _of_tokens(calibrated)
    warnings = (*target_warnings(calibrated.target, calibrated.sizes), *more)
    return Preview(calibrated, claim, None, guarantee(claim, request.by_user), warnings).timed(speed)


def guarantee(claim: Claim, by_user: bool) -> str:
    """The guarantee of a claim in one sentence."""
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
    """Warnings about a weak target, for public label sizes, one line each."""
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


def _of_stages(request: RecipeRequest) -> Iterator[str]:
    if len(request.labels) > MOST_CORRECTED_LABELS:
        yield _MANY_LABELS.format(len(request.labels))
    for stage in request.stages:
        yield from stage_of(request, stage).warnings()
