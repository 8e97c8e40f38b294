"""Another reader in step 4: a model of this machine, or one behind an address, whose key is kept nowhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import gradio as gr

from dpicl_ui.frame.guard import MODEL, PRIVATE, guarded
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.tree import Tree, el, notice, panel
from dpicl_ui.privacy.model_choice import there
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PUBLIC_ONLY
from mechanisms.evaluation.reader import Arm
from mechanisms.evaluation.remote_reader import RemoteReader, read_remotely_in_words, refuse_set_without_promise
from mechanisms.inference.models import available_models
from mechanisms.inference.remote import ChatServer, ServerAddress

_HERE, _OPERATOR, _ADDRESS = "here", "operator", "address"
_LEAVES = (
    "The demonstrations and the queries (your questions, and the texts of a test file) leave this machine for that "
    "address; private rows do not. The key goes with each request, and is kept neither here nor in a file."
)
_BAD_KEY = "The key holds characters that no key has: type the key alone."
_NO_PUBLIC = " Public text would be written by another model than the set's, and is left out."
_LOADED = "It takes the place of the model that is loaded, and writes too from then on."
_GLANCE = 0.4
"""Seconds between two looks at how far loading is."""


class AnotherReader:
    """Components and the choice that they make; `inputs` are what `chosen` reads.

    An address is offered on a server of one owner alone: on a public one, strangers would have it ask for them.

    Args:
        reader: the operator's; None where there is none.
    """

    def __init__(self, app: Services, reader: RemoteReader | None) -> None:
        self._app, self._reader = app, reader
        choices = [("The model that is loaded here", _HERE)]
        choices += [(f"{reader.name}: {reader.leaving}", _OPERATOR)] if reader else []
        choices += [("A model behind an address", _ADDRESS)] if app.ledgers.lasting else []
        with gr.Accordion("Another reader", open=False, elem_classes="card", elem_id="another-reader"):
            self.who = gr.Radio(choices, value=_HERE, label="Who reads", elem_id="reader", elem_classes="presets")
            with gr.Column(visible=False) as self.elsewhere:
                panel(el("p.muted", _LEAVES))
                self.address = gr.Textbox(
                    label="Address", placeholder="https://api.example.org/v1", elem_id="reader-address"
                )
                self.model = gr.Textbox(label="Model, as the server calls it", elem_id="reader-model")
                self.key = gr.Textbox(
                    label="Key, if the server wants one",
                    type="password",
                    elem_id="reader-key",
                    html_attributes=gr.InputHTMLAttributes(autocomplete="off"),
                )
            if not app.loader.locked:
                self._build_local()
        self.inputs = {self.who, self.address, self.model, self.key}
        self.who.input(lambda who: gr.Column(visible=who == _ADDRESS), self.who, self.elsewhere, **PRIVATE)

    def _build_local(self) -> None:
        names = [(each.description, each.name) for each in available_models() if each.available]
        with gr.Row(elem_classes="actions"):
            self.name = gr.Dropdown(names, label="Another model of this machine", info=_LOADED, elem_id="reader-name")
            self.load = gr.Button("Load it", size="sm", elem_id="reader-load")
        self.there = panel(elem_id="reader-there")
        loads = guarded(self.there, lambda: {self.load: gr.Button(interactive=True)})(self._load)
        self.load.click(loads, self.name, [self.there, self.load], **MODEL, **PRIVATE)

    def _load(self, name: str | None) -> Iterator[dict[Any, Any]]:
        """Load a model; it waits in the model's queue, so nothing computes with the old one."""
        loader = self._app.loader
        yield {self.load: gr.Button(interactive=False)}
        loader.choose(name or "")
        while not loader.settled:
            yield {self.there: there(loader)}
            time.sleep(_GLANCE)
        yield {self.there: there(loader)}

    def chosen(self, values: Mapping[Any, Any], demo_set: DemoSet) -> RemoteReader | None:
        """The reader elsewhere, made for this press; None where the model that is loaded here reads.

        Args:
            values: of the components of `inputs`.

        Raises:
            UsageError: the set has no privacy claim, or address, model or key cannot be used.
        """
        who, reader = values[self.who], self._reader
        if who == _ADDRESS and self._app.ledgers.lasting:
            key = (values[self.key] or "").strip()
            if not (key.isascii() and key.isprintable()):
                raise UsageError(_BAD_KEY)
            address = ServerAddress.of(values[self.address] or "")
            reader = RemoteReader(ChatServer(address, values[self.model] or "", key or None))
        elif who != _OPERATOR:
            return None
        if reader is not None:
            refuse_set_without_promise(demo_set)
        return reader


def reads(demo_set: DemoSet, reader: RemoteReader, arms: tuple[Arm, ...]) -> list[Tree]:
    """The model that wrote a set, the one that reads it, and the consequences."""
    complete = not demo_set.demonstrations or any(arm.name == PUBLIC_ONLY for arm in arms)
    return notice(read_remotely_in_words(demo_set, reader) + ("" if complete else _NO_PUBLIC), "warn")
