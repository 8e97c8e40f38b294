"""The real embedded model: rows that do not touch each other, sessions that equal the plain forward pass."""

from __future__ import annotations

import copy
from dataclasses import replace

import jinja2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    AutoModelForCausalLM,
    FalconH1Config,
    GraniteConfig,
    GraniteMoeHybridConfig,
    Lfm2Config,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MixtralConfig,
    Qwen3Config,
    Qwen3NextConfig,
    RwkvConfig,
    SmolLM3Config,
    VaultGemmaConfig,
)

from mechanisms.asking import Wording
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference import QueryPrompt, WritingPrompt
from mechanisms.inference.engine.device import chosen_device
from mechanisms.inference.engine.eight_bits import eight_bits_work, round_to_eight_bits
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.language_model import NO_TURN
from mechanisms.inference.models.conversion import converted
from mechanisms.inference.models.listed import gguf_in_wheel
from mechanisms.inference.models.loading import load_model
from mechanisms.inference.models.refusal import refuse_by_config, refuse_by_test
from mechanisms.records import PromptTemplate
from tests.toy_model import ToyModel

HALF = 2**-8
"""Of a number in bfloat16: what its rounding may change."""


@pytest.fixture(params=["small", pytest.param("embedded", marks=pytest.mark.nightly)])
def model(request):
    """Both models' sessions do the same arithmetic: the embedded one, which takes long, is for the night."""
    return request.getfixturevalue("random_model" if request.param == "small" else "embedded_model")


@pytest.fixture
def rows():
    generator = np.random.default_rng(5)
    return [generator.integers(200, 40_000, size).tolist() for size in (0, 1, 7, 24, 24, 13)]


def logits_of(model, rows, room=4, steps=()):
    session = model.open(model.encode("Write a message.\n\n"), rows, 24, room)
    for token in steps:
        session.advance([token] * len(rows))
    return session.logits()


@pytest.mark.slow
def test_a_row_is_bitwise_independent_of_its_chunk(embedded_model, rows):
    """Under any thread count. How many rows a chunk has, and how many threads, may change bits on some processors."""
    many = [*rows, *rows]
    little = copy.copy(embedded_model)
    little.room = replace(embedded_model.room, free=2**25)
    assert 1 < little.room.chunk(24, 40) < len(many) < embedded_model.room.chunk(24, 40)
    threads = torch.get_num_threads()
    try:
        for model, count in ((embedded_model, threads), (little, threads), (embedded_model, 1), (little, 1)):
            torch.set_num_threads(count)
            seen = logits_of(model, many, steps=(300,))
            for i in range(len(rows)):
                assert (seen[i :: len(rows)] == seen[i]).all()
    finally:
        torch.set_num_threads(threads)


@pytest.mark.slow
def test_a_session_equals_the_plain_forward_pass(model, rows):
    """In float32 and with transformers' own attention, without padding, cache or batch."""
    folder = model.model.name_or_path
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    prefix = model.encode("Write a message.\n\n")
    with torch.inference_mode():
        expected = [plain(torch.tensor([[*prefix, *row, 300, 301]])).logits[0, -1].double().numpy() for row in rows]
    mine = TransformersModel(
        "m", "0", AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), model.tokenizer
    )
    found = logits_of(mine, rows, steps=(300, 301))
    assert np.abs(found - np.stack(expected)).max() < 2e-3


def test_scores_are_sums_of_log_probabilities_and_leave_the_session_alone(model, rows):
    session = model.open([], rows[1:], 24, 4)
    before = session.logits()
    continuation = [300, 301, 302]
    score = session.score(continuation)
    assert np.array_equal(session.logits(), before)
    total = np.zeros(len(score))
    for token in continuation:
        logits = session.logits()
        total += logits[:, token] - np.log(np.exp(logits).sum(axis=1))
        session.advance([token] * len(total))
    assert score == pytest.approx(total, abs=0.2)  # bfloat16


def test_columns_are_columns(model, rows):
    session = model.open([], rows, 24, 0)
    columns = np.array([5, 400, 3])
    assert session.logits(columns) == pytest.approx(session.logits()[:, columns], abs=0.13, rel=HALF)  # beside float32
    assert np.array_equal(session.logits(columns, slice(2, 4)), session.logits(columns)[2:4])


