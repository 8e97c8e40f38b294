"""A label's vote as plain JSON values, drawn by `assets/votes.js`; a pure function of the view."""

from __future__ import annotations

from typing import Any

from dpicl_ui.generate.recipe_view import Ballot, RecipeView
from mechanisms.runs.recipe import Stage

MOST_DRAFTS = 12


def vote_card(view: RecipeView) -> dict[str, Any] | None:
    """Everything that the vote's screen draws; None where there is no vote to show.

    Returns:
        where, label and round (whose vote), count (drafts in the ballot), hint (shown instead of drafts), rows (each
        with key, rank, text, vote, winner, and its bar's ends from and to), band (the ends of the noise: one standard
        deviation to either side of nothing), zero, noise and axis (words). Places are shares of the width, 0 to 1; band
        and zero are None before there are votes.
    """
    if Stage.VOTE not in view.stages or view.sets or (view.stage is not Stage.VOTE and not view.ballots):
        return None
    ballot = view.ballot
    if ballot is None:
        return _screen(where="The vote", hint="The model writes drafts for the ballot, without the data …")
    low, high = _domain(ballot)
    noise = ballot.votes.noise if ballot.votes else None
    return _screen(
        where=f"{'Voted' if ballot.votes else 'To be voted on'}: ",
        label=ballot.label,
        round=_round(view, ballot),
        count=f"{len(ballot.drafts)} draft{'' if len(ballot.drafts) == 1 else 's'}",
        rows=[_row(ballot, i, rank, low, high) for rank, i in enumerate(_order(ballot)[:MOST_DRAFTS])],
        band=None if noise is None else [_share(-noise, low, high), _share(noise, low, high)],
        zero=None if noise is None else _share(0.0, low, high),
        noise=None if noise is None else f"noise: ±{_rounded(noise):g} votes (one standard deviation)",
        axis=_axis(view, ballot),
    )


def _screen(**values: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {
        "where": "",
        "label": "",
        "round": "",
        "count": "",
        "hint": "",
        "rows": [],
        "band": None,
        "zero": None,
        "noise": None,
        "axis": "",
    }
    return empty | values


def _round(view: RecipeView, ballot: Ballot) -> str:
    parameters = view.run.demo_set.certificate.parameters if view.run.demo_set else {}
    rounds = parameters.get("rounds", 1)
    return f", round {ballot.round} of {rounds}" if rounds > 1 else ""


def _order(ballot: Ballot) -> list[int]:
    """Winners first, as released, then the others by votes; as in the ballot before there are any."""
    if ballot.votes is None:
        return list(range(len(ballot.drafts)))
    votes, winners = ballot.votes.votes, list(ballot.votes.winners)
    return winners + sorted((i for i in range(len(votes)) if i not in winners), key=lambda i: -votes[i])


def _domain(ballot: Ballot) -> tuple[float, float]:
    votes, noise = (ballot.votes.votes, ballot.votes.noise) if ballot.votes else ((), 0.0)
    low, high = min(-noise, *votes, 0.0), max(noise, *votes, 0.0)
    return low, high if high > low else low + 1


def _share(value: float, low: float, high: float) -> float:
    return round((value - low) / (high - low), 4)


def _rounded(votes: float) -> float:
    return round(votes, 1) + 0.0  # no minus before a zero


def _row(ballot: Ballot, i: int, rank: int, low: float, high: float) -> dict[str, Any]:
    vote = ballot.votes.votes[i] if ballot.votes else None
    return {
        "key": f"{ballot.label}#{ballot.round}#{i}",
        "rank": rank,
        "text": ballot.drafts[i],
        "vote": None if vote is None else _rounded(vote),
        "winner": ballot.votes is not None and i in ballot.votes.winners,
        "from": _share(min(0.0, vote or 0.0), low, high),
        "to": _share(max(0.0, vote or 0.0), low, high),
    }


def _axis(view: RecipeView, ballot: Ballot) -> str:
    hidden = _order(ballot)[MOST_DRAFTS:]
    winners = sum(i in ballot.votes.winners for i in hidden) if ballot.votes else 0
    more = f"{len(hidden)} more draft{'' if len(hidden) == 1 else 's'} not shown" if hidden else ""
    more += f", {winners} of them among the winners" if winners else ""
    words = f"votes of the {view.unit}s, with noise, so some may be below zero" if ballot.votes else ""
    return "; ".join(filter(None, (words, more)))
