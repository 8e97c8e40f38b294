"""The part of step 2 that changes the model, and the needs of another model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import gradio as gr

from dpicl_ui.frame.guard import MODEL, PRIVATE, guarded
from dpicl_ui.frame.model_loader import AT_START, ModelLoader
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.tree import Tree, el, notice, panel, spinner
from dpicl_ui.privacy.cards import duration
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.inference.models.listing import ModelListing, available_models

# What step 2 shows of models: the one that is there, and what another one would need.

_CHAT = "It is asked through its chat template."
_PLAIN = "It is asked in plain text, as a base model is."
_LOCKED = "The operator of this server has locked the model."
_CONVERTED_ONCE = "It is converted once, which takes a minute for a small model and more memory than the model itself."
_UNKNOWN = "It is not on this machine, so its size is not known before it is fetched."


def there(loader: ModelLoader) -> list[Tree]:
    """The present model, or the progress of loading it."""
    if not loader.settled:
        return spinner(f"Loading {loader.title}: {loader.stage} …")
    if loader.problem:
        return [*notice(loader.refusal or ""), *notice(f"No model is loaded. {loader.problem}")]
    how = _CHAT if loader.chat else _PLAIN
    back = notice(f"{loader.refusal} The model before it is back in its place.") if loader.refusal else []
    return [el("p", el("strong", loader.title), " is loaded. ", how), *back]


def title(listed: ModelListing) -> str:
    """A listed model's line in the dropdown."""
    return f"{listed.description}{'' if listed.available else ' (not installed)'}"


def would_need(memory: str | None, free: str, seconds: float | None, measured: bool, converted: bool) -> list[Tree]:
    """What a model needs, before it is loaded.

    Args:
        memory, free: in words; None where the model is not on this machine.
        seconds: of the planned run; None where there is none, or nothing is known.
        measured: the duration was measured with this model, and not guessed by its size.
        converted: its weights can be read as they are.
    """
    needs = _UNKNOWN if memory is None else f"Its weights need {memory} of memory, here {free} are free."
    run = ""
    if seconds is not None:
        guess = "" if measured else ", guessed by its size; it is measured once loaded"
        run = f" The planned run takes {duration(seconds)}{guess}."
    return [el("p.muted", f"{needs}{run}{'' if converted else ' ' + _CONVERTED_ONCE}", role="status")]


# The choice of a model.

_GLANCE = 0.4
"""Seconds between two looks at how far loading is."""
_OWN = "Safetensors or GGUF; pickles, and code that comes with a model, are never read. A hub id is fetched once."


class ModelChoice:
    """Components and handlers. `loaded` fires when another model is there, or the old one again."""

    loaded: gr.events.Dependency

    def __init__(self, app: Services) -> None:
        self._app, self._loader = app, app.loader
        with gr.Column(elem_classes="card"):
            panel(el("h3", "Model"), el("p.lead", "It writes and reads on this machine."))
            self.there = panel(*there(self._loader), elem_id="model-there")
            if self._loader.locked:
                panel(el("p.muted", _LOCKED))
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
        """The needs of the chosen model, and the planned run's time with it."""
        self._loader.check_allowed(_chosen(listed, own))
        return {self.needs: self._needed(request, _chosen(listed, own))}

    def _needed(self, request: gr.Request, chosen: str) -> list[Tree]:
        from mechanisms.inference.models.needs import available_memory, in_gigabytes, needs

        name, now = self._loader.resolved(chosen), self._loader.name
        wanted, speed = needs(name), self._loader.speed
        if name != now and speed is not None:
            sizes = wanted.parameters, needs(now).parameters
            speed = speed.scaled(sizes[0] / sizes[1]) if sizes[0] and sizes[1] else None
        planned = self._app.session(request).of(PrivacyState).planned
        seconds = planned.timed(speed).seconds if planned else None
        memory = None if wanted.memory is None else in_gigabytes(wanted.memory)
        return would_need(memory, in_gigabytes(available_memory()), seconds, name == now, wanted.converted)

    def _wait(self) -> dict[Any, Any]:
        return {self.needs: spinner("Waiting until nothing uses the model …"), self.load: gr.Button(interactive=False)}

    def _load(self, listed: str, own: str) -> Iterator[dict[Any, Any]]:
        """Load the chosen model; it waits in the model's queue, so nothing computes with the old one."""
        self._loader.choose(_chosen(listed, own))
        while not self._loader.settled:
            yield {self.there: there(self._loader), self.needs: []}
            time.sleep(_GLANCE)
        missed = self._loader.refusal or self._loader.problem
        yield {
            self.there: there(self._loader),
            self.needs: [] if missed else notice("The model is loaded.", "good"),
        }

    def _ready(self) -> dict[Any, Any]:
        return {self.load: gr.Button(interactive=True)}


def _chosen(listed: str, own: str) -> str:
    return (own or "").strip() or listed or ""
