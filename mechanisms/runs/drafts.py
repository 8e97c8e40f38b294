"""Public drafts: texts of a label that the model writes from public text alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference import DraftPrompt, Embedder, LanguageModel
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.records import PromptTemplate
from mechanisms.runs.text import cleaned, normalised_text, quotes

TOP_P = 0.85
"""Read side by side with the embedded model, 32 drafts a label. At a top-p of .92 more sentences lose their thread. At
a temperature of .8 drafts are no more readable, but more alike, and more of them are dates, numbers or bare labels."""
_MOST_CANDIDATES = 256
"""The likeliest tokens among which one is drawn; the rest of the vocabulary is not sorted."""
_LEAST_TOKENS = 12
"""Tokens before a draft may end: small models like to write a title, or nothing. With 12 one in two drafts was of use,
with 8 and without a bound fewer."""
WRITTEN = 4
"""Drafts written for one that is asked for, together: many rows are hardly slower than few. About half of them are of
use, and of those the likelier half is kept: of a small model's sentences the unlikely half is mostly what makes no
sense (read side by side: research/docs/worth.md)."""
_TRIES = 12
"""The same, at most, where few drafts are usable."""
_PREVIEWED = 6
"""Drafts written for a preview of two: about half are of use."""
FEWEST = 2
"""The fewest drafts of a label for a vote."""


def write_drafts(
    model: LanguageModel,
    template: PromptTemplate,
    label: str,
    labels: Sequence[str],
    count: int,
    tokens: int,
    randomness: Randomness,
    examples: Sequence[str] = (),
    taken: Iterable[str] = (),
    embedder: Embedder | None = None,
) -> tuple[str, ...]:
    """Write cleaned, distinct drafts of one label from public text alone, and keep those that the model finds likely.

    Those that are nearer to another label's name than to their own stand behind all others.

    Args:
        labels: public label set; a draft that says little but labels is refused.
        count: drafts at most; fewer where twelve times as many were written in vain.
        tokens: of a draft, at most.
        examples: public texts of the label (winners of an earlier ballot) that stand in the prompt; none is
            written again.
        taken: public texts that stand for other labels: what says the same would stand for two.
        embedder: tells what is near to what; without one no draft stands behind for that.

    Returns:
        The drafts in the order written.

    Raises:
        UsageError: fewer than two drafts of the label are of use, or the prompt is too long for the model.
        ModelUnavailable: its logits are not finite.
    """
    prompt = DraftPrompt(model, template, label, examples, tokens)
    prefix, cue = prompt.prefix, prompt.cue
    wanted, most = WRITTEN * count, _TRIES * count
    at_once = min(wanted, model.rows_at_once(1, len(prefix) + len(cue) + tokens))
    drafts: dict[str, float] = {}
    others, said = set(map(normalised_text, taken)), normalised_text(model.decode(prefix))
    written = 0
    while written < wanted or (len(drafts) < count and written < most):
        rows = min(at_once, most - written)
        written += rows
        for each, likelihood in _write(model, prefix, [cue] * rows, tokens, randomness):
            text = cleaned(each, template, label, labels)
            if (
                text is not None
                and text not in examples
                and not quotes(text, said)
                and normalised_text(text) not in others
            ):
                drafts.setdefault(text, likelihood)
    if len(drafts) < min(count, FEWEST):
        raise UsageError(
            f"The model writes no usable drafts of '{label}': choose another model, or name the text field, the "
            "label field or the label so that they say what to write about."
        )
    fitting = _nearest_to_own(tuple(drafts), template, label, labels, embedder) if embedder else drafts.keys()
    best = sorted(drafts, key=lambda text: (text not in fitting, -drafts[text]))[:count]
    return tuple(text for text in drafts if text in best)


def preview_drafts(
    model: LanguageModel,
    template: PromptTemplate,
    label: str,
    labels: Sequence[str],
    tokens: int,
    randomness: Randomness,
) -> tuple[str, ...]:
    """At most two drafts of a label, the likeliest of a few, to show what its words make a model write.

    They follow from public words alone, cost nothing, and stand in no ballot. None where none was of use.

    Raises:
        UsageError: the prompt is too long for the model.
        ModelUnavailable: its logits are not finite.
    """
    prompt = DraftPrompt(model, template, label, (), tokens)
    written = _write(model, prompt.prefix, [prompt.cue] * _PREVIEWED, tokens, randomness)
    found = {text: likelihood for each, likelihood in written if (text := cleaned(each, template, label, labels))}
    return tuple(sorted(found, key=lambda text: -found[text])[:FEWEST])


def _nearest_to_own(
    texts: Sequence[str], template: PromptTemplate, label: str, labels: Sequence[str], embedder: Embedder
) -> Collection[str]:
    """The texts that are at least as near to their own label's name as to any other's."""
    names = embedder.embed([f"{template.label}: {each}" for each in labels])
    near = embedder.embed(texts) @ names.T
    return {text for text, row in zip(texts, near, strict=True) if row[labels.index(label)] >= row.max()}


def _write(
    model: LanguageModel, prefix: list[int], rows: list[list[int]], tokens: int, randomness: Randomness
) -> list[tuple[str, float]]:
    """Write one text per row, and the mean log-probability of its tokens."""
    session = model.open(prefix, rows, len(rows[0]), tokens)
    written: list[list[int]] = [[] for _ in rows]
    found: list[list[float]] = [[] for _ in rows]
    going = list(range(len(rows)))
    for step in range(tokens):
        logits = session.logits()
        if step < min(_LEAST_TOKENS, tokens - 1):
            logits = logits.copy()  # the session's own, which need not be writable
            logits[:, list(model.stop_tokens)] = -np.inf
        drawn, likelihoods = sample(logits, randomness)
        stay = [place for place, token in enumerate(drawn.tolist()) if token not in model.stop_tokens]
        if not stay:
            break
        for place in stay:
            written[going[place]].append(int(drawn[place]))
            found[going[place]].append(float(likelihoods[place]))
        if len(stay) < len(going):
            session.keep(stay)
            going = [going[place] for place in stay]
        if step < tokens - 1:
            session.advance([written[row][-1] for row in going])
    return [
        (model.decode(text), float(np.mean(of)) if of else -np.inf) for text, of in zip(written, found, strict=True)
    ]


def sample(logits: Floats, randomness: Randomness) -> tuple[Integers, Floats]:
    """One token of each row, from the fewest likeliest tokens that hold `TOP_P` of it (Holtzman et al. 2020).

    Args:
        logits: shape (rows, vocabulary); tokens without a finite one are not drawn.

    Returns:
        The tokens, and the log-probabilities that they had, each of shape (rows,).

    Raises:
        ModelUnavailable: none of a row's is finite.
    """
    finite = np.isfinite(logits)
    if not finite.any(axis=1).all():
        raise ModelUnavailable("The model gives no usable logits for the public prompt: choose another model.")
    weights = logits if finite.all() else np.where(finite, logits, -np.inf)
    # A vocabulary is large: the fewer passes over it, the better.
    weights = weights - weights.max(axis=1, keepdims=True)
    np.exp(weights, out=weights)
    whole = weights.sum(axis=1, keepdims=True)
    most = min(_MOST_CANDIDATES, weights.shape[1])
    likeliest = np.argpartition(weights, weights.shape[1] - most, axis=1)[:, -most:]
    order = np.take_along_axis(likeliest, np.argsort(-np.take_along_axis(weights, likeliest, 1), axis=1), 1)
    each = np.take_along_axis(weights, order, 1)
    before = np.cumsum(each, axis=1) - each
    kept = np.cumsum(np.where(before < TOP_P * whole, each, 0.0), axis=1)
    aim = randomness.uniform(len(logits))[:, None] * kept[:, -1:]
    place = (kept < aim).sum(axis=1)[:, None]
    drawn = np.take_along_axis(order, place, 1)[:, 0].astype(np.int64)
    return drawn, np.log(np.take_along_axis(each, place, 1) / whole)[:, 0]
