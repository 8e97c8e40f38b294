"""A model on an NVIDIA GPU: rows do not touch each other, and its numbers are those of the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mechanisms.inference.engine import DEVICE
from mechanisms.inference.engine.device import chosen_device
from mechanisms.inference.models.loading import load_model
from research.gpu import SHAPES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="NO NVIDIA GPU: CUDA was not tested"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    made = tmp_path_factory.mktemp("tiny")
    SHAPES[-1].saved(made)
    return str(made)


def says(model) -> list[np.ndarray]:
    session = model.open([5, 6], [[300 + row] for row in range(7)], 4, 2)
    seen = [session.logits()]
    session.advance(range(400, 407))
    return [*seen, session.logits(np.arange(9)), session.scores([[7, 6], [7, 9]])]


def test_a_model_loads_there_which_tests_its_rows(monkeypatch, folder):
    monkeypatch.setenv(DEVICE, "cuda")
    model = load_model(folder)
    assert model.model.device.type == "cuda"
    assert model.model.dtype == chosen_device().dtype


def test_it_says_what_the_cpu_says(monkeypatch, folder):
    monkeypatch.setenv(DEVICE, "cuda")
    there = says(load_model(folder))
    monkeypatch.setenv(DEVICE, "cpu")
    for mine, other in zip(says(load_model(folder)), there, strict=True):
        np.testing.assert_allclose(mine, other, atol=0.3)


def test_steps_are_recorded_there_and_say_the_same(monkeypatch, folder):
    monkeypatch.setenv(DEVICE, "cuda")
    model = load_model(folder)
    assert model.forward.records
    there = says(model)
    model.forward.records = False
    for mine, other in zip(says(model), there, strict=True):
        np.testing.assert_allclose(mine, other, atol=0.1)
