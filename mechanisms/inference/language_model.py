"""What the rest of the project asks of a language model. Tensors stay below this line: logits come as float64 numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mechanisms.noise import Floats, Integers

Tokens = Sequence[int]


class Session(Protocol):
    """A batch of rows in the model, at its last position; shapes depend on public numbers alone."""

    def logits(self, columns: Integers | None = None) -> Floats:
        """Next-token logits, shape (rows, vocabulary) or (rows, len(columns)); may hold non-finite values."""
        ...

    def advance(self, token: int) -> None:
        """Append the same released token to every row."""
        ...

    def score(self, continuation: Tokens) -> Floats:
        """Log-probability of `continuation` after each row, shape (rows,). The session stays where it was."""
        ...


class LanguageModel(Protocol):
    """A causal language model with its tokenizer."""

    name: str
    sha256: str
    stop_tokens: frozenset[int]
    """Tokens that end a demonstration: end of text, and every token that holds a line break."""

    def encode(self, text: str) -> list[int]:
        """Tokens of a piece of text, without special tokens."""
        ...

    def decode(self, tokens: Tokens) -> str:
        """Text of a sequence of tokens."""
        ...

    def open(self, prefix: Tokens, rows: Sequence[Tokens], length: int, room: int) -> Session:
        """Start a session.

        Args:
            prefix: public tokens that all rows share, computed once.
            rows: each row's own tokens; every row occupies `length` positions, shorter ones are padded on the left.
            length: public length of a row; longer rows are refused.
            room: how many tokens may be appended by `advance`, or scored, after the rows.

        The result for a row does not depend, to the bit, on the other rows, on its place, or on the padding.
        """
        ...
