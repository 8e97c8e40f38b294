"""The bound of one-run auditing: what correct guesses about canaries prove of epsilon (Steinke, Nasr, Jagielski 2023).

Every canary is in the data or not by a fair coin of its own. Whoever sees the output of an (epsilon, delta)-DP run and
guesses about some of them is right no more often than randomised response would be, but for a term in delta.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from llguidance import LLTokenizer
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom

from mechanisms import confidence
from mechanisms.accounting import Cap, Claim, PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.errors import UsageError
from mechanisms.inference import Session, Tokens
from mechanisms.noise import Floats, Integers, PrefetchedRandomness, Randomness
from mechanisms.records import RECORD, Dataset, PromptTemplate, Record
from mechanisms.runs.events import TokenReleased, VotesReleased
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class, mechanism_names

_RULES = tuple((share, out) for share in (1 / 2, 1 / 4, 1 / 8, 1 / 16) for out in (share, 0.0))
"""Shares of the canaries, by score: the highest are guessed to be in, the lowest to be out, none about the others."""
_LARGEST = 50.0
_STEPS = 24

Coins = NDArray[np.bool_]


@dataclass(frozen=True)
class Guesses:
    """The guesses that prove most.

    Attributes:
        lower_bound: with probability `confidence.LEVEL`, epsilon is at least this.
        made, correct: how many guesses, and how many of them right.
    """

    lower_bound: float
    made: int
    correct: int


def best_guesses(included: Coins, scores: Floats, delta: float) -> Guesses:
    """Guess by the scores, shape (canaries,), and hold the guesses against the coins, of the same shape.

    A few rules for how many guesses are made share the error among them, so that the best of them may be taken.
    """
    order = np.argsort(-scores, kind="stable")
    error = (1 - confidence.LEVEL) / len(_RULES)
    found = []
    for share, share_out in _RULES:
        inside, outside = (int(each * len(order)) for each in (share, share_out))
        correct = int(included[order[:inside]].sum() + (~included[order[len(order) - outside :]]).sum())
        bound = epsilon_proved(len(order), inside + outside, correct, delta, error)
        found.append(Guesses(bound, inside + outside, correct))
    return max(found, key=lambda each: each.lower_bound)


def epsilon_proved(canaries: int, made: int, correct: int, delta: float, error: float) -> float:
    """The largest epsilon that so many correct guesses refute, but with probability `error`; 0 where they refute none.

    Args:
        canaries: all of them, each in or out by a fair coin.
        made: guesses.
        correct: of these.
        delta: of the claim.
        error: probability that the bound is wrong.
    """
    low, high = 0.0, _LARGEST
    if _chance(canaries, made, correct, low, delta) >= error:
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _chance(canaries, made, correct, middle, delta) < error:
            low = middle
        else:
            high = middle
    return low


def _chance(canaries: int, made: int, correct: int, epsilon: float, delta: float) -> float:
    """How likely so many correct guesses are, or more, at most: the paper's theorem 5.2.

    `P[W >= v] <= P[B >= v] + 2 m delta max_i P[v > B >= v - i] / i`, B binomial, right with e^eps / (1 + e^eps).
    """
    right = float(expit(epsilon))
    tail = float(binom.sf(correct - 1, made, right))
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), made, right))
    worst = float((below / np.arange(1, correct + 1)).max()) if correct else 0.0
    return math.fsum((tail, 2 * canaries * delta * worst))


# Stand-ins for the models of an audit: under them a canary is as visible as a row can be, and nothing else matters.
#
# A claim holds for every model and every text. So an audit may choose those that betray most, and needs no weights.

_CANARY = re.compile(r"canary (\d+)")
_BYTES = 256
"""Tokens below are bytes of a prompt, tokens from here on the canaries' own."""
_CERTAIN = 50.0
"""Logits by which a row is sure: more than any clipping leaves."""
_LETTERS = "bcdfghjklmnpqrstvwxz"
_VOWELS = "aeiou"
_SYLLABLES = len(_LETTERS) * len(_VOWELS)


def canary(number: int) -> str:
    """The text of a canary."""
    return f"canary {number}"