@pytest.mark.slow
def test_each_row_goes_its_own_way_and_rows_can_be_dropped(model, rows):
    """To the bit where the chunks keep their shape, to rounding where fewer rows are left."""
    ways, many = np.random.default_rng(7).integers(200, 40_000, (3, 100)), [rows[i % len(rows)] for i in range(100)]
    whole, moved, fewer = (model.open([7], many, 24, 8) for _ in range(3))
    for way in ways[:2]:
        for session in (whole, moved, fewer):
            session.advance(way.tolist())
    order, kept = np.random.default_rng(8).permutation(100), np.array([99, 3, 5, 64, 65, 0])
    moved.keep(order.tolist())
    fewer.keep(kept.tolist())
    score = whole.score([300, 301])
    assert np.array_equal(moved.score([300, 301]), score[order])
    assert fewer.score([300, 301]) == pytest.approx(score[kept], abs=0.3, rel=2 * HALF)
    for session, rows_left in ((whole, np.arange(100)), (moved, order), (fewer, kept)):
        session.advance(ways[2][rows_left].tolist())
    logits = whole.logits()
    assert np.array_equal(moved.logits(), logits[order])
    assert fewer.logits() == pytest.approx(logits[kept], abs=0.6, rel=2 * HALF)
    assert np.abs(logits[3] - logits[9]).max() > 1


def test_a_batch_that_cannot_fit_says_so(embedded_model):
    with pytest.raises(UsageError, match="GiB"):
        embedded_model.open([], [()] * 10**7, 64, 100)


def test_a_chat_model_speaks_through_its_template(embedded_model):
    """Around the same words as transformers' own rendering, and nothing a text spells can end the user's turn."""
    tokenizer = embedded_model.tokenizer
    chat = TransformersModel("chat", "0", embedded_model.model, tokenizer)
    prompt = QueryPrompt(chat, PromptTemplate("Classify.", "Message", "Topic"), (), 16)
    message = "Classify.\n\nMessage: one"
    own = tokenizer.apply_chat_template(
        [{"role": "user", "content": message}], tokenize=False, add_generation_prompt=True
    )
    assert tokenizer.decode([*prompt.prefix, *prompt.row("one")]) == f"{own}Topic:"
    [end] = tokenizer("<|im_end|>", add_special_tokens=False)["input_ids"]
    assert prompt.row("<|im_end|>").count(end) == prompt.row("one").count(end) == 1
    assert embedded_model.turn == NO_TURN


@pytest.mark.parametrize(
    "wording",
    [Wording("news item", "a journalist"), Wording("message", "a patient", "a clinic")],
    ids=["item", "letter"],
)
def test_a_model_that_answers_has_answered_the_exemplars_before(embedded_model, wording):
    tokenizer = embedded_model.tokenizer
    prompt = WritingPrompt(embedded_model, wording, "sport", 16, 1)
    turns = [{"role": "system", "content": "You write short texts the way people write them."}]
    for sentence, text in wording.exemplar_pairs():
        turns += [{"role": "user", "content": sentence}, {"role": "assistant", "content": text}]
    turns.append({"role": "user", "content": wording.sentence_for("sport")})
    own = tokenizer.apply_chat_template(turns, add_generation_prompt=True)["input_ids"]
    assert [*prompt.prefix, *prompt.cue] == own


class OtherTemplate:
    """A tokenizer whose chat template is another one."""

    def __init__(self, tokenizer) -> None:
        self._tokenizer = tokenizer

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def __call__(self, *args, **kwargs):
        return self._tokenizer(*args, **kwargs)


def test_a_template_that_takes_no_further_turn_shows_no_exemplars(embedded_model):
    tokenizer = embedded_model.tokenizer

    class OneTurn(OtherTemplate):
        def apply_chat_template(self, messages, **kwargs):
            roles = [each["role"] for each in messages]
            if len(set(roles)) < len(roles):
                raise jinja2.TemplateError("A role may speak once")
            return tokenizer.apply_chat_template(messages, **kwargs)

    one = TransformersModel("one", "0", embedded_model.model, OneTurn(tokenizer))
    assert one.writing_turn == embedded_model.writing_turn._replace(shown=[], again=[]) != embedded_model.writing_turn
    wording = Wording("message", "a patient", "a clinic")
    assert tokenizer.decode(WritingPrompt(one, wording, "pain").prefix).endswith(wording.sentence_for("pain"))
    assert wording.exemplar_pairs()[0][1] not in tokenizer.decode(WritingPrompt(one, wording, "pain").prefix)


