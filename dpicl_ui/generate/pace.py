"""How long a run has taken, and how much of it is left: from when its released tokens and stages came.

`pace = paced(pace, event, now)`; nothing here depends on how far a stage is among the private rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from dpicl_ui.generate.recipe_view import CuratorScreenEvent, RecipeView
from mechanisms.studio.recipes.events import Drafting, RecipeStarted, StageStarted
from mechanisms.studio.recipes.recipe import Stage
from mechanisms.studio.synthesis.events import DemoStarted, RunStarted, TokenReleased

Part = Stage | None
"""A stage, or the first drafts, which come before any. A run without stages is "write" alone."""

_ENOUGH = 3
"""Tokens of each demonstration of a group before their pace says more than the forecast."""
_MEASURED = 2.0
"""Seconds that finished parts took before they say how fast this machine is."""
_FORESEEN = 1e-3
"""Seconds of a part that was foreseen, at least, before another can be told by how much longer it took."""


@dataclass(frozen=True)
class Left:
    """Seconds that are left of a run: about so many, at most, or at least."""

    seconds: float
    bound: Literal["", "at most ", "at least "] = ""


@dataclass(frozen=True)
class Tokens:
    """The pace of tokens. Demonstrations that are written side by side are a group, and begin together.

    Attributes:
        begun: when the group's demonstrations began.
        size, largest: demonstrations in this group, and in the largest so far.
        opened: they begin, and nothing of theirs has been released.
        last: when its last token came.
        waits: what each group waited for its first token, in seconds.
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
        """With one more event."""
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
    """When what happened in a run, in seconds of one clock.

    Attributes:
        forecast: seconds of each part as step 2 had them, in their order; empty where nothing was known.
        begun: when the run began; None before.
        part, since: the part under way, and when it began.
        past: seconds that each part before took.
        drafted: labels whose first drafts are done, of how many, and seconds that they took.
        tokens: of the part "write".
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
        """Seconds of the whole run as step 2 had them."""
        return sum(self.forecast.values()) if self.forecast else None

    def elapsed(self, now: float) -> float:
        """Seconds since the run began."""
        return max(0.0, now - self.begun) if self.begun is not None else 0.0


def paced(pace: Pace, event: CuratorScreenEvent, now: float) -> Pace:
    """The pace after one more event.

    Args:
        now: seconds of a clock that never goes back.
    """
    if pace.begun is None:
        pace = replace(pace, begun=now, since=now)
    match event:
        case Drafting():
            if pace.part is not None:
                pace = replace(pace, part=None, since=now, past={**pace.past, pace.part: now - pace.since})
            return replace(pace, drafted=(event.number - 1, event.of, now - pace.since))
        case RunStarted():
            return replace(pace, part=Stage.WRITE, since=now)
        case RecipeStarted() | StageStarted():
            begins = event.stage if isinstance(event, StageStarted) else event.stages[0]
            if begins == pace.part:
                return pace
            if pace.part is None and not pace.drafted[0]:  # drafts come later
                return replace(pace, part=begins, since=now)
            return replace(pace, part=begins, since=now, past={**pace.past, pace.part: now - pace.since})
        case DemoStarted() | TokenReleased():
            return replace(pace, tokens=pace.tokens.after(event, now))
    return pace


def left(pace: Pace, view: RecipeView, now: float) -> Left | None:
    """What is left of a run under way, for its curator's eyes; None where that is not known, or it takes longer."""
    if pace.begun is None:
        return None
    later = _later(pace)
    if pace.part is Stage.WRITE and (written := _writing(pace.tokens, view, now)) is not None:
        return None if later is None else Left(written + later, "at most ")
    if pace.part is None and pace.drafted[0]:
        done, of, took = pace.drafted
        each = took / done
        here: float | None = each * (of - done) - min(each, max(0.0, now - pace.since - took))
    else:
        here = _foreseen_here(pace, now)
    if here is None or later is None:
        return Left(later, "at least ") if later else None
    return Left(here + later)


def foreseen_left(pace: Pace, now: float) -> float | None:
    """Seconds that are left by the forecast, for whoever waits in line; None without one, or where it is over.

    That line is read by people who may know nothing of the private rows, and how long a stage or a token takes among
    these follows from the rows. So of all that has happened only the pace of the first drafts counts, which are public.
    """
    if pace.begun is None or pace.foreseen is None:
        return None
    seconds = _public_scale(pace) * pace.foreseen - pace.elapsed(now)
    return seconds if seconds > 0 else None


def _public_scale(pace: Pace) -> float:
    """How much longer than forecast the first drafts take, by the labels that are done."""
    done, of, took = pace.drafted
    foreseen = pace.forecast.get(None, 0.0)
    return took / done * of / foreseen if done and took >= _MEASURED and foreseen >= _FORESEEN else 1.0


def _scale(pace: Pace) -> float:
    """How much longer than forecast the parts took that are over."""
    known = [part for part in pace.past if pace.forecast.get(part, 0.0) >= _FORESEEN]
    took = sum(pace.past[part] for part in known)
    return took / sum(pace.forecast[part] for part in known) if took >= _MEASURED else 1.0


def _later(pace: Pace) -> float | None:
    """Seconds of the parts to come, 0.0 where there are none; None where nothing was foreseen."""
    if not pace.forecast:
        return 0.0 if pace.part is Stage.WRITE and not pace.past else None
    over = {*pace.past, pace.part}
    return _scale(pace) * sum(seconds for part, seconds in pace.forecast.items() if part not in over)


def _foreseen_here(pace: Pace, now: float) -> float | None:
    """Seconds of the part under way by its forecast; None without one, or where it is over."""
    seconds = _scale(pace) * pace.forecast.get(pace.part, 0.0) - (now - pace.since)
    return seconds if seconds > 0 else None


def _writing(tokens: Tokens, view: RecipeView, now: float) -> float | None:
    """Seconds until all demonstrations have all their tokens, at most; None before there is a pace."""
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
