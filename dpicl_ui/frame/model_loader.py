"""Loads the models: the language model in the background, the embedding model when it is first needed.

torch and transformers take seconds to import, so functions import them when they are first needed.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpicl_ui.frame.tree import Tree, el, notice, spinner
from mechanisms.errors import ModelUnavailable, StudioError, UsageError
from mechanisms.inference.models.listed import KEPT, ModelListing, available_models

if TYPE_CHECKING:
    from mechanisms.inference import Embedder, LanguageModel
    from mechanisms.runs.work import Speed

AT_START = "at start"
"""The name in a list for the model that the server started with; the model's own name may be a path."""
_GLANCE = 0.4
"""Seconds between two polls of the progress."""
_USUAL_RUN = 130_000, 22_500
"""Positions read and tokens written by a run on a bundled example with the settings that step 2 proposes."""
_PATIENCE = 330.0
"""The most seconds that count as about five minutes."""
_STOPPED = f"Fetching was stopped. {KEPT} Ask for the model again to fetch the rest."
_CHAT = "It is prompted through its chat template."
_PLAIN = "It is prompted in plain text, as a base model."

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, repr=False)
class LoadedModel:
    """A model with its speed here, the bytes of its weights, and its number of parameters (0: unknown)."""

    model: LanguageModel
    speed: Speed
    memory: int
    parameters: int


@dataclass(frozen=True)
class WriterOffer:
    """The present model's size, and a better model for writing drafts.

    Attributes:
        present: the present model's number of parameters.
        better: the better model; None if there is none.
        memory: bytes that the better model needs.
        seconds: the expected time of a usual run with it.
    """

    present: int
    better: ModelListing | None
    memory: int = 0
    seconds: float = 0.0


