"""What whole runs cost, written a second time from the proofs in docs/, in lines such as "1 x gaussian 3 at 0.25".

Nothing here calls what the program computes its prices with: only what somebody asked for is read of a plan. So an
error in the program's events is found wherever it does not stand here as well. Who adds a mechanism or a stage adds its
line to `STEPS` or `STAGES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from mechanisms import privacy_events as events
from mechanisms.privacy_events import PrivacyEvent

Price = dict[str, float]
"""How often each release happens to a unit, and beside it the probability that something fails."""
Lists = dict[str, Price]
"""A price for each event list."""
FAILURE = "failure"


def compare(found: Iterable[tuple[str, Iterable[PrivacyEvent]]], expected: Lists, what: str) -> None:
    """Event lists say what a price list says."""
    told = {name: told_by(each) for name, each in found}
    for name in {**told, **expected}:
        one, other = told.get(name), expected.get(name)
        assert one is not None, f"{what}: there is no list '{name}'"
        assert other is not None, f"{what}: a list '{name}' is not on the price list"
        assert one == pytest.approx(other, rel=1e-6, abs=0), f"{what}: '{name}' costs {one} and, by the list, {other}"


# What events say, as lines: no accountant has a part in it.


def told_by(of: Iterable[PrivacyEvent]) -> Price:
    """The lines of events that compose."""
    return total(_lines(each) for each in of)


def _lines(event: PrivacyEvent) -> Price:
    match event:
        case events.Gaussian(noise):
            return {f"gaussian {noise:.8g}": 1}
        case events.Laplace(scale):
            return laplace(1 / scale)
        case events.Pure(epsilon, count):
            return pure(epsilon, count)
        case events.ZCDP(rho):
            return {"zcdp": rho}
        case events.Approximate(delta):
            return {FAILURE: delta}
        case events.Repeat(count, of):
            return times(count, _lines(of))
        case events.SequentialComposition(of):
            return told_by(of)
        case events.Poisson(rate, of):
            return on_a_sample(rate, _lines(of))


def total(prices: Iterable[Price]) -> Price:
    """What prices add up to."""
    found: Price = {}
    for price in prices:
        for line, count in price.items():
            found[line] = found.get(line, 0) + count
    return found


def times(count: float, price: Price) -> Price:
    return {line: count * each for line, each in price.items()}


def on_a_sample(rate: float, price: Price) -> Price:
    """One sample for all of it: a line that is not that of the parts, each on a sample of its own."""
    return price if rate == 1 else {" and ".join(f"{n:g} x {line}" for line, n in price.items()) + f" at {rate:.8g}": 1}


def pure(epsilon: float, count: float = 1) -> Price:
    return {f"pure {epsilon:.8g}": count}


def laplace(epsilon: float) -> Price:
    return {f"laplace of epsilon {epsilon:.8g}": 1}


# Token steps: what T of them cost on one sample that each unit joins at a rate (docs/mechanisms.md).


def _gaussian(noise: float) -> Callable[[int, float], Price]:
    return lambda steps, rate: on_a_sample(rate, {f"gaussian {noise / math.sqrt(steps):.8g}": 1})


def _softmax(eta: float) -> Callable[[int, float], Price]:
    def price(steps: int, rate: float) -> Price:
        if rate == 1 or (steps > 1 and rate >= 0.5):
            return {"zcdp": steps * eta**2 / 8}
        if steps == 1:
            return {"zcdp": math.log(1 + rate * (math.exp(eta) - 1)) ** 2 / 8}
        return on_a_sample(rate, pure(eta, steps))

    return price


def _adadpsyn(used: Any, batch: int) -> Callable[[int, float], Price]:
    counts = 2 * math.ceil(math.log2(math.sqrt(2) / (2 * used.theta)))
    means, covered = used.refinements + 1, used.refinements
    return _gaussian((counts / used.sigma0**2 + means / used.sigma1**2 + covered / used.sigma2**2) ** -0.5)


STEPS: Mapping[str, Callable[[Any, int], Callable[[int, float], Price]]] = {
    "gaussian": lambda used, batch: _gaussian(used.noise_multiplier),
    "adadpsyn": _adadpsyn,
    "noisy-max": lambda used, batch: lambda steps, rate: on_a_sample(rate, pure(used.step_epsilon, steps)),
    "blended-logits": lambda used, batch: _softmax(used.clip / (batch * used.temperature)),
    "difference-clipping": lambda used, batch: _softmax(2 * used.clip / (batch * used.temperature)),
    "svt-public": lambda used, batch: (
        lambda steps, rate: on_a_sample(rate, pure(used.token_epsilon / 2, 2 * min(used.private_tokens, steps)))
    ),
}
"""By the name of the mechanism, from its parameters and M."""


def steps_of(mechanism: Any, batch: int) -> Callable[[int, float], Price]:
    assert mechanism.name in STEPS, f"write what '{mechanism.name}' costs into STEPS, from its proof alone"
    return STEPS[mechanism.name](mechanism, batch)


# Who joins, and what it costs that more may join than the batch has rows (docs/accounting.md).


def rate_of(plan: Any, size: int, share: float) -> float:
    """The rate at which a unit joins a sample, if its role lets it."""
    return min(1.0, plan.spec.subsets * (plan.spec.per_subset or 1) / (share * size))


def seats(plan: Any, size: int, share: float) -> tuple[int, int, float]:
    """U, the most units that may have the role; C, the rows of a batch; and the probability that either is too few."""
    spec = plan.spec
    allowed, role, most = spec.delta / 1000, 0.0, size
    if share < 1:
        beyond = binom.sf(np.arange(size + 1), size, share)
        upper = int(np.flatnonzero(beyond <= allowed / 2)[0])
        role, most = float(beyond[upper]), min(size, upper + 1)
    draws = spec.written * (spec.tokens if spec.scheme == "per-token" else 1)
    joins = rate_of(plan, size, share)
    if joins == 1:
        return most, most + 1, role
    full = draws * binom.sf(np.arange(most + 1) - 1, most, joins)
    rows = int(np.flatnonzero(np.append(full, 0.0) <= allowed - role)[0])
    return most, rows, role + float(np.append(full, 0.0)[rows])


def written(plan: Any, share: float) -> Lists:
    """Token by token, by units that are a share of all."""
    spec, step = plan.spec, steps_of(plan.mechanism, plan.spec.subsets)
    lists: Lists = {}
    for label in plan.labels:
        size = plan.sizes[label]
        failed = seats(plan, size, share)[2] if spec.per_subset is None else 0.0
        overflow = {FAILURE: failed} if failed else {}
        rate = rate_of(plan, size, share)
        drawn = times(spec.tokens, step(1, rate)) if spec.scheme == "per-token" else step(spec.tokens, rate)
        lists[label] = total([times(spec.written, drawn), overflow])
    if _by_user(plan):  # a user may have rows of every label
        lists = {"all": total(lists.values())}
    missed = {FAILURE: plan.measured.failure} if plan.measured else {}
    return {name: total([price, missed]) for name, price in lists.items()}


def _by_user(plan: Any) -> bool:
    return bool(plan.unit != "record")


# Stages: what each costs a unit that takes part, at the epsilon that it may cost (docs/tallies.md).


def _of_whole_numbers(epsilon: float, whole: bool) -> Price:
    return pure(epsilon) if whole else laplace(epsilon)


def _of_embeddings(noise: float, epsilon: float, delta: float) -> Price:
    """One Gaussian release of vectors of length one at most, whose noise costs no more than epsilon by its exact curve
    (Balle and Wang 2018) and is at most a fiftieth above the least."""

    def spent(noise: float) -> float:
        shift, tilt = 1 / (2 * noise), epsilon * noise
        return float(norm.cdf(shift - tilt) - math.exp(epsilon) * norm.cdf(-shift - tilt))

    assert spent(noise) <= delta < spent(noise / 1.02), f"the words' noise of {noise} is not that of epsilon {epsilon}"
    return {f"gaussian {noise:.8g}": 1}


STAGES: Mapping[str, Callable[[Any, float], Price]] = {
    "openings": lambda plan, epsilon: _of_whole_numbers(epsilon, not _by_user(plan)),
    "words": lambda plan, epsilon: _of_embeddings(
        plan.stages["words"].tally.noise_multiplier, epsilon, plan.spec.delta
    ),
    "vote": lambda plan, epsilon: _of_whole_numbers(epsilon, not _by_user(plan)),
    "calibrate": lambda plan, epsilon: times(3, laplace(epsilon / 3)),
    "score": lambda plan, epsilon: _of_whole_numbers(epsilon, not _by_user(plan) and plan.spec.weighing == "rows"),
}
"""But for the stage that writes."""


def of_stage(plan: Any, stage: str) -> Lists:
    """What a stage costs, by event list."""
    by_roles, share = plan.spec.split == "roles", plan.spec.shares[stage]
    if stage == "write":
        lists = written(plan, share if by_roles else 1.0)
        return {f"write {name}".removesuffix(" all"): each for name, each in lists.items()} if by_roles else lists
    assert stage in STAGES, f"write what the stage '{stage}' costs into STAGES, from its proof alone"
    left = plan.spec.epsilon - (plan.measured.epsilon if plan.measured else 0.0)
    price = STAGES[stage](plan, left if by_roles else left * share)
    if by_roles:
        names = [f"vote {label}" for label in plan.labels] if stage == "vote" and not _by_user(plan) else [stage]
    else:
        names = ["all"] if _by_user(plan) else [*plan.labels]
    return dict.fromkeys(names, price)


# Whole runs.


def of_run(plan: Any) -> Lists:
    """What a run costs, by event list; without an earlier measurement of sizes."""
    each = [of_stage(plan, stage) for stage in plan.spec.shares]
    names = dict.fromkeys(name for lists in each for name in lists)
    return {name: total(lists[name] for lists in each if name in lists) for name in names}


def with_sizes(plan: Any) -> Lists:
    """The same, as a certificate says it: sizes that were measured have cost everybody."""
    counted = pure(plan.measured.epsilon) if plan.measured else {}
    return {name: total([counted, price]) for name, price in of_run(plan).items()}


def of_sizes(labels: Iterable[str], by_user: bool, epsilon: float, delta: float) -> Lists:
    """The measurement of sizes itself."""
    price = total([pure(epsilon), {FAILURE: delta / 1000}])
    return {"all": price} if by_user else dict.fromkeys(labels, price)


def of_score(epsilon: float, by_user: bool, weighed: bool, prototypes: float | None) -> Lists:
    """The score of a set that was made before; `prototypes` is the noise multiplier of theirs."""
    scorers = {"score": _of_whole_numbers(epsilon, not by_user and not weighed)}
    return scorers | ({"prototypes": {f"gaussian {prototypes:.8g}": 1}} if prototypes else {})


def clipped(plan: Any) -> Iterator[str]:
    """What of a run is at a bound, so that an error beyond it would not show: a rate, a role's size, a batch's rows."""
    if "write" not in plan.spec.shares:
        return
    share = plan.spec.shares["write"] if plan.spec.split == "roles" else 1.0
    for label, size in plan.sizes.items():
        most, rows, _ = seats(plan, size, share)
        if rate_of(plan, size, share) >= 1:
            yield f"every unit of '{label}' joins"
        if share < 1 and most >= size:
            yield f"every unit of '{label}' may have the role"
        if plan.spec.per_subset is None and rows > most:
            yield f"the batch has room for every unit of '{label}'"
