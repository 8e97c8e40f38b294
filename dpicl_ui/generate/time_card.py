"""Time and progress of a run in one line: which demonstration, and how long yet; afterwards, how long it took."""

from __future__ import annotations

from dpicl_ui.frame.tree import Tree, el
from dpicl_ui.generate.live_chart import reading
from dpicl_ui.generate.pace import Left, Pace, left
from dpicl_ui.generate.recipe_view import RecipeView
from dpicl_ui.generate.run_view import RunView
from dpicl_ui.privacy.duration import duration, exactly

_MOMENTS = 3.0
"""Seconds under which no number is worth reading."""


def time_card(pace: Pace, view: RecipeView, now: float) -> list[Tree]:
    """One line; nothing where there is no run, or nothing to say of it.

    Args:
        now: of the clock that `pace` was taken with.
    """
    if view.run.phase in ("running", "waiting"):
        words = "; ".join(filter(None, (_which(view), _left(pace, view, now))))
    else:
        words = _took(pace, view.run, now)
    return [el("p.muted", f"{words[0].upper()}{words[1:]}.")] if words else []


def in_words(remaining: Left) -> str:
    """What is left of a run, rounded, for a sentence."""
    if remaining.seconds < _MOMENTS:
        return "a few seconds"
    return f"{remaining.bound}{duration(remaining.seconds)}"


def _which(view: RecipeView) -> str:
    run = view.run
    if not view.writing or not run.drafts:
        return ""
    done, beside = len(run.completed), len(run.drafts)
    which = f"demonstration {done + 1}" if beside == 1 else f"demonstrations {done + 1} to {done + beside}"
    together = "" if beside == 1 else ", side by side"
    begun = f"{which} of {run.planned}{together}"
    return begun if all(draft.token for draft in run.drafts) else f"{begun}: {reading(run)}"


def _left(pace: Pace, view: RecipeView, now: float) -> str:
    remaining = left(pace, view, now)
    if remaining is None:
        foreseen, so_far = pace.foreseen, pace.elapsed(now)
        if foreseen is None or so_far <= foreseen:
            return ""
        return f"longer than the forecast, {duration(foreseen)}: {exactly(so_far)} so far"
    return f"{in_words(remaining)} left"


def _took(pace: Pace, run: RunView, now: float) -> str:
    if run.phase not in ("completed", "stopped") or pace.begun is None:
        return ""
    took = exactly(pace.elapsed(now))
    if pace.foreseen is None:
        return f"took {took}" if run.phase == "completed" else f"stopped after {took}"
    foreseen = duration(pace.foreseen)
    if run.phase == "stopped":
        return f"stopped after {took}; the whole run was forecast to take {foreseen}"
    return f"took {took}; the forecast was {foreseen}"
