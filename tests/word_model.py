"""A toy whose tokens are words with a full stop, so that whatever it writes has whole sentences."""

from __future__ import annotations

import random

from tests.toy_model import VOCABULARY, ToyModel

_LETTERS = random.Random(7)
WORDS = ["".join(_LETTERS.choices("cdefghiklmnoprstuvwyz", k=6)) for _ in range(VOCABULARY)]


class WordModel(ToyModel):
    def decode(self, tokens) -> str:
        return "".join("\n" if token in self.stop_tokens else f" {WORDS[token]}." for token in tokens)
