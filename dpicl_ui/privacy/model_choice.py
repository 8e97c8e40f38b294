"""The part of step 2 that changes the model, with what another one needs before it is loaded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import gradio as gr

from dpicl_ui.frame.choosable import Choosable
from dpicl_ui.frame.guard import MODEL, PRIVATE, guarded
from dpicl_ui.frame.model_loader import AT_START, ModelLoader
from dpicl_ui.frame.sessions import Sessions
from dpicl_ui.frame.tree import Tree, el, notice, panel
from dpicl_ui.privacy.model_cards import locked, there, title, would_need
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.inference.models.listing import available_models

_GLANCE = 0.4
"""Seconds between two looks at how far loading is."""
_OWN = "Safetensors or GGUF; pickles, and code that comes with a model, are never read. A hub id is fetched once."


class ModelChoice:
    """Components and handlers. `loaded` fires when another model is there, or the old one again."""

    loaded: gr.events.Dependency

    def __init__(self, sessions: Sessions, loader: ModelLoader) -> None:
        self._sessions, self._loader = sessions, loader
        with gr.Column(elem_classes="card"):
            panel(el("h3", "Model"), el("p.lead", "It writes and reads on this machine."))
            self.there = panel(*there(loader), elem_id="model-there")
            if loader.choosable is Choosable.NONE:
                panel(*locked())
                return
            with gr.Accordion("Use another model", open=False, elem_id="other-model"):
                self._build()
        self._wire()

    def _build(self) -> None:
        names = [(title(each), each.name) for each in available_models()]
        if not self._loader.listed_at_start:
            names.insert(0, ("The model that this server started with", AT_START))
        at_start = self._loader.name if self._loader.listed_at_start else AT_START
        self.name = gr.Dropdown(names, value=at_start, label="Model", elem_id="model-name")
        self.own = gr.Textbox(
            label="Or a folder, a GGUF file or a hub id",
            info=_OWN,
            visible=self._loader.choosable is Choosable.ANY,
            elem_id="model-own",
        )
        self.needs = panel(elem_id="model-needs")
        self.load = gr.Button("Load", size="sm", elem_id="load-model")

    def _wire(self) -> None:
        looked: dict[str, Any] = {"inputs": [self.name, self.own], "outputs": self.needs, **PRIVATE}
        chosen = self.name.input(lambda: "", None, self.own, **PRIVATE)
        for event in (chosen.then, self.own.blur, self.own.submit):
            event(guarded(self.needs)(self._look), **looked)
        waiting = self.load.click(self._wait, None, [self.needs, self.load], **PRIVATE)
        self.loaded = waiting.then(
            guarded(self.needs, self._ready)(self._load),
            [self.name, self.own],
            [self.there, self.needs, self.load],
            **MODEL,
            **PRIVATE,
        )

    def _look(self, request: gr.Request, listed: str, own: str) -> dict[Any, Any]:
        """What the chosen model needs here, and how long the planned run takes with it."""
        self._loader.check_allowed(_chosen(listed, own))
        return {self.needs: self._needed(request, _chosen(listed, own))}

    def _needed(self, request: gr.Request, chosen: str) -> list[Tree]:
        from mechanisms.inference.models.needs import available_memory, in_gigabytes, needs

        name, now = self._loader.resolved(chosen), self._loader.name
        wanted, speed = needs(name), self._loader.speed
        if name != now and speed is not None:
            sizes = wanted.parameters, needs(now).parameters
            speed = speed.scaled(sizes[0] / sizes[1]) if sizes[0] and sizes[1] else None
        planned = self._sessions.of(request).of(PrivacyState).planned
        seconds = planned.timed(speed).preview.seconds if planned else None
        memory = None if wanted.memory is None else in_gigabytes(wanted.memory)
        return would_need(memory, in_gigabytes(available_memory()), seconds, name == now, wanted.converted)

    def _wait(self) -> dict[Any, Any]:
        words = el("p.spinner", "Waiting until nothing uses the model …", role="status")
        return {self.needs: [words], self.load: gr.Button(interactive=False)}

    def _load(self, listed: str, own: str) -> Iterator[dict[Any, Any]]:
        """In the queue of those who use the model: nothing computes with it meanwhile."""
        self._loader.choose(_chosen(listed, own))
        while not self._loader.settled:
            yield {self.there: there(self._loader), self.needs: []}
            time.sleep(_GLANCE)
        missed = self._loader.refusal or self._loader.problem
        yield {self.there: there(self._loader), self.needs: [] if missed else notice("The model is loaded.", "good")}

    def _ready(self) -> dict[Any, Any]:
        return {self.load: gr.Button(interactive=True)}


def _chosen(listed: str, own: str) -> str:
    return (own or "").strip() or listed or ""