def word(number: int) -> str:
    """A canary's own word: a sentence of letters alone, which no rule for drafts refuses."""
    places = (number % _SYLLABLES, number // _SYLLABLES, (7 * number + 3) % _SYLLABLES)
    return "".join(_LETTERS[place % len(_LETTERS)] + _VOWELS[place // len(_LETTERS)] for place in places) + "."


class CanaryModel:
    """See `LanguageModel`: a row with a canary is certain of the canary's own word, all others hold all words alike."""

    name, sha256 = "stand-in for an audit", "0" * 64
    stop_tokens = frozenset({ord("\n")})
    turn: tuple[list[int], list[int]] = ([], [])
    writing_turn: tuple[list[int], list[int]] = ([], [])

    def __init__(self, words: int) -> None:
        """Know the words of so many canaries."""
        self.words = words

    @property
    def vocabulary(self) -> LLTokenizer:
        """See `LanguageModel.vocabulary`: audits write no records."""
        raise UsageError("A stand-in for an audit writes no records.")

    def rows_at_once(self, computed: int, held: int) -> int:
        """See `LanguageModel.rows_at_once`: it holds next to nothing."""
        return 2**20

    def encode(self, text: str) -> list[int]:
        """See `LanguageModel.encode`: a canary is one token, everything else bytes."""
        pieces = _CANARY.split(text)
        tokens = list(pieces[0].encode())
        for number, rest in zip(pieces[1::2], pieces[2::2], strict=True):
            tokens += [_BYTES + int(number), *rest.encode()]
        return tokens

    def decode(self, tokens: Tokens) -> str:
        """See `LanguageModel.decode`."""
        return "".join(f" {word(each - _BYTES)}" if each >= _BYTES else chr(each) for each in tokens)

    def check(self, prefix: Tokens, rows: int, length: int, room: int) -> None:
        """See `LanguageModel.check`: nothing is too long."""

    def alike(self, prefix: Tokens, rows: int, length: int, room: int) -> bool:
        """See `LanguageModel.alike`."""
        return True

    def open(self, prefix: Tokens, rows: Sequence[Tokens], length: int, room: int) -> Session:
        """See `LanguageModel.open`."""
        return _Sure([next(_own(row), None) for row in rows], self.words)


def _own(row: Tokens) -> Iterator[int]:
    return (token for token in row if token >= _BYTES)


class _Sure:
    """A session that knows of each row the first canary in it, and forgets what is appended."""

    def __init__(self, known: list[int | None], words: int) -> None:
        self._known, self._words = known, words

    def logits(self, columns: Integers | None = None, rows: slice = slice(None)) -> Floats:
        """See `Session.logits`."""
        known = self._known[rows]
        found = np.full((len(known), _BYTES + self._words), -_CERTAIN)
        found[:, _BYTES:] = 0.0
        for row, token in enumerate(known):
            if token is not None:
                found[row, token] = _CERTAIN
        return found if columns is None else found[:, columns]

    def advance(self, tokens: Tokens) -> None:
        """See `Session.advance`."""

    def keep(self, rows: Sequence[int]) -> None:
        """See `Session.keep`."""
        self._known = [self._known[row] for row in rows]

    def score(self, continuation: Tokens) -> Floats:
        """See `Session.score`: all continuations are alike."""
        return np.zeros(len(self._known))


class CanaryEmbedder:
    """See `Embedder`: canary i is near to nothing but the draft in place i of a ballot."""

    name = "stand-in for an audit"

    def __init__(self, places: int) -> None:
        """Have a direction for each of so many drafts."""
        self.dimensions = places

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The canary's own direction; of other texts, which come as a whole ballot, that of their place."""
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for place, text in enumerate(texts):
            own = _CANARY.fullmatch(text)
            found[place, int(own[1]) if own else place % self.dimensions] = 1.0
        return found


# One-run audit: canaries are in the data by fair coins, and a single whole run is asked which (Steinke et al. 2023).
#
# The run is the one of `synthesize` or of a recipe, with its sampling, seats, sums, noise and ledger; the data is
# made of canaries alone, and models stand in for which a canary shows most. So no one's data is needed, and nobody
# pays.

VOTE = "vote"
LABELS = ("first", "second", "third", "fourth")
"""Canaries of one label pay in a list of their own: four labels are four times as many guesses for one epsilon."""
DELTA = 1e-5
_TOKENS = 4
_DRAFT_TOKENS = 6
_NAME = "canaries"
_FEWEST, _MOST = 16, 256
"""Canaries of a label: no fewer prove anything, and a ballot has no more drafts."""
_CAP = Cap(1e6, 0.5)
"""Of a ledger that is thrown away."""

Evidence = Mapping[str, Floats]
"""Of each label, how much the releases speak for each of its canaries, shape (canaries,)."""


@dataclass(frozen=True)
class OneRun:
    """What one run proves.

    Attributes:
        audited: the recipe or the mechanism.
        claimed: what the run claims; infinite for a mechanism that promises nothing.
        canaries: how many could be in.
        guesses: the best ones, and the epsilon at `delta` that they prove.
    """

    audited: str
    claimed: float
    delta: float
    canaries: int
    guesses: Guesses

    @property
    def holds(self) -> bool:
        """Whether the claim survives."""
        return self.guesses.lower_bound <= self.claimed


def audited_runs() -> list[str]:
    """What can be audited: the vote of a recipe, and every token mechanism."""
    return [VOTE, *mechanism_names()]


def audit_run(
    audited: str, epsilon: float, canaries: int = 512, rate: float = 1.0, randomness: Randomness | None = None
) -> OneRun:
    """Audit one run, calibrated so that it costs `epsilon` at delta `DELTA`.

    Args:
        audited: one of `audited_runs`.
        epsilon: of the run.
        canaries: how many could be in, over all labels.
        rate: of the sampling of token mechanisms; canaries that are not sampled tell nothing.
        randomness: the operating system's, unless this is a test.

    Raises:
        UsageError: there is no such run, or too few or too many canaries.
    """
    randomness = randomness or PrefetchedRandomness()
    each = canaries // len(LABELS)
    if not _FEWEST <= each <= _MOST:
        raise UsageError(f"Between {_FEWEST * len(LABELS)} and {_MOST * len(LABELS)} canaries can be audited.")
    if not 0 < rate <= 1:
        raise UsageError("--rate must lie in (0, 1].")
    coins = {label: randomness.uniform(each) < 0.5 for label in LABELS}
    records = [Record(canary(i), label) for label in LABELS for i in np.flatnonzero(coins[label]).tolist()]
    data, target = Dataset(_NAME, LABELS, tuple(records)), PrivacyTarget(epsilon, DELTA)
    with tempfile.TemporaryDirectory() as folder:
        ledger = PrivacyLedger(Path(folder))
        ledger.set_cap(_NAME, RECORD, _CAP)
        if audited == VOTE:
            claimed, evidence = _vote(data, each, target, ledger, randomness)
        else:
            claimed, evidence = _tokens(data, each, audited, rate, target, ledger, randomness)
    return _result(audited, claimed, coins, evidence)


def _result(audited: str, claimed: Claim, coins: Mapping[str, Coins], evidence: Evidence) -> OneRun:
    included, scores = (np.concatenate([of[label] for label in LABELS]) for of in (coins, evidence))
    guesses = best_guesses(included, scores, claimed.delta)
    return OneRun(audited, claimed.epsilon, claimed.delta, len(included), guesses)


_TEMPLATE = PromptTemplate("Sort the notes.", "Note", "Topic")


def _vote(
    data: Dataset, each: int, target: PrivacyTarget, ledger: PrivacyLedger, randomness: Randomness
) -> tuple[Claim, Evidence]:
    """A recipe of which every unit votes: a canary's evidence is the noisy count of the draft that it alone prefers."""
    request = RecipeRequest(
        labels=LABELS,
        template=_TEMPLATE,
        recipe=Recipe(Kind.VOTE, Division.EPSILON, {Stage.VOTE: 1.0}, drafts=each),
        target=target,
        sizes=dict.fromkeys(LABELS, each),
        content=fingerprint(data).content,
        tokens=_DRAFT_TOKENS,
    )
    evidence = {label: np.zeros(each) for label in LABELS}
    for event in synthesize(data, request, CanaryModel(each), ledger, randomness, embedder=CanaryEmbedder(each)):
        if isinstance(event, VotesReleased):
            evidence[event.label][: len(event.votes)] += event.votes
    return request.claim(), evidence


def _tokens(
    data: Dataset,
    each: int,
    mechanism: str,
    rate: float,
    target: PrivacyTarget,
    ledger: PrivacyLedger,
    randomness: Randomness,
) -> tuple[Claim, Evidence]:
    """Demonstrations token by token: a canary's evidence is what was released about its own word at every step."""
    request = SynthesisRequest(
        labels=LABELS,
        template=_TEMPLATE,
        plan=SamplingPlan(subsets=max(1, math.floor(rate * each)), tokens=_TOKENS),
        mechanism=mechanism_class(mechanism)(),
        target=target,
        sizes=dict.fromkeys(LABELS, each),
        content=fingerprint(data).content,
        candidates=each,
    ).calibrated()
    numbers = {word(i): i for i in range(each)}
    evidence = {label: np.zeros(each) for label in LABELS}
    for event in synthesize(data, request, CanaryModel(each), ledger, randomness):
        if isinstance(event, TokenReleased):
            for text, value in _values(event):
                evidence[event.label][numbers[text.strip()]] += value
    return request.claim(), evidence


def _values(event: TokenReleased) -> Iterator[tuple[str, float]]:
    """What a step says about each candidate: its noisy score, or only that it was released."""
    if event.scores is None:
        yield event.candidates[event.chosen], 1.0
    else:
        yield from zip(event.candidates, event.scores, strict=True)
