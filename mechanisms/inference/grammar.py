"""The objects of a JSON schema, token by token: which may come next, and which must.

Everything here is a function of the schema and of the tokens so far. Both are public, and so are the answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference.language_model import LanguageModel, Tokens

if TYPE_CHECKING:  # a name that only the library's types have
    from llguidance._lib import JsonCompileOptions

_FORM: JsonCompileOptions = {
    "item_separator": ", ",
    "key_separator": ": ",
    "whitespace_flexible": False,
    "json_allowed_escapes": '"\\',
}
"""One way to write each object, that of Python's `json.dumps`: what is free to vary would have to be paid for."""
_SILENT = 0
_CLOSING = ('"', "]", "}")


class Grammar:
    """One JSON object while it is being written."""

    def __init__(self, schema: str, model: LanguageModel) -> None:
        """Begin an object; tokens that are forced already wait to be taken.

        Args:
            schema: the JSON schema as text; all its objects are finite.
            model: in whose tokens.

        Raises:
            UsageError: no object meets the schema, it asks for what cannot be kept, or the model's tokens cannot be
                read.
        """
        self._vocabulary = model.vocabulary
        fixed = schema.encode()
        if bytes(self._vocabulary.decode_bytes(self._vocabulary.tokenize_bytes(fixed))) != fixed:
            raise UsageError("The model's tokens cannot write the schema's names and values: choose plainer ones.")
        rules = LLMatcher.grammar_from_json_schema(schema, overrides=_FORM)
        self._matcher = LLMatcher(self._vocabulary, rules, log_level=_SILENT)
        if self._matcher.is_error():
            reason = self._matcher.get_error().split("\n")[0]
            raise UsageError(f"No record can be written by this schema: {reason}.")
        self._forced: deque[int] = deque()
        self._force()

    @property
    def forced(self) -> bool:
        """Whether the next token is one that the schema forces."""
        return bool(self._forced)

    @property
    def complete(self) -> bool:
        """Whether the object has ended."""
        return not self._forced and self._matcher.is_accepting()

    def take(self) -> int:
        """Take the next forced token."""
        return self._forced.popleft()

    def allowed(self, size: int) -> NDArray[np.bool_]:
        """Which of the first `size` tokens may come next, where none is forced; shape (size,)."""
        bits = np.unpackbits(np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
        found = np.zeros(size, dtype=np.bool_)
        found[: len(bits)] = bits[:size]
        if not found.any():
            raise ModelUnavailable("The model has no token with which the record could go on: choose another model.")
        return found

    def accept(self, token: int) -> None:
        """Append a token that is allowed, where none is forced."""
        if self._forced or not self._matcher.consume_token(token):
            raise ValueError("this token may not come next")
        self._force()

    def _force(self) -> None:
        # Bytes that must come are written as the tokenizer would, and never run into what follows: a token that
        # merges both would be one more thing to choose.
        while ahead := self._vocabulary.tokenize_bytes(self._matcher.compute_ff_bytes()):
            if not self._matcher.consume_tokens(ahead):
                raise ModelUnavailable("The model's tokens cannot write this schema's records: choose another model.")
            self._forced += ahead

    def text(self, tokens: Tokens) -> str:
        """The text of the tokens, to the byte: spaces may be part of a string and are not cleaned up."""
        return bytes(self._vocabulary.decode_bytes(list(tokens))).decode(errors="replace")

    def rest(self) -> Iterator[int]:
        """Tokens that end the object without a model: strings and lists end where they may; for a schema's check, and
        where nothing else is left."""
        closing = [token for each in _CLOSING for token in self._vocabulary.greedy_tokenize(each)]
        while not self.complete:
            if self.forced:
                yield self.take()
                continue
            allowed = self.allowed(self._vocabulary.vocab_size)
            token = next((each for each in closing if allowed[each]), int(np.argmax(allowed)))
            self.accept(token)
            yield token
