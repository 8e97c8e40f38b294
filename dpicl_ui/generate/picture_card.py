"""What a run's mechanism does, in a picture of its own, as plain JSON values; drawn by `assets/picture.js`.

Which picture that is says the mechanism (`TokenMechanism.picture`); of a vote it is how the votes went, round by round.
"""

from __future__ import annotations

from typing import Any

from dpicl_ui.generate.live_chart import visible
from dpicl_ui.generate.recipe_view import Ballot, RecipeView
from dpicl_ui.generate.run_view import Draft
from mechanisms.runs.recipe import Stage
from mechanisms.steps.mechanism import Line, Picture

_CLEAN = ("key-before", "mean of the rows: for your eyes only"), ("key-clean", "the same, clipped")


def picture_card(view: RecipeView) -> dict[str, Any] | None:
    """Everything that the picture draws; None where there is none.

    Returns:
        title, axis (words), legend (pairs of a sign's class and words), zero (place of nothing), and lines: each with
        words, token (whether these are a token), note, pale, spans, marks, and clean, the curator's two values, or
        None. Places are shares of the width, 0 to 1.
    """
    if view.writing:
        draft, mechanism = view.run.shown, view.run.mechanism
        picture = mechanism.picture(draft.released) if draft and draft.released and mechanism else None
        return _drawn(picture, draft) if picture else None
    picture = _rounds(view)
    return _drawn(picture) if picture else None


def _drawn(picture: Picture, draft: Draft | None = None) -> dict[str, Any]:
    private = draft.private.clipped if draft and draft.private else None
    clean = [_clean(each, private) for each in picture.lines]
    places = [0.0, picture.upto, *(at for pair in clean if pair for at in pair)]
    places += [at for line in picture.lines for at in (*line.marks, *(end for span in line.spans for end in span))]
    low, high = min(places), max(places)

    def share(value: float) -> float:
        return round((value - low) / (high - low), 4) if high > low else 0.0

    signs = [("key-noisy", picture.span), ("key-public", picture.mark), *(_CLEAN if private else ())]
    return {
        "title": picture.title,
        "axis": picture.axis,
        "legend": [[kind, words] for kind, words in signs if words],
        "zero": share(0.0),
        "lines": [
            {
                "words": _words(line, draft),
                "token": line.candidate is not None,
                "note": line.note,
                "pale": line.pale,
                "spans": [[share(start), share(end)] for start, end in line.spans],
                "marks": [share(at) for at in line.marks],
                "clean": [share(at) for at in pair] if pair else None,
            }
            for line, pair in zip(picture.lines, clean, strict=True)
        ],
    }


def _words(line: Line, draft: Draft | None) -> str:
    if line.candidate is None or draft is None or draft.token is None:
        return line.words
    return visible(draft.token.candidates[line.candidate])


def _clean(line: Line, private: tuple[tuple[float, ...], tuple[float, ...]] | None) -> tuple[float, float] | None:
    if private is None or line.candidate is None:
        return None
    before, after = private
    return before[line.candidate], after[line.candidate]


def _rounds(view: RecipeView) -> Picture | None:
    """The votes on a label's ballots, where there are several rounds of them."""
    parameters = view.run.demo_set.certificate.parameters if view.run.demo_set else {}
    if Stage.VOTE not in view.stages or view.sets or view.ballot is None or parameters.get("rounds", 1) < 2:
        return None
    voted = [each for each in view.ballots if each.label == view.ballot.label and each.votes]
    if not voted:
        return None
    axis = f"votes of the {view.unit}s on drafts for {view.ballot.label}, with noise"
    return Picture("Votes by round", tuple(map(_round, voted)), axis, "the winners", "a draft")


def _round(ballot: Ballot) -> Line:
    votes = ballot.votes.votes if ballot.votes else ()
    won = [votes[i] for i in ballot.votes.winners] if ballot.votes else []
    spans = ((min(won), max(won)),) if won else ()
    note = f"best {round(max(votes), 1) + 0.0:g}" if votes else ""
    return Line(f"Round {ballot.round}", spans=spans, marks=tuple(votes), note=note)
