"""One-run audit: canaries are in the data by fair coins, and a single whole run is asked which (Steinke et al. 2023).

The run is the one of `synthesize` or of a recipe, with its sampling, seats, sums, noise and ledger; the data is made of
canaries alone, and models stand in for which a canary shows most. So no one's data is needed, and nobody pays.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mechanisms.accounting import Cap, Claim, PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.errors import UsageError
from mechanisms.noise import Floats, PrefetchedRandomness, Randomness
from mechanisms.records import RECORD, Dataset, PromptTemplate, Record
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class, mechanism_names
from mechanisms.studio.assurance.guesses import Coins, Guesses, best_guesses
from mechanisms.studio.assurance.stand_ins import CanaryEmbedder, CanaryModel, canary, word
from mechanisms.studio.recipes.events import VotesReleased
from mechanisms.studio.recipes.recipe import Division, Kind, Recipe, Stage
from mechanisms.studio.recipes.request import RecipeRequest
from mechanisms.studio.recipes.run import run_recipe
from mechanisms.studio.synthesis.events import TokenReleased
from mechanisms.studio.synthesis.request import SynthesisRequest
from mechanisms.studio.synthesis.synthesize import synthesize

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
        LABELS,
        _TEMPLATE,
        Recipe(Kind.VOTE, Division.EPSILON, {Stage.VOTE: 1.0}, drafts=each),
        target,
        dict.fromkeys(LABELS, each),
        fingerprint(data).content,
        tokens=_DRAFT_TOKENS,
    )
    evidence = {label: np.zeros(each) for label in LABELS}
    for event in run_recipe(data, request, CanaryModel(each), CanaryEmbedder(each), ledger, randomness):
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
