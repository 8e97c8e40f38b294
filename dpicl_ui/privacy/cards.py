"""The cards of step 2: what epsilon means, the stages, the guarantee, the noise, the time, and the checks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import softmax

from dpicl_ui.frame.handlers import in_lines
from dpicl_ui.frame.services import Session, State
from dpicl_ui.frame.tree import Tree, el, fact, private_tag
from dpicl_ui.privacy.state import PlannedRun
from mechanisms.accounting import PrivacyTarget, best_guess_in_percent
from mechanisms.asking import Wording
from mechanisms.discovery import parameters
from mechanisms.errors import StudioError
from mechanisms.inference import LanguageModel, Tokens, WritingPrompt
from mechanisms.records import unit_noun, unit_nouns
from mechanisms.rounding import duration, rounded_down, rounded_up
from mechanisms.runs.checks import Finding, Level
from mechanisms.runs.completion import fewest_for_roles
from mechanisms.runs.plan import Plan, guarantee
from mechanisms.runs.spec import OPENINGS, SCORE, VOTE, WRITE
from mechanisms.tallies import Weighing

_ROLES = "Each {unit} takes part in one stage only, by a secret key: so every stage may use the whole epsilon."
_EPSILON = (
    "Every {unit} takes part in all stages, which share epsilon. This is the default below {fewest:,} {unit}s, and "
    "takes longer than one stage for each."
)
_BY_LABELS = (
    "Each label, not each row, counts the same when rows calibrate and score. This is the default if one label has "
    "more than twice an even share of the rows."
)


def roughly(count: float) -> str:
    """A number rounded to two digits, because shares of public sizes are expectations."""
    digits = max(0, len(str(int(count))) - 2)
    return f"{round(count / 10**digits) * 10**digits:,}"


def stages_in_words(plan: Plan) -> list[Tree]:
    """Each stage with its question, its share and the number of its units, in the order of the run."""
    unit = unit_noun(plan.unit)
    lines = [
        el("li", el("strong", stage.title), f" {_share(plan, name)}. {_who(plan, name)} {stage.task()}")
        for name, stage in plan.stages.items()
    ]
    remarks = []
    if len(lines) > 1:
        told = _ROLES if plan.by_roles else _EPSILON
        remarks.append(told.format(unit=unit, fewest=fewest_for_roles(len(plan.labels))))
    if plan.spec.weighing is Weighing.LABELS and not plan.alone:
        remarks.append(_BY_LABELS)
    return [el("ol.tasks", *lines), *(el("p.muted", remark) for remark in remarks)]


def _share(plan: Plan, name: str) -> str:
    assert plan.spec.shares is not None
    of = unit_nouns(plan.unit) if plan.by_roles else "epsilon"
    return f"({100 * plan.spec.shares[name]:.3g}% of {of})"


def _who(plan: Plan, name: str) -> str:
    plural = unit_nouns(plan.unit)
    if not plan.by_roles:
        more = " or more" if name == WRITE and not plan.alone else ""  # writing gets what the other stages leave
        return f"All {plural}, for epsilon {rounded_up(plan.epsilon(name), 2)}{more},"
    # A user who has several labels was counted for each of them; measured sizes are upper bounds.
    at_most = " at most" if plan.by_user or plan.measured else ""
    return f"About {roughly(plan.units(name))} {plural}{at_most}"


def odds(target: PrivacyTarget, by_user: bool, declared: bool) -> list[Tree]:
    """How often an attacker can guess correctly whether a unit is in the data; rounded up, so that it stays a bound.

    Counts that were `declared` public are excluded: with them, an attacker who knows all other rows can infer the unit.
    """
    share = best_guess_in_percent(target.epsilon, target.delta)
    who = "all rows of one user are" if by_user else "one row is"
    apart = (
        " This leaves out the counts that you declared public: from exact counts, somebody who knows all other "
        f"{'users' if by_user else 'rows'} can infer this one."
    )
    return [
        el(
            "p.odds",
            f"If a coin decides whether {who} in your data, somebody who knows everything else and sees what this run "
            "releases guesses the coin right at most ",
            el("strong", f"{share}%"),
            f" of the time, instead of 50%.{apart if declared else ''}",
        )
    ]


CALIBRATING: list[Tree] = [
    el(
        "div.outcome.busy",
        el("div.card-head", el("h3", "What this run promises")),
        el("p.spinner", "Calibrating the noise with two accountants …", role="status"),
    )
]


def clarity(signal_to_noise: float) -> str:
    """A token's signal-to-noise in words."""
    if signal_to_noise >= 10:
        return "clear: the noise rarely changes a token that the rows agree on"
    if signal_to_noise >= 4:
        return "fair: only tokens that most rows agree on stand out"
    return "poor: the rows decide few tokens, and the model's own expectation decides the others"


