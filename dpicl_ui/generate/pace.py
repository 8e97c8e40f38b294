"""Elapsed and remaining time of a run, in words: from the stages' forecast work and the progress of the view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpicl_ui.frame.tree import Tree, el
from dpicl_ui.generate.charts import reading
from dpicl_ui.privacy.cards import duration, exactly
from mechanisms.runs.plan import Plan
from mechanisms.runs.stage import Speed
from mechanisms.runs.view import RunView

_BELIEVED = 0.5
"""This share of the forecast is added to the time that passed and to the forecast of what is done before their ratio
corrects the rest, so that little progress corrects little."""
_ENOUGH = 0.1
"""Progress from which on the time that is left follows from it alone, where there is no forecast."""
_MOMENTS = 3.0
"""Seconds below which no number is shown."""


@dataclass(frozen=True)
class Pace:
    """When a run began, and what was forecast for it.

    Attributes:
        begun: seconds of a monotonic clock.
        forecast: seconds of each stage, in order; empty where the models' speed is not known.
        before: the share of the run that was done before it began, where it is resumed.
    """

    begun: float = 0.0
    forecast: Mapping[str, float] = field(default_factory=dict)
    before: float = 0.0

    @property
    def foreseen(self) -> float:
        """Seconds of the whole run; 0 without a forecast."""
        return sum(self.forecast.values())

    def done(self, view: RunView) -> float:
        """The share of the run that is done, 0 to 1: of its forecast, where there is one."""
        if not self.foreseen or view.stage not in self.forecast:
            return view.progress if view.phase != "waiting" else 0.0
        stages = list(self.forecast)
        past = sum(self.forecast[each] for each in stages[: stages.index(view.stage)])
        return (past + view.within * self.forecast[view.stage]) / self.foreseen

    def left(self, view: RunView, now: float) -> float | None:
        """Remaining seconds; None where unknown."""
        passed, done = max(0.0, now - self.begun), self.done(view)
        if not self.foreseen:
            share = done - self.before
            return passed * (1 - done) / share if share >= _ENOUGH else None
        trust = max(1.0, _BELIEVED * self.foreseen)
        slower = (passed + trust) / (self.foreseen * max(0.0, done - self.before) + trust)
        return self.foreseen * (1 - done) * slower


def forecast(plan: Plan, speed: Speed | None) -> dict[str, float]:
    """Seconds of each stage of a plan; empty while the models' speed is not known."""
    return {name: speed.seconds(stage.work()) for name, stage in plan.stages.items()} if speed else {}


def time_card(pace: Pace, view: RunView, now: float) -> list[Tree]:
    """Which demonstration is being written, and how long yet; afterwards, how long it took; empty without a run."""
    if view.phase in ("running", "waiting"):
        words = "; ".join(filter(None, (_which(view), _left(pace, view, now))))
    else:
        words = _took(pace, view, now)
    return [el("p.muted", f"{words[0].upper()}{words[1:]}.")] if words else []


def _which(view: RunView) -> str:
    if not view.writing or view.plan is None:
        return ""
    done, beside = len(view.completed), len(view.writing)
    which = f"demonstration {done + 1}" if beside == 1 else f"demonstrations {done + 1} to {done + beside}"
    together = "" if beside == 1 else ", side by side"
    begun = f"{which} of {view.plan.sampling.shots * len(view.plan.labels)}{together}"
    return begun if all(each.token for each in view.writing) else f"{begun}: {reading(view)}"


def _left(pace: Pace, view: RunView, now: float) -> str:
    seconds = pace.left(view, now)
    if seconds is None:
        return ""
    return f"{duration(seconds) if seconds >= _MOMENTS else 'a few seconds'} left"


def _took(pace: Pace, view: RunView, now: float) -> str:
    if not view.ended:
        return ""
    took = exactly(max(0.0, now - pace.begun))
    if not pace.foreseen:
        return f"took {took}" if view.phase == "completed" else f"stopped after {took}"
    foreseen = duration(pace.foreseen)
    if view.phase == "stopped":
        return f"stopped after {took}; the whole run was forecast to take {foreseen}"
    return f"took {took}; the forecast was {foreseen}"
