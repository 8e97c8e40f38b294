"""What a set is worth in one sentence: better than the model alone, than public text, than one label, or not.

A difference is told where its interval leaves zero out, and nowhere else. Rows that took part in the choice flatter
what they chose (docs/worth.md has the rates), so that a lead on such rows is called no more than that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mechanisms.demos.findings import DEMONSTRATIONS, PROTOTYPES, PUBLIC_ONLY, ZERO_SHOT, Score
from mechanisms.evaluation.evaluate import Accuracy, MeanRecall, Scorecard
from mechanisms.evaluation.reader import CONTEXTUAL, PRIOR, RAW
from mechanisms.tallies.weighing import LARGE

Interval = tuple[float, float]

_NAMING = "naming the largest label every time"
_BETTER = "better than"
_AHEAD = "ahead, on rows that may have taken part in the choice, of"
_OTHERS = {
    ZERO_SHOT: "the model alone",
    PUBLIC_ONLY: "public text",
    PROTOTYPES: "class prototypes",
    _NAMING: _NAMING,
}
_SUBJECTS = {
    DEMONSTRATIONS: "These demonstrations are",
    ZERO_SHOT: "The model without demonstrations is",
    PUBLIC_ONLY: "These public-only demonstrations are",
}


def verdict_of_score(score: Score, without: bool, majority: float | None) -> str:
    """The sentence that a private score allows; empty where too few rows took part.

    Args:
        score: released.
        without: what is exported has no demonstrations.
        majority: how often naming the largest label is right, weighed as the score is; None where not known.
    """
    own = score.exported(without)
    if own not in score.arms or score.arms[own].wide:
        return ""
    gains = {name: gain.interval for name, gain in score.gains.items()}
    return _sentence(own, gains, score.arms[own].interval, majority, _BETTER if score.untouched else _AHEAD)


def verdict_of_cards(cards: Sequence[Scorecard], public: bool = False) -> str:
    """The sentence that a test file allows, of the last card's set, all arms under the same kind of correction.

    By balanced accuracy where the commonest label has more than twice an even share of the rows.

    Args:
        public: the set is the public-only one of its choice, and is not compared with itself.
    """
    *others, own = cards
    _, naming = own.majority
    labels = sum(each is not None for each in own.recalls)
    balanced = naming.value * labels > LARGE and own_reading(cards)
    figures = [card.balanced if balanced else figure(card, common_reading(cards)) for card in cards]
    gains = {card.name: gain(figures[-1], each) for card, each in zip(others, figures, strict=False)}
    name = ZERO_SHOT if own.name == ZERO_SHOT else PUBLIC_ONLY if public else DEMONSTRATIONS
    gains.pop(name, None)
    return _sentence(name, gains, figures[-1].interval, 1 / labels if balanced else naming.value)


def common_reading(cards: Sequence[Scorecard]) -> str:
    """The best kind of correction that all arms have: measured, by empty queries, or none."""
    if all(card.corrected for card in cards):
        return PRIOR
    return CONTEXTUAL if all(card.calibrated for card in cards) else RAW


def best_reading(card: Scorecard) -> str:
    """The reading that finds most labels; of equal ones the measured correction, then calibration by empty queries."""
    found = {PRIOR: card.corrected, CONTEXTUAL: card.calibrated, RAW: card.raw}
    known = {reading: each.value for reading, each in found.items() if each}
    return max(known, key=lambda reading: known[reading])


def own_reading(cards: Sequence[Scorecard]) -> bool:
    """Whether each arm's own reading is the common one, so that balanced figures, which are of it, are alike too."""
    return all(card.read == figure(card, common_reading(cards)) for card in cards)


def figure(card: Scorecard, reading: str) -> Accuracy:
    """An arm's accuracy in a reading that it has."""
    found = {PRIOR: card.corrected, CONTEXTUAL: card.calibrated, RAW: card.raw}[reading]
    return found or card.raw


def shares_of_gain(cards: Sequence[Scorecard]) -> tuple[float, float] | None:
    """What the measured correction gives the model alone, and what the demonstrations give beyond it, in [-1, 1].

    None where not every arm has a measured correction, or there are no demonstrations.
    """
    own, alone = cards[-1], next((card for card in cards if card.name == ZERO_SHOT), None)
    if alone is None or alone is own or not (own.corrected and alone.corrected):
        return None
    before = alone.calibrated or alone.raw
    return alone.corrected.value - before.value, own.corrected.value - alone.corrected.value


def gain(one: Accuracy | MeanRecall, other: Accuracy | MeanRecall) -> Interval:
    """The interval of the difference of two figures (Zou and Donner 2008).

    On the same rows it is wider than need be: rows that are hard for one are hard for the other.
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
