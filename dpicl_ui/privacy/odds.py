"""What epsilon means to somebody who guesses, in one sentence below its slider."""

from __future__ import annotations

import math
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.numbers import number
from dpicl_ui.frame.sessions import Sessions
from dpicl_ui.frame.tree import Tree, el, panel
from mechanisms.accounting import PrivacyTarget
from mechanisms.audit.membership import best_guess

_NEARLY = 0.99
"""A share of right guesses from which on one decimal would hide what is left to chance."""


class Odds:
    """The sentence's component and its handler."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self.sentence = panel(elem_id="odds")

    def wire(self, epsilon: gr.HTML, delta: gr.Number) -> None:
        """Follow the two; what is typed is answered at once, whatever is being calibrated."""
        self._shown: dict[str, Any] = {
            "fn": guarded(self.sentence)(self._show),
            "inputs": [epsilon, delta],
            "outputs": self.sentence,
            **PRIVATE,
        }
        gr.on([epsilon.release, delta.blur, delta.submit], queue=False, trigger_mode="always_last", **self._shown)

    def follow(self, filled: gr.events.Dependency) -> None:
        """Speak of the data set that was confirmed."""
        filled.then(**self._shown)

    def _show(self, epsilon: Any, delta: Any, request: gr.Request) -> dict[Any, Any]:
        confirmed = self._sessions.of(request).of(DataState).confirmed
        if confirmed is None:
            return {self.sentence: []}
        target = PrivacyTarget(number("Epsilon", epsilon), number("Delta", delta))
        return {self.sentence: odds(target, confirmed.dataset.by_user, confirmed.measured is None)}


def odds(target: PrivacyTarget, by_user: bool, declared: bool) -> list[Tree]:
    """How often a guess whether a unit is in the data can be right; rounded up, so that it stays a bound.

    Where the counts were `declared` public, whoever knows everything else reads the coin off them: they are set apart.
    """
    right = best_guess(target.epsilon, target.delta)
    digits = 1 if right < _NEARLY else 3
    share = min(100.0, math.ceil(100 * right * 10**digits) / 10**digits)
    who = "all rows of one user are" if by_user else "one row is"
    apart = " (but for the counts that you declared public)" if declared else ""
    return [
        el(
            "p.odds",
            f"If a coin decides whether {who} in your data, somebody who knows everything else and sees what this run "
            f"releases{apart} guesses the coin right at most ",
            el("strong", f"{share:.{digits}f}%"),
            " of the time, instead of 50%.",
        )
    ]
