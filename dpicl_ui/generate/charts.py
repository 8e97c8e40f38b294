"""The pictures of a run, one for each stage, as plain JSON values: pure functions of the view."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from dpicl_ui.frame.tree import Tree, el
from mechanisms.public_inputs import WHETHER_SHOWN
from mechanisms.runs.events import TokenReleased
from mechanisms.runs.spec import OPENINGS, VOTE, WORDS, WRITE
from mechanisms.runs.stages import stages_in_order
from mechanisms.runs.stages.openings import OpeningsReleased
from mechanisms.runs.stages.vote import Ballot, VotesReleased
from mechanisms.runs.stages.words import Word, WordsReleased
from mechanisms.runs.view import DemoInProgress, RunView
from mechanisms.sampling import SamplingPlan


def stages_card(view: RunView) -> list[Tree]:
    """The stages, marked as done, running or to come; empty for a run that only writes."""
    if not view.stages:
        return []
    running = view.phase == "running"
    at = view.stages.index(view.stage) if view.stage in view.stages else -1
    past = len(view.stages) if view.phase == "completed" else at
    marks = ("done" if i < past else "current" if i == at and running else "later" for i in range(len(view.stages)))
    titles = (stages_in_order()[each].title for each in view.stages)
    row = el("ul.stages", *(el(f"li.stage.{mark}", title) for title, mark in zip(titles, marks, strict=True)))
    return [*([row] if len(view.stages) > 1 else []), *(_under_way(view) if running else [])]


def _under_way(view: RunView) -> list[Tree]:
    """The running stage's question, unless a picture already shows it."""
    words = drafting_in_words(view)
    if not words and not (view.stage in view.releases or (view.stage == WRITE and view.tokens)):
        words = stages_in_order()[view.stage].question.format(unit=view.unit) if view.stage else "Starting …"
    meter = el("div.meter.private", el("div.meter-fill.by-share", numbers={"share": round(view.done, 3)}))
    said = [el("p.muted", words, role="status")] if words else []
    return [*said, meter] if 0 < view.done < 1 else said


def drafting_in_words(view: RunView) -> str:
    """The drafts that are being written, with their source; empty if there are none."""
    if (each := view.drafting) is None:
        return ""
    what = "Public drafts" if each.public else "Drafts with released words"
    return f"{what}: {each.label}, label {each.number} of {each.of}"


MOST_BARS = 20
DRAFTING = "The model writes drafts from public text alone. No row is read yet, and nothing is spent."
IDLE = "What is written appears here as it is released."
_SUM = "Each {unit} proposes the next token; the sum of the proposals, with noise, decides."
_READ = "Each {unit} proposes the next token; the noisy sum decides, weighed with the model's own expectation."
_TOKEN = "Each {unit} proposes the next token; only the token that wins under noise is released."
_FREE = "This token is free: public text alone decided it, and no {unit} took part."


def live(view: RunView) -> dict[str, Any]:
    """The value of the live screen.

    Returns:
        phase, where (which demonstration), count (which token), progress (0 to 1), sentence (what happens at a token),
        text (without the last token), fresh (the last token's text), hint (shown instead of an empty text), chart (None
        before the first token) and others (label, number in words and text of the demonstrations that are written at
        the same time).
    """
    shown = view.shown
    token, text, before = (shown.token, shown.text, shown.before) if shown else (None, "", "")
    before, sampling = before if text.startswith(before) else "", _sampling(view)
    most = f" of at most {sampling.tokens}" if sampling else ""
    return {
        "phase": view.phase,
        "where": _where(view),
        "count": f"token {token.step}{most}{', free' if token.free else ''}" if token else "",
        "progress": round(view.progress, 3),
        "sentence": _sentence(token).format(unit=view.unit) if token else "",
        "text": before,
        "fresh": text[len(before) :],
        "hint": _hint(view),
        "chart": chart(view, shown, token) if shown and token else None,
        "others": [{"label": each.label, "which": _which(view, each), "text": each.text} for each in view.writing[1:]],
    }


def _sentence(token: TokenReleased) -> str:
    if token.free:
        return _FREE
    if token.scores is None:
        return _TOKEN
    return _SUM if token.values is None else _READ


def _sampling(view: RunView) -> SamplingPlan | None:
    return view.plan.sampling if view.plan and WRITE in view.stages else None


def _which(view: RunView, writing: DemoInProgress) -> str:
    sampling = _sampling(view)
    shots = sampling.written if sampling else 1
    return f", number {writing.number} of {shots}" if shots > 1 else ""


def _where(view: RunView) -> str:
    if view.phase == "waiting":
        return drafting_in_words(view) or "Waiting for the model …"
    if view.phase in ("idle", "failed") or not view.shown:
        return "Idle" if view.phase != "running" else "Starting …"
    verb = "Writing" if view.writing and view.phase == "running" else "Last written"
    words = f", asked with words like {' and '.join(view.shown.words)}" if view.shown.words else ""
    return f"{verb}: {view.shown.label}{_which(view, view.shown)}{words}"