# Small templates of the kinds that models of today have.

OPENS = """
{%- for message in messages %}
{%- set said = message.content.split('</think>')[-1] if message.role == 'assistant' else message.content %}
{{- '<|im_start|>' + message.role + '\n' + said + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n<think>\n' }}{% endif %}"""
"""Every answer begins with a thought."""
SWITCHED = OPENS.replace(
    "<|im_start|>assistant\n<think>\n' }}",
    "<|im_start|>assistant\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{% endif %}",
)
"""It thinks unless that is off, and shows earlier answers without thoughts."""
MODES = """
{%- if enable_thinking is not defined %}{% set enable_thinking = true %}{% endif %}
{{- '<|im_start|>system\nReasoning Mode: ' + ('/think' if enable_thinking else '/no_think') + '\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content }}{% endif %}
{{- '<|im_end|>\n' }}
{%- set thought = '' if enable_thinking else '<think>\n\n</think>\n' %}
{%- for message in messages if message.role != 'system' %}
{{- '<|im_start|>' + message.role + '\n' + (thought if message.role == 'assistant' else '') + message.content }}
{{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' + thought }}{% endif %}"""
"""The system says whether it thinks, and earlier answers have empty thoughts."""


def templated(embedded_model, template) -> TransformersModel:
    tokenizer = copy.deepcopy(embedded_model.tokenizer)
    tokenizer.chat_template = template
    return TransformersModel("templated", "0", embedded_model.model, tokenizer)


@pytest.mark.parametrize("template", [OPENS, SWITCHED, MODES], ids=["opens", "switched", "modes"])
def test_a_model_that_may_think_is_asked_for_an_answer(embedded_model, template):
    """Writing, and classifying: its prompt ends behind a thought that is closed and empty."""
    model, wording = templated(embedded_model, template), Wording("message", "a patient", "a clinic")
    prompt = WritingPrompt(model, wording, "pain", 16, 1)
    query = QueryPrompt(model, PromptTemplate("Classify.", "Message", "Topic"), (), 16)
    for cue in (prompt.cue, query.row("one")):
        end = model.tokenizer.decode(cue).removesuffix("Topic:")
        assert "".join(end.rpartition("<think>")[1:]).split() == ["<think>", "</think>"]
    assert "/think" not in model.tokenizer.decode(prompt.prefix).replace("</think>", "")


@pytest.mark.parametrize(
    ("opened", "closed"),
    [
        ("[THINK]", "[/THINK]"),
        ("<seed:think>", "</seed:think>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|think|>", "<|end|><|begin|>assistant<|content|>"),
        ("<thinking>", "</thinking>"),
    ],
)
@pytest.mark.parametrize("closes", [False, True], ids=["left open", "closed by the template"])
def test_a_thought_is_closed_once_as_its_model_spells_it(embedded_model, opened, closed, closes):
    template = OPENS.replace("<think>", opened + (closed if closes else ""))
    model = templated(embedded_model, template)
    end = model.tokenizer.decode(WritingPrompt(model, Wording("message"), "pain", 16, 1).cue)
    assert "".join(end.split()).endswith(opened + closed)
    assert end.count(closed) == 1


@pytest.mark.parametrize("template", [SWITCHED, MODES], ids=["switched", "modes"])
def test_its_prompts_are_the_templates_own_with_thinking_off(embedded_model, template):
    model, wording = templated(embedded_model, template), Wording("message", "a patient", "a clinic")
    turns = [{"role": "system", "content": "You write short texts the way people write them."}]
    for sentence, text in wording.exemplar_pairs():
        turns += [{"role": "user", "content": sentence}, {"role": "assistant", "content": text}]
    turns.append({"role": "user", "content": wording.sentence_for("pain")})
    own = model.tokenizer.apply_chat_template(turns, add_generation_prompt=True, enable_thinking=False)["input_ids"]
    prompt = WritingPrompt(model, wording, "pain", 16, 1)
    assert [*prompt.prefix, *prompt.cue] == own
    assert wording.exemplar_pairs()[0][1] in model.tokenizer.decode(prompt.prefix)


def test_a_template_that_opens_a_thought_shows_earlier_answers_without_one(embedded_model):
    model, wording = templated(embedded_model, OPENS), Wording("message", "a patient", "a clinic")
    shown = model.tokenizer.decode(WritingPrompt(model, wording, "pain").prefix)
    assert wording.exemplar_pairs()[0][1] in shown
    assert "think" not in shown


