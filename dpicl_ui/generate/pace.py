"""How long a run has taken, and how much of it is left: from when its released tokens and stages came.

`pace = paced(pace, event, now)`; nothing here depends on how far a stage is among the private rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from dpicl_ui.generate.recipe_view import RecipeView
from mechanisms.runs.events import CuratorEvent, DemoStarted, Drafting, RunStarted, StageStarted, TokenReleased
from mechanisms.runs.recipe import Stage

Part = Stage | None
"""A stage, or the first drafts, which come before any. A run without stages is "write" alone."""

_ENOUGH = 3
"""Tokens of each demonstration of a group before their pace says more than the forecast."""
_BELIEVED = 0.5
"""Of the whole forecast, what stands beside parts that are over where these tell how fast this machine is: a short part
moves what is said of the others little."""
_TRUSTED = 0.25
"""Of all tokens, what must be there before their pace alone says how long the others take."""


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


def paced(pace: Pace, event: CuratorEvent, now: float) -> Pace:
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
    """What is left of a run under way, for its curator's eyes; None where that is not known, or it takes longer."""
    if pace.begun is None:
        return None
    here, own_pace = _here(pace, view, now)
    spent = now - pace.since
    foreseen = pace.forecast.get(pace.part, spent)
    later = _later(pace, max(spent, foreseen) if not own_pace and pace.part is not None else spent + (here or 0.0))
    if here is None or later is None:
        return Left(later, "at least ") if later else None
    return Left(here + later, "at most " if own_pace else "")


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
    """How much longer than forecast the run takes, by the first drafts of the labels that are done."""
    done, of, took = pace.drafted
    foreseen = pace.forecast.get(None, 0.0) * done / of
    return _slower(pace, took, foreseen) if done else 1.0


def _slower(pace: Pace, took: float, foreseen: float) -> float:
    """How much longer everything takes, if some of it took so long that was foreseen otherwise; continuous in both."""
    believed = max(1.0, _BELIEVED * (pace.foreseen or 0.0))  # of a forecast of moments, a second
    return (took + believed) / (foreseen + believed)


def _scale(pace: Pace, here: float) -> float:
    """How much longer than forecast the parts take, by those that are over, and by the one under way.

    Args:
        here: seconds that the part under way takes as a whole.
    """
    known = [part for part in pace.past if part in pace.forecast and part != pace.part]
    took, foreseen = (sum(of[part] for part in known) for of in (pace.past, pace.forecast))
    return _slower(pace, took + here, foreseen + pace.forecast.get(pace.part, here))


def _later(pace: Pace, here: float) -> float | None:
    """Seconds of the parts to come, 0.0 where there are none; None where nothing was foreseen."""
    if not pace.forecast:
        return 0.0 if pace.part is Stage.WRITE and not pace.past else None
    over = {*pace.past, pace.part}
    return _scale(pace, here) * sum(seconds for part, seconds in pace.forecast.items() if part not in over)


def _here(pace: Pace, view: RecipeView, now: float) -> tuple[float | None, bool]:
    """Seconds that are left of the part under way, None where it takes longer than foreseen; and whether its own pace
    says so, of which it is an upper bound."""
    spent, foreseen = now - pace.since, pace.forecast.get(pace.part)
    # As the parts before told; how the one under way does is not in it.
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
    """What a part's own pace says, and before that, by and by, what was expected of it."""
    trust = 1.0 if expected is None else min(1.0, share / _TRUSTED)
    return trust * measured + (1 - trust) * max(0.0, expected or 0.0)


def _share_written(view: RecipeView) -> float:
    """Of all tokens that there can be, those that are there; demonstrations that have ended have all of theirs."""
    run = view.run
    there = len(run.completed) * run.tokens + sum(draft.token.step if draft.token else 0 for draft in run.drafts)
    return there / max(1, run.planned * run.tokens)


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
