"""A model's likelihood of texts, and its greedy answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import log_softmax

from mechanisms.answers.shards import greedy
from mechanisms.inference import LanguageModel, Tokens
from mechanisms.inference.prompts import QueryPrompt, one_line
from mechanisms.noise import Floats
from mechanisms.records import Demonstration, PromptTemplate

_SIDE_BY_SIDE = 16
"""The most texts that are answered together: a step of that many rows keeps two cores busy."""


def log_likelihoods(model: LanguageModel, prefix: Tokens, rows: Sequence[Tokens], given: int) -> Floats:
    """Log-probability of each row's tokens after its first `given` (at least one), shape (rows,); 0 if there are none.

    Args:
        prefix: the tokens before every row.
    """
    found = np.zeros(len(rows))
    order = sorted(range(len(rows)), key=lambda place: -len(rows[place]))
    size = model.rows_at_once(1, len(prefix) + max(map(len, rows), default=given))
    for start in range(0, len(order), size):
        places = order[start : start + size]  # the longest row first, so that the unfinished rows come first
        longest = len(rows[places[0]])
        if longest <= given:
            break
        session = model.open(prefix, [rows[place][:given] for place in places], given, longest - given)
        for at in range(given, longest):
            going = [place for place in places if len(rows[place]) > at]
            if len(going) < len(places):
                session.keep(range(len(going)))
                places = going
            following = [rows[place][at] for place in places]
            found[places] += log_softmax(session.logits(), axis=1)[np.arange(len(places)), following]
            if at < longest - 1:
                session.advance(following)
    return found


def answers(
    model: LanguageModel,
    template: PromptTemplate,
    shown: Sequence[Demonstration],
    texts: Sequence[str],
    tokens: int,
    cap: int,
) -> Iterator[str]:
    """The model's greedy answer to each text after demonstrations, without a set of labels, up to a line break.

    Args:
        tokens: the most tokens of an answer.
        cap: the most tokens of a text.
    """
    prompt = QueryPrompt(model, template, shown, cap)
    for start in range(0, len(texts), _SIDE_BY_SIDE):
        rows = [prompt.row(text) for text in texts[start : start + _SIDE_BY_SIDE]]
        session = model.open(prompt.prefix, rows, prompt.length, tokens)
        yield from (one_line(model.decode(each)) for each in greedy(model, session, tokens))
