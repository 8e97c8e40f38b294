"""Tokens that may not come next: rules that follow from released tokens, the public row and public values alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from mechanisms.data.record_schema import rewritten
from mechanisms.inference import Grammar, LanguageModel, Tokens
from mechanisms.noise import Integers
from mechanisms.records import Demonstration
from mechanisms.runs.events import TokenCounts
from mechanisms.runs.text import without_rest


def barred(written: Sequence[int], least: int, model: LanguageModel) -> set[int]:
    """Tokens that would end a text of fewer than `least` tokens, or an empty one, or write a run of three again."""
    ends = model.stop_tokens if len(written) < max(1, least) else frozenset()
    return set(ends) | _again(written)


def barred_by(grammar: Grammar, value: Sequence[int], size: int) -> Integers:
    """Those of the first `size` tokens that the schema does not allow here, or that write a run of three again.

    Args:
        grammar: of the record in the making, where no token is forced.
        value: what has been written since the last forced token: elsewhere a record may well repeat itself.
        size: of the vocabulary.
    """
    allowed = grammar.allowed(size)
    fresh = allowed.copy()
    fresh[list(_again(value))] = False
    return np.flatnonzero(~(fresh if fresh.sum() > 1 else allowed))


def visible(written: Sequence[int], order: Integers, model: LanguageModel) -> Iterator[int]:
    """Those of `order` after which the text is not blank, in that order: a text has to begin with something to see."""
    begun = _shows(model.decode(written))
    return (token for token in map(int, order) if begun or _shows(model.decode([*written, token])))


def _again(written: Sequence[int]) -> set[int]:
    last = tuple(written[-2:])
    return {written[i + 2] for i in range(len(written) - 2) if tuple(written[i : i + 2]) == last}


def _shows(text: str) -> bool:
    return any(each.isprintable() and not each.isspace() for each in text)


# What a demonstration looks like, token by token: which tokens may come next, which one must, and when it ends.
#
# All of it follows from public values and from the tokens so far, which are released. So what may come next is as
# public as the candidates always were, and what must come next is free: nothing is drawn for it.


class DecodingState(Protocol):
    """A demonstration in the making.

    Attributes:
        written: its tokens so far.
        begun: how many of them stood there from the start.
        stopped: whether it has come to its end by itself.
    """

    written: list[int]
    begun: int
    stopped: bool

    @property
    def forced(self) -> bool:
        """Whether the next token must be the one that `take` writes."""
        ...

    def take(self) -> None:
        """Write the token that is forced."""
        ...

    def accept(self, token: int) -> None:
        """Go on with a token that may come next, where none is forced; at least one token is written, or it ends."""
        ...

    def barred(self, size: int) -> Integers:
        """Those of the first `size` tokens that may not come next, where none is forced."""
        ...

    @property
    def field(self) -> Sequence[int]:
        """The tokens that have to begin with something to see."""
        ...

    def close(self) -> None:
        """End it as soon as may be, whatever a model may think of it."""
        ...

    @property
    def text(self) -> str:
        """All of it so far, as it is shown while it is written."""
        ...

    def demonstration(self, label: str) -> Demonstration:
        """What has been written, as a demonstration."""
        ...

    def counts(self, charged: int) -> TokenCounts | None:
        """Who decided its tokens, of which so many are charged; None where nobody is told."""
        ...


class TextState:
    """A text and, where it has one, its output, each ended by a stop token or by its share of the charged tokens.

    The stop token that ends a text is drawn, and charged, like any other; what is written in its place is `between`,
    token by token and for free. Neither field can be empty: its end is barred until it has begun.
    """

    def __init__(self, model: LanguageModel, least: int, between: Tokens = (), most: int | None = None) -> None:
        """Begin.

        Args:
            model: in whose tokens.
            least: tokens before a text may end.
            between: what stands between text and output; none where there is no output.
            most: tokens of a text, where an output follows it.
        """
        self.written: list[int] = []
        self.begun, self.stopped = 0, False
        self._model, self._least, self._between, self._most = model, least, between, most
        self._forced: deque[int] = deque()
        self._text_end: int | None = None
        self._start = 0

    @property
    def forced(self) -> bool:
        """See `DecodingState`."""
        return bool(self._forced)

    def take(self) -> None:
        """See `DecodingState`."""
        self.written.append(self._forced.popleft())
        self._start = len(self.written)

    def accept(self, token: int) -> None:
        """See `DecodingState`; whether it ends a field is decided on the token itself."""
        ends = token in self._model.stop_tokens
        if not ends:
            self.written.append(token)
        if not self._between or self._text_end is not None:
            self.stopped = ends
        elif ends or len(self.written) == self._most:
            self._text_end = len(self.written)
            self._forced.extend(self._between)
            if ends:
                self.take()

    def barred(self, size: int) -> Integers:
        """See `DecodingState`; an output may well repeat what the text says, but not itself."""
        least = self._least if self._text_end is None else 1
        return np.array(sorted(barred(self.field, least, self._model)), dtype=np.int64)

    @property
    def field(self) -> Sequence[int]:
        """See `DecodingState`."""
        return self.written[self._start :]

    def close(self) -> None:
        """See `DecodingState`."""
        self.stopped = True

    @property
    def text(self) -> str:
        """See `DecodingState`."""
        return self._model.decode(self.written)

    def demonstration(self, label: str) -> Demonstration:
        """See `DecodingState`; the last field is cut back to whole sentences where the tokens ran out.

        A text with an output stays as it is: the output was written to all of it.
        """
        end = len(self.written) if self._text_end is None else self._text_end
        text, last = (self._model.decode(each).strip() for each in (self.written[:end], self.field))
        if not self.stopped:
            last = without_rest(last)
        return Demonstration(text, label, last) if self._between else Demonstration(last, label)

    def counts(self, charged: int) -> TokenCounts | None:
        """See `DecodingState`."""
        return None


class RecordState:
    """A record of a JSON schema."""

    def __init__(self, grammar: Grammar) -> None:
        self.written: list[int] = []
        self.stopped = False
        self._grammar = grammar
        self._taken = self._value = 0
        while self.forced:
            self.take()
        self.begun = len(self.written)

    @property
    def forced(self) -> bool:
        """See `DecodingState`: by the schema."""
        return self._grammar.forced

    def take(self) -> None:
        """See `DecodingState`."""
        self.written.append(self._grammar.take())
        self._taken, self._value = self._taken + 1, len(self.written)
        self.stopped = self._grammar.complete

    def accept(self, token: int) -> None:
        """See `DecodingState`."""
        self._grammar.accept(token)
        self.written.append(token)
        self.stopped = self._grammar.complete

    def barred(self, size: int) -> Integers:
        """See `DecodingState`."""
        return barred_by(self._grammar, self.written[self._value :], size)

    @property
    def field(self) -> Sequence[int]:
        """See `DecodingState`: a record begins with its brace."""
        return self.written

    def close(self) -> None:
        """See `DecodingState`."""
        self.written.extend(self._grammar.rest())
        self.stopped = True

    @property
    def text(self) -> str:
        """See `DecodingState`."""
        return self._grammar.text(self.written)

    def demonstration(self, label: str) -> Demonstration:
        """See `DecodingState`; a whole record is put in its canonical form, so that no two texts say the same."""
        return Demonstration(rewritten(self.text) if self.stopped else self.text, label)

    def counts(self, charged: int) -> TokenCounts | None:
        """See `DecodingState`."""
        return TokenCounts(charged, self._taken, len(self.written) - charged - self._taken)
