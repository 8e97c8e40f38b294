"""A reader elsewhere in step 4: offered where the operator allows it, never ticked by itself."""

from __future__ import annotations

from collections.abc import Iterator

import gradio as gr

from dpicl_ui.frame.tree import Tree, el, notice
from dpicl_ui.test.cards import named_arm
from dpicl_ui.test.state import TestState
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PUBLIC_ONLY
from mechanisms.evaluation.reader import Arm
from mechanisms.evaluation.remote_reader import (
    RemoteReader,
    read_remotely_in_words,
    refuse_set_without_promise,
)
from mechanisms.inference import LanguageModel

_SHARED = (
    "This file shares rows with {names}: private rows never leave this machine. Bring rows that took no part, or let "
    "the model of this machine answer."
)
_NO_PUBLIC = " Public text would be written by another model than the set's, and is left out."
_NO_LABEL = "no label"


class Elsewhere:
    """The tick, and what it changes; made inside the panel of step 4.

    Args:
        reader: the operator's; None where there is none, and then nothing is ever sent.
    """

    def __init__(self, reader: RemoteReader | None) -> None:
        self._reader = reader
        with gr.Column(elem_classes="card", visible=reader is not None) as self.card:
            self.tick = gr.Checkbox(
                label=f"Answer with {reader.name}" if reader else "",
                info=reader.leaving if reader else "",
                value=False,
                elem_id="elsewhere",
            )

    def chosen(self, ticked: bool, demo_set: DemoSet) -> RemoteReader | None:
        """The reader, if there is one and the box is ticked.

        Raises:
            UsageError: the set has no privacy claim.
        """
        if self._reader is None or not ticked:
            return None
        refuse_set_without_promise(demo_set)
        return self._reader


def refuse_private_rows(owners: tuple[str, ...]) -> None:
    """Refuse to send rows of private data sets elsewhere, whatever the boxes say.

    Raises:
        UsageError: there are such rows.
    """
    if owners:
        raise UsageError(_SHARED.format(names=", ".join(f"'{name}'" for name in owners)))


def reads(demo_set: DemoSet, reader: RemoteReader, arms: tuple[Arm, ...]) -> list[Tree]:
    """The model that wrote a set, the one that reads it, and the consequences."""
    complete = not demo_set.demonstrations or any(arm.name == PUBLIC_ONLY for arm in arms)
    return notice(read_remotely_in_words(demo_set, reader) + ("" if complete else _NO_PUBLIC), "warn")


def answered(
    state: TestState, demo_set: DemoSet, reader: RemoteReader, here: LanguageModel, query: str
) -> Iterator[list[Tree]]:
    """A query's label by each arm, one arm after the other.

    Raises:
        ModelUnavailable: there is no answer.
    """
    arms, shown = state.arms_elsewhere(demo_set, here), list[Tree]()
    for arm in arms:
        label = reader.label(demo_set.template, demo_set.labels, arm, query)
        shown.append(named_arm(arm.name, el("p.answer", label or _NO_LABEL)))
        yield [el("div.arms", *shown), *reads(demo_set, reader, arms)]
