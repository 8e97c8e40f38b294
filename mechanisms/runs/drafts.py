"""Drafts: texts of a label that the model writes from public text, released words and released openings alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from mechanisms.asking import NO_HINT, Hint, Wording
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.directions import LIKENESS, Directions, margins
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference import Embedder, LanguageModel, WritingPrompt
from mechanisms.noise import Floats, Integers, Randomness, SecureRandomness
from mechanisms.records import Demonstration
from mechanisms.runs.completion import DRAFTS_A_WINNER, FEWEST_DRAFTS
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.text import Gate, cleaned, normalised_text, quotes

TOP_P = 0.92
TEMPERATURE = 0.65
_MOST_CANDIDATES = 256
"""The likeliest tokens among which one is drawn; the rest of the vocabulary is not sorted."""
_LEAST_TOKENS = 8
"""Tokens before a draft may end: small models like to write a title, or nothing."""
WRITTEN = 2
"""Drafts written for one that is asked for, together: many rows are hardly slower than few. Most of them are of use, of
which the better half is kept."""
_TRIES = 16
"""The same, at most, where few drafts are usable."""
_PREVIEWED = 6
"""Drafts written for a preview of two, and to see how the model writes."""
_LEFT, _BY = 0.75, 8
"""Rows that ended are dropped once at most this share of the computed rows goes on, since dropping costs time too; the
new number of rows is a multiple of the second."""
_SAID = 2
"""Released words in a sentence."""
FEWEST = 2
"""The fewest drafts of a label for a vote."""
DRAFT_TOKENS: int = RunSpec.model_fields["draft_tokens"].default
NO_LOGITS = "The model gives no usable logits for the public prompt: choose another model."


@dataclass(frozen=True)
class DraftRequest:
    """Which drafts of a label to write; public.

    Attributes:
        labels: the label set; a draft that says little but labels is refused.
        count: drafts at most.
        tokens: of a draft, at most.
        openings: how drafts begin, each with its weight; empty where nothing was released.
        words: released words of the label, of which each draft is asked with two; fewer where fewer were released.
        named: whether what the label is called is said beside them.
    """

    wording: Wording
    label: str
    labels: Sequence[str]
    count: int
    tokens: int
    openings: Mapping[str, float] = field(default_factory=dict)
    words: Sequence[str] = ()
    named: bool = True

    @property
    def public(self) -> bool:
        """Whether they are asked for with public words alone."""
        return not self.openings and not self.words

    def hints(self, count: int, randomness: Randomness) -> list[Hint]:
        """What so many sentences say of the label: each two of the words, drawn anew."""
        if not self.words:
            return [NO_HINT] * count
        order = np.argsort(randomness.uniform(count * len(self.words)).reshape(count, -1), axis=1)[:, :_SAID]
        return [Hint(tuple(self.words[i] for i in row), self.named) for row in order.tolist()]


class Ranking(Protocol):
    """An order of texts by how much they are of a label."""

    def best(self, label: str, texts: Sequence[str]) -> list[str]:
        """The texts, best first; those of another label may be left out."""
        ...


def write_drafts(
    model: LanguageModel,
    request: DraftRequest,
    gate: Gate,
    randomness: Randomness,
    taken: Iterable[str] = (),
    ranking: Ranking | None = None,
) -> tuple[str, ...]:
    """Write cleaned, distinct drafts of one label, and keep the best.

    Args:
        taken: public texts that stand for other labels: what says the same would stand for two.
        ranking: without it the drafts stand in the order of their likelihood.

    Where fewer than two are of use that were asked for with what was released, public words alone ask. A UsageError
    where fewer than two drafts of the label are of use or the prompt is too long for the model, a ModelUnavailable
    where its logits are not finite.
    """
    prompt = WritingPrompt(model, request.wording, request.label)
    enough, most = WRITTEN * request.count, _TRIES * request.count
    at_once = min(enough, model.rows_at_once(1, len(prompt.prefix) + len(prompt.cue) + request.tokens))
    drafts: dict[str, float] = {}
    others = set(map(normalised_text, taken))
    written = 0
    while written < enough or (len(drafts) < request.count and written < most):
        rows = min(at_once, most - written)
        written += rows
        hints = request.hints(rows, randomness)
        by_hint = {
            hint: WritingPrompt(model, request.wording, request.label, hint=hint) for hint in dict.fromkeys(hints)
        }
        prompts = [by_hint[hint] for hint in hints]
        openings = allotted(request.openings, rows, randomness)
        found = _write(model, prompts, openings, request.tokens, randomness)
        for hint, (each, likelihood) in zip(hints, found, strict=True):
            text = cleaned(each, request.wording, request.label, request.labels, gate)
            said = normalised_text(request.wording.sentence_for(request.label, hint))
            if text is not None and not quotes(text, said) and normalised_text(text) not in others:
                drafts.setdefault(text, likelihood)
    if len(drafts) < min(request.count, FEWEST) and not request.public:
        # What was released was paid for, and must not end the run: public words alone serve, too.
        return write_drafts(
            model, replace(request, openings={}, words=(), named=True), gate, randomness, taken, ranking
        )
    if len(drafts) < min(request.count, FEWEST):
        raise UsageError(
            f"The model writes no usable drafts of '{request.label}': choose another model, or say in other words what "
            "one text is, who writes it to whom, and what the label is called."
        )
    likeliest = sorted(drafts, key=lambda text: -drafts[text])
    return tuple((ranking.best(request.label, likeliest) if ranking else likeliest)[: request.count])


def preview_drafts(
    model: LanguageModel, request: DraftRequest, randomness: Randomness, going: Callable[[], bool] = lambda: True
) -> tuple[str, ...]:
    """At most two drafts of a label, the likeliest of a few, to show what its words make a model write.

    They follow from public words alone, cost nothing, and stand in no ballot. Where fewer than two were of use, a few
    more are written; none where none was.
    `going` is asked before each token; once it is False the drafts end as they are.
    """
    prompt = WritingPrompt(model, request.wording, request.label)
    written: list[tuple[str, float]] = []
    while True:
        written += _write(model, [prompt] * _PREVIEWED, [""] * _PREVIEWED, request.tokens, randomness, going)
        gate = Gate(model, [text for text, _ in written], request.wording)
        found = {
            text: likelihood
            for each, likelihood in written
            if (text := cleaned(each, request.wording, request.label, request.labels, gate))
        }
        if len(found) >= FEWEST or len(written) > _PREVIEWED or not going():
            return tuple(sorted(found, key=lambda text: -found[text])[:FEWEST])


def write_samples(model: LanguageModel, wording: Wording, label: str, tokens: int, randomness: Randomness) -> list[str]:
    prompt = WritingPrompt(model, wording, label)
    return [text for text, _ in _write(model, [prompt] * _PREVIEWED, [""] * _PREVIEWED, tokens, randomness)]


def allotted(openings: Mapping[str, float], rows: int, randomness: Randomness) -> list[str]:
    """Openings for so many texts, in proportion to their positive weights: each as often as its weight says, or once
    more. Where there are none every text begins by itself."""
    if not openings:
        return [""] * rows
    names, weights = list(openings), np.cumsum([*openings.values()])
    # One draw for all (systematic sampling): the numbers follow the weights as closely as whole numbers can.
    aims = (np.arange(rows) + randomness.uniform(1)[0]) / rows * weights[-1]
    return [names[min(int(place), len(names) - 1)] for place in np.searchsorted(weights, aims)]


class Nearness:
    """A ranking by how much nearer texts are to their label's name than to the others'.

    On six public sets the first ones cover more of the rows than those that the model finds likely, and a classifier
    trained on rows knows more of them (research/docs/texts.md).
    """

    def __init__(self, embedder: Embedder, wording: Wording, labels: Sequence[str]) -> None:
        self._embedder, self._labels = embedder, list(labels)
        self._names = embedder.embed([f"{wording.kind} {wording.relation} {wording.named(each)}" for each in labels])

    def best(self, label: str, texts: Sequence[str]) -> list[str]:
        near, own = self._embedder.embed(texts) @ self._names.T, self._labels.index(label)
        nearer = near[:, own] - np.delete(near, own, axis=1).max(axis=1, initial=-1.0)
        return [texts[i] for i in np.argsort(-nearer, kind="stable").tolist()]


class Margins:
    """A ranking by how much further texts lie along their label's direction than along another's, and how much they are
    like all rows: by margin alone extremes would win. Texts of a negative margin are another label's, and left out
    where two others are there.

    Args:
        middle: the unit vector of the mean over labels, shape (dimensions,).
    """

    def __init__(self, embedder: Embedder, directions: Directions, middle: Floats) -> None:
        self._embedder, self._directions, self._middle = embedder, directions, middle
        self._labels = list(directions.vectors)

    def best(self, label: str, texts: Sequence[str]) -> list[str]:
        vectors = self._embedder.embed(texts).astype(np.float64)
        own = np.full(len(texts), self._labels.index(label))
        margin = margins(vectors @ self._directions.matrix.T, own)
        ranked = np.argsort(-(margin + LIKENESS * vectors @ self._middle), kind="stable").tolist()
        kept = [i for i in ranked if margin[i] > 0]
        return [texts[i] for i in (kept if len(kept) >= FEWEST else ranked)]

    def of_another_label(self, label: str, text: str) -> bool:
        """Whether a text lies further along another label's direction."""
        return bool(self._directions.nearest([text], self._embedder)[0] != self._labels.index(label))


