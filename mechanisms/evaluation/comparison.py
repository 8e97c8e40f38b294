"""Two sets on the same test rows: McNemar's exact test (McNemar 1947)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE, Accuracy, known_rows, truth_of
from mechanisms.evaluation.reader import CONTEXTUAL, NO_ANSWER, PRIOR, RAW, Arm, QueryReader
from mechanisms.noise import Integers
from mechanisms.records import Record

AS_READ = "as read"
"""Each set with its own correction where it has one, with contextual calibration elsewhere; not of a reader that can
give neither."""


@dataclass(frozen=True)
class Comparison:
    """Two sets, row by row.

    Attributes:
        first, second: their accuracies.
        only_first, only_second: rows that one of them alone answers right.
        silent: rows that the reader answered with no label, under each set; they count as wrong.
    """

    first: Accuracy
    second: Accuracy
    only_first: int
    only_second: int
    silent: tuple[int, int] = (0, 0)

    @property
    def p_value(self) -> float:
        """How likely rows that one set alone answers right are divided this unevenly, were both sets equally good.

        Two-sided and exact; 1 where no row tells the sets apart.
        """
        told = self.only_first + self.only_second
        return float(binomtest(self.only_first, told, 0.5).pvalue) if told else 1.0


def compare(
    reader: QueryReader, first: DemoSet, second: DemoSet, test: Sequence[Record]
) -> Generator[int, None, dict[str, Comparison]]:
    """Read the same test rows under two sets, each in its own words; tells how many rows are done, of both together.

    Returns:
        A comparison for each reading: as the sets are read, and the readings that both of them have.

    Raises:
        UsageError: the sets have other labels, or no test row has one.
    """
    if set(first.labels) != set(second.labels):
        raise UsageError("The two sets have different labels: they cannot be compared on the same rows.")
    known = known_rows(first.labels, test)
    truth, texts = truth_of(first.labels, known), [record.text for record in known]
    right: list[dict[str, NDArray[np.bool_]]] = []
    silent: list[int] = []
    for number, each in enumerate((first, second)):
        reading = reader.answers(each.template, first.labels, Arm(PRIVATE, each.demonstrations, each.prior), texts)
        found = yield from _counted(reading, number * len(texts))
        right.append({name: found[name] == truth for name in found})
        if CONTEXTUAL in found:
            right[-1][AS_READ] = right[-1].get(PRIOR, right[-1][CONTEXTUAL])
        silent.append(int((found[RAW] == NO_ANSWER).sum()))
    one, other = right
    return {
        name: Comparison(
            Accuracy(int(one[name].sum()), len(truth)),
            Accuracy(int(other[name].sum()), len(truth)),
            int((one[name] & ~other[name]).sum()),
            int((other[name] & ~one[name]).sum()),
            (silent[0], silent[1]),
        )
        for name in one
        if name in other
    }


def _counted(
    reading: Generator[int, None, dict[str, Integers]], before: int
) -> Generator[int, None, dict[str, Integers]]:
    while True:
        try:
            yield before + next(reading)
        except StopIteration as ended:
            found: dict[str, Integers] = ended.value
            return found
