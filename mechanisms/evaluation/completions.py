"""Text from a model: likelihoods, greedy answers behind demonstrations, and free completion with its perplexity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_softmax

from mechanisms import confidence
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.evaluation.reader import MAX_QUERY_TOKENS, Arm
from mechanisms.inference import CompletionPrompt, LanguageModel, QueryPrompt, Session, Tokens
from mechanisms.inference.prompts import first_tokens, one_line
from mechanisms.noise import Floats
from mechanisms.records import Demonstration, PromptTemplate

# The likelihood of texts under a model.


def log_likelihoods(model: LanguageModel, prefix: Tokens, rows: Sequence[Tokens], given: int) -> Floats:
    """Log-probability of each row's tokens after its first `given` (at least one); 0 if there are none.

    Args:
        prefix: precedes every row.

    Returns:
        Shape (rows,); not finite where the model's logits are not.
    """
    order = sorted(range(len(rows)), key=lambda place: -len(rows[place]))
    held = max((len(row) for row in rows), default=given)
    size, found = model.rows_at_once(1, len(prefix) + held), np.zeros(len(rows))
    for start in range(0, len(order), size):
        batch = order[start : start + size]
        found[batch] = _side_by_side(model, prefix, [rows[place] for place in batch], given)
    return found


def _side_by_side(model: LanguageModel, prefix: Tokens, rows: Sequence[Tokens], given: int) -> Floats:
    """Score rows in a batch, one token per step; the longest row comes first."""
    totals, longest = np.zeros(len(rows)), len(rows[0])
    if longest == given:
        return totals
    session = model.open(prefix, [row[:given] for row in rows], given, longest - given)
    left = len(rows)
    for place in range(given, longest):
        more = sum(len(row) > place for row in rows)
        if more < left:
            session.keep(range(more))
            left = more
        following = [row[place] for row in rows[:left]]
        with np.errstate(all="ignore"):  # the caller refuses results that are not finite
            totals[:left] += log_softmax(session.logits(), axis=1)[np.arange(left), following]
        if place < longest - 1:
            session.advance(following)
    return totals


# The likeliest continuation of every row, in a public number of steps.


def greedy(model: LanguageModel, session: Session, tokens: int) -> list[list[int]]:
    """The likeliest continuation of each row: at most `tokens` tokens, up to its first stop token.

    The first token is never a stop token, with which small models often begin. Rows that have ended stay in the batch,
    so that their lengths show neither in its shape nor in its time.
    """
    stops = sorted(model.stop_tokens)
    written: list[list[int]] = []
    for step in range(1, tokens + 1):
        logits = session.logits()
        if step == 1:
            written = [[] for _ in logits]
            logits[:, stops] = -np.inf
        chosen = np.where(np.isfinite(logits), logits, -np.inf).argmax(axis=1).tolist()
        for row, token in zip(written, chosen, strict=True):
            row.append(token)
        if step < tokens:
            session.advance(chosen)
    return [_until_stop(row, model.stop_tokens) for row in written]


def _until_stop(row: list[int], stops: frozenset[int]) -> list[int]:
    end = next((place for place, token in enumerate(row) if token in stops), len(row))
    return row[:end]


# In-context answers in text: greedy answers or continuations behind demonstrations.

MOST_ANSWERED = 16
"""The most texts that are answered side by side."""


class Responder:
    """A model with a prompt for texts; it holds nothing private.

    Args:
        prompt: a `CompletionPrompt` continues its text, so that a leading space of an answer is kept.
        max_tokens: the most tokens of an answer.
    """

    def __init__(self, model: LanguageModel, prompt: QueryPrompt | CompletionPrompt, max_tokens: int) -> None:
        self._model, self._prompt, self._tokens = model, prompt, max_tokens
        self._goes_on = isinstance(prompt, CompletionPrompt)

    @property
    def _rows(self) -> int:
        """The rows of a batch: as many as a step keeps the device busy with, since an answer takes many steps."""
        held = len(self._prompt.prefix) + self._prompt.length + self._tokens
        return min(MOST_ANSWERED, self._model.rows_at_once(1, held))

    def check(self) -> None:
        """Refuse a prompt that is too long for the model.

        Raises:
            UsageError: the prompt is too long.
        """
        self._model.check(self._prompt.prefix, 1, self._prompt.length, self._tokens)

    def answers(self, texts: Sequence[str]) -> Iterator[str]:
        """The answer to each text, in batches; the number of texts is public.

        An answer has at most `max_tokens` tokens and ends before a line break.
        """
        for start in range(0, len(texts), self._rows):
            rows = [self._prompt.row(text) for text in texts[start : start + self._rows]]
            session = self._model.open(self._prompt.prefix, rows, self._prompt.length, self._tokens)
            yield from (self._said(each) for each in greedy(self._model, session, self._tokens))

    def _said(self, tokens: Tokens) -> str:
        said = self._model.decode(tokens)
        return " " * (self._goes_on and said[:1].isspace()) + one_line(said)


def answering(
    model: LanguageModel,
    template: PromptTemplate,
    demonstrations: Sequence[Demonstration],
    max_tokens: int,
    max_query_tokens: int = MAX_QUERY_TOKENS,
) -> Responder:
    """A responder that writes outputs for texts.

    Args:
        template: with an output field.
        demonstrations: with outputs; their labels are not shown, since a query has none.
        max_query_tokens: public cap on the tokens of a text.

    Raises:
        UsageError: the template has no output field, or a demonstration no output.
    """
    if template.output is None or any(each.output is None for each in demonstrations):
        raise UsageError("These demonstrations have labels and no outputs: classify texts with them instead.")
    shown = [Demonstration(each.text, one_line(each.output or "")) for each in demonstrations]
    # In the prompt an output takes the label's place.
    asked = replace(template, label=template.output, output=None)
    return Responder(model, QueryPrompt(model, asked, shown, max_query_tokens), max_tokens)


# Free completion: a set of one kind of text, without outputs, makes the model continue texts in that style.

_USUAL_TOKENS, _MOST_TOKENS = 30, 512


def longest_text(demo_set: DemoSet) -> int:
    """The most tokens of a set's texts, by its certificate; also the most tokens of a completion."""
    return min(_MOST_TOKENS, int(demo_set.certificate.parameters.get("tokens", _USUAL_TOKENS)))


