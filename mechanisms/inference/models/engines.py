"""Where a model computes: in this process, or spread over a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from mechanisms.errors import UsageError
from mechanisms.inference.language_model import LanguageModel
from mechanisms.inference.models import load_model

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)


@contextmanager
def opened(name: str, engine: str = LOCAL) -> Iterator[LanguageModel]:
    """A model by its name, for as long as it is needed.

    Args:
        name: see `catalogue.load_model`.
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
    from mechanisms.inference.engine.threads import fixed_thread_count
    from mechanisms.inference.models import catalogue
    from mechanisms.inference.ray.engine import spread  # an extra that not everybody installs

    # Workers are other processes: following their load, this one would follow its own data.
    with spread(name, catalogue.load_model(name, fixed_thread_count())) as model:
        yield model