def _write(
    model: LanguageModel,
    prompts: Sequence[WritingPrompt],
    openings: Sequence[str],
    tokens: int,
    randomness: Randomness,
    going: Callable[[], bool] = lambda: True,
) -> list[tuple[str, float]]:
    """Write one text for each prompt, behind its opening, and the mean log-probability of its tokens."""
    begun = [prompt.opening(each) for prompt, each in zip(prompts, openings, strict=True)]
    rows = [[*prompt.sentence, *prompt.cue, *each] for prompt, each in zip(prompts, begun, strict=True)]
    session = model.open(prompts[0].shown, rows, max(map(len, rows)), tokens)
    written: list[list[int]] = [[] for _ in rows]
    found: list[list[float]] = [[] for _ in rows]
    computed, ended = list(range(len(rows))), set()
    for step in range(tokens):
        if not going():
            break
        logits = session.logits().copy()  # the session's own, which need not be writable
        if step < min(_LEAST_TOKENS, tokens - 1):
            logits[:, list(model.stop_tokens)] = -np.inf
        drawn, likelihoods = sample(logits, randomness)
        for row, token, likelihood in zip(computed, drawn.tolist(), likelihoods.tolist(), strict=True):
            if row not in ended and token not in model.stop_tokens:
                written[row].append(token)
                found[row].append(likelihood)
            else:
                ended.add(row)
        if len(ended) == len(rows) or step == tokens - 1:
            break
        left = sorted(range(len(computed)), key=lambda place: computed[place] in ended)
        left = left[: _BY * math.ceil((len(rows) - len(ended)) / _BY)]
        if len(left) <= _LEFT * len(computed):
            session.keep(left)
            drawn, computed = drawn[left], [computed[place] for place in left]
        session.advance(drawn.tolist())
    return [
        (model.decode([*start, *text]), float(np.mean(of)) if of else -np.inf)
        for start, text, of in zip(begun, written, found, strict=True)
    ]


