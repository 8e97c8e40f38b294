"""Forecasts of a session's noise and threshold from public values alone, before it is charged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.special import log_ndtr

from mechanisms.answers.request import AnswerRequest

# The probability that a clear majority of the shards wins in spite of the noise: a closed form of public values.

SHARE = Fraction(7, 10)
"""The share of shards that agree in the scenario."""
_REACH, _POINTS = 9.0, 2001
"""Integration range in standard deviations to either side, and number of points; errors stay below 1e-9."""


@dataclass(frozen=True)
class ClearMajority:
    """The scenario: about 7 of 10 shards vote for one label, and all the others for a second one.

    Attributes:
        leading, other: votes of the two labels; all others have none.
        chance: the probability that the leading label wins with noise.
    """

    leading: int
    other: int
    chance: float


def clear_majority(shards: int, labels: int, noise: float) -> ClearMajority:
    """The scenario for a number of shards, with its probability.

    Args:
        shards: S, the number of votes.
        labels: the number of labels, at least two.
        noise: standard deviation of the Gaussian noise on each label's votes.
    """
    leading = max(shards // 2 + 1, round(SHARE * shards))
    votes = [leading, shards - leading, *[0] * (labels - 2)]
    return ClearMajority(leading, shards - leading, chance_of_first(votes, noise))


def chance_of_first(votes: Sequence[float], noise: float) -> float:
    """Probability that the first entry is the largest after independent Gaussian noise of deviation `noise` on each."""
    at = np.linspace(-_REACH, _REACH, _POINTS)
    margins = (votes[0] - np.asarray(votes[1:], dtype=float)) / noise
    below = np.exp(log_ndtr(at[:, None] + margins).sum(axis=1))
    weights = np.exp(-(at**2) / 2)
    return float((weights * below).sum() / weights.sum())


# The effect of a reservation's noise on answers, and better terms, from public values alone.

GOOD = 0.9
"""The probability with which a clear majority should win."""
_EPSILONS = (0.5, 1, 2, 3, 4, 5, 6, 8, 10)
_SHARDS = (5, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)


def majority(request: AnswerRequest) -> ClearMajority | None:
    """The scenario under a calibrated request; None for open answers."""
    if request.mechanism.open_answers:
        return None
    return clear_majority(request.shards, len(request.labels), request.mechanism.deviation)


def is_good(request: AnswerRequest) -> bool:
    """Whether a clear majority wins often enough under a calibrated request."""
    found = majority(request)
    return found is not None and found.chance >= GOOD


def odds_in_words(request: AnswerRequest, units: int | None = None) -> str:
    """How often a clear majority wins, and better terms if that is seldom; empty for open answers.

    Args:
        request: calibrated.
        units: public number of rows or users; None if it is private.
    """
    if (found := majority(request)) is None:
        return ""
    if not found.other:
        agreed = f"If {'the one group votes' if found.leading == 1 else f'all {found.leading} groups vote'} for a label"
    else:
        agreed = f"If {found.leading} of {request.shards} groups vote for one label and {found.other} for another"
    said = (
        f"{agreed}, the noise lets that label win in {_of_hundred(found.chance)} of 100 questions "
        f"(a guess among {len(request.labels)} labels: {100 / len(request.labels):.0f})."
    )
    return said if found.chance >= GOOD else f"{said} {_help(request, units)}"


def better_terms(request: AnswerRequest, units: int | None = None) -> list[str]:
    """Single changes of a calibrated request with which a clear majority wins often enough."""
    if request.rate is not None:  # calibration would be slow, and the rate depends on the shards
        return []
    return [*_fewer_questions(request), *_larger_epsilon(request), *_more_shards(request, units)]


def _help(request: AnswerRequest, units: int | None) -> str:
    if terms := better_terms(request, units):
        return f"For at least {_of_hundred(GOOD)}: {'; or '.join(terms)}."
    few = f" With {units} {_unit(request)}s there are too few for more groups." if _too_few(request, units) else ""
    return (
        f"No single change of questions, epsilon or groups raises that to {_of_hundred(GOOD)}.{few} Change several, or "
        "write demonstrations instead, which are charged only once."
    )


def _fewer_questions(request: AnswerRequest) -> Iterator[str]:
    few, many = 0, request.queries  # the most that is enough, and the fewest that is too many
    while many - few > 1:
        middle = (few + many) // 2
        if is_good(replace(request, queries=middle).calibrated()):
            few = middle
        else:
            many = middle
    if few:
        yield f"{few} question{'' if few == 1 else 's'} instead of {request.queries}"


def _larger_epsilon(request: AnswerRequest) -> Iterator[str]:
    for epsilon in _EPSILONS:
        larger = replace(request, target=replace(request.target, epsilon=epsilon))
        if epsilon > request.target.epsilon and is_good(larger.calibrated()):
            yield f"epsilon {epsilon:g} instead of {request.target.epsilon:g}"
            return


def _more_shards(request: AnswerRequest, units: int | None) -> Iterator[str]:
    if (shards := _enough_shards(request)) is None or (units is not None and shards > units):
        return
    shown = request.neighbours if units is None else max(1, min(request.neighbours, units // shards))
    examples = f"{shown} example{'' if shown == 1 else 's'}"
    yield (
        f"{shards} groups of {examples} instead of {request.shards} of {request.neighbours}, where about "
        f"{shards * shown} {_unit(request)}s are near a question"
    )


def _enough_shards(request: AnswerRequest) -> int | None:
    """The fewest shards with which a clear majority wins often enough; the noise on a vote stays the same."""
    labels, noise = len(request.labels), request.mechanism.deviation
    more = (shards for shards in _SHARDS if shards > request.shards)
    return next((shards for shards in more if clear_majority(shards, labels, noise).chance >= GOOD), None)


def _too_few(request: AnswerRequest, units: int | None) -> bool:
    needed = _enough_shards(request)
    return units is not None and (needed is None or needed > units)


def _unit(request: AnswerRequest) -> str:
    return "user" if request.by_user else "row"


def _of_hundred(chance: float) -> int:
    """The percentage, rounded down so that it is never overstated."""
    return int(100 * chance + 1e-9)
