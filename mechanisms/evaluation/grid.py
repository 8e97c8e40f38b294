"""A set with fewer shots and in other orders: the cells of a grid, each read on all test rows under one prompt.

Everything random here is public. Demonstrations are released before, so that which of them are read, and in which
order, follows from a public seed and protects nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.errors import UsageError
from mechanisms.evaluation.answers import LocalReader
from mechanisms.evaluation.evaluate import Accuracy, truth_of
from mechanisms.evaluation.reader import Arm
from mechanisms.inference import LanguageModel
from mechanisms.records import Demonstration, PromptTemplate, Record

WHOLE = "all"
OWN_ORDER = 0


@dataclass(frozen=True)
class Cell:
    """One prompt.

    Attributes:
        arm: what is read; it has a measured correction only where that was measured under this very prompt.
        shots: demonstrations a label, or "all".
        order: 0 is the set's own order, another number the public permutation of that number.
    """

    arm: Arm
    shots: str
    order: int

    @property
    def key(self) -> tuple[str, str, int]:
        """What a cell is known by in a table."""
        return self.arm.name, self.shots, self.order


def most_shots(arms: Iterable[Arm]) -> int:
    """The most demonstrations a label that every arm with demonstrations has; 0 where there is none."""
    return min((_fewest(arm) for arm in arms if arm.demonstrations), default=0)


def _fewest(arm: Arm) -> int:
    return min(Counter(each.label for each in arm.demonstrations).values())


def cells_of(arms: Sequence[Arm], shots: Sequence[int] = (), orders: int = 0, seed: int = 0) -> tuple[Cell, ...]:
    """The grid: zero-shot once, every other arm with each number of shots in its own order and in random ones.

    Of one order the first demonstrations of each label are read, so that fewer shots are a part of more.

    Args:
        arms: in the order in which they are read.
        shots: demonstrations a label; what an arm does not have of every label is left out; none: all there are.
        orders: random orders, beside the own one.
        seed: public: nothing private is drawn.

    Raises:
        UsageError: a number is out of range.
    """
    if any(each < 1 for each in shots) or orders < 0 or seed < 0:
        raise UsageError("--shots must be at least 1, --orders and --seed at least 0.")
    return tuple(cell for arm in arms for cell in _cells(arm, shots, orders, seed))


def _cells(arm: Arm, shots: Sequence[int], orders: int, seed: int) -> Iterable[Cell]:
    if not arm.demonstrations:
        yield Cell(arm, "0", OWN_ORDER)
        return
    parts = {str(each): each for each in dict.fromkeys(shots) if each <= _fewest(arm)}
    for name, most in parts.items() if shots else [(WHOLE, len(arm.demonstrations))]:
        for order in range(orders + 1):
            shown = first_of_each(_ordered(arm.demonstrations, seed, order), most)
            # A correction is measured under one prompt: it says nothing of a part of it, nor of another order.
            same = shown == tuple(arm.demonstrations)
            yield Cell(replace(arm, demonstrations=shown, prior=arm.prior if same else None), name, order)


def _ordered(demonstrations: Sequence[Demonstration], seed: int, order: int) -> list[Demonstration]:
    if order == OWN_ORDER:
        return list(demonstrations)
    return [demonstrations[i] for i in np.random.default_rng([seed, order]).permutation(len(demonstrations))]


def first_of_each(demonstrations: Sequence[Demonstration], most: int) -> tuple[Demonstration, ...]:
    """The first so many of each label, in their order."""
    seen: Counter[str] = Counter()
    kept = []
    for each in demonstrations:
        seen[each.label] += 1
        if seen[each.label] <= most:
            kept.append(each)
    return tuple(kept)


def read_cell(
    model: LanguageModel, template: PromptTemplate, labels: Sequence[str], cell: Cell, known: Sequence[Record]
) -> Generator[int, None, dict[str, Accuracy]]:
    """The accuracy of a cell in every reading; tells how many rows are done.

    Args:
        known: test rows that have one of the labels.
    """
    found = yield from LocalReader(model).answers(
        cell.arm.template or template, labels, cell.arm, [record.text for record in known]
    )
    truth = truth_of(labels, known)
    return {reading: Accuracy(int((each == truth).sum()), len(truth)) for reading, each in found.items()}
