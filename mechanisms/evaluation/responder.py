"""The likeliest continuation of every row, in a public number of steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from mechanisms.errors import UsageError
from mechanisms.evaluation.classify import MAX_QUERY_TOKENS
from mechanisms.inference import CompletionPrompt, LanguageModel, QueryPrompt, Session, Tokens
from mechanisms.inference.prompts import one_line
from mechanisms.records import Demonstration, PromptTemplate


def greedy(model: LanguageModel, session: Session, tokens: int) -> list[list[int]]:
    """The likeliest token of each row, `tokens` times, up to its first stop token; one list of tokens a row.

    The first token is none of the stop tokens: small models often have nothing to say, and that is no answer. Rows that
    have ended go on in the model: how long they are must not show in a batch's shape or in its time.
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


# In-context answers that are text: what a model says to a text behind demonstrations, or how it goes on, greedily.

_MOST_ROWS = 16


class Responder:
    """A model with a prompt that texts are put into; knows nothing private.

    Args:
        prompt: what is put into a `CompletionPrompt` is gone on with: whether a space comes first is part of it.
        max_tokens: tokens of an answer at most.
    """

    def __init__(self, model: LanguageModel, prompt: QueryPrompt | CompletionPrompt, max_tokens: int) -> None:
        self._model, self._prompt, self._tokens = model, prompt, max_tokens
        self._goes_on = isinstance(prompt, CompletionPrompt)

    @property
    def _rows(self) -> int:
        """Rows of a batch at most."""
        held = len(self._prompt.prefix) + self._prompt.length + self._tokens
        return min(_MOST_ROWS, self._model.rows_at_once(self._prompt.length, held))

    def check(self) -> None:
        """Refuse a prompt that is too long for the model.

        Raises:
            UsageError: see there.
        """
        self._model.check(self._prompt.prefix, 1, self._prompt.length, self._tokens)

    def answers(self, texts: Sequence[str]) -> Iterator[str]:
        """The answer to each text, on one line, a batch at a time; how many texts there are is public.

        An answer has at most `max_tokens` tokens and ends at a line break, if not before.
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
    """Says to a text what the demonstrations' outputs are to theirs.

    Args:
        template: with a name for the output field, behind which the model goes on.
        demonstrations: with outputs; their labels are not shown, since a query has none.
        max_query_tokens: public cap on the tokens of a text.

    Raises:
        UsageError: the template has no output field, or a demonstration no output.
    """
    if template.output is None or any(each.output is None for each in demonstrations):
        raise UsageError("These demonstrations have labels, and no outputs: ask for labels.")
    shown = [Demonstration(each.text, one_line(each.output or "")) for each in demonstrations]
    # To a prompt an output is what a label is: what stands behind the text.
    asked = replace(template, label=template.output, output=None)
    return Responder(model, QueryPrompt(model, asked, shown, max_query_tokens), max_tokens)