def outcome(planned: PlannedRun) -> list[Tree]:
    plan, claim, seconds = planned.plan, planned.claim, planned.seconds
    time = "known when the model is loaded" if seconds is None else duration(seconds)
    accountants = fact(
        "Epsilon by two accountants",
        f"{rounded_up(claim.epsilon, 4)} ({claim.accountant})",
        f"checked by {claim.check_accountant}: {rounded_up(claim.check, 4)}",
    )
    return [
        el(
            "div.outcome",
            el("div.card-head", el("h3", "What this run promises"), el("span.tag.public", "Part of the certificate")),
            el("p.guarantee", guarantee(claim, plan.by_user)),
            el("dl.facts", fact("Time on this machine", time)),
            el("details", el("summary", "In numbers"), el("dl.facts", *_noise(plan), accountants, *_of_sizes(plan))),
        )
    ]


def _noise(plan: Plan) -> list[Tree]:
    facts: list[Tree] = []
    stages: dict[str, Any] = plan.stages
    if OPENINGS in stages:
        deviation = rounded_up(stages[OPENINGS].tally.deviation, 2)
        facts.append(fact("Noise on the count of an opening", f"± {deviation}"))
    if WRITE in stages:
        signal, own = plan.signal_to_noise, parameters(plan.mechanism)
        facts += [fact(each.label, f"{getattr(plan.mechanism, each.name):.4g}", each.help) for each in own]
        if signal is not None:
            facts.append(fact("Signal-to-noise of a token", rounded_down(signal, 3), clarity(signal)))
    if VOTE in stages:
        votes = [stages[VOTE].votes_a_draft(label) for label in plan.labels]
        ends = (f"{each:.2g}" if each < 10 else roughly(each) for each in (min(votes), max(votes)))
        remark = f"votes that a draft gets on average: {' to '.join(dict.fromkeys(ends))}"
        facts.append(fact("Noise on a draft's votes", f"± {rounded_up(stages[VOTE].tally.deviation, 2)}", remark))
    if SCORE in stages:
        points = max(1, math.ceil(100 * stages[SCORE].margin))
        remark = "sampling and noise together, 19 times of 20"
        facts.append(fact("Private score", f"to within about {points} points", remark))
    return facts


def _of_sizes(plan: Plan) -> list[Tree]:
    measured = plan.measured
    if measured is None:
        return []
    sizes = ", ".join(f"{label}: {size:,}" for label, size in measured.sizes.items())
    remark = f"Noisy upper bounds. Counting has cost {measured.epsilon:g} of the epsilon above."
    return [fact("Label sizes as measured", sizes, remark)]


def refused(error: StudioError) -> list[Tree]:
    return [el("div.outcome", el("div.card-head", el("h3", "No run with these settings")), *in_lines(error))]


_WOULD_FAIL = "This run would fail:"
_SAYS_LITTLE = "Consider before you spend epsilon:"


def to_consider(found: Iterable[Finding]) -> list[Tree]:
    """The errors and warnings among the findings as elements; nothing if there are none.

    Some contain counts of private rows.
    """
    shown: list[Tree] = []
    every = list(found)
    for level, kind, title in ((Level.ERROR, "bad", _WOULD_FAIL), (Level.WARNING, "warn", _SAYS_LITTLE)):
        if lines := [el("li", each.message) for each in every if each.level is level]:
            role = "alert" if level is Level.ERROR else "status"
            shown.append(el(f"div.notice.{kind}", el("p", title), el("ul.missing", *lines), role=role))
    return [*shown, private_tag()] if shown else []


# A picture of a run's noise, from public distributions alone: the openings, and the token after the likeliest opening.
#
# The model's expectation is scaled to the number of rows that take part. The browser draws the noise on top, and knows
# its approximate size at every epsilon, so the picture moves with the slider.

_BARS, _LOOKED_AT = 6, 64
_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
_POWER = 2 / 3
"""A token's noise is about proportional to (1 / epsilon) to this power.

In default runs on the clinic messages, the power was 0.54 to 0.83.
"""
Shares = tuple[tuple[str, float], ...]
"""Words with their probabilities under the model."""


