"""Models on this machine. What computes with them takes seconds to import, and is imported when one is loaded."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from mechanisms.errors import UsageError
from mechanisms.inference.language_model import Embedder, LanguageModel

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)


def load_model(name: str | None = None) -> LanguageModel:
    """Load a model; `catalogue.load_model` also tells how far it is.

    Raises:
        ModelUnavailable: it is not there, does not fit in memory, or lets one row of a batch touch another.
        UsageError: the environment's number of threads is none.
    """
    from mechanisms.inference.models import catalogue

    return catalogue.load_model(name)


@functools.cache
def default_model() -> LanguageModel:
    """The model where nobody names one, loaded once a process."""
    return load_model()


def load_embedder() -> Embedder:
    """Load the model that places texts near each other.

    Raises:
        ModelUnavailable: it is neither in its wheel nor to be had from the hub.
    """
    from mechanisms.inference.models import embeddings

    return embeddings.load_embedder()


@contextmanager
def opened(name: str, engine: str = LOCAL) -> Iterator[LanguageModel]:
    """A model by its name, in this process or spread over a Ray cluster, for as long as it is needed.

    Args:
        engine: one of `ENGINES`.

    Raises:
        UsageError: Ray is not installed, or a setting of it cannot be used.
        ModelUnavailable: the model, the Ray cluster or its workers are not available.
    """
    if engine == LOCAL:
        yield load_model(name)
        return
    if find_spec("ray") is None:
        raise UsageError("--engine ray needs Ray: pip install -r requirements-ray.txt")
    from mechanisms.inference.cluster import spread  # an extra that not everybody installs
    from mechanisms.inference.engine.device import fixed_threads
    from mechanisms.inference.models import catalogue

    # Workers are other processes: following their load, this one would follow its own data.
    with spread(name, catalogue.load_model(name, fixed_threads())) as model:
        yield model
