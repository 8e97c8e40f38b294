"""Where sampled units sit in the model's batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.noise import Integers, Randomness


@dataclass(frozen=True)
class Seating:
    """Which sampled units sit in which row of the batch.

    `rows[i]` holds the positions of the units in row i; `overflow` says that more units joined than there are rows
    (unit rows only), an event whose probability is part of delta: the caller then takes the public step.
    """

    rows: tuple[tuple[int, ...], ...]
    overflow: bool = False


def seat_in_slots(sampled: Integers, capacity: int, randomness: Randomness) -> Seating:
    """Unit rows: every sampled unit takes a row of its own, at a uniformly random one of `capacity` places."""
    if len(sampled) > capacity:
        return Seating(rows=((),) * capacity, overflow=True)
    rows: list[tuple[int, ...]] = [()] * capacity
    for unit, slot in zip(sampled, randomness.permutation(capacity), strict=False):
        rows[slot] = (int(unit),)
    return Seating(rows=tuple(rows))


def seat_in_subsets(sampled: Integers, subsets: int, randomness: Randomness) -> Seating:
    """Subsets: every sampled unit goes to one of exactly `subsets` rows, independently and uniformly.

    The units of a row stand in a random order, so that what the row's public length cuts off is random too.
    """
    rows: list[list[int]] = [[] for _ in range(subsets)]
    choices = np.minimum((randomness.uniform(len(sampled)) * subsets).astype(np.int64), subsets - 1)
    for place in randomness.permutation(len(sampled)):
        rows[choices[place]].append(int(sampled[place]))
    return Seating(rows=tuple(tuple(row) for row in rows))
