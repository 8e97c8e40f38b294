"""Drafts: texts of a label that the model writes only from public text, released words and released openings."""

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
from mechanisms.runs.completion import DRAFTS_A_WINNER, FEWEST_DRAFTS, MIN_TOKENS
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.text import Gate, cleaned, normalised_text, quotes

TOP_P = 0.92
TEMPERATURE = 0.65
_MOST_CANDIDATES = 256
"""The number of likeliest tokens from which one is drawn; the rest of the vocabulary is not sorted."""
WRITTEN = 2
"""The number of drafts written in one batch for each requested draft: many rows are hardly slower than few. Most drafts
are usable, and the better half is kept."""
_TRIES = 16
"""The most drafts written for each requested draft if few are usable."""
_PREVIEWED = 6
"""The number of drafts written for a preview of two, and of the samples that show how the model writes."""
_LEFT, _BY = 0.75, 8
"""Finished rows are dropped when at most this share of the computed rows remains, because dropping takes time, too. The
new number of rows is a multiple of `_BY`."""
_SAID = 2
"""The number of released words in a prompt's sentence."""
FEWEST = 2
"""The fewest drafts of a label for a vote."""
DRAFT_TOKENS: int = RunSpec.model_fields["draft_tokens"].default
NO_LOGITS = "The model gives no usable logits for the public prompt: choose another model."


@dataclass(frozen=True)
class DraftRequest:
    """A request for drafts of a label; public.

    Attributes:
        wording: the owner's words for the texts.
        label: the label of the drafts.
        labels: the label set; a draft with few words besides labels is refused.
        count: the most drafts.
        tokens: the most tokens of a draft.
        openings: the openings of drafts, each with its weight; empty if none were released.
        words: the label's released words, best first; the prompt of each draft has two of them, or all if there are
            fewer.
        named: whether the prompt has the label's name in addition to the words.
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
        """Whether the prompts have public words only, and no release."""
        return not self.openings and not self.words

    def hints(self, count: int, randomness: Randomness) -> list[Hint]:
        """The hints for `count` prompts: two of the label's words each, drawn independently."""
        if not self.words:
            return [NO_HINT] * count
        order = np.argsort(randomness.uniform(count * len(self.words)).reshape(count, -1), axis=1)[:, :_SAID]
        return [Hint(tuple(self.words[i] for i in row), self.named) for row in order.tolist()]


class Ranking(Protocol):
    """An order of texts by how well they fit a label."""

    def best(self, label: str, texts: Sequence[str]) -> list[str]:
        """The texts, best first. Texts that fit another label better may be left out."""
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

    If a request with released words or openings gives fewer than two usable drafts, drafts are written from public
    words only.

    Args:
        taken: public texts of other labels; a draft that equals one of them is refused, so that no text has two labels.
        ranking: the order of the drafts; None orders them by their likelihood.

    Returns:
        At most `request.count` drafts, best first.

    Raises:
        UsageError: fewer than two drafts of the label are usable, or the prompt is too long for the model.
        ModelUnavailable: the model's logits are not finite.
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
            text = _usable(each, request, gate, hint)
            if text is not None and normalised_text(text) not in others:
                drafts.setdefault(text, likelihood)
    if len(drafts) < min(request.count, FEWEST) and not request.public:
        # The run has paid for its releases, and must not end because of them: write from public words only.
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


def _usable(written: str, request: DraftRequest, gate: Gate, hint: Hint = NO_HINT) -> str | None:
    """What the model wrote, cleaned; None if it cannot be a demonstration or has a whole sentence of the prompt's."""
    text = cleaned(written, request.wording, request.label, request.labels, gate)
    said = normalised_text(request.wording.sentence_for(request.label, hint))
    return None if text is None or quotes(text, said) else text


def preview_drafts(
    model: LanguageModel, request: DraftRequest, randomness: Randomness, going: Callable[[], bool] = lambda: True
) -> tuple[str, ...]:
    """At most two drafts of a label, the likeliest of a few, as a preview of the texts that its words lead to.

    They follow from public words alone, cost nothing, and are in no ballot. If fewer than two are usable, a few more
    are written once; the result is empty if none is usable.

    Args:
        going: called before each token; when it returns False, the drafts end with the tokens that they have.
    """
    prompt = WritingPrompt(model, request.wording, request.label)
    written: list[tuple[str, float]] = []
    while True:
        written += _write(model, [prompt] * _PREVIEWED, [""] * _PREVIEWED, request.tokens, randomness, going)
        gate = Gate(model, [text for text, _ in written], request.wording)
        found = {text: likelihood for each, likelihood in written if (text := _usable(each, request, gate))}
        if len(found) >= FEWEST or len(written) > _PREVIEWED or not going():
            return tuple(sorted(found, key=lambda text: -found[text])[:FEWEST])


def write_samples(model: LanguageModel, wording: Wording, label: str, tokens: int, randomness: Randomness) -> list[str]:
    """A few public texts of a label, as the model writes them, that show how it writes."""
    prompt = WritingPrompt(model, wording, label)
    return [text for text, _ in _write(model, [prompt] * _PREVIEWED, [""] * _PREVIEWED, tokens, randomness)]


