"""The completion of a spec: the values of settings that the owner left open, from labels and public sizes.

With many rows, computing time is the limit; with few rows, noise is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from mechanisms.errors import UsageError
from mechanisms.runs.spec import CALIBRATE, SCORE, SOURCES, VOTE, WORDS, WRITE, Recipe, RunSpec, Split
from mechanisms.runs.stages import in_order, stages_in_order
from mechanisms.steps import mechanism_class
from mechanisms.steps.mechanism import Norm
from mechanisms.tallies import Weighing, usual_weighing

MOST_WRITTEN_LABELS = 12
"""The most labels with which a run writes token by token: each label needs its own sample, and its own time."""
MOST_CORRECTED_LABELS = 24
"""The most labels with which a correction is measured. Every label's sum gets the same noise, so that more labels need
more rows, and each further label makes the reading of a row slower."""
MOST_PROMPTED = 16
"""The most demonstrations of each label in one prompt; larger sets are neither calibrated nor scored."""

_AT_MOST = {VOTE: 0.5, SCORE: 0.15}
"""The largest shares of these stages, for files with fewer units than the stages need."""
_VOTERS_A_LABEL, _CALIBRATORS_A_LABEL = 40, 24
"""The fewest units for each label, which matter with many labels: only a label's own rows vote on its drafts, and each
label's sum gets noise."""

FEWEST_SUBSETS, SUBSETS, SUBSETS_OF_MANY = 4, 100, 56
"""M, the rows per token: the fewest, the usual number, and that from `fewest_for_roles` units on, which shortens the
time to the first token. With 2,000 rows, four labels and epsilon 1 the signal-to-noise ratio is 10. It grows with the
file, because a row then joins less often."""
TOKENS = 24
MIN_TOKENS = 8
"""The fewest tokens before a demonstration or a draft may end: small models like to write a title, or nothing."""
INDEX_NUCLEUS = 0.9
"""The probability of the nucleus of candidates if only a token's index is released. Public values cannot reduce its
noise, so that tokens that could not continue the text must not be candidates."""

FEWEST_DRAFTS, MOST_DRAFTS = 8, 24
DRAFTS_A_WINNER = 2
"""The fewest drafts for each requested demonstration: with as many drafts as demonstrations, the vote would exclude
none."""
CLEARANCE, EXCESS = 4.0, 2.0
"""A winner should exceed the average draft by `CLEARANCE` standard deviations of the noise, if its excess over the
average is `EXCESS` times the average's votes."""


FEWEST_FOR_WORDS, ENOUGH_FOR_WORDS = 100, 900
"""The units of a label, times epsilon: with fewer than the first number, hardly any word exceeds the noise, whatever
the stage's share. More units in the stage than the second number find few further words (research/docs/words.md)."""


def fewest_for_roles(labels: int) -> int:
    """The number of units from which roles are the default; with fewer, the noise of some role hides too much."""
    return min(2000, max(1200, 160 * labels))


def complete(spec: RunSpec, sizes: Mapping[str, int]) -> RunSpec:
    """The spec with a value for every setting, for the given number of units of each label.

    Raises a UsageError if a size is not positive or settings contradict each other.
    """
    if not sizes or min(sizes.values()) < 1:
        empty = min(sizes, key=lambda label: sizes[label]) if sizes else ""
        raise UsageError(f"The label '{empty}' has a declared size of 0: leave it out, or declare its size.")
    recipe = spec.recipe or _recipe(spec, len(sizes))
    stages = _stages(spec, recipe, sizes)
    weighing = spec.weighing or (Weighing.ROWS if len(sizes) > MOST_CORRECTED_LABELS else usual_weighing(sizes))
    shares, split = _shares(spec, stages, sizes, weighing)
    written = spec.written or (1 if recipe is Recipe.BOTH else spec.shots)
    tokens = spec.tokens or TOKENS
    most = SUBSETS_OF_MANY if sum(sizes.values()) >= fewest_for_roles(len(sizes)) else SUBSETS
    mechanism = mechanism_class(spec.mechanism)
    released_whole = mechanism.uses_private_rows and mechanism().sensitivity(True).norm is not Norm.RANGE
    found = {
        "recipe": recipe,
        "split": split,
        "shares": shares,
        "written": written,
        "tokens": tokens,
        "min_tokens": min(tokens, MIN_TOKENS) if spec.min_tokens is None else min(tokens, spec.min_tokens),
        # M is at most the units of the smallest label: with more, all of them would join each time.
        "subsets": spec.subsets or max(FEWEST_SUBSETS, min([most, *sizes.values()])),
        "drafts": spec.drafts or _drafts(spec, shares.get(VOTE, 0.0), split, sizes),
        "weighing": weighing,
        "candidate_top_p": spec.candidate_top_p or (1.0 if released_whole else INDEX_NUCLEUS),
    }
    if recipe is Recipe.BOTH and (not mechanism.uses_private_rows or mechanism.not_private):
        raise UsageError(f"A recipe does not write with '{spec.mechanism}': choose a private mechanism.")
    return spec.with_(**found)


