"""The part of step 4 that attacks the set: whose rows were in the data? Exact figures, on the curator's screen only."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import gradio as gr
import plotly.graph_objects as go

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import MODEL, PRIVATE, guarded
from dpicl_ui.frame.job import JobControls, Jobs, Order, Passing, Updates
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.theme import GREY, ORANGE, TEAL, axis, chart, laid_out
from dpicl_ui.frame.tree import Tree, el, notice, panel, private_tag, progress, spinner
from dpicl_ui.generate.state import GenerateState
from dpicl_ui.test.cards import OWN_ARM, score_box, score_row
from dpicl_ui.test.measure import FileMeasurement
from dpicl_ui.test.state import NOTHING, TestState
from mechanisms import confidence
from mechanisms.accounting import Claim, PrivacyLedger, fingerprint
from mechanisms.audit.mechanism import AuditProgress
from mechanisms.audit.membership import (
    LOW,
    PROBABILITY,
    REFERENCES,
    RELEASED,
    ROWS,
    WORDS,
    ZERO_SHOT,
    Effort,
    Interval,
    Membership,
    Points,
    Roc,
    allowed,
    allowed_area,
    corners,
    membership,
)
from mechanisms.data.sizes import mark_attacked
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, unit_in_words
from mechanisms.runs.score import of_demo_set, with_choice

# The ROC curve of an attack, beside what a claim allows.

_OWN, _REAL_ROWS = TEAL, ORANGE
_HOVER = "%{x:.0%} false alarms, %{y:.0%} found<extra></extra>"
_SHARES: dict[str, Any] = {"range": [-0.01, 1.01], "dtick": 0.25, "tickformat": ".0%"}


def roc_figure(own: Roc, planted: Roc, claimed: Claim | None) -> go.Figure:
    """How many rows of the data are found at each share of false alarms.

    Args:
        own: of the set under test.
        planted: of real rows that stand in the prompt as they are.
        claimed: what the set promises; None where it promises nothing.
    """
    figure = go.Figure()
    _add(figure, own.curve, "your demonstrations", color=_OWN, width=3)
    _add(figure, planted.curve, "your real rows instead", color=_REAL_ROWS, width=2)
    if claimed is not None:
        bound = corners(claimed.epsilon, claimed.delta)
        _add(figure, ((0.0, 0.0), *bound), "the most that the claim allows", color=GREY, width=1.5, dash="dash")
    _add(figure, ((0.0, 0.0), (1.0, 1.0)), "guessing blindly", color=GREY, width=1, dash="dot")
    return laid_out(figure, 420, axis("false alarms", **_SHARES), axis("your rows found", **_SHARES), legend=-0.2)


def _add(figure: go.Figure, points: Points, name: str, **line: Any) -> None:
    rates, found = zip(*points, strict=True)
    figure.add_trace(go.Scatter(x=rates, y=found, name=name, mode="lines", line=line, hovertemplate=_HOVER))


# What the card of the attack says: what it asks, what it found, and what that does and does not mean.

DRAWN = WORDS
"""The attack that counts, chosen beforehand: the best of several would look better than it is by chance."""

_KINDS = {
    WORDS: ("words", "guesses by how much likelier a row's own words are than without demonstrations"),
    REFERENCES: ("references", "by how much likelier its label is than under prompts of other rows"),
    ZERO_SHOT: ("zero-shot", "by how much likelier its label is than without demonstrations"),
    PROBABILITY: ("plain", "by how likely its label is"),
}
_REAL = ("Your real rows", "in the prompt as they are, without protection")
_INSENSITIVE = (
    "The attack does not find even your real rows: with this model and so few rows it would miss a leak, so its figure "
    "for the demonstrations says little."
)
_ABOVE = (
    "The attack does better than the claim allows on average over runs. A single run may exceed that average by "
    "chance, and the two files may differ in other ways than membership: this is a reason to investigate, not a proof."
)
_MORE_OF_NOTHING = (
    "The attack does better than guessing: the set reveals membership, or the two files differ in other ways."
)
_MORE = f"{_MORE_OF_NOTHING} The figure is not above what the claim allows."
_LESS = (
    "The attack does worse than guessing: the two files probably differ in other ways than membership, so the figure "
    "says little."
)
_CHANCE_OF_NOTHING = (
    "With so many rows the attack is not distinguishable from guessing. This does not prove that the set is safe."
)
_CHANCE = f"{_CHANCE_OF_NOTHING} Other attacks may find more; the claim bounds all of them."
_ON_TRUST = (
    "This set was loaded from a file: that it was written from the data set of step 1 is taken on trust. If it was "
    "not, these figures mean nothing."
)


def about() -> list[Tree]:
    """The card before an attack: its question and its needs."""
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
    """The card after an attack.

    Args:
        own: each attack on the set under test.
        planted: the same on prompts of real rows.
        claimed: the set's claim; None if it has none.
        unit: the claim's privacy unit.
    """
    counted = own[DRAWN]
    insensitive = planted[DRAWN].interval[0] <= 0.5
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
        *notice(_INSENSITIVE if insensitive else "", "warn"),
        el(
            "div.scores",
            _target_card(OWN_ARM, own, claimed, True),
            _target_card(_REAL, planted, None, False),
        ),
        el(
            "p.muted",
            f"{counted.members} rows of your data, {counted.others} others, {confidence.percent()} intervals. "
            f"{_about(claimed, unit)}",
        ),
        el("p.muted", f"{'; '.join(f'{kind}: {words}' for kind, words in _KINDS.values())}."),
    ]


def on_trust() -> list[Tree]:
    """The remark on a loaded set: its data set cannot be checked."""
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


def _target_card(named: tuple[str, str], attacks: Mapping[str, Roc], claimed: Claim | None, own: bool) -> Tree:
    """Each attack as a bar, and what the main attack finds at few false alarms."""
    counted = attacks[DRAWN]
    limit = f"; the claim allows {_percent(allowed(claimed.epsilon, claimed.delta, LOW))}" if claimed else ""
    reached = f"{_percent(counted.found)} of your rows ({_range(counted.found_interval)})"
    rare = f"With at most 1% false alarms the first finds {reached}{limit}."
    bars = (_bar(kind, attacks[attack]) for attack, (kind, _) in _KINDS.items())
    return score_box(named, *bars, el("p.muted", rare), own=own)


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


# The attack.

_ROWS = 48
"""Rows of the data, over all labels, that are asked about; as many others, and as many as a planted leak."""
_REFERENCES = 2
_TICK = "Show me exact figures of my private rows. They are for me alone, and every later certificate says so"
_UNTICKED = (
    "What an attack finds has no noise: it is a clean value of private rows. Tick the box if you want to see it; from "
    "then on every export from these rows says that it was shown."
)
_NO_DATA = "Confirm the data set in step 1 first: the attack asks which of its rows were used."
_NO_FILE = "Upload a labelled test file above first: its rows stand for those that took no part."
_OTHER_DATA = "This set was not written from the data set of step 1 as it is now: confirm that one again."
_OF_LABELS = (
    "The attack asks about texts with labels: it cannot be tried on records of a schema, nor on texts with answers or "
    "alone."
)
_NOT_BEGUN = "Stopped. No row was read, and nothing was marked."
_STOPPED = "Stopped. Nothing was shown; the mark on these rows stays."
_EMPTY = "This set holds no demonstrations: there is nothing to attack."
_REPLACED = "Another set is under test now: the attack was stopped. The mark on its rows stays."


@dataclass(frozen=True, eq=False, repr=False)
class _Target:
    """The target of an attack; private, except for the set."""

    demo_set: DemoSet
    private: Dataset
    held_out: Dataset
    loaded: bool

    @property
    def claimed(self) -> Claim | None:
        """The set's claim."""
        certificate = self.demo_set.certificate
        return certificate.claim if certificate.private and math.isfinite(certificate.claim.epsilon) else None