def allotted(openings: Mapping[str, float], rows: int, randomness: Randomness) -> list[str]:
    """Openings for `rows` texts, in proportion to their positive weights.

    The count of each opening is its exact proportion, rounded down or up. Without openings, all texts get an empty one.
    """
    if not openings:
        return [""] * rows
    names, weights = list(openings), np.cumsum([*openings.values()])
    # One draw for all (systematic sampling): the numbers follow the weights as closely as whole numbers can.
    aims = (np.arange(rows) + randomness.uniform(1)[0]) / rows * weights[-1]
    return [names[min(int(place), len(names) - 1)] for place in np.searchsorted(weights, aims)]


class Nearness:
    """A ranking by how much nearer texts are to their label's name than to the nearest other label's name.

    On three public sets, the first texts of this ranking cover more of the rows than the texts that the model finds
    likeliest, and a classifier trained on rows assigns more of them to their label (research/docs/texts.md).
    """

    def __init__(self, embedder: Embedder, wording: Wording, labels: Sequence[str]) -> None:
        self._embedder, self._labels = embedder, list(labels)
        self._names = embedder.embed([f"{wording.kind} {wording.relation} {wording.named(each)}" for each in labels])

    def best(self, label: str, texts: Sequence[str]) -> list[str]:
        near, own = self._embedder.embed(texts) @ self._names.T, self._labels.index(label)
        nearer = near[:, own] - np.delete(near, own, axis=1).max(axis=1, initial=-1.0)
        return [texts[i] for i in np.argsort(-nearer, kind="stable").tolist()]


class Margins:
    """A ranking by the released directions: by the margin of a text's projection on its label's direction over that on
    any other, plus its similarity to all rows. By the margin alone, extreme texts would win.

    A text with a margin of zero or less fits another label better, and is left out if at least two others remain.

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
        """Whether a text lies further along another label's direction than along its own label's."""
        return bool(self._directions.nearest([text], self._embedder)[0] != self._labels.index(label))


def _write(
    model: LanguageModel,
    prompts: Sequence[WritingPrompt],
    openings: Sequence[str],
    tokens: int,
    randomness: Randomness,
    going: Callable[[], bool] = lambda: True,
) -> list[tuple[str, float]]:
    """Write one text for each prompt, after its opening.

    Returns:
        Each text with the mean log-probability of its tokens; minus infinity for a text without tokens.
    """
    first_tokens = [prompt.opening(each) for prompt, each in zip(prompts, openings, strict=True)]
    rows = [[*prompt.sentence, *prompt.cue, *each] for prompt, each in zip(prompts, first_tokens, strict=True)]
    session = model.open(prompts[0].shown, rows, max(map(len, rows)), tokens)
    written: list[list[int]] = [[] for _ in rows]
    found: list[list[float]] = [[] for _ in rows]
    computed, ended = list(range(len(rows))), set()
    for step in range(tokens):
        if not going():
            break
        logits = session.logits().copy()  # the session owns its array, which may be read-only
        if step < min(MIN_TOKENS, tokens - 1):
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
        for start, text, of in zip(first_tokens, written, found, strict=True)
    ]


def sample(logits: Floats, randomness: Randomness) -> tuple[Integers, Floats]:
    """Draw one token for each row from its nucleus: the fewest likeliest tokens whose probabilities add up to `TOP_P`
    (Holtzman et al. 2020).

    Args:
        logits: shape (rows, vocabulary); a token whose logit is not finite is not drawn.

    Returns:
        The tokens and their log-probabilities, each of shape (rows,).

    Raises a ModelUnavailable if a row has no finite logit.
    """
    # A vocabulary is large: single precision and few passes over it save time.
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
    """The epsilon = 0 arm of a comparison: as many demonstrations as `demo_set` has, for the same task, from public
    text alone. If the set was compared with public demonstrations in its run, these are returned."""
    if demo_set.baselines and demo_set.baselines.public_only:
        return demo_set.baselines.public_only.demonstrations
    tokens = draft_tokens_of(demo_set)
    return written_publicly(demo_set.demonstrations, demo_set.labels, demo_set.wording, model, tokens)


def draft_tokens_of(demo_set: DemoSet) -> int:
    """The most tokens of a draft in the run that made a set."""
    return int(demo_set.certificate.parameters["draft_tokens"])


def written_publicly(
    like: Sequence[Demonstration], labels: tuple[str, ...], wording: Wording, model: LanguageModel, tokens: int
) -> tuple[Demonstration, ...]:
    """Public demonstrations, as many of each label as in `like`: the likeliest of a few drafts, chosen as in a run that
    reads no row. `tokens` is the most tokens of a draft."""
    randomness = SecureRandomness()
    wanted = Counter(each.label for each in like)
    # A few samples show the gate how many tokenizer pieces the words of this task need.
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
    """The number of drafts of a label from which the best ones are taken for a public set."""
    return max(FEWEST_DRAFTS, DRAFTS_A_WINNER * shots)


def interleaved(texts: Mapping[str, Sequence[str]], labels: Sequence[str]) -> tuple[Demonstration, ...]:
    """Demonstrations in an order in which labels alternate: after a block of one label, a small model answers with that
    label."""
    most = max(len(texts[label]) for label in labels)
    return tuple(
        Demonstration(texts[label][number], label)
        for number in range(most)
        for label in labels
        if number < len(texts[label])
    )
