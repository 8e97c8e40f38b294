"""Step 1's last card: what becomes public, and the button that confirms it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gradio as gr

from dpicl_ui.data.records import RecordsForm
from dpicl_ui.data.state import GO_ON, Columns, DataState, Rows
from dpicl_ui.frame.tree import el, panel
from mechanisms.data.field_names import field_name
from mechanisms.data.sizes import check_epsilon
from mechanisms.errors import DataError, SeveralErrors, UsageError

# Step 1's last card: what becomes public, said in boxes that a person ticks.

_LABELS = "The label names above become public. They will stand in the prompts and in the export."
_SCHEMA = (
    "The schema above, and what one record is called, become public. They will stand in the prompts and in the export."
)
_NAMES = (
    "What one row, its text and its answer are called above becomes public. It will stand in the prompts and in the "
    "export. The answers themselves do not: they are as private as the texts."
)
_ALONE = "What one row and its text are called above becomes public. It will stand in the prompts and in the export."
_NAMED = {Rows.TEXTS: _LABELS, Rows.RECORDS: _SCHEMA, Rows.ANSWERED: _NAMES, Rows.ALONE: _ALONE}
_COUNTS = (
    "I declare the number of {units} of each label public, as shown above. The noise is computed from these numbers, "
    "so they are not protected: do not confirm if one of them is itself a secret."
)
_COUNT_OF_KIND = (
    "I declare the number of {units} public, as shown above. The noise is computed from it, so it is not protected: "
    "do not confirm if it is itself a secret."
)
_SIZE = {
    Rows.TEXTS: "How large each label is",
    Rows.RECORDS: "How many records there are",
    Rows.ANSWERED: "How many rows there are",
    Rows.ALONE: "How many rows there are",
}
_SAID = {
    Rows.TEXTS: ("the label names", "become", "the label counts"),
    Rows.RECORDS: ("the schema", "becomes", "the number of records"),
    Rows.ANSWERED: ("what the rows are called", "becomes", "the number of rows"),
    Rows.ALONE: ("what the rows are called", "becomes", "the number of rows"),
}
"""What becomes public, with its verb, and what else does where sizes are declared."""
DECLARE, MEASURE = "declare", "measure"
_SIZES = [("Declare the counts public", DECLARE), ("Measure them with noise, for a share of epsilon", MEASURE)]


def counts_public(by_user: bool, rows: Rows = Rows.TEXTS) -> str:
    """The text of the box by which the curator declares the counts public."""
    units = "users" if by_user else "records" if rows == Rows.RECORDS else "rows"
    return (_COUNTS if rows == Rows.TEXTS else _COUNT_OF_KIND).format(units=units)


class PublicCard:
    """Components; `inputs` are the values of `Given`."""

    def __init__(self) -> None:
        with gr.Column(elem_classes="card public"):
            panel(el("div.card-head", el("h3", "What becomes public"), el("span.tag.public", "Releasable")))
            self.labels_public = gr.Checkbox(label=_LABELS, elem_id="labels-public")
            self.sizes = gr.Radio(_SIZES, value=DECLARE, label=_SIZE[Rows.TEXTS], elem_id="sizes")
            self.count_epsilon = gr.Number(
                0.1,
                label="Epsilon for counting",
                info="Spent once for this data set while this page is open; every run on it claims it too.",
                visible=False,
                elem_id="count-epsilon",
            )
            self.counts_public = gr.Checkbox(label=counts_public(False), elem_id="counts-public")
            self.left_out = gr.Checkbox(label=GO_ON, visible=False, elem_id="allow-left-out")
            self.problem = panel(elem_id="data-problem")
            self.confirm = gr.Button("Use this data set", variant="primary", elem_id="confirm-data")

    @property
    def inputs(self) -> list[Any]:
        """The boxes, and the way in which the sizes become known."""
        return [self.labels_public, self.counts_public, self.sizes, self.count_epsilon]

    @property
    def outputs(self) -> list[Any]:
        """What changes with the columns."""
        return [self.labels_public, self.counts_public, self.sizes, self.left_out, self.problem]

    def unconfirmed(self, columns: Columns | None, labels: Collection[str]) -> dict[Any, Any]:
        """The components with no box ticked."""
        many = columns is not None and columns.left_out(labels).many
        return {
            self.labels_public: False,
            self.counts_public: False,
            self.left_out: gr.Checkbox(value=False, visible=many),
            self.problem: [],
        }

    def asked(self, by_user: bool, rows: Rows) -> dict[Any, Any]:
        """The boxes for these columns, none ticked."""
        return {
            self.labels_public: gr.Checkbox(value=False, label=_NAMED[rows]),
            self.counts_public: gr.Checkbox(value=False, label=counts_public(by_user, rows)),
            self.sizes: gr.Radio(label=_SIZE[rows]),
        }

    def chosen(self, sizes: str, epsilon: float | None) -> dict[Any, Any]:
        """The components for one way of knowing the sizes."""
        return {
            self.count_epsilon: gr.Number(visible=sizes == MEASURE),
            self.counts_public: gr.Checkbox(value=False, visible=sizes == DECLARE),
            self.confirm: gr.Button(button(sizes, epsilon)),
            self.problem: [],
        }


def check_declared(labels_public: bool, counts_public: bool, sizes: str, rows: Rows) -> None:
    """Refuse to continue before everything that becomes public is confirmed.

    Raises:
        DataError: a box is not ticked.
    """
    names, become, counts = _SAID[rows]
    if sizes == DECLARE and not (labels_public and counts_public):
        raise DataError(f"Confirm both boxes: {names} and {counts} become public.")
    if not labels_public:
        raise DataError(f"Confirm that {names} {become} public.")


def button(sizes: str, epsilon: float | None) -> str:
    """The title of the confirming button."""
    if sizes == DECLARE:
        return "Use this data set"
    return f"Spend epsilon {epsilon or 0:g} on counting, and use this data set"


# What step 1's last button is pressed with; what is missing of it is told at once.


@dataclass(frozen=True, repr=False)
class Given:
    """The values of the components when the confirming button is pressed, in the order of the page."""

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
        """The confirmed columns, under the confirmed names.

        Raises:
            UsageError: one thing is missing.
            SeveralErrors: several things are missing.
        """
        missing = Missing()
        with missing.if_refused():
            if self.row != Rows.RECORDS:
                state.call((field_name(self.text_name), field_name(self.label_name)))
        with missing.if_refused():
            columns = records.asked_for(state, Rows(self.row), self.kind, self.form)
            if columns.kind is None and len(self.labels) < 2:
                raise DataError("Demonstrations need at least two labels: choose them above.")
            columns.check_left_out(self.labels)
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
    """The errors collected so far."""

    def __init__(self) -> None:
        self._refused: list[UsageError] = []

    @contextmanager
    def if_refused(self) -> Iterator[None]:
        """Collect an error of the block, and continue."""
        try:
            yield
        except UsageError as error:
            self._refused.append(error)

    def tell(self) -> None:
        """Raise what was collected.

        Raises:
            UsageError: the error, if there is one.
            SeveralErrors: all of them, if there are several.
        """
        if len(self._refused) == 1:
            raise self._refused[0]
        if self._refused:
            raise SeveralErrors(map(str, self._refused))
