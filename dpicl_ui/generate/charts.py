"""The screens of a run as plain JSON values, drawn by scripts in `assets`; pure functions of the view."""

from __future__ import annotations

from typing import Any

from dpicl_ui.frame.tree import Tree, el
from dpicl_ui.generate.run_view import Ballot, Draft, RecipeView, RunView
from mechanisms.data.sizes import WHETHER_SHOWN
from mechanisms.runs.events import CandidateSet, TokenReleased
from mechanisms.runs.judging import among_in_words, ways
from mechanisms.runs.recipe import Stage
from mechanisms.runs.sets import NONE, PLAIN, PUBLIC
from mechanisms.runs.stage import stage_class
from mechanisms.steps.mechanism import Line, Picture

# The live screen of a run as plain JSON values, drawn by `assets/live.js`; a pure function of the view.

MOST_BARS = 20
DRAFTING = "The model writes drafts from public text alone. No row is read yet, and nothing is spent."
IDLE = "What is written appears here as it is released."


def live(view: RunView) -> dict[str, Any]:
    """Everything the live screen draws.

    Returns:
        phase, where (which demonstration), count (which token), progress (0 to 1), text (without the last token), fresh
        (the last token's text), hint (shown instead of an empty text), chart (None before the first token) and others
        (label, number in words and text of the demonstrations that are written beside it).
    """
    draft = view.shown
    token, text, before = (draft.token, draft.text, draft.before) if draft else (None, "", "")
    if token and view.partly_forced:  # what was forced before the last token was not decided with it
        before = text.removesuffix(token.candidates[token.chosen])
    before = before if text.startswith(before) else ""
    return {
        "phase": view.phase,
        "where": _where(view),
        "count": _count(view, token) if token else "",
        "progress": round(view.progress, 3),
        "text": before,
        "fresh": text[len(before) :],
        "hint": _hint(view),
        "chart": chart(view, draft, token) if draft and token else None,
        "others": [{"label": each.label, "which": _which(view, each), "text": each.text} for each in view.drafts[1:]],
    }


def _which(view: RunView, draft: Draft) -> str:
    return f", number {draft.number} of {view.shots}" if view.shots > 1 else ""


def _count(view: RunView, token: TokenReleased) -> str:
    charged = "charged token" if view.partly_forced else "token"
    return f"{charged} {token.step} of at most {view.tokens}{', free' if token.free else ''}"


def _where(view: RunView) -> str:
    if view.phase == "waiting" and view.message:
        return view.message
    if view.phase == "waiting":
        return "Waiting for the model …"
    if view.phase in ("idle", "failed") or not view.shown:
        return "Nothing of yours is running" if view.phase != "running" else "Starting …"
    verb = "Writing" if view.drafts and view.phase == "running" else "Last written"
    return f"{verb}: {view.shown.label}{_which(view, view.shown)}"


def _hint(view: RunView) -> str:
    if view.phase == "waiting" and view.message:
        return DRAFTING
    if view.phase in ("running", "waiting"):
        words = reading(view)
        return f"{words[0].upper()}{words[1:]} …"
    return IDLE


def reading(view: RunView) -> str:
    """The work that comes before the first token."""
    certificate = view.demo_set.certificate if view.demo_set else None
    if certificate is None or WHETHER_SHOWN not in certificate.public_inputs:
        return "reading the prompt"
    expected = view.rows * _parameters(view).get("per_subset", 1)
    if certificate.by_user:
        return f"reading the records of about {expected} users"
    return f"reading about {expected} rows"


def visible(token: str) -> str:
    """A token with its spaces and line breaks made visible."""
    if not token:
        return "end of text"
    return token.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "·")


def chart(view: RunView, draft: Draft, token: TokenReleased) -> dict[str, Any]:
    """The bars of a draft's last token: at most `MOST_BARS` candidates, the chosen one included.

    Ordered by the value that decided; values are in rows, one decimal. Where the mechanism releases the token alone,
    the bars are the public expectation, which is all that a `free` token came from. `noise` is its standard deviation
    where the certificate's parameters give it, and `clip` is how far a row's logits may go, where the mechanism bounds
    them.
    """
    values = token.scores if token.scores is not None else token.public
    order = sorted(range(len(values)), key=lambda i: -values[i])
    shown = order[:MOST_BARS]
    if token.chosen not in shown:
        shown[-1] = token.chosen
    noise = _noise(view) if token.scores is not None else None
    bars = _bars(token, draft.clean, values, shown)
    ends = [0.0, noise or 0.0, -(noise or 0.0)]
    ends += [bar[name] for bar in bars for name in ("value", "public", "clean") if bar[name] is not None]
    low, high = min(ends), max(ends)
    return {
        "noisy": token.scores is not None,
        "free": token.free,
        "bars": bars,
        "domain": [low, high if high > low else low + 1],
        "noise": noise,
        "clip": _parameters(view).get("clip"),
        "rows": view.rows,
        "hidden": len(values) - len(shown),
        "clean": draft.clean is not None,
    }


def _bars(
    token: TokenReleased, clean: tuple[float, ...] | None, values: tuple[float, ...], shown: list[int]
) -> list[dict[str, Any]]:
    return [
        {
            "token": visible(token.candidates[i]),
            "value": round(values[i], 1),
            "public": round(token.public[i], 1),
            "clean": round(clean[i], 1) if clean is not None else None,
            "chosen": i == token.chosen,
        }
        for i in shown
    ]


def _noise(view: RunView) -> float | None:
    parameters = _parameters(view)
    multiplier, sensitivity = parameters.get("noise_multiplier"), parameters.get("sensitivity")
    return round(multiplier * sensitivity, 1) if multiplier is not None and sensitivity is not None else None


