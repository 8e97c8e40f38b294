"""A run as one of several columns: the same lines in the same order, so that an eye can go across."""

from __future__ import annotations

from dataclasses import dataclass

from dpicl_ui.frame.cards import fact
from dpicl_ui.frame.tree import Tree, el, notice
from dpicl_ui.generate.cards import demonstration
from dpicl_ui.generate.score_card import TOUCHED, of_hundred
from mechanisms.accounting import cost_in_words, rounded_up
from mechanisms.accounting.account import in_words
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import ZERO_SHOT
from mechanisms.exports.provenance import mechanism_in_words
from mechanisms.records import unit_in_words
from mechanisms.runs.run_file import Summary

SHOWN = 50
"""Demonstrations of a column; a replay in step 3 has them all."""
_TIME = 16
"""Characters of a time, to the minute."""
_CHARGED, _CHARGED_AT_MOST = "What was charged", "What was charged at most"
"""A stopped run's certificate claims all of it; the ledger may have counted less."""
_MARKED = "Marked: more is known of its rows than is counted here ({marks})."


@dataclass(frozen=True)
class Named:
    """A run, and what its column is called: a file's name, which anybody may have chosen."""

    name: str
    run: Summary


def column(letter: str, named: Named) -> list[Tree]:
    """Everything that a column says, under the letter that the figure knows it by."""
    run, held = named.run, named.run.made.certificate
    score = run.made.score
    return [
        el("h3", f"{letter}. ", el("span", named.name)),
        el("p.muted", f"{run.made.created[:_TIME].replace('T', ' ')} UTC{'; stopped' if run.stopped else ''}"),
        *notice(_MARKED.format(marks="; ".join(held.shown)) if held.shown else "", "warn"),
        el(
            "dl.facts",
            fact("Epsilon", rounded_up(held.claim.epsilon, 4), f"at delta {rounded_up(held.claim.delta, 2)}"),
            fact("Protects", unit_in_words(held.unit)),
            fact("Made by", mechanism_in_words(held), ", ".join(each.name for each in run.made.stages)),
            fact("Model", run.made.model_id),
            *_noise(run),
            fact("Private score", *_score(run)),
            fact("Spent before it", cost_in_words(*held.spent_before) if held.spent_before[0] else "nothing"),
        ),
        el(
            "details",
            el("summary", _CHARGED_AT_MOST if run.stopped else _CHARGED),
            el("p.remark", in_words(held.event)),
        ),
        *notice(TOUCHED if score is not None and not score.untouched else "", "warn"),
        *_demonstrations(run.made),
    ]


def _noise(run: Summary) -> list[Tree]:
    signal = "no token asks the rows" if run.signal_to_noise is None else f"{run.signal_to_noise:.3g}"
    facts = [fact("Signal-to-noise of a token", signal)]
    if run.votes_noise is not None:
        facts.append(fact("Noise on a draft's votes", f"± {run.votes_noise:.2g}"))
    return facts


def _score(run: Summary) -> tuple[str, str]:
    """The score of what is exported, and beside it that of no demonstrations."""
    if run.score is None or run.made.score is None:
        return "not measured", ""
    if run.score.wide:
        return "too few rows", ""
    plain = run.made.score.arms.get(ZERO_SHOT)
    beside = plain is not None and plain is not run.score and not plain.wide
    return f"{of_hundred(run.score)} of 100", f"zero-shot: {of_hundred(plain)}" if plain is not None and beside else ""


def _demonstrations(made: DemoSet) -> list[Tree]:
    count = len(made.demonstrations)
    if not count:
        return [el("p.muted", "No demonstrations.")]
    more = [el("p.muted", f"{count - SHOWN} more are in the file.")] if count > SHOWN else []
    return [el("div.demos", *(demonstration(each, made) for each in made.demonstrations[:SHOWN])), *more]
