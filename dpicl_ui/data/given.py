"""What step 1's last button is pressed with; what is missing of it is told at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dpicl_ui.data.public_card import MEASURE, check_declared
from dpicl_ui.data.records import RecordsForm
from dpicl_ui.data.rows import Rows
from dpicl_ui.data.state import Columns, DataState
from mechanisms.data.columns import field_name
from mechanisms.data.sizes import check_epsilon
from mechanisms.errors import DataError, SeveralErrors, UsageError


@dataclass(frozen=True, repr=False)
class Given:
    """The components' values, in the order in which the page sends them."""

    name: str
    labels: list[str]
    labels_public: bool
    counts_public: bool
    sizes: str
    count_epsilon: float | None
    text_name: object
    label_name: object
    row: str
    kind: object
    form: Any

    @property
    def measured(self) -> bool:
        """Whether the sizes are to be measured with noise."""
        return self.sizes == MEASURE

    def checked(self, state: DataState, records: RecordsForm) -> Columns:
        """The columns that are confirmed, under the names that are.

        Raises:
            UsageError: one thing is missing.
            SeveralErrors: more than one is.
        """
        missing = Missing()
        with missing.if_refused():
            if self.row != Rows.RECORDS:
                state.call((field_name(self.text_name), field_name(self.label_name)))
        with missing.if_refused():
            columns = records.asked_for(state, Rows(self.row), self.kind, self.form)
            if columns.kind is None and len(self.labels) < 2:
                raise DataError("Demonstrations need at least two labels: choose them above.")
        with missing.if_refused():
            if not self.name.strip():
                raise DataError("Give the data set a name: the ledger keeps what it has spent under it.")
        with missing.if_refused():
            check_declared(self.labels_public, self.counts_public, self.sizes, Rows(self.row))
        with missing.if_refused():
            if self.measured:
                check_epsilon(float(self.count_epsilon or 0))
        missing.tell()
        return columns


class Missing:
    """Everything that was refused so far."""

    def __init__(self) -> None:
        self._refused: list[UsageError] = []

    @contextmanager
    def if_refused(self) -> Iterator[None]:
        """Keep what the block refuses, and go on."""
        try:
            yield
        except UsageError as error:
            self._refused.append(error)

    def tell(self) -> None:
        """Stop where anything is missing.

        Raises:
            UsageError: what was refused, if it is one thing.
            SeveralErrors: all of it.
        """
        if len(self._refused) == 1:
            raise self._refused[0]
        if self._refused:
            raise SeveralErrors(map(str, self._refused))
