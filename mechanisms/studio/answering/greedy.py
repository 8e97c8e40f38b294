"""The likeliest continuation of every row, in a public number of steps."""

from __future__ import annotations

import numpy as np

from mechanisms.inference import LanguageModel, Session


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
