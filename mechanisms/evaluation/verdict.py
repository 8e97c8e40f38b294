"""The verdict: one sentence on whether a set is better than the model alone, public text, prototypes or one label.

A difference is stated only if its interval excludes zero. Rows that took part in a run favour its set (rates:
research/docs/worth.md), so for them the sentence says "ahead" instead of "better".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mechanisms.demos.demo_set import DEMONSTRATIONS, DIRECTIONS, PROTOTYPES, PUBLIC_ONLY, ZERO_SHOT, Score
from mechanisms.evaluation.evaluate import BOTH, Accuracy, MeanRecall, Scorecard
from mechanisms.evaluation.reader import CONTEXTUAL, PRIOR, RAW
from mechanisms.tallies.tally import LARGE

Interval = tuple[float, float]
_NAMING = "naming the largest label every time"
_BETTER = "better than"
_AHEAD = "ahead, on rows that may have taken part in the run, of"
_OTHERS = {
    ZERO_SHOT: "the model alone",
    PUBLIC_ONLY: "public text",
    DIRECTIONS: "the directions of the set",
    PROTOTYPES: "class prototypes",
    _NAMING: _NAMING,
}
_SUBJECTS = {
    DEMONSTRATIONS: "These demonstrations are",
    ZERO_SHOT: "The model without demonstrations is",
    PUBLIC_ONLY: "These public-only demonstrations are",
}


def verdict_of_score(score: Score, without: bool, majority: float | None) -> str:
    """The verdict from a private score; empty if too few rows took part.

    Args:
        score: the released score.
        without: the exported arm has no demonstrations.
        majority: the accuracy of always answering the largest label, with the score's weighing; None if unknown.
    """
    own = score.exported(without)
    if own not in score.arms or score.arms[own].wide:
        return ""
    gains = {name: gain.interval for name, gain in score.gains.items()}
    return _sentence(own, gains, score.arms[own].interval, majority, _BETTER if score.held_out else _AHEAD)


def verdict_of_cards(cards: Sequence[Scorecard]) -> str:
    """The verdict on the last card's set from a test file, with the same kind of correction for all arms.

    It uses balanced accuracy if the most common label has more than twice an even share of the rows.
    """
    *others, own = cards
    figures = [headline(card, cards) for card in cards]
    gains = {card.name: gain(figures[-1], each) for card, each in zip(others, figures, strict=False)}
    name = ZERO_SHOT if own.name == ZERO_SHOT else DEMONSTRATIONS
    for left_out in (name, BOTH):
        gains.pop(left_out, None)
    return _sentence(name, gains, figures[-1].interval, naming_largest(cards))


def by_balanced_accuracy(cards: Sequence[Scorecard]) -> bool:
    """Whether arms are compared by balanced accuracy: the most common label has more than twice an even share.

    Balanced figures use each arm's own reading, which must therefore be the common one.
    """
    own, common = cards[-1], common_reading(cards)
    comparable = all(card.own_accuracy == figure(card, common) for card in cards)
    return comparable and own.majority[1].value * _labels_met(own) > LARGE


def headline(card: Scorecard, cards: Sequence[Scorecard]) -> Accuracy | MeanRecall:
    """An arm's figure in comparisons: balanced accuracy, or accuracy in the common reading."""
    return card.balanced if by_balanced_accuracy(cards) else figure(card, common_reading(cards))


def naming_largest(cards: Sequence[Scorecard]) -> float:
    """The headline figure of always answering the most common label."""
    own = cards[-1]
    return 1 / _labels_met(own) if by_balanced_accuracy(cards) else own.majority[1].value


def _labels_met(card: Scorecard) -> int:
    return sum(each is not None for each in card.recalls)


def common_reading(cards: Sequence[Scorecard]) -> str:
    """The best kind of correction that all arms have: measured, contextual, or none."""
    if all(card.corrected for card in cards):
        return PRIOR
    return CONTEXTUAL if all(card.calibrated for card in cards) else RAW


def figure(card: Scorecard, reading: str) -> Accuracy:
    """An arm's accuracy in a reading, which it must have."""
    found = {PRIOR: card.corrected, CONTEXTUAL: card.calibrated, RAW: card.raw}[reading]
    return found or card.raw


def shares_of_gain(cards: Sequence[Scorecard]) -> tuple[float, float] | None:
    """The gain of the model alone from its measured correction, and the further gain from demonstrations, in [-1, 1].

    None if an arm has no measured correction, or if there are no demonstrations.
    """
    own, alone = cards[-1], next((card for card in cards if card.name == ZERO_SHOT), None)
    if alone is None or alone is own or not (own.corrected and alone.corrected):
        return None
    before = alone.calibrated or alone.raw
    return alone.corrected.value - before.value, own.corrected.value - alone.corrected.value


def gain(one: Accuracy | MeanRecall, other: Accuracy | MeanRecall) -> Interval:
    """The interval of the difference of two figures (Zou and Donner 2008).

    For figures of the same rows, which correlate, it is conservative.
    """
    (low, high), (other_low, other_high) = one.interval, other.interval
    apart = one.value - other.value
    below = math.hypot(one.value - low, other_high - other.value)
    above = math.hypot(high - one.value, other.value - other_low)
    return max(-1.0, apart - below), min(1.0, apart + above)


def _sentence(
    own: str, gains: Mapping[str, Interval], interval: Interval, majority: float | None, ahead: str = _BETTER
) -> str:
    against = dict(gains)
    if majority is not None:
        against[_NAMING] = (interval[0] - majority, interval[1] - majority)
    found = {
        ahead: [name for name, (low, _) in against.items() if low > 0],
        "worse than": [name for name, (_, high) in against.items() if high < 0],
        "not shown to differ from": [name for name, (low, high) in against.items() if low <= 0 <= high],
    }
    clauses = [f"{words} {_joined([_OTHERS[name] for name in names])}" for words, names in found.items() if names]
    return f"{_SUBJECTS[own]} {'; '.join(clauses)}." if clauses else ""


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