def _recipe(spec: RunSpec, labels: int) -> Recipe:
    """The default recipe: "both", or "vote" for many labels unless a setting of the writing is given. It is "tokens"
    for a single label, or if the mechanism cannot write in a recipe."""
    mechanism = mechanism_class(spec.mechanism)
    if labels < 2 or not mechanism.uses_private_rows or mechanism.not_private:
        return Recipe.TOKENS
    of_writing = {"mechanism", "transform", "parameters", "scheme", "subsets", "per_subset", "tokens", "written"}
    asks = bool(of_writing & spec.model_fields_set) or WRITE in (spec.shares or {})
    return Recipe.BOTH if asks or labels <= MOST_WRITTEN_LABELS else Recipe.VOTE


def _stages(spec: RunSpec, recipe: Recipe, sizes: Mapping[str, int]) -> list[str]:
    known, labels = stages_in_order(), len(sizes)
    if recipe is Recipe.TOKENS and spec.shares is None:
        return [WRITE]
    if spec.shares is not None:
        return in_order(spec.shares)
    sources = SOURCES[recipe]
    left_out = {WRITE, VOTE} - sources | {name for name, stage in known.items() if not stage.usual}
    if labels < 2 or min(sizes.values()) * spec.epsilon < FEWEST_FOR_WORDS:
        left_out.add(WORDS)
    if not spec.score:
        left_out.add(SCORE)
    if spec.shots > MOST_PROMPTED or labels < 2:
        left_out |= {CALIBRATE, SCORE}
    if labels > MOST_CORRECTED_LABELS:
        left_out.add(CALIBRATE)
    return [name for name in known if name not in left_out]


def _shares(
    spec: RunSpec, stages: list[str], sizes: Mapping[str, int], weighing: Weighing
) -> tuple[dict[str, float], Split]:
    if spec.shares is not None:
        return {name: spec.shares[name] for name in stages}, spec.split or Split.ROLES
    if len(stages) == 1:
        return {stages[0]: 1.0}, spec.split or Split.EPSILON
    units = sum(sizes.values())
    split = spec.split or (Split.ROLES if units >= fewest_for_roles(len(sizes)) else Split.EPSILON)
    known = stages_in_order()
    if split is Split.EPSILON:
        whole = sum(known[name].parts for name in stages)
        return {name: known[name].parts / whole for name in stages}, split
    return _roles(stages, units, len(sizes), spec.epsilon, weighing), split


def _roles(stages: list[str], units: int, labels: int, epsilon: float, weighing: Weighing) -> dict[str, float]:
    """Shares that give each stage the units that it needs; below `fewest_for_roles`, the shares of that many units.

    A stage needs the units that two cores read in a little more than a minute. Of the other units, the stage "words"
    gets as many as improve its words; the rest write, or vote if the run has no stage that writes. A sample from more
    units takes the same time and needs less noise.
    """
    known = stages_in_order()
    wanted = {name: known[name].role_units for name in stages if known[name].role_units is not None}
    if VOTE in wanted:
        wanted[VOTE] = max(wanted[VOTE], _VOTERS_A_LABEL * labels)
    if CALIBRATE in wanted:
        wanted[CALIBRATE] = max(wanted[CALIBRATE], _CALIBRATORS_A_LABEL * labels)
    if SCORE in wanted and weighing is Weighing.LABELS:
        wanted[SCORE] *= 2  # the few units of a small label weigh as much as the many of a large one
    among = max(units, fewest_for_roles(labels))
    shares = {name: count / among for name, count in wanted.items()}
    shares |= {name: min(shares[name], most) for name, most in _AT_MOST.items() if name in shares}
    if WORDS in stages:
        parts = {name: known[name].parts for name in stages if known[name].role_units is None}
        fair = (1 - sum(shares.values())) * parts[WORDS] / sum(parts.values())
        shares[WORDS] = min(fair, ENOUGH_FOR_WORDS * labels / epsilon / among)
    rest = WRITE if WRITE in stages else VOTE
    shares[rest] = shares.get(rest, 0.0) + 1 - sum(shares.values())
    return {name: _two_digits(shares[name]) for name in stages}


def _two_digits(share: float) -> float:
    """A share cut to two digits, so that certificates stay short and sums stay at most 1."""
    unit = 10.0 ** (math.floor(math.log10(share)) - 1)
    # Rounding may make the quotient of two decimals slightly smaller than the exact whole number.
    return float(f"{math.floor(share / unit + 1e-6) * unit:.2g}")


def _drafts(spec: RunSpec, share: float, split: Split, sizes: Mapping[str, int]) -> int:
    """The number of drafts J: as many as the voters of the smallest label can judge, and twice what the set needs.

    With v voters, an average draft has v / J votes. A winner's excess over it is `EXCESS` times as many, and should be
    `CLEARANCE` standard deviations of the noise: J = EXCESS v / (CLEARANCE * 1.41 / epsilon).
    """
    smallest = min(sizes.values())
    voters, spent = (share * smallest, spec.epsilon) if split is Split.ROLES else (smallest, share * spec.epsilon)
    judged = EXCESS * voters * spent / (CLEARANCE * math.sqrt(2))
    usual = int(min(MOST_DRAFTS, max(FEWEST_DRAFTS, judged)))
    return max(usual, DRAFTS_A_WINNER * spec.shots)
