"""The part of step 2 that changes the model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import gradio as gr

from dpicl_ui.frame.guard import MODEL, PRIVATE, guarded
from dpicl_ui.frame.model_loader import AT_START, ModelLoader
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.tree import Tree, el, notice, panel, spinner
from mechanisms.inference.models import available_models

_CHAT = "It is asked through its chat template."
_PLAIN = "It is asked in plain text, as a base model is."
_LOCKED = "The operator of this server has locked the model."
_GLANCE = 0.4
"""Seconds between two looks at how far loading is."""
_OWN = "Safetensors or GGUF; pickles, and code that comes with a model, are never read. A hub id is fetched once."


def there(loader: ModelLoader) -> list[Tree]:
    """The present model, or the progress of loading it."""
    if not loader.settled:
        return spinner(f"Loading {loader.title}: {loader.stage} …")
    if loader.problem:
        return [*notice(loader.refusal or ""), *notice(f"No model is loaded. {loader.problem}")]
    how = _CHAT if loader.chat else _PLAIN
    back = notice(f"{loader.refusal} The model before it is back in its place.") if loader.refusal else []
    return [el("p", el("strong", loader.title), " is loaded. ", how), *back]


class ModelChoice:
    """Components and handlers. `loaded` fires when another model is there, or the old one again."""

    loaded: gr.events.Dependency

    def __init__(self, app: Services) -> None:
        self._loader = app.loader
        with gr.Column(elem_classes="card"):
            panel(el("h3", "Model"), el("p.lead", "It writes and reads on this machine."))
            self.there = panel(*there(self._loader), elem_id="model-there")
            if self._loader.locked:
                panel(el("p.muted", _LOCKED))
                return
            with gr.Accordion("Use another model", open=False, elem_id="other-model"):
                self._build()

    def _build(self) -> None:
        names = [(f"{each.description}{'' if each.available else ' (not installed)'}", each.name)
                 for each in available_models()]  # fmt: skip
        if not self._loader.listed_at_start:
            names.insert(0, ("The model that this server started with", AT_START))
        at_start = self._loader.name if self._loader.listed_at_start else AT_START
        self.name = gr.Dropdown(names, value=at_start, label="Model", elem_id="model-name")
        self.own = gr.Textbox(label="Or a folder, a GGUF file or a hub id", info=_OWN, elem_id="model-own")
        self.notice = panel(elem_id="model-notice")
        self.load = gr.Button("Load", size="sm", elem_id="load-model")
        self.name.input(lambda: "", None, self.own, **PRIVATE)
        waiting = self.load.click(self._wait, None, [self.notice, self.load], **PRIVATE)
        self.loaded = waiting.then(
            guarded(self.notice, lambda: {self.load: gr.Button(interactive=True)})(self._load),
            [self.name, self.own],
            [self.there, self.notice, self.load],
            **MODEL,
            **PRIVATE,
        )

    def _wait(self) -> dict[Any, Any]:
        return {self.notice: spinner("Waiting until nothing uses the model …"), self.load: gr.Button(interactive=False)}

    def _load(self, listed: str, own: str) -> Iterator[dict[Any, Any]]:
        """Load the chosen model; it waits in the model's queue, so nothing computes with the old one."""
        self._loader.choose((own or "").strip() or listed or "")
        while not self._loader.settled:
            yield {self.there: there(self._loader), self.notice: []}
            time.sleep(_GLANCE)
        missed = self._loader.refusal or self._loader.problem
        yield {self.there: there(self._loader), self.notice: [] if missed else notice("The model is loaded.", "good")}
