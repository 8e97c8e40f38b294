"""What a run will cost and promise, before it starts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mechanisms.accounting import Claim, PrivacyTarget, rounded_up
from mechanisms.runs.forecast import ModelSpeed, predicted_seconds
from mechanisms.runs.request import SynthesisRequest


@dataclass(frozen=True)
class Preview:
    """A calibrated request with its consequences.

    Attributes:
        request: calibrated.
        claim: what it costs.
        signal_to_noise: of one token step.
        seconds: predicted duration, None while the model's speed is unknown.
        guarantee: the promise in one plain sentence.
        warnings: what the curator should know, one line each.
    """

    request: SynthesisRequest
    claim: Claim
    signal_to_noise: float
    seconds: float | None
    guarantee: str
    warnings: tuple[str, ...]

    def timed(self, speed: ModelSpeed) -> Preview:
        """The same with its predicted duration."""
        return replace(self, seconds=predicted_seconds(self.request, speed))


def preview(request: SynthesisRequest, speed: ModelSpeed | None = None) -> Preview:
    """Calibrate a request and say what follows.

    Raises:
        AccountingError: no noise meets the target, or the accountants disagree.
    """
    calibrated = request.calibrated()
    claim = calibrated.claim()
    return Preview(
        request=calibrated,
        claim=claim,
        signal_to_noise=calibrated.mechanism.signal_to_noise(calibrated.plan),
        seconds=predicted_seconds(calibrated, speed) if speed else None,
        guarantee=guarantee(claim, request.by_user),
        warnings=tuple(_warnings(calibrated)),
    )


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


def _warnings(request: SynthesisRequest) -> list[str]:
    warnings = target_warnings(request.target, request.sizes)
    smallest = min(request.sizes.values())
    if request.plan.expected_sample > smallest:
        label = min(request.sizes, key=lambda each: request.sizes[each])
        warnings.append(
            f"'{label}' has {smallest} units, fewer than the {request.plan.expected_sample} that a sample expects: "
            "all of them join each time. A smaller M leaves less noise to add."
        )
    return warnings