class ModelLoader:
    """Loads one model at a time for the whole app, in the background, so that the page is served at once.

    Gradio's queue lets one handler at a time use the model.

    Attributes:
        name: the requested name of the model that is loaded or being loaded.
        locked: whether it may not be replaced.
        stage: the progress of loading, in a few words.
        problem: why no model is loaded; None while one is loaded or being loaded.
        fetching: whether another model's files are being fetched.
        refusal: why the model that was chosen last could not be loaded.
        embedding: seconds that the embedding model takes to read a text; 0 until measured.
    """

    def __init__(self, name: str, locked: bool = False) -> None:
        self.name, self.locked = name, locked
        self.stage = ""
        self._at_start = name
        self.problem: str | None = None
        self.refusal: str | None = None
        self.fetching = False
        self.embedding = 0.0
        self._stopped = threading.Event()
        self._loaded: LoadedModel | None = None
        self._done = threading.Event()
        self._beginning = threading.Lock()

    def start(self) -> None:
        self._in_background(self.name)

    def choose(self, name: str) -> None:
        """Begin to load another model in place of the present one; returns at once.

        The caller must hold the model's queue. If the new model cannot be loaded, the old one is loaded again.

        Raises:
            UsageError: the model is locked, another one is being loaded, or the old one is still in use.
            ModelUnavailable: it is not on this machine, or does not fit into its memory.
        """
        if self.locked:
            raise UsageError("The model of this server is locked: ask who runs it.")
        if not name:
            raise UsageError("Choose a model, or give a folder, a GGUF file or a hub id.")
        name = self._at_start if name == AT_START else name
        with self._beginning:
            if not self.settled:
                raise UsageError("A model is being loaded: wait until it is there.")
            from mechanisms.inference.models.loading import refuse_too_large

            refuse_too_large(name, freed=self._loaded.memory if self._loaded else 0)
            self.stage = "making room"
            self._done.clear()
            try:
                self._drop()
            except BaseException:
                self._done.set()
                raise
        self._in_background(name)

    def _drop(self) -> None:
        """Release the model. Any other reference would keep it in memory beside the next one."""
        if self._loaded is None:
            return
        from mechanisms.inference.engine.memory import release_freed_memory

        speed, memory, parameters = self._loaded.speed, self._loaded.memory, self._loaded.parameters
        alive = weakref.ref(self._loaded.model)
        self._loaded = None
        gc.collect()
        if (model := alive()) is not None:
            self._loaded = LoadedModel(model, speed, memory, parameters)
            raise UsageError("The model is still in use: wait until its work has ended.")
        release_freed_memory()

    def _in_background(self, name: str) -> None:
        self.refusal = self.problem = None
        threading.Thread(target=self._load, args=(name, self.name), name="model-loader", daemon=True).start()

    def _load(self, name: str, before: str) -> None:
        try:
            failed = self._try(name)
            if failed is not None and name != before:
                self.refusal, failed = failed, self._try(before)
            self.problem = failed
        finally:
            self._done.set()

    def _tell(self, stage: str) -> None:
        self.stage = stage

    def _try(self, name: str) -> str | None:
        """Load and measure a model; returns the reason if that fails."""
        self.name = name
        self.stage = "starting"
        try:
            from mechanisms.inference.engine.threads import compute_in_one_thread
            from mechanisms.inference.models.loading import load_model, needs
            from mechanisms.runs.work import measure_speed

            compute_in_one_thread()
            model = load_model(name, tell=self._tell)
            self.stage = "measuring its speed"
            known = needs(name)
            self._loaded = LoadedModel(model, measure_speed(model), known.memory or 0, known.parameters or 0)
        except StudioError as error:
            return str(error)
        except Exception as error:  # a broken installation may raise anything, and the page must show it
            _log.exception("the model could not be loaded")
            return f"The model could not be loaded ({type(error).__name__}): see the log."
        return None

    @property
    def speed(self) -> Speed | None:
        """The measured speed of the models; None until the language model has been measured."""
        loaded = self._loaded
        if loaded is None or not self.embedding:
            return loaded.speed if loaded else None
        return replace(loaded.speed, text=self.embedding)

    @property
    def listed_at_start(self) -> bool:
        return self._at_start in [each.name for each in available_models()]

    @property
    def ready(self) -> bool:
        return self._loaded is not None

    @property
    def settled(self) -> bool:
        """Whether loading has ended, with or without success."""
        return self._done.is_set()

    @property
    def title(self) -> str:
        """The model's name once it is loaded; before that the last part of the requested name, which may be a path."""
        loaded = self._loaded
        return loaded.model.name if loaded else Path(self.name).name

    def status(self) -> list[Tree]:
        """The present model as elements, or the progress of loading it."""
        if not self.settled:
            return spinner(f"Loading {self.title}: {self.stage} …")
        if self.problem:
            return [*notice(self.refusal or ""), *notice(f"No model is loaded. {self.problem}")]
        back = f"{self.refusal} The previous model is loaded again." if self.refusal else ""
        loaded = self._loaded
        chat = loaded is not None and any(loaded.model.writing_turn)
        computed = f" It computes on {loaded.model.arithmetic}." if loaded else ""
        told = [" is loaded. ", _CHAT if chat else _PLAIN, computed]
        return [el("p", el("strong", self.title), *told), *notice(back)]

    def offer(self) -> WriterOffer | None:
        """An offer of the largest listed model that fits here and takes about five minutes for a usual run; None if the
        present model is locked or its size is unknown."""
        loaded = self._loaded
        if loaded is None or not loaded.parameters or self.locked:
            return None
        from mechanisms.inference.models.loading import better_writer, needs
        from mechanisms.runs.work import Work

        # The estimate depends on the model's size alone, because the embedding model stays the same.
        of_size = loaded.speed.seconds(Work(*_USUAL_RUN)) / loaded.parameters
        better = better_writer(loaded.parameters, _PATIENCE / of_size, loaded.memory)
        if better is None:
            return WriterOffer(loaded.parameters, None)
        return WriterOffer(loaded.parameters, better, needs(better.name).memory or 0, of_size * better.parameters)

    def changed(self, name: str) -> Iterator[list[Tree]]:
        """Load another model (`choose`), and yield the progress until it has ended.

        Raises:
            UsageError, ModelUnavailable: as in `choose`.
        """
        self.choose(name)
        while not self.settled:
            yield self.status()
            time.sleep(_GLANCE)
        yield self.status()

    def fetched(self, name: str) -> Iterator[list[Tree]]:
        """Fetch a model's files if they are missing, and yield the progress; the present model stays usable.

        Raises:
            ModelUnavailable: they cannot be fetched, or fetching was stopped.
        """
        if not name or name == AT_START or self.locked:  # `choose` reports these
            return
        from mechanisms.inference.models.loading import fetched

        stages, freed = [""], self._loaded.memory if self._loaded else 0

        def tell(stage: str) -> None:
            if self._stopped.is_set():
                raise ModelUnavailable(_STOPPED)
            stages.append(stage)

        self._stopped.clear()
        with ThreadPoolExecutor(1) as pool:
            try:
                coming = pool.submit(fetched, name, tell, freed)
                while wait([coming], _GLANCE).not_done:
                    self.fetching = True
                    stage = "stopping" if self._stopped.is_set() else stages[-1]
                    yield spinner(f"{Path(name).name}: {stage} …")
            finally:
                self.fetching = False
                self._stopped.set()  # closing the page stops fetching too
        coming.result()

    def stop_fetching(self) -> None:
        """Stop fetching at the next file or the next bytes; returns at once."""
        self._stopped.set()

    def wait(self) -> None:
        self._done.wait()

    def model(self) -> LanguageModel:
        """The model; waits until it is loaded.

        Raises:
            ModelUnavailable: it could not be loaded.
        """
        self.wait()
        loaded = self._loaded
        if loaded is None:
            raise ModelUnavailable(self.problem or "The model is not available.")
        return loaded.model


class EmbedderLoader:
    """One embedding model for the whole app, loaded when it is first needed."""

    def __init__(self, loader: ModelLoader) -> None:
        self._loader = loader
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None

    def embedder(self) -> Embedder:
        """The embedding model; waits until the language model has loaded or failed.

        Raises:
            ModelUnavailable: the embedding model is not on this machine.
        """
        self._loader.wait()
        with self._lock:
            if self._embedder is None:
                from mechanisms.inference.models.embedder import load_embedder
                from mechanisms.runs.work import measure_embedder

                embedder = load_embedder()
                self._loader.embedding = measure_embedder(embedder)
                self._embedder = embedder
            return self._embedder
