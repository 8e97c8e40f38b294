"""One-run auditing: a lower bound on epsilon from correct guesses about canaries (Steinke, Nasr, Jagielski 2023).

Each canary is included in the data by a fair coin. From the output of an (epsilon, delta)-DP run, guesses about some of
them are correct no more often than with randomised response, up to a term in delta.
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
"""Shares of the canaries guessed as included (highest scores) and excluded (lowest); others get no guess."""
_LARGEST = 50.0
_STEPS = 24

Coins = NDArray[np.bool_]


@dataclass(frozen=True)
class Guesses:
    """The guesses with the largest bound.

    Attributes:
        lower_bound: epsilon is at least this, with confidence `confidence.LEVEL`.
        made, correct: the numbers of guesses and of correct ones.
    """

    lower_bound: float
    made: int
    correct: int


def best_guesses(included: Coins, scores: Floats, delta: float) -> Guesses:
    """Guess by the scores, shape (canaries,), and compare with the coins, of the same shape.

    A few rules for the number of guesses share the error probability, so that the best of them may be taken.
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
    """The largest epsilon refuted by the number of correct guesses; 0 if none is.

    Args:
        canaries: the number of canaries, each included by a fair coin.
        made: the number of guesses.
        correct: the number of correct ones.
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
    """The bound of the paper's theorem 5.2 on the probability of at least `correct` correct guesses.

    `P[W >= v] <= P[B >= v] + 2 m delta max_i P[v > B >= v - i] / i`, B binomial, right with e^eps / (1 + e^eps).
    """
    right = float(expit(epsilon))
    tail = float(binom.sf(correct - 1, made, right))
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), made, right))
    worst = float((below / np.arange(1, correct + 1)).max()) if correct else 0.0
    return math.fsum((tail, 2 * canaries * delta * worst))


# Models for audits, under which a canary is as visible as a row can be.
#
# A claim holds for every model and every text, so that an audit may use those with the largest leak, without weights.

_CANARY = re.compile(r"canary (\d+)")
_BYTES = 256
"""Tokens below this number are bytes of a prompt, the others are the canaries' own."""
_CERTAIN = 50.0
"""The logit of a certain token: more than any clipping leaves."""
_LETTERS = "bcdfghjklmnpqrstvwxz"
_VOWELS = "aeiou"
_SYLLABLES = len(_LETTERS) * len(_VOWELS)


def canary(number: int) -> str:
    """The text of a canary."""
    return f"canary {number}"


