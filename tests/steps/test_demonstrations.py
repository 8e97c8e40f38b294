"""The contract's other half: a whole demonstration costs no more than its event, whatever the mechanism remembers.

`tests/replay` says how the cost is found. `tests/lies` plants cheats, so that it is known to be found.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mechanisms.discovery import parameters
from mechanisms.errors import AccountingError
from mechanisms.noise import SeededRandomness
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import TokenDistributions, mechanism_class, mechanism_names
from tests.replay.contract import replay
from tests.replay.price import paid, unsampled
from tests.replay.tape import Tape, plain
from tests.steps.inputs import neighbours, writing

pytestmark = pytest.mark.slow

TOKENS, CANDIDATES, ROWS = 20, 5, 12
PLANS = [
    SamplingPlan(scheme, rows_per_token=ROWS, tokens=TOKENS, unit_rows=u) for scheme in Scheme for u in (True, False)
]
OPEN = [
    pytest.param(name, plan, id=f"{name}-{plan.scheme.value}-{'unit-rows' if plan.unit_rows else 'subsets'}")
    for name in mechanism_names()
    if mechanism_class(name).not_private is None
    for plan in PLANS
    if mechanism_class(name)().closed(plan) is None
]
SEEDS = range(8)
MOST_VARIANTS = 16
RATE = 0.3
SLACK = 1 + 1e-9


def certain(candidate):
    """Logits of a row that is sure."""
    return np.where(np.arange(CANDIDATES) == candidate, 1000.0, -1000.0)


def worst(plan: SamplingPlan) -> tuple[list[TokenDistributions], list[TokenDistributions]]:
    """A demonstration that one unit moves as far as it can, with it and without.

    The unit is certain of one candidate. The others in turn cannot tell the candidates apart; are certain of another,
    as public text is; or are more certain of it than public text, so that the unit pulls their sum back to that.
    """
    with_unit, without = [], []
    for at in range(plan.tokens):
        favoured, opposed = at % CANDIDATES, (at + 1) % CANDIDATES
        undecided, public = np.zeros(CANDIDATES), np.full(CANDIDATES, -50.0)
        public[[favoured, opposed]] = ([0.0, 0.0], [-50.0, 0.0], [np.log(0.1), np.log(0.9)])[at % 3]
        others = np.tile(undecided if at % 3 == 0 else certain(opposed), (ROWS - 1, 1))
        rows = np.vstack([others, certain(favoured)])
        occupied = np.ones(ROWS, dtype=bool)
        step = TokenDistributions(rows, occupied, public, ROWS, plan.unit_rows)
        with_unit.append(step)
        if plan.unit_rows:
            without.append(replace(step, occupied=np.arange(ROWS) < ROWS - 1))
        else:
            without.append(replace(step, rows=np.vstack([others, certain(opposed)])))
    return with_unit, without


def charged(mechanism, plan, rate):
    [event] = plan.demonstration_events(mechanism.event, rate)
    return unsampled(event)


def told(mechanism, plan):
    """A demonstration as a release."""

    def release(steps, tape):
        for token in writing(mechanism, plan, steps, tape):
            tape.tell(token)

    return release


def shares(mechanism, plan, one, other, seed):
    """What either direction uses of the demonstration's event, by the way that costs least."""
    events = [charged(mechanism, plan, 1.0)]
    if paid((charged(mechanism, plan, RATE),))[2] == 0:  # rho is of what the sample leaves, not of the releases on it
        events.append(charged(mechanism, plan, RATE))
    both = [replay(told(mechanism, plan), *pair, seed=seed) for pair in ((one, other), (other, one))]
    return [each.cost(event).noise for each in both for event in events]


def worst_share(mechanism, plan):
    """Over several runs of the worst demonstration."""
    return max(max(shares(mechanism, plan, *worst(plan), seed)) for seed in SEEDS)


def worst_of_variants(mechanism, plan):
    """Over the mechanism as it is, and with its parameters at both ends of their ranges in many combinations."""
    ends = {each.name: [type(each.default)(end) for end in (each.low, each.high)] for each in parameters(mechanism)}
    combinations = [dict(zip(ends, values, strict=True)) for values in itertools.product(*ends.values())]
    found = [worst_share(mechanism, plan)]
    for values in random.Random(5).sample(combinations, min(MOST_VARIANTS, len(combinations))):
        with contextlib.suppress(AccountingError):  # where no accountant bounds what is left of privacy
            found.append(max(shares(replace(mechanism, **values), plan, *worst(plan), 0)))
    return max(found)


@pytest.mark.parametrize(("name", "plan"), OPEN)
def test_a_demonstration_costs_what_its_event_pays_for_and_not_much_less(name, plan):
    mechanism = mechanism_class(name)().for_plan(plan)
    assert worst_of_variants(mechanism, plan) <= SLACK
    assert worst_share(mechanism, plan) > 0.3 or not mechanism.uses_private_rows


@pytest.mark.parametrize(("name", "plan"), OPEN)
@given(data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_no_neighbours_cost_more_than_the_event(name, plan, data):
    mechanism = mechanism_class(name)().for_plan(plan)
    pairs = data.draw(st.lists(neighbours(plan.unit_rows), min_size=1, max_size=8))
    one, other = ([replace(each, expected_rows=ROWS) for each in side] for side in zip(*pairs, strict=True))
    assert max(shares(mechanism, plan, one, other, data.draw(st.integers(0, 2**32)))) <= SLACK


def recorded(mechanism, plan, steps, seed=1):
    tape = Tape(seed)
    told(mechanism, plan)(steps, tape)
    return tape


def alike(one, other):
    """Whether two demonstrations released the same, from the same draws on the same values."""
    return plain(one.entries) == plain(other.entries)


def remembers_nothing(mechanism, plan):
    """Whether a demonstration is what it is alone, after any other one and beside any other one."""
    steps, others = worst(plan)
    alone = recorded(mechanism, plan, steps)
    for before in (steps, others, steps[::-1]):
        list(writing(mechanism, plan, before, SeededRandomness(2)))
        if not alike(alone, recorded(mechanism, plan, steps)):
            return False
    beside = Tape(1)
    for mine, _ in zip(writing(mechanism, plan, steps, beside), writing(mechanism, plan, others, Tape(3))):  # noqa: B905
        beside.tell(mine)
    return alike(alone, beside)


@pytest.mark.parametrize(("name", "plan"), OPEN)
def test_a_demonstration_remembers_no_other_one(name, plan):
    assert remembers_nothing(mechanism_class(name)().for_plan(plan), plan)