def _parameters(view: RunView) -> dict[str, Any]:
    """The mechanism and parameters of the tokens; public, and in the certificate."""
    parameters = view.demo_set.certificate.parameters if view.demo_set else {}
    written: dict[str, Any] = parameters.get("written", parameters)  # a recipe's stage
    return written


# What a run's mechanism does, in a picture of its own, as plain JSON values; drawn by `assets/picture.js`.
#
# Which picture that is says the mechanism (`TokenMechanism.picture`); of a vote it is how the votes went, round by
# round.

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
    return Picture("Votes by round", tuple(map(_round_line, voted)), axis, "the winners", "a draft")


def _round_line(ballot: Ballot) -> Line:
    votes = ballot.votes.votes if ballot.votes else ()
    won = [votes[i] for i in ballot.votes.winners] if ballot.votes else []
    spans = ((min(won), max(won)),) if won else ()
    note = f"best {round(max(votes), 1) + 0.0:g}" if votes else ""
    return Line(f"Round {ballot.round}", spans=spans, marks=tuple(votes), note=note)


# A label's vote as plain JSON values, drawn by `assets/votes.js`; a pure function of the view.

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
        round=_round_in_words(view, ballot),
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


def _round_in_words(view: RecipeView, ballot: Ballot) -> str:
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


# A recipe's stages in a row, and what is being asked of the data now.


def stages_card(view: RecipeView) -> list[Tree]:
    """The stages, marked as done, under way or to come; nothing for a run without stages."""
    if not view.stages:
        return []
    running = view.run.phase == "running"
    at = view.stages.index(view.stage) if view.stage in view.stages else -1
    past = len(view.stages) if view.run.phase == "completed" else at
    marks = ("done" if i < past else "current" if i == at and running else "later" for i in range(len(view.stages)))
    return [
        el(
            "ul.stages",
            *(el(f"li.stage.{mark}", stage_class(each).title) for each, mark in zip(view.stages, marks, strict=True)),
        ),
        *(_under_way(view) if running else []),
    ]


def _under_way(view: RecipeView) -> list[Tree]:
    words = view.drafting or (stage_class(view.stage).question.format(unit=view.unit) if view.stage else "Starting …")
    meter = el("div.meter.private", el("div.meter-fill.by-share", numbers={"share": round(view.done or 0.0, 3)}))
    return [el("p.muted", words, role="status"), meter if view.done is not None else ""]


# The choice: the sets that competed, one rung each, and the one that serves best.

_SET_NAMES = {NONE: "No demonstrations", PUBLIC: "Public only", f"{NONE}{PLAIN}": f"No demonstrations{PLAIN}"}
_READ = {
    "none": "read as the model answers; exported with the measured prior",
    "contextual": "calibrated by empty queries; exported with the measured prior, fitted from there",
    "prior": "read with the measured prior",
    "shares": "read with the measured prior, fitted to the declared shares of the labels",
}
"""Names of the corrections. The exported set is always read with a fitted one, as step 4 says."""
_UNKNOWN = (
    "Only the winner was released. Nothing is known of the others' order, or of how close it was: do not read this "
    "ladder as a ranking."
)
_MEASURED = (
    "Percentages: the probability that the model gives a label, on average over the {unit}s, measured with noise."
)


def choice_card(view: RecipeView) -> list[Tree]:
    """The ladder; nothing before the sets are made."""
    if not view.sets:
        return []
    return [
        el("div.card-head", el("h3", "The choice"), el("span.tag.public", "Releasable")),
        el("p.muted", _how_many(view)),
        el("ul.ladder", *(_rung(view, each) for each in view.sets)),
        el("p.muted", _MEASURED.format(unit=view.unit)) if view.priors else "",
    ]


def no_demonstrations(view: RecipeView) -> str:
    """An explanation where the choice was "none"; else empty."""
    if view.choice is None or not view.without:
        return ""
    return (
        "No demonstrations: this model answers best without examples here. The export then carries the measured prior "
        "alone."
    )


def _how_many(view: RecipeView) -> str:
    """The number of arms, counted as the certificate does: each is a set with a correction."""
    made, sets = view.run.demo_set, len(view.sets)
    if Stage.CHOOSE not in view.stages:
        return "This run makes no choice among these sets."
    if view.choice is not None:
        return f"Chosen among {among_in_words(len(view.choice.among), sets)}. {_UNKNOWN}"
    sizes = made.public_sizes if made else None
    among = among_in_words(sets * ways(sizes, made.weighing), sets) if made and sizes else f"{sets} sets"
    return f"The choice is among {among}. {_waiting(view)}"


def _waiting(view: RecipeView) -> str:
    return f"The {view.unit}s will say which of them serves best." if view.run.phase == "running" else ""


def _rung(view: RecipeView, each: CandidateSet) -> Tree:
    chosen = view.chosen == each
    count = len(each.demonstrations)
    size = f"{count} demonstration{'' if count == 1 else 's'}" if count else "the instruction alone"
    return el(
        "li.rung" + (".chosen" if chosen else ""),
        el("strong", _SET_NAMES.get(each.name, each.name[:1].upper() + each.name[1:])),
        el("span.muted", "; ".join(filter(None, (size, _leaning(view, each.name))))),
        el("span.rung-read", f"Chosen, {_correction(view)}") if chosen else None,
    )


def _correction(view: RecipeView) -> str:
    correction = view.choice.chosen[1] if view.choice else ""
    return _READ.get(correction, correction)


def _leaning(view: RecipeView, name: str) -> str:
    values = view.priors.get(name, ())
    if not values:
        return ""
    most = max(range(len(values)), key=lambda i: values[i])
    return f"leans to {view.labels[most]}, {100 * min(1.0, max(0.0, values[most])):.0f}%"
