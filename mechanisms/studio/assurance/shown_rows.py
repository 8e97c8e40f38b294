"""The planted leak that every attack is tried on beside the real target: private rows that stand in the prompt as is.

What an attack does not find there, it says nothing about elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.inference import LanguageModel
from mechanisms.inference.prompts import first_tokens
from mechanisms.noise import Randomness
from mechanisms.records import Demonstration, Record

RELEASED, ROWS, NOTHING = "demonstrations", "real rows", "no demonstrations"
"""What can stand in the prompt that is attacked."""
_MOST_TOKENS = 96
"""Of a row that stands in a prompt: as much of it as a query may have."""


def as_demonstrations(rows: Sequence[Record], model: LanguageModel) -> tuple[Demonstration, ...]:
    """Rows as they are, each cut at a public number of tokens; not private."""
    return tuple(
        Demonstration(model.decode(first_tokens(model, row.text, _MOST_TOKENS)).strip(), row.label) for row in rows
    )


def drawn(rows: Sequence[Record], count: int, randomness: Randomness) -> list[Record]:
    """`count` of the rows, or all where there are fewer, in random order."""
    return [rows[place] for place in randomness.permutation(len(rows))[:count].tolist()]
