"""What a model needs before it is loaded, and what is never read: pickles, code, and files that are no models."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.models import catalogue, listing, needs
from mechanisms.inference.models.catalogue import converted
from mechanisms.inference.models.listing import EMBEDDED, available_models, gguf_in_wheel


def small() -> LlamaForCausalLM:
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=40, **sizes))


@pytest.fixture
def folder(tmp_path) -> Path:
    """A model of a few numbers; it has no tokenizer."""
    small().save_pretrained(tmp_path / "small")
    return tmp_path / "small"


def test_parameters_of_a_folder_are_counted(folder):
    found = needs.needs(str(folder))
    assert found.parameters == sum(each.numel() for each in small().state_dict().values())
    assert found.on_disk
    assert found.memory == found.parameters * needs.best_dtype(needs.best_device()).itemsize


@pytest.mark.slow
def test_listed_models_have_the_parameters_that_are_listed():
    here = [each for each in available_models() if each.available]
    if not here:
        pytest.skip("MODELS MISSING: no wheel of a listed model is installed")
    gguf = gguf_in_wheel()
    for each in here:
        source = listing.parameters_in_gguf(gguf) if each.name == EMBEDDED and gguf else None
        assert source in (None, each.parameters)
        assert needs.needs(each.name).parameters == each.parameters


def test_a_hub_model_that_is_not_here_is_unknown(monkeypatch):
    assert needs.needs("nobody/nothing-of-the-kind") == needs.ModelNeeds(None, on_disk=False)
    monkeypatch.setattr(needs, "available_memory", lambda: 0)
    needs.refuse_too_large("nobody/nothing-of-the-kind")


def test_a_model_that_cannot_fit_is_refused_before_it_is_read(folder, monkeypatch):
    needed = needs.needs(str(folder)).memory
    monkeypatch.setattr(needs, "available_memory", lambda: needed - 1)
    monkeypatch.setattr(catalogue, "_read", lambda *_: pytest.fail("it was read"))
    with pytest.raises(ModelUnavailable, match="choose a smaller one") as refused:
        catalogue.load_model(str(folder))
    assert "\n" not in str(refused.value)
    assert needs.refuse_too_large(str(folder), freed=1).memory == needed


def test_pickles_are_not_read(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue.AutoTokenizer, "from_pretrained", lambda *_, **__: None)
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    (pickled / "config.json").write_text((folder / "config.json").read_text())
    torch.save(small().state_dict(), pickled / "pytorch_model.bin")
    with pytest.raises(ModelUnavailable, match="no .safetensors"):
        catalogue.load_model(str(pickled))
    with pytest.raises(ModelUnavailable, match="not available"):  # the loader by itself
        catalogue._read("pickled", pickled)


class Marker:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self):
        return Path.touch, (self._path,)


def test_no_pickle_is_unpickled_whatever_it_is_called(folder, tmp_path, monkeypatch):
    """Beside a folder's safetensors, in their place, under their name, and as a model's file."""
    monkeypatch.setattr(catalogue.AutoTokenizer, "from_pretrained", lambda *_, **__: None)
    ran = tmp_path / "it ran"
    content = pickle.dumps({"x": Marker(ran)})
    pickle.loads(content)
    ran.unlink()  # it would have made itself known
    config = (folder / "config.json").read_text()
    for name in ("pytorch_model.bin", "model.pt", "model.pkl", "model.safetensors", "training_args.bin", "adapter.bin"):
        bad = tmp_path / f"folder of {name}"
        bad.mkdir()
        (bad / "config.json").write_text(config)
        (bad / name).write_bytes(content)
        with pytest.raises(ModelUnavailable):
            catalogue.load_model(str(bad))
        with pytest.raises(ModelUnavailable):  # the loader by itself
            catalogue._read(name, bad)
        (folder / name).write_bytes((folder / name).read_bytes() if (folder / name).exists() else content)
    for name in ("model.pt", "model.bin", "model.pkl", "model.gguf"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelUnavailable):
            catalogue.load_model(str(tmp_path / name))
    catalogue._read("small", folder)  # its own weights are sound, and nothing beside them is opened
    assert not ran.exists()


def test_code_that_comes_with_a_model_is_not_run(folder, tmp_path, monkeypatch):
    ran = tmp_path / "it ran"
    monkeypatch.setattr("builtins.input", lambda _: pytest.fail("the terminal was asked"))
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass Own: pass\n")
    auto = {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own", "AutoTokenizer": ["own.Own", None]}
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "own", "auto_map": auto}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"auto_map": auto}))
    with pytest.raises(ModelUnavailable, match="not available"):
        catalogue.load_model(str(folder))
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": auto}))  # of a kind that transformers knows
    with pytest.raises(ModelUnavailable, match="not available"):  # it has no tokenizer
        catalogue.load_model(str(folder))
    assert not ran.exists()


def test_attention_is_not_fetched_because_a_config_names_it(folder, monkeypatch):
    monkeypatch.setattr(catalogue.AutoTokenizer, "from_pretrained", lambda *_, **__: None)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"attn_implementation": "somebody/kernels"}))
    loaded, _ = catalogue._read("small", folder)
    assert loaded.config._attn_implementation == "eager"


def test_a_file_that_is_no_model_is_not_read_beyond_its_first_bytes(tmp_path, monkeypatch):
    (tmp_path / "secret.gguf").write_text("a long text")
    with monkeypatch.context() as patched:
        patched.setattr(listing, "file_digest", lambda _: pytest.fail("it was read"))
        for read in (needs.needs, lambda name: converted(Path(name))):
            with pytest.raises(ModelUnavailable, match="cannot be read"):
                read(str(tmp_path / "secret.gguf"))
    (tmp_path / "damaged.gguf").write_bytes(b"GGUF nonsense")
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        needs.needs(str(tmp_path / "damaged.gguf"))
    with pytest.raises(ModelUnavailable, match="not available"):
        catalogue.load_model(str(tmp_path / "nowhere"))
