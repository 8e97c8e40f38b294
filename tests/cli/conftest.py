"""Toys in place of the models that `synthesize` loads."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from tests.recipes.test_drafts import Speaking
from tests.toy_embedder import ToyEmbedder


@pytest.fixture
def toy_models(monkeypatch):
    @contextmanager
    def opened(name, engine):
        yield Speaking(sharpness=1.0, busy=10**6)

    monkeypatch.setattr("mechanisms.cli.synthesize.opened", opened)
    monkeypatch.setattr("mechanisms.cli.synthesize.load_embedder", ToyEmbedder)
