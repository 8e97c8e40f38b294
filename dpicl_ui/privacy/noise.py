"""How noisy a run would be, in a picture from public distributions alone: openings, and one token behind the likeliest.

What the model expects is scaled to the rows that would speak. The browser draws the noise that is added to it, and
knows about how large it is at every epsilon: the picture moves with the slider.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import softmax

from dpicl_ui.frame.sessions import Session, State
from mechanisms.asking import Asked
from mechanisms.errors import StudioError
from mechanisms.inference import LanguageModel, Tokens, WritingPrompt
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import OPENINGS, WRITE

_BARS, _LOOKED_AT = 6, 64
_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
_POWER = 2 / 3
"""Of 1 / epsilon, which the noise on a token follows, about: 0.54 to 0.83 in default runs on the clinic messages."""
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
    """What `assets/noise.js` draws: for each stage that releases such counts its words, its bars, and its noise.

    Args:
        plan: calibrated.

    Returns:
        epsilon, and groups: each with title, rows (how many speak, in words), shape (of the noise), bars (name and
        value in rows) and noise (pairs of an epsilon and the deviation that it would have, in rows).
    """
    groups: list[dict[str, Any]] = []
    unit, curve = "users" if plan.by_user else "rows", _curve(plan)

    def group(stage: str, title: str, rows: float, shape: str, shares: Shares) -> None:
        bars = [{"name": name, "value": rows * share} for name, share in shares]
        noise = [[epsilon, found[stage]] for epsilon, found in curve]
        groups.append({"title": title, "rows": f"{rows:,.0f} {unit}", "shape": shape, "bars": bars, "noise": noise})

    if of.openings and OPENINGS in plan.stages:
        stage: Any = plan.stages[OPENINGS]
        voters = plan.role(OPENINGS) * (plan.sizes[of.label] if stage.by_label else sum(plan.sizes.values()))
        group(OPENINGS, "How texts begin", voters, "laplace", of.openings)
    if of.next and WRITE in curve[0][1]:
        title = f"One token: what comes after “{of.openings[0][0]}”"
        group(WRITE, title, plan.sampling.subsets, "gaussian", of.next)
    return {"epsilon": plan.spec.epsilon, "groups": groups}


def _curve(plan: Plan) -> list[tuple[float, dict[str, float]]]:
    """The noise of the stages at the plan's epsilon and at those below the slider, least epsilon first.

    A calibration takes seconds: where another one would be needed, the noise is estimated until the slider is let go.
    """
    stages, signal = plan.stages, plan.signal_to_noise
    # A mechanism's signal-to-noise is sqrt(2) M over the noise on an entry of the sum.
    token = math.sqrt(2) * plan.sampling.subsets / signal if signal and math.isfinite(signal) else None
    found: list[tuple[float, dict[str, float]]] = []
    for epsilon in sorted({*_EPSILONS, plan.spec.epsilon}):
        with suppress(StudioError):  # less than counting has cost, for instance
            at = replace(plan, spec=plan.spec.with_(epsilon=epsilon))
            openings: Any = at.stages.get(OPENINGS)
            noise = {} if openings is None else {OPENINGS: openings.tally.deviation}
            if WRITE in stages and token is not None:
                noise[WRITE] = token * (plan.spec.epsilon / epsilon) ** _POWER
            found.append((epsilon, noise))
    return found
