"""The cards of "Ask privately": the promise, the effect of a threshold, the answers, and what is left."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpicl_ui.frame.tree import Tree, el, fact, notice
from dpicl_ui.generate.cards import OWN, of_hundred
from dpicl_ui.generate.state import Made
from mechanisms.answers.events import AnswerReleased, AnswersOpened, answer_in_words, reservation_in_words
from mechanisms.answers.odds import ThresholdEffect, is_good, odds_in_words
from mechanisms.answers.request import AnswerRequest
from mechanisms.queries import Retrieval
from mechanisms.records import person
from mechanisms.rounding import rounded_up

_ONCE = (
    "Charged once, before the first question. If this file already has a reservation under the same terms, that one "
    "goes on and nothing new is charged."
)
_SPENT = (
    "Rows that have paid for all their answers take no part any more. How many those are is private, so it is shown "
    "nowhere."
)


def _head(title: str, tag: str | None = None) -> Tree:
    return el("div.card-head", el("h3", title), el("span.tag.public", tag) if tag else None)


def waiting() -> list[Tree]:
    """The promise before there is a file."""
    return [_head("What these answers promise"), el("p.muted", "Known when a file is chosen in step 1.")]


def refused(reason: str) -> list[Tree]:
    """The card for settings that allow no reservation."""
    return [_head("No questions with these settings"), *notice(reason)]


def promise(
    request: AnswerRequest, effect: ThresholdEffect | None, made: Made | None = None, units: int | None = None
) -> list[Tree]:
    """The cost of a reservation, its number of answers and its noise, before it is made.

    Args:
        request: calibrated.
        effect: of the chosen threshold on the example, once it is known.
        made: the set of step 3, whose labels cost nothing more.
        units: public number of rows or users; None where it is private.
    """
    unit = "user" if request.by_user else "row"
    cost = request.claim()
    odds = odds_in_words(request, units)
    caution = "" if odds else request.mechanism.caution(request.shards) or ""
    return [
        _head("What these answers promise", "Releasable"),
        el(
            "p.guarantee",
            f"Whatever is asked, all answers together depend on any single {unit} by no more than epsilon "
            f"{rounded_up(cost.epsilon, 3)} (delta {cost.delta:g}).",
        ),
        *notice(odds, "good" if is_good(request) else "warn"),
        *notice(caution, "warn"),
        *notice("" if made is None or request.mechanism.open_answers else for_nothing(made), "info"),
        el(
            "dl.facts",
            fact("Price in the ledger", f"epsilon {rounded_up(cost.epsilon, 3)}", _ONCE),
            fact(
                "Questions it buys",
                f"at least {request.queries}",
                f"A {unit} pays only for questions that it is near, up to {request.queries}. "
                + _until_silent(effect, request.queries),
            ),
            _noise(request),
        ),
    ]


def for_nothing(made: Made) -> str:
    """What a set says of the labels without a further charge; empty if little is known."""
    score = made.demo_set.score
    own = score.arms.get(OWN) if score else None
    if own is None or own.wide:
        return ""
    return (
        f"On the rows of '{made.of.name}' the set of step 3 finds the label of {of_hundred(own)} of 100, and asking it "
        "costs nothing more: ask there (step 4), unless the answer should come from the rows near a question."
    )


def _until_silent(effect: ThresholdEffect | None, queries: int) -> str:
    if effect is None or not effect.busiest:
        return ""
    return (
        f"On the example, at similarity {effect.threshold:g}, that is about {questions_until_silent(effect, queries)} "
        "questions before the first row falls silent."
    )


def questions_until_silent(effect: ThresholdEffect, queries: int) -> int:
    """Questions of the example's kind after which the row that is reached most often has paid for all its answers."""
    return max(queries, math.floor(queries / effect.busiest))


def _noise(request: AnswerRequest) -> Tree:
    deviation, groups = request.mechanism.deviation, f"{request.shards} groups of up to {request.neighbours} examples"
    if request.mechanism.open_answers:
        words = f"{groups} answer; words on which enough of them agree are released."
        return fact("Noise on the test for agreement", f"±{deviation:.3g} groups", words)
    divided = request.mechanism.parts > 1
    who = "may divide one vote each among the labels" if divided else "have one vote each"
    if request.retrieval is Retrieval.LABELS_ONLY:
        who = "vote with their commonest label"
    return fact("Noise on each label's votes", f"±{deviation:.3g} votes", f"{groups} {who}.")


def effect_card(effects: Sequence[ThresholdEffect], threshold: float, queries: int, example: str) -> list[Tree]:
    """Which share of the bundled example's rows a question reaches, for each threshold; the chosen one in words."""
    chosen = nearest(effects, threshold)
    return [
        el("p.small-head", f"Rows of the example “{example}” that take part in a question, on average"),
        el("div.counts", *(_reach(each, each is chosen) for each in effects)),
        el("p.muted", in_words(chosen, queries)),
        el("p.muted", "Worked out on the bundled example: your own rows are not looked at, because that would leak."),
    ]


def nearest(effects: Sequence[ThresholdEffect], threshold: float) -> ThresholdEffect:
    """The effect of the threshold nearest to the chosen one."""
    return min(effects, key=lambda each: abs(each.threshold - threshold))


