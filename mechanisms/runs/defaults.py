"""The defaults of a run, for the app, the command line and Python.

What is the same for every run is a default of `SamplingPlan`, `SynthesisRequest`, `RecipeRequest` and `Outputs`. What
follows from the kind of row, or from public sizes, is in this module. `docs/recipes.md` has a table of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mechanisms.errors import UsageError
from mechanisms.runs.advice import fewest_for_roles
from mechanisms.runs.recipe import Kind
from mechanisms.runs.recipe_request import MOST_PROMPTED, MOST_SHOTS, RecipeRequest, writes_in_stages
from mechanisms.runs.request import MIN_TOKENS, SynthesisRequest
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class

MECHANISM = "gaussian"
RECIPE = Kind.BOTH
"""Shows every token's noisy distribution, and finds no fewer labels than the vote alone (research/docs/worth.md)."""
FEWEST_SUBSETS = 4
SUBSETS_OF_MANY = 56
"""M from `fewest_for_roles` units on. The first token waits until all these rows are read. With 2,000 rows, four labels
and epsilon 1 they give a signal-to-noise of 10. More rows give more: each of them joins less often."""
MOST_WRITTEN_LABELS = 12
"""Labels up to which a run writes token by token: each label takes its own sample, and its own time."""


@dataclass(frozen=True)
class Lengths:
    """Limits on token counts: of a demonstration, and of a private row.

    Attributes:
        tokens: T, those of a demonstration that are charged.
        max_record_tokens: public cap on the tokens of a row that are read.
    """

    tokens: int = SamplingPlan.tokens
    max_record_tokens: int = SynthesisRequest.max_record_tokens


LABELLED = Lengths()
RECORDS = Lengths(48, 128)
UNLABELLED = Lengths(tokens=32)
"""Of texts alone, and of texts with outputs, which are part of the tokens."""


def usual_lengths(labels: int, records: bool = False, outputs: bool = False) -> Lengths:
    """The lengths for one kind of row.

    Args:
        labels: how many there are; one is that of texts alone.
        records: rows are records of a schema.
        outputs: texts have outputs.
    """
    if records:
        return RECORDS
    return UNLABELLED if outputs or labels < 2 else LABELLED


_TOKENS_A_WORD = 1.4
"""Of English, with the embedded model's tokenizer."""
_LONGEST_DRAFT, _LONGEST_ROW = 96, 256


def lengths_of_texts(words: int | None, usual: Lengths) -> Lengths:
    """The lengths where the owner says how many words a text usually has; the usual ones for None.

    Rows are read to their end up to 256 tokens. Demonstrations are written no longer than usual, since each token is
    charged.

    Raises:
        UsageError: a text has no words.
    """
    if words is None:
        return usual
    if words < 1:
        raise UsageError("A text has at least 1 word: correct the number of words, or leave it out.")
    tokens = math.ceil(_TOKENS_A_WORD * words)
    return Lengths(min(usual.tokens, max(MIN_TOKENS, tokens)), min(_LONGEST_ROW, max(2 * MIN_TOKENS, tokens)))


def draft_tokens_of_texts(words: int | None) -> int:
    """The longest draft where the owner says how many words a text usually has; the usual one for None.

    Drafts cost time, and no epsilon.
    """
    if words is None:
        return RecipeRequest.tokens
    return min(_LONGEST_DRAFT, max(2 * MIN_TOKENS, math.ceil(_TOKENS_A_WORD * words)))


def usual_subsets(sizes: Mapping[str, int]) -> int:
    """M, at most the units of the smallest label: with more, all of them would join each time."""
    most = SUBSETS_OF_MANY if sum(sizes.values()) >= fewest_for_roles(len(sizes)) else SamplingPlan.subsets
    return max(FEWEST_SUBSETS, min([most, *sizes.values()]))


def usual_recipe(
    labels: int,
    mechanism: str = MECHANISM,
    shots: int = 1,
    best_of: int = 1,
    plain: bool = True,
    asks_to_write: bool = False,
) -> Kind:
    """In stages wherever a run can have stages, else token by token.

    Many demonstrations are voted for: a vote costs the same epsilon for any number of winners. More than
    `MOST_WRITTEN_LABELS` labels are voted for, too, unless a setting of the writing is given.

    Args:
        labels: how many there are.
        mechanism: the name of the one that writes.
        shots: demonstrations of each label.
        best_of: demonstrations that are written for each one that is kept.
        plain: rows are neither records of a schema nor have outputs.
        asks_to_write: a setting is given that only writing has.
    """
    staged = plain and labels > 1 and best_of == 1 and shots <= MOST_SHOTS
    if not staged or not writes_in_stages(mechanism_class(mechanism)):
        return Kind.TOKENS
    writes = shots <= MOST_PROMPTED and (asks_to_write or labels <= MOST_WRITTEN_LABELS)
    return RECIPE if writes else Kind.VOTE
