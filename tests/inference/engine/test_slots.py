"""Slots, branches and windows of attention: each row is computed as it would be alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import linear
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from mechanisms.errors import ModelUnavailable
from mechanisms.inference import scores_of
from mechanisms.inference.engine import attention, forward
from mechanisms.inference.engine.attention import attends_to_everything
from mechanisms.inference.engine.forward import Branches
from mechanisms.inference.engine.transformers_model import TransformersModel, layout
from mechanisms.inference.models.refusal import refuse_by_test
from tests.inference.engine.test_transformers_model import SMALL
from tests.toy_model import ToyModel

# Chunks take a number of rows at which every slot computes alike, whatever the kernels' blocks are.


CONFIG = LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4, vocab_size=50_000
)
LENGTH = 5
FEW = 2 * LENGTH
"""Rows of a matrix: more of them are a first pass here, fewer are single tokens."""


def off(flat, edge):
    """What a kernel gives that does the rows of `edge` with other instructions."""
    flat[edge] *= 1 + 1e-5
    return flat


def tail(rows):
    """The last rows, which fill no block of four."""
    return slice(rows // 4 * 4, rows)


def model_with(edge, tokenizer):
    """A small model whose linear layers, but for the head, do the rows of `edge(rows of the matrix)` differently."""

    def hook(module, inputs, output):
        flat = output.view(-1, output.shape[-1])
        off(flat, edge(len(flat)))

    torch.manual_seed(0)
    model = LlamaForCausalLM(CONFIG).float()
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear) and layer is not model.get_output_embeddings():
            layer.register_forward_hook(hook)
    return TransformersModel("blocks", "0", model, tokenizer, chat=False)


def alike(model, count, prefix=(5,)):
    """Whether equal rows look equal at every point of a session."""
    session = model.open(list(prefix), [[300, 301]] * count, LENGTH, 3)
    seen = [session.logits(), session.score([7, 6])]
    session.advance([9] * count)
    seen.append(session.logits())
    session.keep(list(range(1, count)))
    session.advance([8] * (count - 1))
    seen.append(session.logits())
    return all((each == each[0]).all() for each in seen)


EDGES = {
    "every": tail,
    "single tokens": lambda rows: tail(rows) if rows < FEW else slice(0, 0),
    "first pass": lambda rows: tail(rows) if rows >= FEW else slice(0, 0),
    "first row of a pass, inside": lambda rows: slice(1, 2) if rows % 4 else slice(0, 0),
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("count", [6, 7, 9])
def test_rows_never_meet_the_edge_of_a_block(random_model, monkeypatch, name, count):
    model = model_with(EDGES[name], random_model.tokenizer)
    assert alike(model, count)
    monkeypatch.setattr(model.slots, "alike", lambda *shape: True)
    assert not alike(model, count), "this kernel has an edge that a session would meet"


@pytest.mark.parametrize("count", [6, 7, 9])
def test_neither_does_the_head(random_model, monkeypatch, count):
    model = model_with(lambda rows: slice(0, 0), random_model.tokenizer)
    monkeypatch.setattr(
        forward, "linear", lambda features, *matrix: off(linear(features, *matrix), tail(len(features)))
    )
    assert alike(model, count)
    monkeypatch.setattr(model.slots, "alike", lambda *shape: True)
    assert not alike(model, count)


@pytest.mark.parametrize("count", [6, 7, 9])
def test_neither_do_the_products_with_what_rows_share(random_model, monkeypatch, count):
    times, prefix = attention._Shared.times, range(5, 75)

    def edged(of_rows, shared):
        product = times(of_rows, shared).transpose(0, 1)
        flat = product.reshape(len(product), -1, product.shape[-1])
        flat[:, tail(flat.shape[1])] *= 1 + 1e-5
        return flat.view(product.shape).transpose(0, 1)

    monkeypatch.setattr(attention._Shared, "times", staticmethod(edged))
    model = model_with(lambda rows: slice(0, 0), random_model.tokenizer)
    assert model.forward.shares
    assert alike(model, count, prefix)
    assert model.alike(list(prefix), count, LENGTH, 3)
    monkeypatch.setattr(model.slots, "alike", lambda *shape: True)
    assert not alike(model, count, prefix)


def test_scores_of_many_paths_are_read_in_numbers_that_treat_all_rows_alike(random_model, monkeypatch):
    def edged(features, *matrix):
        logits, rows = linear(features, *matrix), len(features)
        logits[rows - 1 :] *= 2 if rows > 20 else 1
        return logits

    monkeypatch.setattr(forward, "linear", edged)
    model = model_with(lambda rows: slice(0, 0), random_model.tokenizer)

    def scores():
        found = model.open([5], [[300, 301]] * 6, LENGTH, 4).scores(LABELS)
        return (found == found[0]).all()

    assert scores()
    monkeypatch.setattr(model.slots, "alike", lambda rows, *shape: rows <= 6)
    assert scores(), "a path at a time, where no more are known to be alike"
    monkeypatch.setattr(model.slots, "alike", lambda *shape: True)
    assert not scores()


def test_a_device_without_safe_numbers_is_refused_at_load(random_model):
    with pytest.raises(ModelUnavailable, match="other rows"):
        refuse_by_test(model_with(lambda rows: slice(0, 1), random_model.tokenizer))
    refuse_by_test(model_with(tail, random_model.tokenizer))


@pytest.mark.parametrize(("edge", "rows", "expected"), [(tail, 7, True), (lambda rows: slice(0, 1), 7, False)])
def test_a_model_knows_whether_a_session_has_such_a_number(random_model, edge, rows, expected):
    model = model_with(edge, random_model.tokenizer)
    assert model.alike([5], rows, LENGTH, 3) is expected
    assert model.alike([5], 1, LENGTH, 3), "a single row has no other place"


@given(
    rows=st.integers(1, 3000), limit=st.integers(96, 300), in_a_pass=st.integers(1, 400), multiple=st.integers(1, 96)
)
def test_chunks_hold_all_rows_in_the_multiple_asked_for(rows, limit, in_a_pass, multiple):
    chunks, per_chunk = layout(rows, limit, in_a_pass, multiple)
    assert chunks * per_chunk >= rows
    assert per_chunk % multiple == 0
    assert layout(rows, limit, rows, multiple)[0] == chunks
    assert layout(rows, limit, rows, multiple)[1] <= limit
    assert (chunks - 1) * (limit // multiple * multiple) < rows


def test_labels_of_nearly_as_many_rows_share_a_shape_where_a_chunk_has_room_for_many(random_model, monkeypatch):
    monkeypatch.setattr(random_model.slots, "alike", lambda *shape: True)

    def shape(rows, limit):
        return random_model.slots.layout(random_model.room, rows, limit, LENGTH)

    assert {shape(rows, 256) for rows in (113, 114, 115, 116)} == {(1, 116, True)}
    assert shape(7, 256) == (1, 7, True)
    assert shape(100, 3) == (34, 3, True)


# Continuations read as a tree say what each would say alone; a small model with random weights, in float32.

LABELS = ([300, 301, 302], [300, 301], [300, 305, 306, 307], [400], [401, 301, 302])
PREFIX = [7, 8, 9, 10, 11]
ROWS = [[20], [21, 22, 23], [24, 25, 26, 27, 28, 29], []]


@pytest.fixture
def model(random_model):
    torch.manual_seed(0)
    # Weights as large as these make every position count: as they come, a random model hardly looks at its context.
    made = LlamaForCausalLM(LlamaConfig(**SMALL, initializer_range=0.3, num_key_value_heads=2))
    return TransformersModel("random", "0", made, random_model.tokenizer)


def test_what_continuations_share_is_read_once():
    tree = Branches(LABELS)
    assert tree.paths[0] == ()
    assert set(tree.paths[1:]) == {(300,), (300, 301), (300, 305), (300, 305, 306), (401,), (401, 301)}
    assert len(tree.tokens) == len(tree.depths) == len(tree.seen) == 6
    assert tree.after((300,)) == ([0, 1, 2], [301, 301, 305])


def test_each_score_is_that_of_its_continuation_alone_and_the_session_stays(model):
    session = model.open(PREFIX, ROWS, 8, 6)
    for _ in range(2):
        before, expected = session.logits(), np.stack([session.score(label) for label in LABELS], axis=1)
        assert session.scores(LABELS) == pytest.approx(expected, abs=1e-3)
        assert np.array_equal(session.logits(), before)
        assert expected.std() > 0.5, "all alike: the test shows nothing"
        session.advance([30, 31, 32, 33])


def test_a_row_scores_alike_to_the_bit_among_any_others(model):
    found = model.open(PREFIX, ROWS, 8, 6).scores(LABELS)
    moved = model.open(PREFIX, [[1, 2, 3, 4], ROWS[2], [5], ROWS[0]], 8, 6).scores(LABELS)
    assert np.array_equal(moved[[1, 3]], found[[2, 0]])
    assert not np.array_equal(moved[0], found[0])


def test_continuations_of_one_token_need_no_pass(model):
    session = model.open(PREFIX, ROWS, 8, 0)
    expected = np.stack([session.score([each]) for each in (300, 301)], axis=1)
    assert session.scores([[300], [301]]) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("config", [MistralConfig(sliding_window=4), Gemma3TextConfig()])
def test_a_window_is_not_looked_through(config):
    assert not attends_to_everything(config)
    assert attends_to_everything(LlamaConfig(**SMALL))


def test_a_session_without_a_tree_is_asked_one_by_one(model):
    session = ToyModel().open([], [[5], [6]], 1, 9)
    expected = np.stack([session.score(label) for label in ([1, 2], [3])], axis=1)
    assert np.array_equal(scores_of(session, [[1, 2], [3]]), expected)
    model.forward.branches = False
    session = model.open(PREFIX, ROWS, 8, 6)
    assert np.array_equal(session.scores(LABELS), np.stack([session.score(label) for label in LABELS], axis=1))


@pytest.mark.parametrize("part", [1, 2, 4])
def test_a_prefix_in_parts_is_the_same_prefix(model, monkeypatch, part):
    whole = model.open(PREFIX, ROWS, 8, 1).logits()
    monkeypatch.setattr(forward, "_PART", part)
    model._prefixes.clear()
    assert model.open(PREFIX, ROWS, 8, 1).logits() == pytest.approx(whole, abs=1e-3)
    model._prefixes.clear()
    assert model.open([1, *PREFIX[1:]], ROWS, 8, 1).logits() != pytest.approx(whole, abs=1e-3)


# Windows of attention count tokens, not the padding between a public prefix and a row.

TINY = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "vocab_size": 50_000,
    "sliding_window": 5,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gemma", "mistral"])
def test_a_padded_session_of_a_sliding_window_model_equals_the_plain_forward_pass(random_model, kind):
    torch.manual_seed(0)
    if kind == "gemma":
        layers = ["sliding_attention", "full_attention", "sliding_attention"]
        plain = Gemma3ForCausalLM(Gemma3TextConfig(**TINY, layer_types=layers)).eval()
    else:
        plain = MistralForCausalLM(MistralConfig(**TINY)).eval()
    plain.set_attn_implementation("eager")
    prefix, rows, steps = [7, 8, 9], [[], [11], list(range(20, 32))], (40, 41, 42)
    start = list(random_model.tokenizer("")["input_ids"])
    with torch.inference_mode():
        texts = [torch.tensor([[*start, *prefix, *row, *steps]]) for row in rows]
        expected = np.stack([plain(text).logits[0, -1].double().numpy() for text in texts])
    wrapped = TransformersModel("random", "0", plain, random_model.tokenizer)
    refuse_by_test(wrapped)
    session = wrapped.open(prefix, rows, 16, len(steps))
    for token in steps:
        session.advance([token] * len(rows))
    assert np.abs(session.logits() - expected).max() < 1e-5


@pytest.mark.parametrize(
    ("dtype", "error"), [(torch.float32, 1e-5), (torch.bfloat16, 0.06), (torch.float16, 0.008)], ids=str
)
@pytest.mark.parametrize("softcap", [None, 5.0])
@pytest.mark.parametrize("positions", [1, 11, attention.FEW + 1])
def test_attention_is_attention_whether_a_prefix_is_shared_or_copied(positions, softcap, dtype, error):
    """Up to the rounding of the format: eight steps of it at the largest value, which is about 2."""
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 6, positions, 8), torch.randn(3, 2, 40, 8), torch.randn(3, 2, 40, 8)
    key[1:, :, :16], value[1:, :, :16] = key[:1, :, :16], value[:1, :, :16]
    query, key, value = (each.to(dtype).float() for each in (query, key, value))
    least = torch.finfo(dtype).min / 2
    mask = torch.zeros(3, 1, positions, 40).masked_fill(torch.ones(positions, 40).triu(20).bool(), least)
    mask[1, :, :, 3] = least
    repeated = key.repeat_interleave(3, dim=1)
    weights = query @ repeated.transpose(2, 3) / 8**0.5
    weights = weights if softcap is None else softcap * torch.tanh(weights / softcap)
    expected = (weights + mask).softmax(-1) @ value.repeat_interleave(3, dim=1)
    given = {} if softcap is None else {"softcap": softcap}
    query, key, value, mask = (each.to(dtype) for each in (query, key, value, mask))
    behind, own = attention._Shared(key[0, :, :16], value[0, :, :16]), key[:, :, 16:].clone()
    own.shared = behind
    for keys, values in ((key, value), (own, value[:, :, 16:])):
        for rows in (slice(0, 3), slice(0, 1)):
            mine = keys[rows]
            mine.shared = getattr(keys, "shared", None)
            found, _ = attention.row_independent_attention(
                torch.nn.Module(), query[rows], mine, values[rows], mask[rows], **given
            )
            assert found.dtype == dtype
            assert (found.float().transpose(1, 2) - expected[rows]).abs().max() < error


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_padding_that_sees_nothing_is_finite_however_negative_its_scores(dtype):
    """Its values stand in the cache, and a weight of nothing times no number would be none in every other row."""
    seen = torch.tensor([[False, False, True, True]])
    mask = attention.mask_by_position(
        mask_function=lambda batch, head, row, column: column <= row,
        kv_length=4,
        attention_mask=seen,
        batch_size=1,
        q_length=4,
        q_offset=0,
        kv_offset=0,
        dtype=dtype,
    )
    query, value = torch.full((1, 1, 4, 8), 20.0, dtype=dtype), torch.ones((1, 1, 4, 8), dtype=dtype)
    found, _ = attention.row_independent_attention(torch.nn.Module(), query, -query, value, mask)
    assert found.isfinite().all()
    assert torch.equal(found[0, 2:], torch.ones_like(found[0, 2:]))


@pytest.mark.parametrize("positions", [1, attention.FEW, 90])
def test_a_rows_attention_is_its_own_to_the_bit(positions):
    shapes = ((6, positions), (2, 110), (2, 110))
    query, key, value = (torch.randn(4, heads, n, 16, dtype=torch.bfloat16) for heads, n in shapes)
    found, _ = attention.row_independent_attention(torch.nn.Module(), query, key, value, None)
    others = [torch.cat([torch.randn_like(each[:3]), each[:1]]) for each in (query, key, value)]
    elsewhere, _ = attention.row_independent_attention(torch.nn.Module(), *others, None)
    assert torch.equal(elsewhere[3], found[0])
    assert not torch.equal(elsewhere[0], found[0])


def test_a_session_that_shares_its_prefix_says_what_one_with_copies_says(model):
    """A long prefix, rows of every length, tokens, a tree of labels, and rows that are dropped."""
    prefix, seen = [*range(5, 5 + 2 * attention.ALIGNED + 3)], []
    for shares in (True, False):
        model.forward.shares = shares
        session = model.open(prefix, ROWS, 8, 6)
        assert session._chunks[0].cache.behind == (2 * attention.ALIGNED if shares else 0)
        found = [session.logits(), session.scores(LABELS)]
        session.advance([30, 31, 32, 33])
        found.append(session.logits())
        session.keep([2, 0])
        session.advance([34, 35])
        found += [session.logits(), session.score([7, 6])]
        session.keep([1])
        session.advance([36])
        seen.append([*found, session.logits(), session.scores(LABELS)])
    for sharing, copied in zip(*seen, strict=True):
        np.testing.assert_allclose(sharing, copied, atol=1e-3)


@pytest.mark.parametrize("rows", [2, 7])
def test_memory_that_runs_out_once_changes_nothing_behind_a_shared_prefix(model, monkeypatch, rows):
    prefix, plain, full = [*range(5, 80)], forward.ForwardPass.__call__, [MemoryError()]

    def advanced():
        session = model.open(prefix, [[20, i] for i in range(rows)], 8, 3)
        session.advance([30] * rows)
        return session.logits()

    expected = advanced()
    session = model.open(prefix, [[20, i] for i in range(rows)], 8, 3)

    def runs_out_once(self, chunk):
        if full:
            raise full.pop()
        return plain(self, chunk)

    monkeypatch.setattr(forward.ForwardPass, "__call__", runs_out_once)
    session.advance([30] * rows)
    assert not full
    assert session.logits() == pytest.approx(expected, abs=1e-3)


def test_a_model_of_few_positions_shares_nothing_and_works(random_model):
    made = GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=48, vocab_size=50_000))
    model = TransformersModel("short", "0", made, random_model.tokenizer, chat=False)
    assert not model.forward.shares
    assert np.isfinite(model.open([5, 6], [[7], [8, 9]], 4, 1).logits()).all()


def test_a_model_that_alters_the_keys_of_its_cache_shares_nothing(random_model, monkeypatch):
    update = attention._Layer.update
    monkeypatch.setattr(
        attention._Layer, "update", lambda *given, **more: tuple(each.clone() for each in update(*given, **more))
    )
    model = TransformersModel("random", "0", LlamaForCausalLM(CONFIG), random_model.tokenizer)
    assert not model.forward.shares
    assert model.open([*range(5, 100)], ROWS, 8, 1)._chunks[0].cache.behind == 0
