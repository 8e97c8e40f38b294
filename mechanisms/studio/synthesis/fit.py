"""Whether a data set is the one that a run was planned for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mechanisms.accounting import fingerprint
from mechanisms.errors import DataError, UsageError
from mechanisms.records import Dataset, person
from mechanisms.studio.data.counts import MeasuredSizes


class Planned(Protocol):
    """A request of any kind: what it says about the data set that it is for."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Public label set, in order."""

    @property
    def by_user(self) -> bool:
        """Whether the unit is all records of one user."""

    @property
    def content(self) -> str:
        """Keyed digest of the data set."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Declared upper bound of the units of each label."""

    @property
    def measured(self) -> MeasuredSizes | None:
        """The measurement that the sizes come from, if they are not declared."""


def check_fit(dataset: Dataset, planned: Planned, reads_rows: bool = True) -> None:
    """Refuse to run on another data set than the one that was planned for.

    Args:
        dataset: private.
        planned: public.
        reads_rows: whether the run reads any row at all: then the file must be the very one.

    Raises:
        UsageError: labels, unit or file are others.
        DataError: a label has more units than declared.
    """
    if dataset.labels != planned.labels or dataset.by_user != planned.by_user:
        raise UsageError("The data set and the request must agree on the labels and on the privacy unit.")
    if not reads_rows:
        return
    if fingerprint(dataset).content != planned.content:
        raise UsageError("The run was planned for another file: calibrate it for this one first.")
    if planned.measured is not None:
        return  # a measured size that is too small is part of delta, and must not show
    for label, size in dataset.counted_sizes().items():
        if size > planned.sizes[label]:
            units = f"{person(dataset.unit)}s labelled '{label}'"
            raise DataError(f"The file has more {units} than declared: correct its size.")
