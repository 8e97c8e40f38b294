"""Elapsed and remaining time of a run, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from dpicl_ui.frame.tree import Tree, el
from dpicl_ui.generate.charts import reading
from dpicl_ui.generate.run_view import RecipeView, RunView
from dpicl_ui.privacy.cards import duration, exactly
from mechanisms.runs.events import CuratorEvent, DemoStarted, Drafting, RunStarted, StageStarted, TokenReleased
from mechanisms.runs.recipe import Stage

# Elapsed and remaining time, from the times of released tokens and stages: `pace = paced(pace, event, now)`. Nothing
# here depends on a stage's progress among the private rows.

Part = Stage | None
"""A stage, or None for the first drafts. A run without stages has the part "write" alone."""

_ENOUGH = 3
"""Tokens of each demonstration in a group before their pace is used instead of the forecast."""
_BELIEVED = 0.5
"""This share of the whole forecast is added to both the time and the forecast of finished parts before their ratio
corrects the forecast, so that a short part corrects little."""
_TRUSTED = 0.25
"""Share of all tokens after which their pace alone gives the remaining time."""


@dataclass(frozen=True)
class Left:
    """Remaining seconds of a run: an estimate, an upper bound or a lower bound."""

    seconds: float
    bound: Literal["", "at most ", "at least "] = ""


@dataclass(frozen=True)
class Tokens:
    """The pace of tokens. Demonstrations that are written side by side are a group and begin together.

    Attributes:
        begun: when the group began.
        size, largest: demonstrations in this group, and in the largest group so far.
        opened: whether the group has begun and released no token yet.
        last: when its last token came.
        waits: seconds from each group's beginning to its first token.
        later, seconds: tokens after the first ones, in all groups, and the time in which they came.
    """

    begun: float = 0.0
    size: int = 0
    largest: int = 1
    opened: bool = False
    last: float = 0.0
    waits: tuple[float, ...] = ()
    later: int = 0
    seconds: float = 0.0

    def after(self, event: DemoStarted | TokenReleased, now: float) -> Tokens:
        """The pace after an event."""
        if isinstance(event, DemoStarted):
            size = self.size + 1 if self.opened else 1
            begun = self.begun if self.opened else now
            return replace(self, begun=begun, size=size, largest=max(self.largest, size), opened=True)
        if self.opened:
            return replace(self, opened=False, last=now, waits=(*self.waits, now - self.begun))
        if event.step == 1:  # of the group's other demonstrations
            return self
        return replace(self, later=self.later + 1, seconds=self.seconds + max(0.0, now - self.last), last=now)


@dataclass(frozen=True)
class Pace:
    """Times of a run's events, in seconds of one clock.

    Attributes:
        forecast: seconds of each part by the forecast of step 2, in order; empty without a forecast.
        begun: when the run began; None before.
        part, since: the current part, and when it began.
        past: seconds that each finished part took.
        drafted: labels with finished first drafts, the number of labels, and the seconds that these drafts took.
        tokens: the pace of the part "write".
    """

    forecast: Mapping[Part, float] = field(default_factory=dict)
    begun: float | None = None
    part: Part = None
    since: float = 0.0
    past: Mapping[Part, float] = field(default_factory=dict)
    drafted: tuple[int, int, float] = (0, 1, 0.0)
    tokens: Tokens = field(default_factory=Tokens)

    @property
    def foreseen(self) -> float | None:
        """Seconds of the whole run by the forecast of step 2."""
        return sum(self.forecast.values()) if self.forecast else None

    def elapsed(self, now: float) -> float:
        """Seconds since the run began."""
        return max(0.0, now - self.begun) if self.begun is not None else 0.0


def paced(pace: Pace, event: CuratorEvent, now: float) -> Pace:
    """The pace after one more event.

    Args:
        now: seconds of a monotonic clock.
    """
    if pace.begun is None:
        pace = replace(pace, begun=now, since=now)
    match event:
        case Drafting():
            if pace.part is not None:
                pace = replace(pace, part=None, since=now, past={**pace.past, pace.part: now - pace.since})
            return replace(pace, drafted=(event.number - 1, event.of, now - pace.since))
        case RunStarted() | StageStarted():
            begins = event.stage if isinstance(event, StageStarted) else (*event.stages, Stage.WRITE)[0]
            if begins == pace.part:
                return pace
            if pace.part is None and not pace.drafted[0]:  # drafts come later
                return replace(pace, part=begins, since=now)
            return replace(pace, part=begins, since=now, past={**pace.past, pace.part: now - pace.since})
        case DemoStarted() | TokenReleased():
            return replace(pace, tokens=pace.tokens.after(event, now))
    return pace


def left(pace: Pace, view: RecipeView, now: float) -> Left | None:
    """Remaining time of a run, for its curator only; None where unknown, or where the forecast is exceeded."""
    if pace.begun is None:
        return None
    here, own_pace = _here(pace, view, now)
    spent = now - pace.since
    foreseen = pace.forecast.get(pace.part, spent)
    later = _later(pace, max(spent, foreseen) if not own_pace and pace.part is not None else spent + (here or 0.0))
    if here is None or later is None:
        return Left(later, "at least ") if later else None
    return Left(here + later, "at most " if own_pace else "")


def _slower(pace: Pace, took: float, foreseen: float) -> float:
    """Ratio of time to forecast for everything, from a part's time and forecast; continuous in both."""
    believed = max(1.0, _BELIEVED * (pace.foreseen or 0.0))  # at least one second
    return (took + believed) / (foreseen + believed)


