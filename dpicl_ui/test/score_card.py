"""The private score that a set brings along: no test file is needed for it."""

from __future__ import annotations

from dpicl_ui.frame.tree import Tree, el, notice
from dpicl_ui.generate.score_card import OWN, TOUCHED, of_hundred, weighed
from dpicl_ui.test.baseline import PROTOTYPES, verdict
from dpicl_ui.test.cards import ARMS, score_row
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import ArmScore, Score
from mechanisms.evaluation.evaluate import PRIVATE, PUBLIC_ONLY, ZERO_SHOT, verdict_of_score

_PROTOTYPES = "prototypes"
_TITLES = {
    ZERO_SHOT: ARMS[ZERO_SHOT],
    PUBLIC_ONLY: ARMS[PUBLIC_ONLY],
    OWN: ARMS[PRIVATE],
    _PROTOTYPES: PROTOTYPES,
}
_LARGEST, _BY_SIZES = "The largest label", "named every time, by the public sizes"
_UNTOUCHED = "These rows took part in nothing that was chosen."
_WITH_NOISE = "Released with noise, as part of the run's epsilon: public."
_FROM_FILE = "These figures are what the file says; they cannot be checked without its data."


def score_card(demo_set: DemoSet | None, loaded: bool) -> list[Tree]:
    """Private accuracies of a set, arm by arm; nothing where it has none."""
    if demo_set is None or demo_set.score is None:
        return []
    score = demo_set.score
    head = el(
        "div.card-head",
        el("h3", "On the rows of its own data set" if loaded else "On your own rows"),
        el("span.tag.public", "private score"),
    )
    covered = f"Intervals are of {score.percent}, and cover sampling and noise."
    arms = el("div.scores", *(_arm(name, each, loaded) for name, each in score.arms.items()), _majority(demo_set))
    remark = el("p.muted", f"{_UNTOUCHED if score.untouched else TOUCHED} {_WITH_NOISE} {covered}")
    beside = notice(_beside(score), "info")
    majority = demo_set.majority[1] if demo_set.majority else None
    sentence = verdict_of_score(score, not demo_set.demonstrations, majority)
    first = [el("p.guarantee", sentence)] if sentence else []
    return [
        el(
            "div.card.public",
            head,
            *first,
            *weighed(demo_set),
            arms,
            *beside,
            remark,
            el("p.muted", _FROM_FILE) if loaded else None,
        )
    ]


def _majority(demo_set: DemoSet) -> Tree | None:
    """What naming the largest label every time would find, by the public sizes."""
    if demo_set.majority is None:
        return None
    label, share = demo_set.majority
    return el(
        "div.score",
        el("div.score-name", el("strong", _LARGEST), el("strong", label), el("span.muted", _BY_SIZES)),
        score_row("always", share, (share, share), f"{100 * share:.0f} of 100"),
    )


def _beside(score: Score) -> str:
    """What class prototypes say of the set, where they were scored with it and there were rows enough."""
    arms = dict(score.arms)
    prototypes, own = arms.pop(_PROTOTYPES, None), arms.pop(OWN, None) or arms.pop(ZERO_SHOT, None)
    if prototypes is None or own is None or prototypes.wide or own.wide:
        return ""
    others = [(each.accuracy, each.interval) for each in arms.values()]
    return verdict((prototypes.accuracy, prototypes.interval), (own.accuracy, own.interval), others)


def _arm(name: str, score: ArmScore, loaded: bool) -> Tree:
    title, remark = _TITLES.get(name, (name, ""))
    whose = "on its own rows" if loaded else "on your own rows"
    words = f"{of_hundred(score)} of 100"
    return el(
        "div.score" + (".own" if name == OWN else ""),
        el("div.score-name", el("strong", title), el("span.muted", remark)),
        score_row(whose, score.accuracy, score.interval, words),
        el("p.muted", "Too few rows to say more.") if score.wide else None,
    )
