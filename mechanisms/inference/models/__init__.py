"""Models on this machine: their names, their weight files, and loading one.

The modules that compute with models take seconds to import, so they are imported when a model is loaded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from mechanisms.errors import UsageError
from mechanisms.inference.language_model import Embedder, LanguageModel

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)


def load_model(name: str | None = None, tell: Callable[[str], object] = lambda stage: None) -> LanguageModel:
    """Load a model, after fetching it if necessary; `tell` receives the progress.

    Raises:
        ModelUnavailable: it does not exist, does not fit in memory, or lets one row of a batch affect another.
        UsageError: the environment's number of threads is none.
    """
    from mechanisms.inference.models import loading

    return loading.load_model(name, tell=tell)


@functools.cache
def default_model() -> LanguageModel:
    """The default model, loaded once for each process."""
    return load_model()


def load_embedder() -> Embedder:
    """Load the embedding model; `ModelUnavailable` if it cannot be obtained."""
    from mechanisms.inference.models import embedder

    return embedder.load_embedder()


@contextmanager
def opened(
    name: str, engine: str = LOCAL, tell: Callable[[str], object] = lambda stage: None
) -> Iterator[LanguageModel]:
    """A model by its name, in this process or on a Ray cluster, for the duration of the `with` block; `tell` gets
    the progress of loading it.

    Raises:
        UsageError: Ray is not installed, or one of its settings is invalid.
        ModelUnavailable: the model, the Ray cluster or its workers are not available.
    """
    if engine == LOCAL:
        yield load_model(name, tell)
        return
    if find_spec("ray") is None:
        raise UsageError("--engine ray needs Ray: pip install -r requirements-ray.txt")
    from mechanisms.inference.cluster import spread  # an optional dependency
    from mechanisms.inference.engine.threads import fixed_threads
    from mechanisms.inference.models import loading

    with spread(name, loading.load_model(name, fixed_threads(), tell)) as model:
        yield model


def device_here() -> str:
    """The device, its number format, and the reason, in words.

    Raises:
        UsageError: `DPICL_DEVICE` or `DPICL_WEIGHTS` states what this machine does not have.
    """
    from mechanisms.inference.engine.device import chosen_device
    from mechanisms.inference.models.loading import FULL, LARGE, weight_format

    small, large = weight_format(0), weight_format(LARGE)
    if large == FULL:
        return str(chosen_device())
    which = "" if small == large else f" for models of {LARGE // 10**6} million parameters or more"
    return f"{chosen_device()}; {large} weights{which}"


def memory_of(name: str) -> int:
    """Bytes of a listed model's weights on the chosen device; 0 if its files are damaged."""
    from mechanisms.inference.models import loading

    return loading.memory_of(name)
