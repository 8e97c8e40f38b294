"""What the card of the attack says: what it asks, what it found, and what that does and does not mean."""

from __future__ import annotations

from collections.abc import Mapping

from dpicl_ui.frame.cards import private_tag
from dpicl_ui.frame.tree import Tree, el, notice
from dpicl_ui.test.cards import score_row
from mechanisms import confidence
from mechanisms.accounting import Claim
from mechanisms.audit.membership import (
    LOW,
    PROBABILITY,
    REFERENCES,
    WORDS,
    ZERO_SHOT,
    Interval,
    Roc,
    allowed,
    allowed_area,
)
from mechanisms.records import unit_in_words

DRAWN = WORDS
"""The attack that counts, chosen beforehand: the best of several would look better than it is by chance."""

_KINDS = {
    WORDS: ("words", "guesses by how much likelier a row's own words are than without demonstrations"),
    REFERENCES: ("references", "by how much likelier its label is than under prompts of other rows"),
    ZERO_SHOT: ("zero-shot", "by how much likelier its label is than without demonstrations"),
    PROBABILITY: ("plain", "by how likely its label is"),
}
_DEAF = (
    "The attack does not find even your real rows: with this model and so few rows it would miss a leak, so its figure "
    "for the demonstrations says little."
)
_ABOVE = (
    "That is above what the claim allows on average over runs. A single run may be there by chance, or the files may "
    "differ in more than who took part: a reason to look, no proof."
)
_MORE = (
    "That is more than guessing: something of your rows shows, or the files differ in more than who took part. It is "
    "not above what the claim allows."
)
_MORE_OF_NOTHING = "That is more than guessing: something of your rows shows, or the files differ in more than that."
_LESS = "That is less than guessing: the files probably differ in more than who took part, so it says little."
_CHANCE = (
    "No more than guessing, as far as so many rows can tell. That does not prove the set safe: an attack only ever "
    "finds leaks, and other attackers are what the claim is for."
)
_CHANCE_OF_NOTHING = "No more than guessing, as far as so many rows can tell. That does not prove the set safe."
_ON_TRUST = (
    "This set came out of a file: that it was written from the data set of step 1 is taken on trust. If it was not, "
    "these figures mean nothing."
)


def about() -> list[Tree]:
    """What it asks and needs."""
    return [
        el("h3", "Attack it"),
        el(
            "p.muted",
            "Can somebody who sees the model's answers tell which rows were in your data? Rows of the data set of step "
            "1 stand against rows of the labelled test file above, which must be of the same kind and took no part. "
            "The attack is tried on your real rows too: a leak that it should find.",
        ),
    ]


def findings(own: Mapping[str, Roc], planted: Mapping[str, Roc], claimed: Claim | None, unit: str) -> list[Tree]:
    """What was found.

    Args:
        own: each attack on the set under test.
        planted: the same on prompts of real rows.
        claimed: what the set promises; None where it promises nothing.
        unit: that the promise is about.
    """
    counted = own[DRAWN]
    deaf = planted[DRAWN].interval[0] <= 0.5
    return [
        el("div.card-head", el("h3", "What the attack finds"), private_tag("Only on your screen: without noise")),
        el(
            "p",
            "Shown one row of your data and one that took no part, the attacker picks yours in ",
            el("strong", f"{_of_hundred(counted.area)} of 100 cases"),
            f" ({_range(counted.interval)}). Guessing blindly would be 50. {_promise(claimed)}",
        ),
        el(
            "p",
            "The same attack with your real rows as demonstrations is right in ",
            el("strong", f"{_of_hundred(planted[DRAWN].area)} of 100 cases"),
            f" ({_range(planted[DRAWN].interval)}).",
        ),
        *notice(*_verdict(counted, claimed)),
        *notice(_DEAF if deaf else "", "warn"),
        el(
            "div.scores",
            _target("Your demonstrations", "the set under test", own, claimed, ".own"),
            _target("Your real rows", "in the prompt as they are, without protection", planted, None, ""),
        ),
        el(
            "p.muted",
            f"{counted.members} rows of your data, {counted.others} others, {confidence.percent()} intervals. "
            f"{_about(claimed, unit)}",
        ),
        el("p.muted", f"{'; '.join(f'{kind}: {words}' for kind, words in _KINDS.values())}."),
    ]


def on_trust() -> list[Tree]:
    """What a loaded set needs to be told with."""
    return notice(_ON_TRUST, "warn")


def _promise(claimed: Claim | None) -> str:
    if claimed is None:
        return "The set promises nothing."
    return f"The certificate promises at most {_of_hundred(allowed_area(claimed.epsilon, claimed.delta))}."


def _verdict(found: Roc, claimed: Claim | None) -> tuple[str, str]:
    low, high = found.interval
    if high < 0.5:
        return _LESS, "warn"
    if low <= 0.5:
        return _CHANCE if claimed else _CHANCE_OF_NOTHING, "info"
    if claimed is None:
        return _MORE_OF_NOTHING, "warn"
    return (_ABOVE, "bad") if low > allowed_area(claimed.epsilon, claimed.delta) else (_MORE, "warn")


def _target(name: str, remark: str, attacks: Mapping[str, Roc], claimed: Claim | None, own: str) -> Tree:
    """Each attack as a bar, and what the one that counts finds while it hardly errs."""
    counted = attacks[DRAWN]
    limit = f"; the claim allows {_percent(allowed(claimed.epsilon, claimed.delta, LOW))}" if claimed else ""
    reached = f"{_percent(counted.found)} of your rows ({_range(counted.found_interval)})"
    rare = f"With at most 1% false alarms the first finds {reached}{limit}."
    return el(
        f"div.score{own}",
        el("div.score-name", el("strong", name), el("span.muted", remark)),
        *(_bar(kind, attacks[attack]) for attack, (kind, _) in _KINDS.items()),
        el("p.muted", rare),
    )


def _bar(kind: str, found: Roc) -> Tree:
    return score_row(kind, found.area, found.interval, f"{_of_hundred(found.area)}  ({_range(found.interval)})")


def _about(claimed: Claim | None, unit: str) -> str:
    return f"The certificate speaks of {unit_in_words(unit)}, in the data or not, over many runs." if claimed else ""


def _of_hundred(share: float) -> str:
    return f"{100 * share:.0f}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _range(interval: Interval) -> str:
    return f"{_of_hundred(interval[0])} to {_of_hundred(interval[1])}"
