"""Step 1's last card: what becomes public, and the button that confirms it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr

from dpicl_ui.data.state import GO_ON, Columns
from dpicl_ui.frame.tree import el, panel
from mechanisms.errors import SeveralErrors, UsageError

DECLARE, MEASURE = "declare", "measure"
_SIZES = [("Declare the counts public", DECLARE), ("Measure them with noise, for a share of epsilon", MEASURE)]
_PUBLIC = (
    "I declare public: the label names, the words above and, unless it is measured with noise, the number of {units} "
    "of each label. Names and words stand in the prompts and in the export. The noise is computed from the numbers, so "
    "that they are not protected: do not confirm if one of them is itself a secret."
)
UNCONFIRMED = "Tick the box: what it names becomes public."


def declared(by_user: bool) -> str:
    """The text of the box by which the curator declares what becomes public."""
    return _PUBLIC.format(units="users" if by_user else "rows")


class PublicCard:
    """Components."""

    def __init__(self) -> None:
        with gr.Column(elem_classes="card public"):
            panel(el("div.card-head", el("h3", "What becomes public"), el("span.tag.public", "Releasable")))
            self.sizes = gr.Radio(_SIZES, value=DECLARE, label="How large each label is", elem_id="sizes")
            self.count_epsilon = gr.Number(
                0.1,
                label="Epsilon for counting",
                info="Spent once for this data set while this page is open; every run on it claims it too.",
                visible=False,
                elem_id="count-epsilon",
            )
            self.public = gr.Checkbox(label=declared(False), elem_id="declared-public")
            self.left_out = gr.Checkbox(label=GO_ON, visible=False, elem_id="allow-left-out")
            self.problem = panel(elem_id="data-problem")
            self.confirm = gr.Button("Use this data set", variant="primary", elem_id="confirm-data")

    @property
    def inputs(self) -> list[Any]:
        """The box, and the way in which the sizes become known."""
        return [self.public, self.sizes, self.count_epsilon]

    @property
    def outputs(self) -> list[Any]:
        """What changes with the columns."""
        return [self.public, self.left_out, self.problem]

    def unconfirmed(self, columns: Columns | None, labels: Collection[str]) -> dict[Any, Any]:
        """The components with no box ticked."""
        many = columns is not None and columns.left_out(labels).many
        return {
            self.public: gr.Checkbox(value=False, label=declared(columns is not None and columns.by_user)),
            self.left_out: gr.Checkbox(value=False, visible=many),
            self.problem: [],
        }

    def chosen(self, sizes: str, epsilon: float | None) -> dict[Any, Any]:
        """The components for one way of knowing the sizes."""
        return {
            self.count_epsilon: gr.Number(visible=sizes == MEASURE),
            self.public: False,
            self.confirm: gr.Button(button(sizes, epsilon)),
            self.problem: [],
        }


def button(sizes: str, epsilon: float | None) -> str:
    """The title of the confirming button."""
    if sizes == DECLARE:
        return "Use this data set"
    return f"Spend epsilon {epsilon or 0:g} on counting, and use this data set"


class Missing:
    """What is missing when the last button is pressed: the errors collected so far, told at once."""

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