def _hint(view: RunView) -> str:
    if view.phase == "waiting" and view.drafting:
        return DRAFTING
    if view.phase in ("running", "waiting"):
        words = reading(view)
        return f"{words[0].upper()}{words[1:]} …"
    return IDLE


def reading(view: RunView) -> str:
    """The work before the first token, in words."""
    certificate = view.demo_set.certificate if view.demo_set else None
    sampling = _sampling(view)
    if sampling is None or certificate is None or WHETHER_SHOWN not in certificate.public_inputs:
        return "reading the prompt"
    expected = sampling.expected_sample
    return f"reading the rows of about {expected} users" if certificate.by_user else f"reading about {expected} rows"


def visible(token: str) -> str:
    """A token with its spaces and line breaks made visible."""
    if not token:
        return "end of text"
    return token.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "·")


def chart(view: RunView, writing: DemoInProgress, token: TokenReleased) -> dict[str, Any]:
    """The bars of a demonstration's last token: at most `MOST_BARS` candidates, the chosen one included.

    They are ordered by the deciding value; values are in rows, with one decimal. Each bar has the noisy value, the
    public expectation, and the deciding value, which is the noisy value weighed with the public one (None if the noisy
    value itself decided). If the mechanism releases only the token, the bars are the public expectation. A `free` token
    was chosen by the public expectation alone. `noise` is the standard deviation if the certificate's parameters give
    it; `clip` is the bound on a row's logits, if the mechanism has one.
    """
    values = token.scores if token.scores is not None else token.public
    decided = token.values if token.values is not None else values
    order = sorted(range(len(decided)), key=lambda i: -decided[i])
    shown = order[:MOST_BARS]
    if token.chosen not in shown:
        shown[-1] = token.chosen
    noise = _noise(view) if token.scores is not None else None
    clean, sampling = writing.private.clean if writing.private else None, _sampling(view)
    bars: list[dict[str, Any]] = [
        {
            "token": visible(token.candidates[i]),
            "value": round(values[i], 1),
            "public": round(token.public[i], 1),
            "decided": None if token.values is None else round(token.values[i], 1),
            "clean": round(clean[i], 1) if clean is not None else None,
            "chosen": i == token.chosen,
        }
        for i in shown
    ]
    ends = [0.0, noise or 0.0, -(noise or 0.0)]
    ends += [at for bar in bars for name in ("value", "public", "decided", "clean") if (at := bar[name]) is not None]
    low, high = min(ends), max(ends)
    return {
        "noisy": token.scores is not None,
        "free": token.free,
        "read": token.values is not None,
        "bars": bars,
        "domain": [low, high if high > low else low + 1],
        "noise": noise,
        "clip": _parameters(view).get("clip"),
        "rows": sampling.rows_per_token if sampling else 1,
        "hidden": len(values) - len(shown),
        "clean": clean is not None,
    }


def _noise(view: RunView) -> float | None:
    parameters = _parameters(view)
    multiplier, sensitivity = parameters.get("noise_multiplier"), parameters.get("sensitivity")
    return round(multiplier * sensitivity, 1) if multiplier is not None and sensitivity is not None else None


def _parameters(view: RunView) -> dict[str, Any]:
    """The parameters of the run; public, and in the certificate."""
    return view.demo_set.certificate.parameters if view.demo_set else {}


MOST_GROUPS = 8
_NOISE = "The line at a bar's end: one standard deviation of the noise ({noise:.1f}) to either side."


class Bar(NamedTuple):
    """A noisy count, or a word's position along a direction.

    Attributes:
        name: what is counted or positioned; hostile text.
        best: whether the run takes it.
    """

    name: str
    value: float
    best: bool = False


def noisy_bars(bars: Sequence[Bar], noise: float, reach: float = 0.0) -> Tree:
    """Bars on one axis, which extends at least to `reach`."""
    ends = [0.0, reach, *(each.value + way * noise for each in bars for way in (-1, 1))]
    low, wide = min(ends), max(ends) - min(ends)

    def share(value: float) -> float:
        """A value's position, as a share of the width."""
        return round((value - low) / wide, 4) if wide > 0 else 0.0

    return el("ul.noisy", *(_noisy_bar(each, noise, share) for each in bars))


def _noisy_bar(bar: Bar, noise: float, share: Callable[[float], float]) -> Tree:
    start, end = sorted((share(0.0), share(bar.value)))
    return el(
        "li.noisy-row" + (".chosen" if bar.best else ""),
        el("span.noisy-name", bar.name or "(empty)", title=bar.name),
        el(
            "span.noisy-track",
            el("span.noisy-bar", numbers={"from": start, "to": end}),
            el("span.noisy-error", numbers={"low": share(bar.value - noise), "high": share(bar.value + noise)}),
        ),
        el("span.noisy-number", f"{round(bar.value) + 0.0:.0f}"),  # no minus before a zero
    )


def _head(title: str) -> Tree:
    return el("div.card-head", el("h3", title), el("span.tag.public", "Releasable"))


def _more(groups: int) -> list[Tree]:
    hidden = groups - MOST_GROUPS
    return [el("p.muted", f"{hidden} more labels are in the saved run.")] if hidden > 0 else []


