"""What a reservation's noise does to an answer, and which terms do better, before it is paid: public values alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mechanisms.answers.request import AnswerRequest
from mechanisms.queries.clear_majority import ClearMajority, clear_majority

GOOD = 0.9
"""How often a clear majority should win."""
_EPSILONS = (0.5, 1, 2, 3, 4, 5, 6, 8, 10)
_SHARDS = (5, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)


def majority(request: AnswerRequest) -> ClearMajority | None:
    """How often a clear majority of the shards wins; None where answers are words.

    Args:
        request: calibrated.
    """
    if request.mechanism.open_answers:
        return None
    return clear_majority(request.shards, len(request.labels), request.mechanism.deviation)


def is_good(request: AnswerRequest) -> bool:
    """Whether a clear majority wins often enough; `request` is calibrated."""
    found = majority(request)
    return found is not None and found.chance >= GOOD


def odds_in_words(request: AnswerRequest, units: int | None = None) -> str:
    """How often a clear majority wins, and where that is seldom, what would help; empty where answers are words.

    Args:
        request: calibrated.
        units: public number of rows or users; None where it is private.
    """
    if (found := majority(request)) is None:
        return ""
    if not found.other:
        agreed = f"Where {'the one group says' if found.leading == 1 else f'all {found.leading} groups say'} one label"
    else:
        agreed = f"Where {found.leading} of {request.shards} groups say one label and {found.other} another"
    said = (
        f"{agreed}, the noise lets that label win in {_of_hundred(found.chance)} of 100 questions "
        f"(a guess among {len(request.labels)} labels: {100 / len(request.labels):.0f})."
    )
    return said if found.chance >= GOOD else f"{said} {_help(request, units)}"


def better_terms(request: AnswerRequest, units: int | None = None) -> list[str]:
    """Single changes of a calibrated request with which a clear majority wins often enough."""
    if request.rate is not None:  # each calibration takes the accountants, and the rate goes with the shards
        return []
    return [*_fewer_questions(request), *_larger_epsilon(request), *_more_shards(request, units)]


def _help(request: AnswerRequest, units: int | None) -> str:
    if terms := better_terms(request, units):
        return f"For at least {_of_hundred(GOOD)}: {'; or '.join(terms)}."
    few = f" With {units} {_unit(request)}s there are too few for more groups." if _too_few(request, units) else ""
    return (
        f"No single change of questions, epsilon or groups makes that {_of_hundred(GOOD)}.{few} Change several, or "
        "write demonstrations instead, which are paid for once."
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
    """The noise on a vote is the same however many there are."""
    labels, noise = len(request.labels), request.mechanism.deviation
    more = (shards for shards in _SHARDS if shards > request.shards)
    return next((shards for shards in more if clear_majority(shards, labels, noise).chance >= GOOD), None)


def _too_few(request: AnswerRequest, units: int | None) -> bool:
    needed = _enough_shards(request)
    return units is not None and (needed is None or needed > units)


def _unit(request: AnswerRequest) -> str:
    return "user" if request.by_user else "row"


def _of_hundred(chance: float) -> int:
    """Rounded down, so that nothing is promised that does not hold."""
    return int(100 * chance + 1e-9)
