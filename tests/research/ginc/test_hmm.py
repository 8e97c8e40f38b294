"""GINC: its hidden Markov model, its prompts, and a model that learns from its documents."""

from __future__ import annotations

import csv
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from mechanisms.asking import Wording
from mechanisms.inference import QueryPrompt, WritingPrompt
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.records import Demonstration
from research.ginc.hmm import Concepts, ginc, posterior
from research.ginc.model import LABEL, SENTENCE, TEMPLATE, tokenizer, train, untrained
from tests.conftest import DATA

# The forward algorithm against the sum over all hidden paths, the posterior, and the published data's own rows.


@pytest.fixture(scope="module")
def tiny() -> Concepts:
    """Two concepts over two entities, three properties and three tokens, one of which two states write."""
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(3), size=(2, 3))
    written = np.array([[0, 1, 2], [0, 2, 1]])
    return Concepts(("/", "a", "b"), written, rng.dirichlet(np.ones(6), size=2).reshape(2, 2, 3),
                    rng.dirichlet(np.ones(2), size=2), rows)  # fmt: skip


def by_paths(concepts: Concepts, text: str, start: np.ndarray) -> np.ndarray:
    """Likelihoods by adding up every path of hidden states."""
    codes = [concepts.codes[token] for token in text.split()]
    states = list(np.ndindex(concepts.written.shape))
    total = np.zeros(len(concepts.property_))
    for path in itertools.product(states, repeat=len(codes)):
        if [concepts.written[state] for state in path] == codes:
            for concept, matrix in enumerate(concepts.property_):
                steps = [concepts.entity[a, c] * matrix[b, d] for (a, b), (c, d) in itertools.pairwise(path)]
                total[concept] += start[path[0]] * np.prod(steps)
    return total


@pytest.mark.parametrize("text", ["a", "a b", "/ b a", "b b / a"])
def test_forward_adds_up_all_paths(tiny, text):
    start = np.random.default_rng(1).dirichlet(np.ones(6)).reshape(2, 3)
    assert np.exp(tiny.log_likelihoods(text, start)) == pytest.approx(by_paths(tiny, text, start), rel=1e-12)
    assert np.exp(tiny.log_likelihoods(text)) == pytest.approx(by_paths(tiny, text, tiny.anywhere), rel=1e-12)


def test_likelihoods_of_all_texts_sum_to_one(tiny):
    texts = [" ".join(tokens) for tokens in itertools.product(tiny.tokens, repeat=4)]
    assert np.exp([tiny.log_likelihoods(text) for text in texts]).sum(axis=0) == pytest.approx([1, 1], abs=1e-12)


def test_posterior_is_bayes_rule_over_independent_texts(tiny):
    found = np.array([tiny.log_likelihoods(text) for text in ("a b /", "b a", "/ /")])
    product = np.exp(found).prod(axis=0)
    assert posterior(found) == pytest.approx(product / product.sum())
    assert posterior(found).sum() == pytest.approx(1)
    nowhere = np.full((1, 2), -np.inf)
    assert posterior(np.vstack([found, nowhere])) == pytest.approx(posterior(found))
    assert posterior(nowhere).tolist() == [0.5, 0.5]
    assert posterior(np.array([[0.0, -np.inf], [-np.inf, 0.0]])).tolist() == [0.5, 0.5]


def test_ginc_is_five_concepts_that_share_their_words():
    concepts = ginc()
    assert (len(concepts.tokens), concepts.tokens[:3], concepts.tokens[-1]) == (50, ("/", "a", "b"), "ax")
    assert concepts.property_.sum(axis=1) == pytest.approx(np.ones((5, 10)))  # doubly stochastic: mixed permutations
    assert concepts.property_.sum(axis=2) == pytest.approx(np.ones((5, 10)))
    assert concepts.start.sum(axis=(1, 2)) == pytest.approx(np.ones(5))
    assert (concepts.written[:, 0] == 0).all()
    assert (concepts.written[:, 1:] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "test"])
def test_published_rows_are_possible_under_their_own_concept(ginc_rows, split):
    """Parameters that are not the data's make most rows impossible: a wrong seed, order of draws or layout is seen."""
    concepts, rows = ginc(), ginc_rows(split)[::7]
    shifted = replace(concepts, entity=np.roll(concepts.entity, (1, 1), (0, 1)))  # other entities are mixed up
    own, other, best = [], [], []
    for row in rows:
        start, concept, text = np.zeros(concepts.written.shape), int(row["hmm"]), f"{row['text']} {row['label']}"
        start[:, int(row["start_slot"])] = 1 / len(start)
        found = concepts.log_likelihoods(text, start)
        own.append(found[concept])
        other.append(shifted.log_likelihoods(text, start)[concept])
        best.append(found.argmax() == concept)
    assert np.isfinite(own).all()
    assert np.mean(best) > 0.9
    assert np.mean(own) > np.mean(other) + 0.05


@pytest.fixture
def ginc_rows(real_data):
    def rows(split: str) -> list[dict[str, str]]:
        real_data("ginc", split)  # skips, and says so, where the data is not at hand
        with (DATA / "ginc" / f"{split}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return rows


# The tokenizer makes GINC's prompts of the project's, and a GPT-2 that is trained on documents learns.


@pytest.fixture(scope="module")
def model() -> TransformersModel:
    concepts = ginc()
    torch.manual_seed(0)
    network = untrained(concepts, layers=1, width=32)
    return TransformersModel("ginc", "0" * 64, network, tokenizer(concepts))


def words(model: TransformersModel, tokens: list[int]) -> str:
    return " ".join(model.tokenizer.convert_ids_to_tokens(tokens))


def test_private_prompts_are_texts_behind_delimiters(model):
    prompt = WritingPrompt(model, Wording(sentence=SENTENCE), LABEL, 3, 2)
    assert words(model, [*prompt.prefix, *prompt.row(["a ai j", "ak / aq"])]) == "/ a ai j / ak / aq /"
    assert words(model, [*prompt.prefix, *prompt.cue]) == "/"
    assert words(model, model.encode("\n")) == "[endoftext]"
    assert prompt.length == 2 * 4 + 1


def test_queries_are_prompts_that_end_before_the_answer(model):
    prompt = QueryPrompt(model, TEMPLATE, [Demonstration("a ai", "j"), Demonstration("ak ar", "/")], 2)
    assert words(model, [*prompt.prefix, *prompt.row("v au")]) == "/ a ai j / ak ar / / v au"
    assert [prompt.label(token) for token in ("/", "ax")] == [[0], [49]]


@pytest.mark.slow
def test_training_lowers_the_loss():
    concepts = ginc()
    torch.manual_seed(0)
    losses = list(train(untrained(concepts, layers=1, width=32), concepts, 60, rows=8, planned=60))
    assert losses[0] == pytest.approx(np.log(52), abs=0.5)  # a model that knows nothing
    assert np.mean(losses[-10:]) < losses[0] - 0.5