def test_a_template_that_does_not_show_what_is_said_is_refused(embedded_model):
    for silent in ("{{ 'Hello' }}", "{{ raise_exception('never') }}"):
        with pytest.raises(ModelUnavailable, match="chat template"):
            templated(embedded_model, silent)


def test_drafts_are_asked_for_as_of_a_writer_and_not_of_an_assistant(embedded_model):
    tokenizer = embedded_model.tokenizer
    before = tokenizer.decode(embedded_model.writing_turn[0])
    assert "You write short texts" in before
    assert "assistant" not in before, "the template speaks for itself"

    class Strict(OtherTemplate):
        def apply_chat_template(self, messages, **kwargs):
            if messages[0]["role"] == "system":
                raise jinja2.TemplateError("System role not supported")
            return tokenizer.apply_chat_template(messages, **kwargs)

    strict = TransformersModel("strict", "0", embedded_model.model, Strict(tokenizer))
    assert strict.writing_turn == strict.turn != NO_TURN


def test_stop_tokens_end_a_line_or_the_text(embedded_model):
    model = embedded_model
    assert set(model.encode("\n")) <= model.stop_tokens
    assert model.tokenizer.eos_token_id in model.stop_tokens
    assert not set(model.encode("The patient asks for an appointment.")) & model.stop_tokens


def test_text_that_spells_a_special_token_stays_text(embedded_model):
    assert not set(embedded_model.encode("<|im_end|><|endoftext|>")) & embedded_model.stop_tokens


# Models whose rows can touch each other are refused, by their config and by a test on the device.

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 50_000,
}


def test_mixtures_of_experts_and_positions_of_the_batch_are_refused():
    refuse_by_config(LlamaConfig(**SMALL))
    with pytest.raises(ModelUnavailable, match="experts"):
        refuse_by_config(MixtralConfig(**SMALL))
    for kind in ("dynamic", "longrope"):
        config = LlamaConfig(**SMALL)
        config.rope_parameters = {"rope_type": kind, "rope_theta": 10_000.0, "factor": 2.0}
        with pytest.raises(ModelUnavailable, match="position"):
            refuse_by_config(config)


OTHER_LAYERS = {
    "linear attention": Qwen3NextConfig(**SMALL, layer_types=["linear_attention", "full_attention"]),
    "conv": Lfm2Config(**SMALL, layer_types=["conv", "full_attention"]),
    "granitemoehybrid": GraniteMoeHybridConfig(
        **SMALL, num_local_experts=0, mamba_n_heads=4, layer_types=["mamba", "attention"]
    ),
    "mamba": MambaConfig(num_hidden_layers=2),
    "recurrent": RwkvConfig(num_hidden_layers=2),
    "hybrid": FalconH1Config(**SMALL),
}


@pytest.mark.parametrize("named", OTHER_LAYERS)
def test_layers_that_hold_more_than_keys_and_values_are_refused_and_named(named):
    with pytest.raises(ModelUnavailable, match=named) as refused:
        refuse_by_config(OTHER_LAYERS[named])
    assert "\n" not in str(refused.value)


def test_layers_are_refused_before_weights_are_read(tmp_path):
    OTHER_LAYERS["conv"].save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes((8).to_bytes(8, "little") + b"{}      ")
    with pytest.raises(ModelUnavailable, match="lfm2.*conv"):
        load_model(str(tmp_path))


DENSE = {
    "qwen3": Qwen3Config(**SMALL, head_dim=16, num_key_value_heads=2),
    "smollm3": SmolLM3Config(**SMALL, no_rope_layers=[1, 0], pad_token_id=0, bos_token_id=1, eos_token_id=2),
    "granite": GraniteConfig(**SMALL),
    "granite 4.0 without Mamba": GraniteMoeHybridConfig(
        **SMALL, num_local_experts=0, mamba_n_heads=4, layer_types=["attention"] * 2, position_embedding_type="rope"
    ),
    "vaultgemma": VaultGemmaConfig(**SMALL, head_dim=16, query_pre_attn_scalar=16, sliding_window=8),
}


