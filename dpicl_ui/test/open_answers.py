"""Step 4 where answers are text: a query answered, or gone on with, by each arm; exact answers and shared words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpicl_ui.frame.tree import Tree, el
from dpicl_ui.test.cards import accuracy_row, arm_name, named_arm, readers, tag
from dpicl_ui.test.state import TestState
from mechanisms import confidence
from mechanisms.demos.demo_set import DemoSet, longest_output
from mechanisms.evaluation.completions import answering, completing
from mechanisms.evaluation.evaluate import PRIVATE
from mechanisms.evaluation.open_answers import OpenScorecard
from mechanisms.inference import LanguageModel

_MEANING = (
    "Exact: the answer of the row, but for case, punctuation, articles and spaces. F1: how far their words are the "
    "same (both as SQuAD scores them); its intervals are wider than need be."
)
_NOTHING = "(nothing)"


def answered_in_text(state: TestState, demo_set: DemoSet, model: LanguageModel, query: str) -> Iterator[list[Tree]]:
    """What the model says to a query behind each arm, or how it goes on with it, one more at a time."""
    shown = list[Tree]()
    for arm in state.arms(demo_set, model):
        if demo_set.template.output is None:
            responder = completing(model, demo_set, arm.demonstrations)
        else:
            responder = answering(model, demo_set.template, arm.demonstrations, longest_output(demo_set))
        [answer] = responder.answers([query])
        said = f"{query.strip()}{answer}" if demo_set.completes and answer else answer
        shown.append(named_arm(arm.name, el("p.answer", said or _NOTHING)))
        yield [el("div.arms", *shown), *readers(demo_set, model)]


def open_scores(cards: Sequence[OpenScorecard], owners: Sequence[str] = ()) -> list[Tree]:
    """The figures of each arm.

    Args:
        owners: private data sets that the rows belong to: the figures are then tagged.
    """
    if not cards:
        return []
    total = cards[0].exact.total
    return [
        el(
            "div.card-head",
            el("h3", "Answers"),
            el("span.muted", f"{total} test rows, bars with {confidence.percent()} intervals"),
        ),
        *tag(owners),
        el("div.scores", *map(_arm, cards)),
        el("p.muted", _MEANING),
    ]


def _arm(card: OpenScorecard) -> Tree:
    return el(
        "div.score" + (".own" if card.name == PRIVATE else ""),
        el("div.score-name", *arm_name(card.name, "strong", "span.muted")),
        accuracy_row("exact", card.exact),
        accuracy_row("F1", card.f1),
    )
