"""Token steps for tests: hostile rows, neighbours, and a source of randomness that adds nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from mechanisms.noise import Randomness
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import TokenDistributions, TokenMechanism, TokenRelease
from mechanisms.steps.mechanism import Norm

CANDIDATES = 5
FALSE_ALARM = 1e-9
"""Of a test on draws from the operating system's randomness, which no seed repeats: least p-value that passes."""
HOSTILE = [0.0, 1.0, -3.0, 700.0, -700.0, 1e308, -1e308, np.inf, -np.inf, np.nan]

rows = st.lists(st.one_of(st.sampled_from(HOSTILE), st.floats(-30, 30)), min_size=CANDIDATES, max_size=CANDIDATES).map(
    np.array
) | st.integers(0, CANDIDATES - 1).map(lambda i: 1e4 * np.eye(CANDIDATES)[i])
public_rows = st.lists(st.floats(-20, 20), min_size=CANDIDATES, max_size=CANDIDATES).map(np.array)


class Noiseless:
    """Randomness in the limit of no noise."""

    private = False

    def gaussian(self, values, scale):
        return values

    def exponential_argmax(self, values, scale):
        return int(np.argmax(values))

    gumbel_argmax, laplace = exponential_argmax, gaussian

    def uniform(self, count):
        return np.full(count, 0.5)

    def permutation(self, size):
        return np.arange(size)


def a_step(logits, public=None, unit_rows=True, occupied=None, expected=None) -> TokenDistributions:
    logits = np.asarray(logits, dtype=float)
    public = np.zeros(logits.shape[1]) if public is None else np.asarray(public, dtype=float)
    occupied = np.ones(len(logits), dtype=bool) if occupied is None else np.asarray(occupied)
    return TokenDistributions(logits, occupied, public, expected or len(logits), unit_rows, base=public[::-1].copy())


def distance(mechanism: TokenMechanism, one: TokenDistributions, other: TokenDistributions) -> float:
    """Between their aggregates, in lattice points, as the mechanism's proof measures it."""
    apart = (mechanism.aggregate(one) - mechanism.aggregate(other)).astype(np.float64)
    norm = mechanism.sensitivity(one.unit_rows).norm
    return float(np.ptp(apart) if norm is Norm.RANGE else np.linalg.norm(apart, 1 if norm is Norm.L1 else 2))


def first_release(mechanism: TokenMechanism, step: TokenDistributions, randomness: Randomness) -> TokenRelease:
    """The first token of a demonstration."""
    plan = SamplingPlan(rows_per_token=step.expected_rows, unit_rows=step.unit_rows)
    return mechanism.begin(plan, randomness)(step)


def writing(
    mechanism: TokenMechanism, plan: SamplingPlan, steps: Iterable[TokenDistributions], randomness: Randomness
) -> Iterator[TokenRelease]:
    """One demonstration, token by token."""
    releaser = mechanism.begin(plan, randomness)
    for step in steps:
        yield releaser(step)


@st.composite
def neighbours(draw, unit_rows: bool):
    """Two steps that one unit tells apart: a row's presence, or with subsets what is in it."""
    logits = np.stack(draw(st.lists(rows, min_size=1, max_size=6)))
    public, place = draw(public_rows), draw(st.integers(0, len(logits) - 1))
    occupied = np.array(draw(st.lists(st.booleans(), min_size=len(logits), max_size=len(logits))))
    if not unit_rows:
        one = a_step(logits, public, unit_rows, expected=len(logits))
        other = logits.copy()
        other[place] = draw(rows)
        return one, replace(one, rows=other)
    occupied[place] = True
    one = a_step(logits, public, unit_rows, occupied, expected=draw(st.integers(1, 8)))
    emptied, left = occupied.copy(), logits.copy()
    emptied[place], left[place] = False, draw(rows)  # the model still answers for the slot, from an empty prompt
    return one, replace(one, rows=left, occupied=emptied)
