"""The baseline without a language model."""

from __future__ import annotations

import numpy as np

from mechanisms.evaluation.prototypes import nearest_prototype
from tests.toy_embedder import ToyEmbedder

EMBEDDER = ToyEmbedder()


def test_a_text_gets_the_label_of_the_nearest_prototype():
    prototypes = EMBEDDER.embed(["red apple", "blue sky"]).astype(float)
    texts = ["a blue sky", "one red apple", "apple", "sky"]
    assert nearest_prototype(texts, prototypes, EMBEDDER).tolist() == [1, 0, 0, 1]
    assert nearest_prototype(texts, prototypes[::-1], EMBEDDER).tolist() == [0, 1, 1, 0]


def test_equal_prototypes_give_the_first_label():
    prototypes = np.repeat(EMBEDDER.embed(["red"]).astype(float), 3, axis=0)
    assert nearest_prototype(["red", "anything else"], prototypes, EMBEDDER).tolist() == [0, 0]


def test_an_answer_does_not_depend_on_the_other_texts():
    rng = np.random.default_rng(0)
    prototypes = rng.normal(size=(5, EMBEDDER.dimensions))
    prototypes /= np.linalg.norm(prototypes, axis=1, keepdims=True)
    texts = [f"text {i}" for i in range(30)]
    together = nearest_prototype(texts, prototypes, EMBEDDER)
    assert len(set(together.tolist())) > 1
    assert [nearest_prototype([text], prototypes, EMBEDDER)[0] for text in texts] == together.tolist()


def test_no_texts_have_no_answers():
    assert nearest_prototype([], EMBEDDER.embed(["red", "blue"]).astype(float), EMBEDDER).shape == (0,)
