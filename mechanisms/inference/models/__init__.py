"""Models on this machine. What computes with them takes seconds to import, and is imported when one is loaded."""

from __future__ import annotations

from mechanisms.inference.language_model import Embedder, LanguageModel


def load_model(name: str | None = None) -> LanguageModel:
    """Load a model; see `catalogue.load_model`, which also tells how far it is.

    Raises:
        ModelUnavailable: it is not there, does not fit in memory, or lets one row of a batch touch another.
        UsageError: the environment's number of threads is none.
    """
    from mechanisms.inference.models import catalogue

    return catalogue.load_model(name)


def default_model() -> LanguageModel:
    """The model where nobody names one, loaded once a process; see `load_model`."""
    from mechanisms.inference.models import catalogue

    return catalogue.default_model()


def load_embedder() -> Embedder:
    """Load the model that places texts near each other.

    Raises:
        ModelUnavailable: it is neither in its wheel nor to be had from the hub.
    """
    from mechanisms.inference.models import embeddings

    return embeddings.load_embedder()


def listed_as(label: str) -> str | None:
    """The name of a listed model on this machine whose label this is: what a set's file calls its writer by."""
    from mechanisms.inference.models import catalogue

    return catalogue.listed_as(label)