def sample(logits: Floats, randomness: Randomness) -> tuple[Integers, Floats]:
    """One token of each row, from the fewest likeliest tokens that hold `TOP_P` of it (Holtzman et al. 2020), and its
    log-probability, each of shape (rows,).

    Tokens whose logit, of shape (rows, vocabulary), is not finite are not drawn; a ModelUnavailable where none is.
    """
    # A vocabulary is large: the fewer passes over it, and the shorter its numbers, the better.
    weights = logits.astype(np.float32)
    np.copyto(weights, -np.inf, where=~np.isfinite(weights))
    largest = weights.max(axis=1, keepdims=True)
    if not np.isfinite(largest).all():
        raise ModelUnavailable(NO_LOGITS)
    weights -= largest
    weights /= TEMPERATURE
    np.exp(weights, out=weights)
    whole = weights.sum(axis=1, keepdims=True)
    most = min(_MOST_CANDIDATES, weights.shape[1])
    likeliest = np.argpartition(weights, weights.shape[1] - most, axis=1)[:, -most:]
    order = np.take_along_axis(likeliest, np.argsort(-np.take_along_axis(weights, likeliest, 1), axis=1), 1)
    each = np.take_along_axis(weights, order, 1)
    before = np.cumsum(each, axis=1) - each
    kept = np.cumsum(np.where(before < TOP_P * whole, each, 0.0), axis=1)
    aim = randomness.uniform(len(logits))[:, None] * kept[:, -1:]
    place = (kept < aim).sum(axis=1)[:, None]
    drawn = np.take_along_axis(order, place, 1)[:, 0].astype(np.int64)
    return drawn, np.log(np.take_along_axis(each, place, 1) / whole)[:, 0].astype(np.float64)


