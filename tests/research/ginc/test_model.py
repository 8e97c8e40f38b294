"""The tokenizer makes GINC's prompts of the project's, and a GPT-2 that is trained on documents learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mechanisms.inference import GenerationPrompt, QueryPrompt
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.models.catalogue import refuse_by_config, refuse_by_test
from mechanisms.records import Demonstration
from research.ginc.hmm import ginc, posterior
from research.ginc.model import CONTEXT, LABEL, TEMPLATE, batch, tokenizer, train, untrained


@pytest.fixture(scope="module")
def model() -> TransformersModel:
    concepts = ginc()
    torch.manual_seed(0)
    network = untrained(concepts, layers=1, width=32)
    return TransformersModel("ginc", "0" * 64, network, tokenizer(concepts))


def words(model: TransformersModel, tokens: list[int]) -> str:
    return " ".join(model.tokenizer.convert_ids_to_tokens(tokens))


def test_private_prompts_are_texts_behind_delimiters(model):
    prompt = GenerationPrompt(model, TEMPLATE, LABEL, 3, 2)
    assert words(model, [*prompt.prefix, *prompt.row(["a ai j", "ak / aq"])]) == "/ a ai j / ak / aq /"
    assert words(model, [*prompt.prefix, *prompt.cue]) == "/"
    assert words(model, model.encode("\n")) == "[endoftext]"
    assert prompt.length == 2 * 4 + 1


def test_queries_are_prompts_that_end_before_the_answer(model):
    prompt = QueryPrompt(model, TEMPLATE, [Demonstration("a ai", "j"), Demonstration("ak ar", "/")], 2)
    assert words(model, [*prompt.prefix, *prompt.row("v au")]) == "/ a ai j / ak ar / / v au"
    assert [prompt.label(token) for token in ("/", "ax")] == [[0], [49]]


def test_texts_that_are_decoded_are_read_back(model):
    assert model.encode(" " + model.decode([0, 1, 49, 12])) == [0, 1, 49, 12]
    assert model.stop_tokens == {model.tokenizer.eos_token_id}


def test_the_engine_takes_it(model):
    refuse_by_config(model.model.config)
    refuse_by_test(model)


def test_windows_are_documents_of_one_concept():
    concepts = ginc()
    texts = batch(concepts, 8, np.random.default_rng(0)).numpy()
    assert texts.shape == (8, CONTEXT)
    assert (texts[::2, 0] == len(concepts.tokens)).all()  # a document's beginning
    assert (texts[1::2, 0] < len(concepts.tokens)).all()
    for text in texts:
        written = " ".join(concepts.tokens[code] for code in text if code < len(concepts.tokens))
        found = concepts.log_likelihoods(written)
        assert posterior(found[None]).max() > 0.99


@pytest.mark.slow
def test_training_lowers_the_loss():
    concepts = ginc()
    torch.manual_seed(0)
    losses = list(train(untrained(concepts, layers=1, width=32), concepts, 60, rows=8, planned=60))
    assert losses[0] == pytest.approx(np.log(52), abs=0.5)  # a model that knows nothing
    assert np.mean(losses[-10:]) < losses[0] - 0.5