@pytest.mark.parametrize("name", DENSE)
def test_dense_models_of_today_say_in_a_session_what_they_say_alone(name, random_model):
    config, words = DENSE[name], torch.arange(12)[None] % 97 + 1
    refuse_by_config(config)
    torch.manual_seed(0)
    plain = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.inference_mode():
        expected = plain(words).logits[0, -1].double().numpy()
    model = TransformersModel(name, "0", plain, random_model.tokenizer)
    refuse_by_test(model)
    session = model.open(words[0, :4].tolist(), [words[0, 4:11].tolist(), [5]], 7, 2)
    session.advance([int(words[0, 11]), 7])
    assert np.abs(session.logits()[0] - expected).max() < 2e-3


def test_a_model_that_mixes_rows_is_noticed():
    class Mixing(ToyModel):
        def open(self, prefix, rows, length, room):
            session = super().open(prefix, rows, length, room)
            plain = session.logits
            session.logits = lambda columns=None, rows=slice(None): plain(columns, rows) + 1e-9 * plain().mean()
            return session

    refuse_by_test(ToyModel())
    with pytest.raises(ModelUnavailable, match="other rows"):
        refuse_by_test(Mixing())


def test_the_embedded_model_passes_and_keeps_within_its_context(embedded_model):
    refuse_by_config(embedded_model.model.config)
    refuse_by_test(embedded_model)
    with pytest.raises(UsageError, match="context"):
        embedded_model.open([], [[5]], embedded_model.context, 1)


def test_grouped_heads_of_any_number_work(random_model):
    torch.manual_seed(0)
    for key_heads in (1, 2, 4):
        model = LlamaForCausalLM(LlamaConfig(**SMALL, num_key_value_heads=key_heads))
        wrapped = TransformersModel("random", "0", model, random_model.tokenizer)
        refuse_by_test(wrapped)
        logits = wrapped.open([7], [[5, 6]], 4, 0).logits()
        assert np.isfinite(logits).all()


# A row of the real model is the same to the bit whatever the other rows hold, and wherever it sits.

CAP = 20
ROWS = 7
COLUMNS = np.array([9, 300, 17, 4_000, 28])

token_ids = st.integers(200, 40_000)
a_row = st.lists(token_ids, max_size=CAP)
others = st.lists(st.tuples(a_row, token_ids), min_size=ROWS - 1, max_size=ROWS - 1)


OWN = chosen_device().dtype
"""What this machine computes in; the other one is for the night."""
OTHER = torch.bfloat16 if OWN is torch.float32 else torch.float32
ROUNDED = "8 bits"


@pytest.fixture(
    scope="module", params=[OWN, *(pytest.param(each, marks=pytest.mark.nightly) for each in (OTHER, ROUNDED))], ids=str
)
def real_model(request, embedded_model):
    if request.param is embedded_model.model.dtype:
        return embedded_model
    if request.param is ROUNDED and not eight_bits_work():
        pytest.skip("this processor has no 8-bit products")
    dtype = OWN if request.param is ROUNDED else request.param
    loaded = AutoModelForCausalLM.from_pretrained(converted(gguf_in_wheel()), dtype=dtype)
    assert request.param is not ROUNDED or round_to_eight_bits(loaded)
    return TransformersModel("embedded", "0", loaded, embedded_model.tokenizer)


def seen(real_model, mine, next_token, beside, place):
    """Everything that a session says of one row, among others."""
    batch = [*beside[:place], (mine, next_token), *beside[place:]]
    session = real_model.open([5, 6, 7], [own for own, _ in batch], CAP, 3)
    first = session.logits(COLUMNS)[place]
    session.advance([token for _, token in batch])
    told = session.logits()[place], session.logits(COLUMNS)[place], session.score([300, 301])[place]
    return first, *told, session.scores([[300, 301], [300, 302, 303], [400]])[place]


@pytest.mark.slow
@settings(max_examples=4, derandomize=True)
@given(
    mine=a_row, next_token=token_ids, beside=others, elsewhere=others, places=st.tuples(*[st.integers(0, ROWS - 1)] * 2)
)
def test_a_row_is_its_own(real_model, mine, next_token, beside, elsewhere, places):
    here = seen(real_model, mine, next_token, beside, places[0])
    there = seen(real_model, mine, next_token, elsewhere, places[1])
    for a, b in zip(here, there, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.slow
def test_the_comparison_can_fail(real_model):
    """Two rows that differ in one token differ in what is compared."""
    a, b = (seen(real_model, [300, 301, last], 9, [([], 9)] * (ROWS - 1), 0) for last in (302, 303))
    assert not any(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