def writes(view: RunView) -> bool:
    """Whether the screen shows tokens."""
    return VOTE not in view.releases and (bool(view.tokens) or {OPENINGS, WORDS}.isdisjoint(view.releases))


MOST_OPENINGS = 12
_FEW_OPENINGS = 6
"""The most bars of each histogram if every label has its own."""


def openings_card(view: RunView) -> list[Tree]:
    """The histogram of openings; empty once words, tokens or votes are shown instead."""
    released = view.releases.get(OPENINGS)
    if not isinstance(released, OpeningsReleased) or not {WORDS, VOTE}.isdisjoint(view.releases) or view.tokens:
        return []
    pooled = "" in released.counts
    return [
        _head("How texts begin"),
        el("p", _used(released, view.unit)),
        *(each for label in [*released.counts][:MOST_GROUPS] for each in _histogram(released, label, pooled)),
        *_more(len(released.counts)),
        el("p.muted", f"{view.unit.capitalize()}s with such texts, with noise. {_NOISE.format(noise=released.noise)}"),
    ]


def _used(released: OpeningsReleased, unit: str) -> str:
    count = len({each for used in released.used.values() for each in used})
    if not count:
        return "No opening exceeds the noise: texts begin as the model would begin them."
    return (
        f"{count} of {len(released.openings)} public openings exceed the noise: texts begin with them as often as "
        f"the {unit}s' do."
    )


def _histogram(released: OpeningsReleased, label: str, pooled: bool) -> Iterator[Tree]:
    counts = released.counts[label]
    used = {each for of in released.used.values() for each in of} if pooled else released.used.get(label, {})
    best = sorted(range(len(counts)), key=lambda i: -counts[i])[: MOST_OPENINGS if pooled else _FEW_OPENINGS]
    if not pooled:
        yield el("h4", label)
    yield noisy_bars([Bar(released.openings[i], counts[i], released.openings[i] in used) for i in best], released.noise)


_DEVIATION = 1.0
"""The standard deviation of the noise on a word's position, in the unit of the bars."""
_OF_WORDS = (
    "The length of a bar: by how many standard deviations of the noise its word stands out. The line at its end: one "
    "to either side. Noise may have put a word here."
)
_NO_WORD = "No word exceeds the noise: only the label's name is used."


def words_card(view: RunView) -> list[Tree]:
    """Every label's words; empty once tokens or votes are shown instead."""
    released = view.releases.get(WORDS)
    if not isinstance(released, WordsReleased) or VOTE in view.releases or view.tokens:
        return []
    shown = list(released.words.items())[:MOST_GROUPS]
    furthest = max((each.clears for _, words in shown for each in words), default=0.0) + _DEVIATION
    return [
        _head("What each label is about"),
        el("p", "Public words that fit the texts of a label better than those of any other label."),
        el("div.noisy-groups", *(_words(label, words, furthest) for label, words in shown)),
        *_more(len(released.words)),
        el("p.muted", _OF_WORDS),
    ]


def _words(label: str, words: Sequence[Word], furthest: float) -> Tree:
    bars = [Bar(each.word, each.clears, best=True) for each in words]
    released = noisy_bars(bars, _DEVIATION, furthest) if bars else el("p.muted", _NO_WORD)
    return el("div", el("h4", label), released)


_MOST_TEXTS, _FEWEST_TEXTS = 24, 3
"""The number of texts that are shown on all ballots together, and the least number on each ballot."""


def vote_card(view: RunView) -> list[Tree]:
    """Every label's ballot with its noisy votes, winners first; empty before the vote."""
    released = view.releases.get(VOTE)
    if not isinstance(released, VotesReleased):
        return []
    shown = list(released.ballots.items())[:MOST_GROUPS]
    winners = max(len(each.winners) for _, each in shown)
    most = max(_FEWEST_TEXTS, winners + 1, _MOST_TEXTS // len(shown))
    return [
        _head("The vote"),
        el("p", f"Each {view.unit} votes for the text of its label that is most like its own; noise is added."),
        *(each for label, ballot in shown for each in _ballot(label, ballot, released.noise, most)),
        *_more(len(released.ballots)),
        el("p.muted", f"Votes have noise, so some may be negative. {_NOISE.format(noise=released.noise)}"),
    ]


def _ballot(label: str, ballot: Ballot, noise: float, most: int) -> Iterator[Tree]:
    others = sorted(set(range(len(ballot.votes))) - set(ballot.winners), key=lambda i: -ballot.votes[i])
    order = [*ballot.winners, *others]
    texts = f" {len(ballot.drafts)} text{'' if len(ballot.drafts) == 1 else 's'}"
    texts += f", {ballot.written} written by rows" if ballot.written else ""
    yield el("h4", label, el("span.muted", texts))
    bars = [Bar(ballot.drafts[i], ballot.votes[i], i in ballot.winners) for i in order[:most]]
    yield noisy_bars(bars, noise)
    if (hidden := len(order) - most) > 0:
        yield el("p.muted", f"{hidden} more with fewer votes.")
