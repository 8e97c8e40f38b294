"""Toys in place of the models that commands load."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from tests.baselines.toys import SpeakingModel
from tests.toy_embedder import ToyEmbedder


@pytest.fixture
def toy_models(monkeypatch, any_text_passes):
    @contextmanager
    def opened(name, engine):
        yield SpeakingModel()

    monkeypatch.setattr("mechanisms.cli.synthesize.opened", opened)
    monkeypatch.setattr("mechanisms.cli.synthesize.load_embedder", ToyEmbedder)
    monkeypatch.setattr("mechanisms.api.load_model", lambda name: SpeakingModel())