def public_demonstrations(demo_set: DemoSet, model: LanguageModel) -> tuple[Demonstration, ...]:
    """The epsilon = 0 arm of a comparison: as many demonstrations as `demo_set`'s, for the same task, from public text
    alone; those that it was compared with, if it was."""
    if demo_set.baselines and demo_set.baselines.public_only:
        return demo_set.baselines.public_only.demonstrations
    tokens = draft_tokens_of(demo_set)
    return written_publicly(demo_set.demonstrations, demo_set.labels, demo_set.wording, model, tokens)


def draft_tokens_of(demo_set: DemoSet) -> int:
    """The most tokens of a draft of the run that wrote a set."""
    return int(demo_set.certificate.parameters["draft_tokens"])


def written_publicly(
    like: Sequence[Demonstration], labels: tuple[str, ...], wording: Wording, model: LanguageModel, tokens: int
) -> tuple[Demonstration, ...]:
    """The likeliest of a few drafts, as many of each label as in `like`, as a run without any row keeps them."""
    randomness = SecureRandomness()
    wanted = Counter(each.label for each in like)
    # How many pieces the words of this task need, a few texts of the model show.
    gate = Gate(model, write_samples(model, wording, labels[0], 24, randomness), wording)
    written: dict[str, tuple[str, ...]] = {}
    for label in labels:
        count = drafts_for(wanted[label])
        taken = [text for texts in written.values() for text in texts]
        written[label] = write_drafts(
            model, DraftRequest(wording, label, labels, count, tokens), gate, randomness, taken
        )
    return interleaved({label: written[label][: wanted[label]] for label in labels}, labels)


def drafts_for(shots: int) -> int:
    """The number of drafts of a label from which the best are taken into a public set."""
    return max(FEWEST_DRAFTS, DRAFTS_A_WINNER * shots)


def interleaved(texts: Mapping[str, Sequence[str]], labels: Sequence[str]) -> tuple[Demonstration, ...]:
    """Demonstrations with the labels taking turns: a small model answers with whatever stands last in a block."""
    most = max(len(texts[label]) for label in labels)
    return tuple(
        Demonstration(texts[label][number], label)
        for number in range(most)
        for label in labels
        if number < len(texts[label])
    )
