"""Cards of a run and its set: demonstrations, refused texts, how the run ended, its score, and its time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dpicl_ui.frame.tree import Tree, el, notice
from dpicl_ui.generate.charts import reading
from mechanisms.demos.demo_set import (
    DEMONSTRATIONS,
    DIRECTIONS,
    PROTOTYPES,
    PUBLIC_ONLY,
    TOO_FEW,
    ZERO_SHOT,
    ArmScore,
    DemoSet,
    Score,
)
from mechanisms.evaluation.verdict import verdict_of_score
from mechanisms.exports.certificate_page import balanced_in_words
from mechanisms.records import Demonstration, unit_noun
from mechanisms.rounding import duration, exactly, rounded_up
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, VOTE, WORDS
from mechanisms.runs.stages.score import ScoreReleased
from mechanisms.runs.view import RunView
from mechanisms.runs.work import Speed

MANY = 12
"""Number of demonstrations above which they are folded."""

_NOTHING_YET = "Whole demonstrations are collected here. They are synthetic and may be shared."
_SHARE = "The demonstrations may be shared with the certificate of step 5."


def listed(shown: Sequence[Demonstration], folded: bool = False) -> Tree:
    """Demonstrations as elements; many are folded and can be searched."""
    many = len(shown) > MANY
    each = (el("div.demo", el("span.chip", one.label), el("p", one.text or "(empty)")) for one in shown)
    trees = el("div.demos" + (".searched" if many else ""), *each)
    return el("details", el("summary", "Show the demonstrations"), trees) if many or folded else trees


def finished(view: RunView) -> list[Tree]:
    head = el("div.card-head", el("h3", "Demonstrations"), el("span.tag.public", "Releasable"))
    known = view.standing
    marked = view.demo_set is not None and bool(view.demo_set.certificate.disclosures)
    planned = f" of {view.plan.spec.shots * len(view.plan.labels)}" if view.plan else ""
    shown: list[Tree] = [el("p.muted", _NOTHING_YET)]
    if known:
        known_values = "Marked: clean values of this data set are known." if marked else ""
        shown = [el("p.muted", f"{len(known)}{planned}"), *notice(known_values, "warn"), listed(known)]
    return [head, *shown, *refused(view)]


def refused(view: RunView) -> list[Tree]:
    """How many finished texts the gate refused, by reason; public drafts replace them."""
    if not view.refused:
        return []
    count = len(view.refused)
    reasons = ", ".join(f"{reason} ({n})" for reason, n in Counter(each.reason for each in view.refused).most_common())
    texts = "1 text was" if count == 1 else f"{count} texts were"
    return [
        el("h4", "What the gate refused"),
        el("p.muted", f"{texts} refused: {reasons}. The cost stays spent; the next best drafts replace them."),
    ]


def outcome_of_run(view: RunView) -> tuple[str, str]:
    """How a run ended, in one line, and the line's kind (`notice`)."""
    kept = len(view.standing)
    match view.phase:
        case "completed":
            return " ".join(["Done.", *_cut_off(view), *_moved(view), _SHARE]), "good"
        case "stopped":
            what = "1 whole demonstration is kept" if kept == 1 else f"{kept} whole demonstrations are kept"
            return f"Stopped. {what}. What was spent stays spent, because what was shown cannot be taken back.", "warn"
        case "failed":
            return f"{view.message} What was released before is kept." if kept else view.message, "bad"
    return "", "info"


def _cut_off(view: RunView) -> list[str]:
    said = {True: "finished from public text alone", False: "left out"}
    counted = Counter(event.finished for event in view.cut_off)
    return [f"Cut off, and {words}: {counted[each]}." for each, words in said.items() if counted[each]]


def _moved(view: RunView) -> list[str]:
    """A line on how many tokens rows or noise changed from the model's choice, by released and public values alone."""
    token = view.last.token if view.last else None
    if not view.moved and (token is None or token.values is None):  # only a token was released, or none was
        return []
    return [
        f"In {view.moved} of {view.tokens} tokens your {view.unit}s, or the noise, chose another token than the model."
    ]


def outcome_of_loading(view: RunView) -> tuple[str, str]:
    """The line above a saved run on the screen, and the line's kind (`notice`)."""
    claim = view.demo_set.certificate.claim if view.demo_set else None
    promise = f" of epsilon {rounded_up(claim.epsilon, 3)} at delta {claim.delta:g}" if claim else ""
    return (
        f"A saved run{promise}: its certificate was computed again and holds. The file is not signed, so it cannot be "
        "proved that its noisy values were drawn as it says.",
        "info",
    )


