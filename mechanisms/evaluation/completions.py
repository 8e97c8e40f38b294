"""Free completion: a set of one kind of text, without outputs, shows a model how such texts go on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms import confidence
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.evaluation.classify import MAX_QUERY_TOKENS
from mechanisms.evaluation.likelihoods import log_likelihoods
from mechanisms.evaluation.reader import Arm
from mechanisms.evaluation.responder import Responder
from mechanisms.inference import CompletionPrompt, LanguageModel
from mechanisms.inference.prompts import first_tokens
from mechanisms.noise import Floats
from mechanisms.records import Demonstration

_USUAL_TOKENS, _MOST_TOKENS = 30, 512


def longest_text(demo_set: DemoSet) -> int:
    """Tokens of a set's texts at most, as its certificate states them: how far a text is gone on with."""
    return min(_MOST_TOKENS, int(demo_set.certificate.parameters.get("tokens", _USUAL_TOKENS)))


def completing(model: LanguageModel, demo_set: DemoSet, demonstrations: Sequence[Demonstration]) -> Responder:
    """Goes on with a text's beginning, behind demonstrations for a set's task."""
    return Responder(model, _prompt(model, demo_set, demonstrations, MAX_QUERY_TOKENS), longest_text(demo_set))


def _prompt(
    model: LanguageModel, demo_set: DemoSet, demonstrations: Sequence[Demonstration], cap: int
) -> CompletionPrompt:
    return CompletionPrompt(model, demo_set.template, demo_set.labels[0], demonstrations, cap)


@dataclass(frozen=True)
class Surprise:
    """How surprised a model is, behind one set of demonstrations, by how real texts go on.

    Attributes:
        log_perplexity: the mean negative log-probability of a token, in nats.
        error: its standard error, over texts as a sample of such texts.
    """

    name: str
    texts: int
    log_perplexity: float
    error: float

    @property
    def perplexity(self) -> float:
        """How many tokens seem equally likely, in the mean."""
        return math.exp(self.log_perplexity)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the perplexity, with the normal distribution on the scale of its logarithm."""
        low, high = (self.log_perplexity + sign * confidence.standard_errors() * self.error for sign in (-1, 1))
        return math.exp(low), math.exp(high)


def check_texts(texts: Sequence[str]) -> None:
    """Refuse texts that have no perplexity with an interval, before anything else is done with them.

    Raises:
        UsageError: there are fewer than two that say something.
    """
    if sum(bool(text.strip()) for text in texts) < 2:
        raise UsageError("Perplexity has an interval only over two texts or more.")


def surprises(model: LanguageModel, demo_set: DemoSet, arms: Sequence[Arm], texts: Sequence[str]) -> Iterator[Surprise]:
    """How likely the model finds the texts' first tokens, as many as the set's texts have, behind each arm.

    Raises:
        UsageError: see `check_texts`.
        ModelUnavailable: the model's logits are not finite.
    """
    check_texts(texts)
    cap, read = longest_text(demo_set), [text for text in texts if text.strip()]
    for arm in arms:
        prompt = _prompt(model, demo_set, arm.demonstrations, cap)
        rows = [[*prompt.head, *first_tokens(model, text, cap)] for text in read]
        lengths = np.array([len(row) - len(prompt.head) for row in rows], dtype=np.float64)
        found = log_likelihoods(model, prompt.prefix, rows, len(prompt.head))
        if not np.isfinite(found).all():
            raise ModelUnavailable("The model gives no usable logits for these texts: choose another --model.")
        yield _surprise(arm.name, -found, lengths)


def _surprise(name: str, totals: Floats, lengths: Floats) -> Surprise:
    """A ratio of two sums over texts, and the error of such a ratio (Cochran 1977, section 2.11)."""
    mean, count = float(totals.sum() / lengths.sum()), len(lengths)
    residuals = float(np.square(totals - mean * lengths).sum())
    return Surprise(name, count, mean, math.sqrt(residuals * count / (count - 1)) / float(lengths.sum()))
