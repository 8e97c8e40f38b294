"""The protocols of a language model and of an embedding model.

No tensor crosses these protocols: logits are float64 numpy arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mechanisms.noise import Floats, Integers

Tokens = Sequence[int]


class Session(Protocol):
    """A batch of rows in the model, at its last position; shapes depend only on public numbers."""

    def logits(self, columns: Integers | None = None, rows: slice = slice(None)) -> Floats:
        """Next-token logits, shape (rows, vocabulary) or (rows, len(columns)); may hold non-finite values."""
        ...

    def advance(self, tokens: Tokens) -> None:
        """Append one released token to each row; `tokens` has one token per row."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only these rows, at least one, in this order."""
        ...

    def score(self, continuation: Tokens) -> Floats:
        """Log-probability of `continuation` after each row, shape (rows,). The session does not change."""
        ...


@runtime_checkable
class Branching(Protocol):
    """A session that can score many continuations at once."""

    def scores(self, continuations: Sequence[Tokens]) -> Floats:
        """`Session.score` of each, up to rounding, shape (rows, continuations). The session does not change."""
        ...


def scores_of(session: Session, continuations: Sequence[Tokens]) -> Floats:
    """Log-probability of each continuation after each row, shape (rows, continuations)."""
    if isinstance(session, Branching):
        return session.scores(continuations)
    return np.stack([session.score(each) for each in continuations], axis=1)


class Turn(NamedTuple):
    """Tokens of a chat template around the messages.

    Attributes:
        before: the tokens before the first message.
        after: between that message and its answer, with no open thought.
        shown: the same before an answer of an earlier turn; empty if the template takes only one turn.
        again: between such an answer and the message of the next turn; empty if the template takes only one turn.
    """

    before: list[int]
    after: list[int]
    shown: list[int]
    again: list[int]


NO_TURN = Turn([], [], [], [])
"""The turn of a model without a chat template."""


class LanguageModel(Protocol):
    """A causal language model with its tokenizer."""

    name: str
    sha256: str

    @property
    def arithmetic(self) -> str:
        """Device, number format and threads, in words, for a set's file; constant during a run."""
        ...

    stop_tokens: frozenset[int]
    """Tokens that end a demonstration: end of text, and every token that contains a line break."""

    turn: Turn
    """The tokens around a user's message and the model's answer; empty if it has no chat template."""

    writing_turn: Turn
    """The same for prompts to write a text, even if the model's other prompts are plain text."""

    def rows_at_once(self, computed: int, held: int) -> int:
        """The recommended number of rows of a batch, at least one: enough to keep the device busy, few enough for its
        memory.

        Args:
            computed: positions of a row that one step computes.
            held: positions of a row in the session at its end.
        """
        ...

    def encode(self, text: str) -> list[int]:
        """Tokens of a piece of text, without special tokens."""
        ...

    def decode(self, tokens: Tokens) -> str:
        """Text of a sequence of tokens."""
        ...

    def check(self, prefix: Tokens, rows: int, length: int, room: int) -> None:
        """Refuse, before any charge, rows that are too long for the model or too many for the device."""
        ...

    def alike(self, prefix: Tokens, rows: int, length: int, room: int) -> bool:
        """Whether a row's numbers in such a session are known to be bitwise the same in all places of the batch.

        If they are not, a row may be computed alone, which is always safe. The arguments are those of `check`.
        """
        ...

    def open(self, prefix: Tokens, rows: Sequence[Tokens], length: int, room: int) -> Session:
        """Start a session.

        Args:
            prefix: public tokens that all rows share, computed once.
            rows: each row's own tokens; every row occupies `length` positions, shorter ones are padded on the left.
            length: public length of a row; longer rows are refused.
            room: the number of tokens that may be appended by `advance`, or scored, after the rows.

        The result for a row is bitwise independent of the other rows, of its place and of the padding; it may depend on
        the number of rows, which is public.
        """
        ...


class Embedder(Protocol):
    """A model that embeds texts of similar meaning near each other."""

    name: str
    sha256: str
    dimensions: int

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The texts' unit vectors on the grid of `mechanisms.queries.retrieval`, shape (texts, dimensions).

        Every bit of a text's vector depends on that text alone. Vectors are as private as their texts, which can be
        guessed from them, and are never stored.
        """
        ...

    def embed_together(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The same for public texts in batches, which is faster; the last digits may depend on the other texts."""
        ...
