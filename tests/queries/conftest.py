"""Real embeddings of real questions, made once."""

from __future__ import annotations

import numpy as np
import pytest

ROWS, QUESTIONS = 800, 60


class Remembered:
    """Gives vectors that were computed before: the same ones whatever other texts are asked for."""

    name = "remembered"

    def __init__(self, vectors: dict[str, np.ndarray]) -> None:
        self.vectors = vectors
        self.dimensions = len(next(iter(vectors.values())))

    def embed(self, texts):
        return np.stack([self.vectors[text] for text in texts])


@pytest.fixture(scope="session")
def trec(real_data):
    """Rows of trec, questions of its test file, and an embedder that knows the texts of both."""
    import torch

    from mechanisms.inference.models.embedder import load_embedder

    rows, questions = real_data("trec", "train")[:ROWS], [row.text for row in real_data("trec", "test")[:QUESTIONS]]
    texts = list(dict.fromkeys([row.text for row in rows] + questions))
    embedder, threads = load_embedder(), torch.get_num_threads()
    torch.set_num_threads(1)  # one short text at a time: threads would wait for each other most of the time
    vectors = embedder.embed(texts)
    torch.set_num_threads(threads)
    return rows, questions, Remembered(dict(zip(texts, vectors, strict=True)))