_NAMES = {
    ZERO_SHOT: "Zero-shot",
    PUBLIC_ONLY: "Public only",
    DEMONSTRATIONS: "This set",
    DIRECTIONS: "Directions alone",
    PROTOTYPES: "Class prototypes",
}
_HELD_OUT = "These rows took no part in writing the set."
_ALIKE = (
    "The prompts are read with a correction that was measured on rows. Only the set's correction was refined, so the "
    "other prompts might do better with the same care."
)
_NO_BETTER = "This score does not show that the set is better than naming the largest label every time."
_USERS = "Every user counts the same."
_NOT_HELD_OUT = "These rows may have taken part in writing the set, so its figure may be a little optimistic."
_FROM_FILE = "These figures come from the file; they cannot be checked without its data."
_BETTER_ALONE = (
    "{model} reads these {unit}s better without demonstrations than with these. The set is exported anyway, for other "
    "readers."
)
_FOR_LABELS = (
    "To find labels only, use the directions: they find more labels of these {unit}s than {model} does with the set. "
    "The set is for prompts."
)
_DUST = 1e-9
"""Tolerance for floats: .71 times 100 is slightly more than 71."""


def score_of_run(view: RunView) -> list[Tree]:
    """The card of the score that a run has released; a replayed set gets its score only at the end."""
    released = view.releases.get(SCORE)
    if not isinstance(released, ScoreReleased) or view.demo_set is None:
        return []
    return score_card(replace(view.demo_set, score=released.score))


def verdict_of(made: DemoSet) -> str:
    """One sentence on a set's private score; empty if it has none, or too few rows took part."""
    majority = made.majority[1] if made.majority else None
    return verdict_of_score(made.score, not made.demonstrations, majority) if made.score else ""


def score_card(made: DemoSet | None, loaded: bool = False) -> list[Tree]:
    """The set's score beside its baselines and the largest label, on one axis.

    A `loaded` set comes from a file, so its data are not in this tab.
    """
    if made is None or (score := made.score) is None:
        return []
    majority, found = made.majority[1] if made.majority else None, score.arms.get(DEMONSTRATIONS)
    no_better = found is not None and not found.wide and found.interval[0] <= (majority or 0.0)
    whose, weighed = "its" if loaded else "your", balanced_in_words(made)
    arms = [_range(_NAMES.get(arm, arm), each, arm) for arm, each in score.arms.items()]
    largest = [] if majority is None else [_range("The largest label", ArmScore(majority, (majority, majority)))]
    ends = el("div.range-row.range-ends", el("span.range-axis", el("span", "0"), el("span", "50"), el("span", "100")))
    return [
        el("div.card-head", el("h3", f"On {whose} own rows"), el("span.tag.public", "Releasable")),
        el("p.guarantee", _sentence(score, majority, whose)),
        *(el("p.muted", words) for words in (verdict_of(made), weighed) if words),
        el("div.ranges", *arms, *largest, ends),
        el("p.muted", " ".join(_remarks(made, score, loaded))),
        *notice(_better_alone(made, score), "info"),
        *notice(_FOR_LABELS.format(**_whose(made)) if made.directions_read_better else "", "info"),
        *notice(_NO_BETTER if no_better else "", "warn"),
        *notice("" if score.held_out else _NOT_HELD_OUT, "warn"),
    ]


def _remarks(made: DemoSet, score: Score, loaded: bool) -> Iterator[str]:
    yield f"{score.percent} intervals, which cover the noise and the choice of rows."
    if any(stage.name == CALIBRATE for stage in made.stages):
        yield _ALIKE
    if score.held_out:
        yield _HELD_OUT
    if made.certificate.by_user:
        yield _USERS
    if loaded:
        yield _FROM_FILE


def _better_alone(made: DemoSet, score: Score) -> str:
    """A sentence if the score shows that the reader finds more labels without the set; otherwise empty."""
    gain = score.gains.get(ZERO_SHOT)
    if gain is None or gain.interval[1] >= 0:
        return ""
    return _BETTER_ALONE.format(**_whose(made))


def _whose(made: DemoSet) -> dict[str, str]:
    return {"model": made.model_id, "unit": unit_noun(made.certificate.unit)}


def of_hundred(arm: ArmScore) -> str:
    """An interval in whole rows of 100, rounded outwards: "71 to 78"."""
    low, high = arm.interval
    return f"{math.floor(100 * low + _DUST)} to {math.ceil(100 * high - _DUST)}"


def _sentence(score: Score, majority: float | None, whose: str) -> str:
    found, plain = score.arms.get(DEMONSTRATIONS), score.arms.get(ZERO_SHOT)
    if found is None or found.wide:
        return "Too few rows took part to say how often labels are found."
    words = f"The set finds the label of {of_hundred(found)} of 100 of {whose} own rows"
    if plain is not None and not plain.wide:
        words += f"; zero-shot, {of_hundred(plain)}"
    if majority is not None:
        words += f"; the largest label, named every time, {math.ceil(100 * majority - _DUST)}"
    return f"{words}."


