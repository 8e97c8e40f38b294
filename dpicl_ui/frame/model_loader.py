"""Loads the model in the background, so that the page is served at once."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from mechanisms.errors import ModelUnavailable, StudioError

if TYPE_CHECKING:
    from mechanisms.inference import LanguageModel
    from mechanisms.studio.synthesis.forecast import ModelSpeed

_log = logging.getLogger(__name__)


class ModelLoader:
    """One model for the whole app; its handlers take turns through Gradio's queue."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.speed: ModelSpeed | None = None
        self.problem: str | None = None
        self._model: LanguageModel | None = None
        self._done = threading.Event()

    def start(self) -> None:
        """Begin to load; returns at once."""
        threading.Thread(target=self._load, name="model-loader", daemon=True).start()

    def _load(self) -> None:
        try:
            # torch and transformers take seconds to import: only here, in the background.
            from mechanisms.inference.models.catalogue import load_model
            from mechanisms.studio.synthesis.forecast import measure_speed

            model = load_model(self.name)
            self.speed = measure_speed(model)
            self._model = model
        except StudioError as error:
            self.problem = str(error)
        except Exception as error:  # whatever a broken installation raises, the page must say it
            _log.exception("the model could not be loaded")
            self.problem = f"The model could not be loaded ({type(error).__name__}): see the log."
        finally:
            self._done.set()

    @property
    def ready(self) -> bool:
        """The model is loaded and measured."""
        return self._model is not None

    @property
    def settled(self) -> bool:
        """Loading has ended, well or badly."""
        return self._done.is_set()

    def wait(self) -> None:
        """Return when loading has ended, well or badly."""
        self._done.wait()

    @property
    def title(self) -> str:
        """The model's name once it is loaded, before that the name it was asked for by."""
        return self._model.name if self._model else self.name

    def model(self) -> LanguageModel:
        """The model; waits for it.

        Raises:
            ModelUnavailable: it could not be loaded.
        """
        self._done.wait()
        if self._model is None:
            raise ModelUnavailable(self.problem or "The model is not available.")
        return self._model