def _scale(pace: Pace, here: float) -> float:
    """Ratio of time to forecast, from finished parts and from the current one.

    Args:
        here: seconds that the part under way takes as a whole.
    """
    known = [part for part in pace.past if part in pace.forecast and part != pace.part]
    took, foreseen = (sum(of[part] for part in known) for of in (pace.past, pace.forecast))
    return _slower(pace, took + here, foreseen + pace.forecast.get(pace.part, here))


def _later(pace: Pace, here: float) -> float | None:
    """Forecast seconds of the parts to come, 0.0 where there are none; None without a forecast."""
    if not pace.forecast:
        return 0.0 if pace.part is Stage.WRITE and not pace.past else None
    over = {*pace.past, pace.part}
    return _scale(pace, here) * sum(seconds for part, seconds in pace.forecast.items() if part not in over)


def _here(pace: Pace, view: RecipeView, now: float) -> tuple[float | None, bool]:
    """Remaining seconds of the current part (None beyond its forecast), and whether they come from its own pace,
    which gives an upper bound."""
    spent, foreseen = now - pace.since, pace.forecast.get(pace.part)
    # Corrected by the finished parts, and not by the current one.
    expected = None if foreseen is None else _scale(pace, foreseen) * foreseen - spent
    if pace.part is None and pace.drafted[0]:
        done, of, took = pace.drafted
        each = took / done
        seconds = each * (of - done) - min(each, max(0.0, spent - took))
        return _blended(seconds, expected, done / of), False
    if pace.part is Stage.WRITE and (written := _writing(pace.tokens, view, now)) is not None:
        return _blended(written, expected, _share_written(view)), True
    return (expected if expected is not None and expected > 0 else None), False


def _blended(measured: float, expected: float | None, share: float) -> float:
    """Remaining seconds by a part's own pace, mixed with its forecast while little of it is done."""
    trust = 1.0 if expected is None else min(1.0, share / _TRUSTED)
    return trust * measured + (1 - trust) * max(0.0, expected or 0.0)


def _share_written(view: RecipeView) -> float:
    """Share of all possible tokens that are written; an ended demonstration counts as complete."""
    run = view.run
    there = len(run.completed) * run.tokens + sum(draft.token.step if draft.token else 0 for draft in run.drafts)
    return there / max(1, run.planned * run.tokens)


def _writing(tokens: Tokens, view: RecipeView, now: float) -> float | None:
    """Upper bound of the seconds until all demonstrations are complete; None before there is a pace."""
    run = view.run
    if tokens.later < _ENOUGH * tokens.largest or tokens.seconds <= 0:
        return None
    each = tokens.seconds / tokens.later
    wait = sum(tokens.waits) / len(tokens.waits)
    steps = sum(max(0, run.tokens - (draft.token.step if draft.token else 1)) for draft in run.drafts)
    unbegun = max(0, run.planned - len(run.completed) - len(run.drafts))
    waits = math.ceil(unbegun / tokens.largest) * wait
    if tokens.opened:
        waits += max(0.0, wait - (now - tokens.begun))
    return (steps + unbegun * (run.tokens - 1)) * each + waits


# Time and progress of a run in one line: which demonstration, and how long yet; afterwards, how long it took.

_MOMENTS = 3.0
"""Seconds below which no number is shown."""


def time_card(pace: Pace, view: RecipeView, now: float) -> list[Tree]:
    """The line of times; empty without a run.

    Args:
        now: of the clock that `pace` was taken with.
    """
    if view.run.phase in ("running", "waiting"):
        words = "; ".join(filter(None, (_which(view), _left(pace, view, now))))
    else:
        words = _took(pace, view.run, now)
    return [el("p.muted", f"{words[0].upper()}{words[1:]}.")] if words else []


def in_words(remaining: Left) -> str:
    """Remaining time, rounded, for a sentence."""
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