def completing(model: LanguageModel, demo_set: DemoSet, demonstrations: Sequence[Demonstration]) -> Responder:
    """A responder that continues the beginning of a text, behind demonstrations for a set's task."""
    return Responder(model, _prompt(model, demo_set, demonstrations, MAX_QUERY_TOKENS), longest_text(demo_set))


def _prompt(
    model: LanguageModel, demo_set: DemoSet, demonstrations: Sequence[Demonstration], cap: int
) -> CompletionPrompt:
    return CompletionPrompt(model, demo_set.template, demo_set.labels[0], demonstrations, cap)


@dataclass(frozen=True)
class CompletionPerplexity:
    """Perplexity of real texts under a model, behind one set of demonstrations.

    Attributes:
        log_perplexity: the mean negative log-probability of a token, in nats.
        error: its standard error, with the texts as a sample.
    """

    name: str
    texts: int
    log_perplexity: float
    error: float

    @property
    def perplexity(self) -> float:
        """The exponential of `log_perplexity`."""
        return math.exp(self.log_perplexity)

    @property
    def interval(self) -> tuple[float, float]:
        """The perplexity's interval: a normal interval of its logarithm."""
        low, high = (self.log_perplexity + sign * confidence.standard_errors() * self.error for sign in (-1, 1))
        return math.exp(low), math.exp(high)


def check_texts(texts: Sequence[str]) -> None:
    """Refuse texts that are too few for a perplexity with an interval.

    Raises:
        UsageError: fewer than two texts are not empty.
    """
    if sum(bool(text.strip()) for text in texts) < 2:
        raise UsageError("An interval of the perplexity needs at least two texts that are not empty: give more texts.")


def completion_perplexities(
    model: LanguageModel, demo_set: DemoSet, arms: Sequence[Arm], texts: Sequence[str]
) -> Iterator[CompletionPerplexity]:
    """Perplexity, behind each arm, of the texts' first tokens, as many as the set's own texts have.

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
            raise ModelUnavailable("The model's logits for these texts are not finite: choose another --model.")
        yield _completion_perplexity(arm.name, -found, lengths)


def _completion_perplexity(name: str, totals: Floats, lengths: Floats) -> CompletionPerplexity:
    """A ratio of two sums over texts, and the error of such a ratio (Cochran 1977, section 2.11)."""
    mean, count = float(totals.sum() / lengths.sum()), len(lengths)
    residuals = float(np.square(totals - mean * lengths).sum())
    return CompletionPerplexity(name, count, mean, math.sqrt(residuals * count / (count - 1)) / float(lengths.sum()))