def word(number: int) -> str:
    """A canary's own word, of letters alone, which the rules for drafts accept."""
    places = (number % _SYLLABLES, number // _SYLLABLES, (7 * number + 3) % _SYLLABLES)
    return "".join(_LETTERS[place % len(_LETTERS)] + _VOWELS[place // len(_LETTERS)] for place in places) + "."


class CanaryModel:
    """A row with a canary is certain of its word, any other finds all words equally likely."""

    name, sha256 = "stand-in for an audit", "0" * 64
    stop_tokens = frozenset({ord("\n")})
    turn: tuple[list[int], list[int]] = ([], [])
    writing_turn: tuple[list[int], list[int]] = ([], [])

    def __init__(self, words: int) -> None:
        """Create a vocabulary with `words` canary words."""
        self.words = words

    @property
    def vocabulary(self) -> LLTokenizer:
        """Audits write no records."""
        raise UsageError("A stand-in for an audit writes no records.")

    def rows_at_once(self, computed: int, held: int) -> int:
        """Memory is no limit."""
        return 2**20

    def encode(self, text: str) -> list[int]:
        """A canary is one token, everything else bytes."""
        pieces = _CANARY.split(text)
        tokens = list(pieces[0].encode())
        for number, rest in zip(pieces[1::2], pieces[2::2], strict=True):
            tokens += [_BYTES + int(number), *rest.encode()]
        return tokens

    def decode(self, tokens: Tokens) -> str:
        return "".join(f" {word(each - _BYTES)}" if each >= _BYTES else chr(each) for each in tokens)

    def check(self, prefix: Tokens, rows: int, length: int, room: int) -> None:
        """Nothing is too long."""

    def alike(self, prefix: Tokens, rows: int, length: int, room: int) -> bool:
        return True

    def open(self, prefix: Tokens, rows: Sequence[Tokens], length: int, room: int) -> Session:
        return _Sure([next(_own(row), None) for row in rows], self.words)


def _own(row: Tokens) -> Iterator[int]:
    return (token for token in row if token >= _BYTES)


class _Sure:
    """A session that keeps the first canary of each row, and ignores appended tokens."""

    def __init__(self, known: list[int | None], words: int) -> None:
        self._known, self._words = known, words

    def logits(self, columns: Integers | None = None, rows: slice = slice(None)) -> Floats:
        known = self._known[rows]
        found = np.full((len(known), _BYTES + self._words), -_CERTAIN)
        found[:, _BYTES:] = 0.0
        for row, token in enumerate(known):
            if token is not None:
                found[row, token] = _CERTAIN
        return found if columns is None else found[:, columns]

    def advance(self, tokens: Tokens) -> None: ...

    def keep(self, rows: Sequence[int]) -> None:
        self._known = [self._known[row] for row in rows]

    def score(self, continuation: Tokens) -> Floats:
        """All continuations are equally likely."""
        return np.zeros(len(self._known))


class CanaryEmbedder:
    """Canary i is near only to the draft with index i of a ballot."""

    name = "stand-in for an audit"

    def __init__(self, places: int) -> None:
        """Create a direction for each of `places` drafts."""
        self.dimensions = places

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The canary's own direction; for other texts, which are a whole ballot, that of their index."""
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for place, text in enumerate(texts):
            own = _CANARY.fullmatch(text)
            found[place, int(own[1]) if own else place % self.dimensions] = 1.0
        return found


# One-run audit: canaries are included by fair coins, and guessed from a single whole run (Steinke et al. 2023).
#
# The run is that of `synthesize` or of a recipe, with its sampling, seats, sums, noise and ledger; the data holds
# canaries alone, and the models are those above. So no private data is needed, and no data set is charged.

VOTE = "vote"
LABELS = ("first", "second", "third", "fourth")
"""Each label is charged in a list of its own: four labels give four times as many guesses for one epsilon."""
DELTA = 1e-5
_TOKENS = 4
_DRAFT_TOKENS = 6
_NAME = "canaries"
_FEWEST, _MOST = 16, 256
"""The fewest canaries of a label with a useful bound, and the most, as a ballot has no more drafts."""
_CAP = Cap(1e6, 0.5)
"""The cap of the temporary ledger."""

Evidence = Mapping[str, Floats]
"""For each label, the evidence in the releases for each of its canaries, shape (canaries,)."""


@dataclass(frozen=True)
class OneRun:
    """The result of a one-run audit.

    Attributes:
        audited: the recipe or the mechanism.
        claimed: the run's claimed epsilon; infinite for a mechanism that is not private.
        canaries: the number of canaries.
        guesses: the best ones, with their lower bound on epsilon at `delta`.
    """

    audited: str
    claimed: float
    delta: float
    canaries: int
    guesses: Guesses

    @property
    def holds(self) -> bool:
        """Whether the lower bound does not exceed the claim."""
        return self.guesses.lower_bound <= self.claimed


def audited_runs() -> list[str]:
    """The names of runs that can be audited: the vote of a recipe, and every token mechanism."""
    return [VOTE, *mechanism_names()]


def audit_run(
    audited: str, epsilon: float, canaries: int = 512, rate: float = 1.0, randomness: Randomness | None = None
) -> OneRun:
    """Audit one run that is calibrated to cost `epsilon` at delta `DELTA`.

    Args:
        audited: one of `audited_runs`.
        epsilon: of the run.
        canaries: their number over all labels.
        rate: sampling rate of token mechanisms; canaries that are not sampled give no evidence.
        randomness: the operating system's by default; other sources are for tests.

    Raises:
        UsageError: no such run, or too few or too many canaries.
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
    """A recipe with the votes of all units: a canary's evidence is the noisy count of its own draft."""
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
    """Demonstrations token by token: a canary's evidence is the sum of its own word's released values."""
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
    """Each candidate's noisy score in a step, or 1 for the released candidate if there are no scores."""
    if event.scores is None:
        yield event.candidates[event.chosen], 1.0
    else:
        yield from zip(event.candidates, event.scores, strict=True)
