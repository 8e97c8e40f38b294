"""What step 4 shows: the set under test, answers, and accuracies."""

from __future__ import annotations

from collections.abc import Sequence

from dpicl_ui.frame.cards import private_tag
from dpicl_ui.frame.tree import Tree, el
from dpicl_ui.generate.cards import demonstration
from mechanisms.studio.evaluation.classify import Prediction
from mechanisms.studio.evaluation.evaluate import PRIVATE, PUBLIC_ONLY, ZERO_SHOT, Accuracy, Scorecard
from mechanisms.studio.synthesis.demo_set import DemoSet

ARMS = {
    ZERO_SHOT: ("Zero-shot", "the instruction alone"),
    PUBLIC_ONLY: ("Public only", "demonstrations written without the data, epsilon 0"),
    PRIVATE: ("Your demonstrations", "the private set under test"),
}


def subject(demo_set: DemoSet | None, loaded: bool) -> list[Tree]:
    """Which demonstrations are tested."""
    if demo_set is None:
        return [
            el("div.card-head", el("h3", "Nothing to test yet")),
            el("p.muted", "Write demonstrations in step 3, or load a file that was exported before."),
        ]
    claim = demo_set.certificate.claim
    count = len(demo_set.demonstrations)
    return [
        el(
            "div.card-head",
            el("h3", "Loaded from a file" if loaded else "Written in this session"),
            el("span.tag.public", f"epsilon {claim.epsilon:.3g}"),
        ),
        el("p.muted", f"{count} demonstration{'' if count == 1 else 's'} for {', '.join(demo_set.labels)}"),
        el(
            "details",
            el("summary", "Show the demonstrations"),
            el("div", *(demonstration(each) for each in demo_set.demonstrations)),
        ),
    ]


def answers(labels: Sequence[str], predictions: Sequence[tuple[str, Prediction]]) -> list[Tree]:
    """A query's answer by each arm: calibrated probabilities as bars, the raw answer in words."""
    return [el("div.arms", *(_answer(labels, name, each) for name, each in predictions))]


def _answer(labels: Sequence[str], name: str, prediction: Prediction) -> Tree:
    title, remark = ARMS[name]
    best = int(prediction.calibrated.argmax())
    raw = int(prediction.raw.argmax())
    bars = [
        el(
            "div.count-row",
            el("span.count-name", label, title=label),
            el("span.count-bar" + (".best" if i == best else ""), numbers={"share": float(prediction.calibrated[i])}),
            el("span.count-number", f"{100 * float(prediction.calibrated[i]):.0f}%"),
        )
        for i, label in enumerate(labels)
    ]
    return el(
        "div.arm" + (".own" if name == PRIVATE else ""),
        el("h4", title),
        el("p.muted", remark),
        el("p.answer", labels[best]),
        *bars,
        el("p.muted", f"Without calibration: {labels[raw]} ({100 * float(prediction.raw[raw]):.0f}%)"),
    )


def accuracies(cards: Sequence[Scorecard], owners: Sequence[str] = ()) -> list[Tree]:
    """Accuracy of each arm with its 95% interval; tagged where the rows belong to private data sets, `owners`."""
    if not cards:
        return []
    total = cards[0].raw.total
    return [
        el("div.card-head", el("h3", "Accuracy"), el("span.muted", f"{total} test rows, bars with 95% intervals")),
        *_tag(owners),
        el("div.scores", *(_scores(card) for card in cards)),
        el(
            "p.muted",
            "Calibrated answers divide by what the prompt makes the model say for an empty query (Zhao et al. 2021).",
        ),
    ]


def _tag(owners: Sequence[str]) -> list[Tree]:
    names = ", ".join(f"'{name}'" for name in owners)
    return [private_tag(f"Only on your screen: without noise, on rows of {names}")] if owners else []


def confused(owners: Sequence[str]) -> list[Tree]:
    """The head of the confusion matrix."""
    return [el("h3", "Which labels are confused"), *_tag(owners)]


def _scores(card: Scorecard) -> Tree:
    title, remark = ARMS[card.name]
    own = ".own" if card.name == PRIVATE else ""
    return el(
        "div.score" + own,
        el("div.score-name", el("strong", title), el("span.muted", remark)),
        _bar("calibrated", card.calibrated),
        _bar("raw", card.raw),
    )


def _bar(kind: str, accuracy: Accuracy) -> Tree:
    low, high = accuracy.interval
    words = f"{100 * accuracy.value:.0f}%  ({100 * low:.0f} to {100 * high:.0f})"
    return el(
        f"div.score-row.{kind}",
        el("span.score-kind", kind),
        el(
            "span.score-track",
            el("span.score-bar", numbers={"share": accuracy.value}),
            el("span.score-interval", numbers={"low": low, "high": high}),
        ),
        el("span.score-number", words),
    )
