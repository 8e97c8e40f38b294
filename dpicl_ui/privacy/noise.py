"""How noisy a run would be, in a picture from public distributions alone: openings, and one token behind the likeliest.

What the model expects is scaled to the rows that would speak, and the browser adds noise of the planned size, drawn
there: it moves with the slider of epsilon, before anything is calibrated anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from dpicl_ui.frame.sessions import Session, State
from mechanisms.asking import Asked
from mechanisms.inference import LanguageModel, Tokens, WritingPrompt
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import OPENINGS, WRITE

_BARS, _LOOKED_AT = 6, 64
Shares = tuple[tuple[str, float], ...]
"""Words with the probability that the model gives them."""


@dataclass(frozen=True)
class Expected:
    """What a model expects of a label's texts; public."""

    label: str
    openings: Shares
    next: Shares


class Expectation(State):
    """What the present model expects under the present words."""

    def __init__(self, session: Session) -> None:
        self._key: tuple[str, Asked, str] | None = None
        self.found: Expected | None = None

    def ask(self, model: LanguageModel, asked: Asked, label: str) -> None:
        """Ask the model, unless it was asked this last."""
        if (key := (model.sha256, asked, label)) != self._key:
            self.found = expected(model, asked, label)
            self._key = key


def expected(model: LanguageModel, asked: Asked, label: str) -> Expected:
    """The first words of a label's texts, and the words behind the likeliest of them: two passes, without any row."""
    prompt = WritingPrompt(model, asked, label)
    first = _likeliest(model, prompt, [])
    behind = _likeliest(model, prompt, [first[0][0]]) if first else []
    named = [[(model.decode([token]).strip(), share) for token, share in each] for each in (first, behind)]
    return Expected(label, tuple(named[0]), tuple(named[1]))


def _likeliest(model: LanguageModel, prompt: WritingPrompt, before: Sequence[int]) -> list[tuple[int, float]]:
    row: Tokens = [*prompt.cue, *before]
    shares = softmax(model.open(prompt.prefix, [row], len(row), 1).logits()[0])
    tokens = np.argsort(-shares, kind="stable")[:_LOOKED_AT].tolist()
    words = (each for each in tokens if each not in model.stop_tokens and model.decode([each]).strip().isalpha())
    return [(each, float(shares[each])) for each, _ in zip(words, range(_BARS), strict=False)]


def picture(plan: Plan, of: Expected) -> dict[str, Any]:
    """What `assets/noise.js` draws: for each stage that releases such counts its words, its noise, and its bars.

    Values and noise (one standard deviation) are in rows.
    """
    groups = []
    unit = "users" if plan.by_user else "rows"
    if OPENINGS in plan.stages:
        stage: Any = plan.stages[OPENINGS]
        voters = plan.role(OPENINGS) * (plan.sizes[of.label] if stage.by_label else sum(plan.sizes.values()))
        groups.append(_group("How texts begin", voters, unit, stage.tally.deviation, "laplace", of.openings))
    # A mechanism's signal-to-noise is sqrt(2) M over the noise on an entry of the sum.
    if WRITE in plan.stages and of.next and (signal := plan.signal_to_noise) and math.isfinite(signal):
        rows = plan.sampling.subsets
        words = f"One token: what comes after “{of.openings[0][0]}”"
        groups.append(_group(words, rows, unit, math.sqrt(2) * rows / signal, "gaussian", of.next))
    return {"epsilon": plan.spec.epsilon, "groups": groups}


def _group(words: str, rows: float, unit: str, noise: float, shape: str, shares: Shares) -> dict[str, Any]:
    return {
        "title": words,
        "rows": f"{rows:,.0f} {unit}",
        "noise": noise,
        "shape": shape,
        "bars": [{"name": name, "value": rows * share} for name, share in shares],
    }