def _range(name: str, arm: ArmScore, kind: str = "") -> Tree:
    low, high = arm.interval
    words = f"{math.ceil(100 * low - _DUST)}" if low == high else of_hundred(arm)
    return el(
        "div.range-row" + (".own" if kind == DEMONSTRATIONS else "") + (".few-rows" if arm.wide else ""),
        el("span.range-name", name, title=name),
        el(
            "span.range-track",
            el("span.range", numbers={"low": round(low, 4), "high": round(high, 4)}),
            el("span.range-point", numbers={"at": round(arm.accuracy, 4)}) if not arm.wide else None,
            role="img",
            aria_label=f"{words} of 100",
        ),
        el("span.range-number", f"{words}, {TOO_FEW}" if arm.wide else words),
    )


_PICTURED = {OPENINGS, WORDS, VOTE, SCORE}


def other_releases(view: RunView) -> list[Tree]:
    """The releases of stages that have no picture here, as lines of text."""
    return [
        el("p.muted", f"{stage.capitalize()}: {line}.")
        for stage, released in view.releases.items()
        if stage not in _PICTURED
        for line in released.lines()
    ]


_BELIEVED = 0.5
"""The weight of the forecast, as a share of it.

The ratio of the elapsed time to the forecast of the finished work corrects the remaining time. This share of the
forecast is added to both, so that the correction is small while there is little progress.
"""
_ENOUGH = 0.1
"""The progress, 0 to 1, from which the remaining time is shown if there is no forecast."""
_MOMENTS = 3.0
"""Remaining seconds below which no number is shown."""


@dataclass(frozen=True)
class RunPace:
    """When a run began, and its forecast.

    Attributes:
        since: seconds of a monotonic clock.
        forecast: seconds of each stage, in order; empty while the models' speed is unknown.
        before: the share of a resumed run that was done earlier.
    """

    since: float = 0.0
    forecast: Mapping[str, float] = field(default_factory=dict)
    before: float = 0.0

    @property
    def foreseen(self) -> float:
        """Seconds of the whole run; 0 without a forecast."""
        return sum(self.forecast.values())

    def share_done(self, view: RunView) -> float:
        """The share of the run that is done, 0 to 1; measured in forecast time if there is a forecast."""
        if not self.foreseen or view.stage not in self.forecast:
            return view.progress
        stages = list(self.forecast)
        past = sum(self.forecast[each] for each in stages[: stages.index(view.stage)])
        return (past + view.within * self.forecast[view.stage]) / self.foreseen

    def seconds_left(self, view: RunView, now: float) -> float | None:
        """The remaining seconds; None if unknown."""
        passed, done = max(0.0, now - self.since), self.share_done(view)
        if not self.foreseen:
            share = done - self.before
            return passed * (1 - done) / share if share >= _ENOUGH else None
        trust = max(1.0, _BELIEVED * self.foreseen)
        slower = (passed + trust) / (self.foreseen * max(0.0, done - self.before) + trust)
        return self.foreseen * (1 - done) * slower


def forecast(plan: Plan, speed: Speed | None) -> dict[str, float]:
    """Seconds of each stage of a plan; empty while the models' speed is unknown."""
    return {name: speed.seconds(stage.work()) for name, stage in plan.stages.items()} if speed else {}


def time_card(pace: RunPace, view: RunView, now: float) -> list[Tree]:
    """Which demonstration is being written and the remaining time; after the run, the time that it took."""
    if view.phase in ("running", "waiting"):
        words = "; ".join(filter(None, (_which(view), _time_left(pace, view, now))))
    else:
        words = _took(pace, view, now)
    return [el("p.muted", f"{words[0].upper()}{words[1:]}.")] if words else []


def _which(view: RunView) -> str:
    if not view.writing or view.plan is None:
        return ""
    done, beside = len(view.completed), len(view.writing)
    which = f"demonstration {done + 1}" if beside == 1 else f"demonstrations {done + 1} to {done + beside}"
    together = "" if beside == 1 else ", side by side"
    where = f"{which} of {view.plan.sampling.written * len(view.plan.labels)}{together}"
    return where if all(each.token for each in view.writing) else f"{where}: {reading(view)}"


def _time_left(pace: RunPace, view: RunView, now: float) -> str:
    seconds = pace.seconds_left(view, now)
    if seconds is None:
        return ""
    return f"{duration(seconds) if seconds >= _MOMENTS else 'a few seconds'} left"


def _took(pace: RunPace, view: RunView, now: float) -> str:
    if not view.ended:
        return ""
    took = exactly(max(0.0, now - pace.since))
    if not pace.foreseen:
        return f"took {took}" if view.phase == "completed" else f"stopped after {took}"
    foreseen = duration(pace.foreseen)
    if view.phase == "stopped":
        return f"stopped after {took}; the whole run was forecast to take {foreseen}"
    return f"took {took}; the forecast was {foreseen}"