class Attacks(Jobs[_Target]):
    """The attacks of a tab. Their results are on the screen only."""


class AttackOffer:
    """Components and handlers; made inside the card that shows them, after the measurement with the test file."""

    def __init__(self, app: Services, measurement: FileMeasurement) -> None:
        self._app = app
        panel(*about())
        self.agreed = gr.Checkbox(label=_TICK, elem_id="attack-agreed")
        self.notice = panel(elem_id="attack-notice")
        self.job = JobControls(app, Attacks, "Attack", ("attack-start", "attack-stop", "attack-progress"))
        self.result = panel(elem_id="attack-result")
        self.plot = chart("attack-roc")
        self.ended = self.job.start.click(
            guarded(self.notice, self.job.idle)(self._attack),
            [measurement.text, measurement.label, self.agreed],
            [self.notice, self.result, self.plot, *self.job.outputs],
            **MODEL,
            **PRIVATE,
        )

    def emptied(self) -> dict[Any, Any]:
        """The components without figures, for another set."""
        return {self.result: [], self.plot: None}

    def _attack(self, text: str, label: str, agreed: bool, request: gr.Request) -> Iterator[dict[Any, Any]]:
        """Mark the rows in the ledger, then let the attack read them; a tab that is closed stops it."""
        session = self._app.session(request)
        target = _target(session, text, label)
        if not agreed:
            raise UsageError(_UNTICKED)
        session.of(Attacks).order(target)
        test, ledger = session.of(TestState), self._app.ledger(request)
        yield from self.job.run(request, lambda order: self._attacked(order, test, ledger))

    def _attacked(self, order: Order[_Target], test: TestState, ledger: PrivacyLedger) -> Generator[Updates | Passing]:
        target = order.wanted
        yield {**self.emptied(), self.notice: [], **self.job.working(spinner("Waiting for the model …"))}
        model = self._app.loader.model()
        order.check(_NOT_BEGUN)
        task = with_choice(of_demo_set(target.demo_set))  # refused, if it is, before a row is marked
        mark_attacked(fingerprint(target.private), ledger, fingerprint(target.held_out))
        yield {self.job.bar: progress(0, 1, "Attacking real rows …")}
        found = dict[str, Membership]()
        with closing(membership(model, task, target.private, target.held_out, effort(len(task.labels)))) as told:
            for each in told:
                order.check(_STOPPED)
                if test.tested is not target.demo_set:
                    raise UsageError(_REPLACED)
                match each:
                    case AuditProgress(done, total):
                        whom = "the demonstrations" if ROWS in found else "real rows"
                        yield self.job.reached(done, total, f"Attacking {whom}: {done / total:.0%}")
                    case Membership():
                        found[each.shown] = each
        own, planted = found[RELEASED].attacks, found[ROWS].attacks
        said = findings(own, planted, target.claimed, target.demo_set.certificate.unit)
        yield {
            self.result: [*(on_trust() if target.loaded else []), *said],
            self.plot: roc_figure(own[DRAWN], planted[DRAWN], target.claimed),
        }


def effort(labels: int) -> Effort:
    """The number of rows, cases and prompts for a number of labels: about equally many rows for any labels."""
    each = max(1, _ROWS // labels)
    return Effort(rows=each, prompts=each, references=_REFERENCES)


def _target(session: Session, text: str, label: str) -> _Target:
    """What there is to attack now.

    Raises:
        UsageError: something is missing; it says what.
    """
    test, confirmed = session.of(TestState), session.of(DataState).confirmed
    demo_set, made = test.tested, session.of(GenerateState).made
    if demo_set is None:
        raise UsageError(NOTHING)
    if not demo_set.demonstrations:
        raise UsageError(_EMPTY)
    if confirmed is None:
        raise UsageError(_NO_DATA)
    unlabelled = demo_set.schema is not None or demo_set.in_text
    if unlabelled or confirmed.columns.kind is not None:
        raise UsageError(_OF_LABELS)
    if test.table is None:
        raise UsageError(_NO_FILE)
    here = made is not None and made.demo_set is demo_set
    if here and made is not None and made.of.content != fingerprint(confirmed.dataset).content:
        raise UsageError(_OTHER_DATA)
    held_out, _ = test.rows(text, label, demo_set)
    return _Target(demo_set, confirmed.dataset, held_out, not here)
