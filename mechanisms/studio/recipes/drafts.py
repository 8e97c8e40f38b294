"""Public drafts: what the model writes about a label when nobody's text is shown to it. Nothing here is private."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference import GenerationPrompt, LanguageModel
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.records import PromptTemplate
from mechanisms.studio.recipes.cleaning import cleaned

TEMPERATURE, TOP_P = 1.0, 0.85
"""Read side by side with the embedded model, 32 drafts a label. At a top-p of .92 more sentences lose their thread. At
a temperature of .8 drafts are no more readable, but more alike, and more of them are dates, numbers or bare labels."""
_MOST_CANDIDATES = 256
"""Tokens that may be drawn at all: the rest of a vocabulary need not be sorted."""
_LEAST_TOKENS = 12
"""Tokens before a draft may end: small models like to write a title, or nothing. With 12 one in two drafts was of use,
with 8 and without a bound fewer."""
_TRIES = 4
"""Drafts written for one that is asked for, at most."""
_FEWEST = 2
"""Drafts of a label without which there is nothing to vote on."""


def write_drafts(
    model: LanguageModel,
    template: PromptTemplate,
    label: str,
    labels: Sequence[str],
    count: int,
    tokens: int,
    randomness: Randomness,
    examples: Sequence[str] = (),
) -> tuple[str, ...]:
    """Write cleaned, distinct drafts of one label from public text alone.

    Args:
        labels: public label set; a draft that says little but labels is refused.
        count: drafts at most; fewer where four times as many were written in vain.
        tokens: of a draft, at most.
        examples: public texts of the label (winners of an earlier ballot) that stand in the prompt; none is
                written again.

    Returns:
        The drafts in the order written.

    Raises:
        UsageError: fewer than two drafts of the label are of use, or the prompt is too long for the model.
        ModelUnavailable: its logits are not finite.
    """
    prompt = GenerationPrompt(model, template, label, tokens, len(examples))
    cue = prompt.cue
    prefix = [*prompt.prefix, *prompt.row(examples)[: -len(cue)]]
    at_once = min(count, model.rows_at_once(1, len(prefix) + len(cue) + tokens))
    drafts: dict[str, None] = {}
    written = 0
    while len(drafts) < count and written < _TRIES * count:
        rows = min(at_once, _TRIES * count - written)
        written += rows
        for each in _write(model, prefix, [cue] * rows, tokens, randomness):
            text = cleaned(each, template, label, labels)
            if text is not None and text not in examples:
                drafts[text] = None
    if len(drafts) < min(count, _FEWEST):
        raise UsageError(
            f"The model writes no usable drafts of '{label}': choose another model, or name the text field, the "
            "label field or the label so that they say what to write about."
        )
    return tuple(drafts)[:count]


def _write(
    model: LanguageModel, prefix: list[int], rows: list[list[int]], tokens: int, randomness: Randomness
) -> list[str]:
    """One text a row, all of them a token further at each step."""
    session = model.open(prefix, rows, len(rows[0]), tokens)
    written: list[list[int]] = [[] for _ in rows]
    going = list(range(len(rows)))
    for step in range(tokens):
        logits = session.logits()
        if step < min(_LEAST_TOKENS, tokens - 1):
            logits[:, list(model.stop_tokens)] = -np.inf
        drawn = dict(zip(going, sample(logits, randomness).tolist(), strict=True))
        stay = [place for place, row in enumerate(going) if drawn[row] not in model.stop_tokens]
        if not stay:
            break
        if len(stay) < len(going):
            session.keep(stay)
            going = [going[place] for place in stay]
        for row in going:
            written[row].append(drawn[row])
        if step < tokens - 1:
            session.advance([drawn[row] for row in going])
    return [model.decode(each) for each in written]


def sample(logits: Floats, randomness: Randomness) -> Integers:
    """One token of each row, from the fewest likeliest tokens that hold `TOP_P` of it (Holtzman et al. 2020).

    Args:
        logits: shape (rows, vocabulary); tokens without a finite one are not drawn.

    Raises:
        ModelUnavailable: none of a row's is finite.
    """
    if not np.isfinite(logits).any(axis=1).all():
        raise ModelUnavailable("The model gives no usable logits for the public prompt: choose another model.")
    usable = np.where(np.isfinite(logits), logits, -np.inf)
    likeliest = np.argpartition(-usable, min(_MOST_CANDIDATES, usable.shape[1]) - 1, axis=1)[:, :_MOST_CANDIDATES]
    order = np.take_along_axis(likeliest, np.argsort(-np.take_along_axis(usable, likeliest, 1), axis=1), 1)
    scaled = np.take_along_axis(usable, order, 1) / TEMPERATURE
    weights = np.exp(scaled - scaled[:, :1])
    whole = np.exp(usable / TEMPERATURE - scaled[:, :1]).sum(axis=1, keepdims=True)
    before = np.cumsum(weights, axis=1) - weights
    kept = np.cumsum(np.where(before < TOP_P * whole, weights, 0.0), axis=1)
    aim = randomness.uniform(len(logits))[:, None] * kept[:, -1:]
    return np.asarray(np.take_along_axis(order, (kept < aim).sum(axis=1)[:, None], 1)[:, 0], dtype=np.int64)