def _reach(effect: ThresholdEffect, chosen: bool) -> Tree:
    return el(
        "div.count-row" + (".chosen" if chosen else ""),
        el("span.count-name", f"from {effect.threshold:g}"),
        el("span.count-bar.public-bar", numbers={"share": effect.share}),
        el("span.count-number", percent(effect.share)),
    )


def percent(share: float) -> str:
    """A share as a whole percentage; a small one is not rounded to zero."""
    return "under 1%" if 0 < share < 0.01 else f"{100 * share:.0f}%"


def in_words(effect: ThresholdEffect, queries: int) -> str:
    """The effect of a threshold in one or two sentences."""
    empty = "every question reaches some row"
    if effect.unanswered:
        empty = f"{percent(effect.unanswered)} of the questions reach no row at all, and get the model's own answer"
    silent = (
        f" With {queries} answers a row, the first row falls silent after about "
        f"{questions_until_silent(effect, queries)} questions."
        if effect.busiest
        else ""
    )
    return (
        f"From {effect.threshold:g} on, a question reaches {percent(effect.share)} of the rows; {empty}.{silent} "
        "Higher: fewer rows pay, so the budget lasts longer, but groups stay empty. Lower: the reverse."
    )


def reserved(opened: AnswersOpened, asked: Sequence[AnswerReleased]) -> list[Tree]:
    """The open reservation, and the number of questions that are left."""
    given = asked[-1].asked if asked else opened.asked
    left = max(0, opened.queries - given)
    unit = person(opened.unit)
    words = (
        f"question{'' if left == 1 else 's'} left that every {unit} can pay for; more, for those not always near."
        if left
        else f"questions left that every {unit} can surely pay for. Go on asking as long as the answers are useful, or "
        "reserve anew."
    )
    return [
        _head("Reserved", f"epsilon {rounded_up(opened.epsilon, 3)}"),
        el("p.questions-left", el("strong", str(left)), el("span", words)),
        el(
            "p.muted",
            reservation_in_words(opened) if not asked else f"{given} of {opened.queries} answers given so far.",
        ),
        el("p.muted", _SPENT),
        *(tree for note in opened.notes for tree in notice(note, "warn")),
        *notice("" if opened.private else "Test seed: these answers are not private.", "bad"),
    ]


def history(answers: Sequence[tuple[AnswersOpened, AnswerReleased]]) -> list[Tree]:
    """All questions of this tab, the newest in full and first."""
    if not answers:
        return [el("p.muted", "Answers appear here. They may be shown to anyone, and stay until you close the page.")]
    *earlier, (opened, newest) = answers
    return [
        el("div.card-head", el("h3", newest.query), el("span.tag.public", "Releasable")),
        *answer(opened, newest),
        el("p.small-head", "Asked before") if earlier else "",
        *(
            el(
                "details.asked",
                el("summary", f"{len(earlier) - place}. {each.query} → {each.answer}"),
                el("div", *answer(of, each)),
            )
            for place, (of, each) in enumerate(reversed(earlier))
        ),
    ]


def answer(opened: AnswersOpened, released: AnswerReleased) -> list[Tree]:
    """One answer: its text, the votes, the model's answer without the data, and the cost."""
    without = f"Without your data the model says: {released.zero_shot}" if released.zero_shot else None
    return [
        *notice(f"No private answer. {released.abstained}" if released.abstained else "", "warn"),
        el("p.answer", released.answer or "(the model says nothing)"),
        *(_votes(released, opened.noise) if released.votes else []),
        *_keywords(released.keywords),
        el("p.muted", without) if without and not released.abstained else "",
        el("p.muted", answer_in_words(opened, released)),
    ]


def verdict(votes: Sequence[float], noise: float) -> str:
    """How reliable a lead is, from the released votes alone."""
    first, second = sorted(votes, reverse=True)[:2]
    lead, chance = first - second, math.sqrt(2) * noise
    if lead < chance:
        return "The lead is smaller than the noise: this answer may be chance."
    if lead < 2 * chance:
        return "The lead is larger than the noise, but not by much."
    return "The lead is clear: more than twice the noise."


def _votes(released: AnswerReleased, noise: float) -> list[Tree]:
    votes = released.votes or ()
    low, high = min(0.0, *votes) - noise, max(votes) + noise
    span = high - low
    best = max(votes)
    rows = (
        el(
            "div.count-row.vote" + (".best" if vote == best else ""),
            el("span.count-name", label, title=label),
            el(
                "span.vote-track",
                el(
                    "span.vote-bar",
                    numbers={"from": (min(0.0, vote) - low) / span, "span": abs(vote) / span},
                ),
                el("span.vote-noise", numbers={"from": (vote - noise - low) / span, "span": 2 * noise / span}),
                el("span.vote-zero", numbers={"from": -low / span}),
            ),
            el("span.count-number", f"{vote:.1f}"),
        )
        for label, vote in zip(released.labels, votes, strict=True)
    )
    return [
        el("div.counts.votes", *rows),
        el(
            "p.muted",
            f"{verdict(votes, noise)} Noise of ±{noise:.2g} (the thin lines) is in each, so votes may be below zero.",
        ),
    ]


def _keywords(keywords: Sequence[str]) -> list[Tree]:
    if not keywords:
        return []
    return [
        el("p.small-head", "Written from these words alone, on which the groups agree:"),
        el("p.chips", *(el("span.chip", word) for word in keywords)),
    ]