@dataclass(frozen=True)
class ExpectedWords:
    """A model's expectation of a label's texts; public."""

    label: str
    openings: Shares
    next: Shares


class ExpectationState(State):
    """The present model's expectation under the present wording."""

    def __init__(self, session: Session) -> None:
        self._key: tuple[str, Wording, str] | None = None
        self.found: ExpectedWords | None = None

    def ask(self, model: LanguageModel, wording: Wording, label: str) -> None:
        """Ask the model, unless this was the last question."""
        if (key := (model.sha256, wording, label)) != self._key:
            self.found = expected(model, wording, label)
            self._key = key


def expected(model: LanguageModel, wording: Wording, label: str) -> ExpectedWords:
    """The expected first words of a label's texts, and the expected words after the likeliest first word.

    This takes two forward passes, and reads no row.
    """
    prompt = WritingPrompt(model, wording, label)
    first = _likeliest(model, prompt, [])
    behind = _likeliest(model, prompt, [first[0][0]]) if first else []
    named = [[(model.decode([token]).strip(), share) for token, share in each] for each in (first, behind)]
    return ExpectedWords(label, tuple(named[0]), tuple(named[1]))


def _likeliest(model: LanguageModel, prompt: WritingPrompt, before: Sequence[int]) -> list[tuple[int, float]]:
    row: Tokens = [*prompt.cue, *before]
    shares = softmax(model.open(prompt.prefix, [row], len(row), 1).logits()[0])
    tokens = np.argsort(-shares, kind="stable")[:_LOOKED_AT].tolist()
    words = (each for each in tokens if each not in model.stop_tokens and model.decode([each]).strip().isalpha())
    return [(each, float(shares[each])) for each, _ in zip(words, range(_BARS), strict=False)]


def picture(plan: Plan, expected: ExpectedWords) -> dict[str, Any]:
    """The value for `assets/noise.js`: the words, bars and noise of each stage that releases such counts.

    Args:
        plan: a calibrated plan.
        expected: the model's expectation of one label's texts.

    Returns:
        epsilon, and groups: each with title, rows (how many take part, in words), shape (of the noise), bars (name and
        value in rows) and noise (pairs of an epsilon and the standard deviation there, in rows).
    """
    groups: list[dict[str, Any]] = []
    unit, curve = unit_nouns(plan.unit), _curve(plan)

    def group(stage: str, title: str, rows: float, shape: str, shares: Shares) -> None:
        bars = [{"name": name, "value": rows * share} for name, share in shares]
        noise = [[epsilon, found[stage]] for epsilon, found in curve]
        groups.append({"title": title, "rows": f"{rows:,.0f} {unit}", "shape": shape, "bars": bars, "noise": noise})

    if expected.openings and OPENINGS in plan.stages:
        stage: Any = plan.stages[OPENINGS]
        voters = plan.unit_share(OPENINGS) * (
            plan.sizes[expected.label] if stage.by_label else sum(plan.sizes.values())
        )
        group(OPENINGS, "How texts begin", voters, "laplace", expected.openings)
    if expected.next and WRITE in curve[0][1]:
        title = f"One token: what comes after “{expected.openings[0][0]}”"
        group(WRITE, title, plan.sampling.rows_per_token, "gaussian", expected.next)
    return {"epsilon": plan.spec.epsilon, "groups": groups}


def _curve(plan: Plan) -> list[tuple[float, dict[str, float]]]:
    """The noise of the stages at the plan's epsilon and at the ticks of the slider, smallest epsilon first.

    A calibration takes seconds, so the noise on a token is estimated until the user releases the slider.
    """
    stages, signal = plan.stages, plan.signal_to_noise
    # A mechanism's signal-to-noise is sqrt(2) M divided by the noise on an entry of the sum.
    token = math.sqrt(2) * plan.sampling.rows_per_token / signal if signal and math.isfinite(signal) else None
    found: list[tuple[float, dict[str, float]]] = []
    for epsilon in sorted({*_EPSILONS, plan.spec.epsilon}):
        with suppress(StudioError):  # an epsilon below the cost of counting, for instance
            at = replace(plan, spec=plan.spec.with_(epsilon=epsilon))
            openings: Any = at.stages.get(OPENINGS)
            noise = {} if openings is None else {OPENINGS: openings.tally.deviation}
            if WRITE in stages and token is not None:
                noise[WRITE] = token * (plan.spec.epsilon / epsilon) ** _POWER
            found.append((epsilon, noise))
    return found
