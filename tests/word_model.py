"""A toy whose tokens are words with a full stop, so that whatever it writes has whole sentences."""

from __future__ import annotations

from tests.toy_model import VOCABULARY, ToyModel

_STARTS, _ENDS = "bdfghklmnprstvwz", ("anner", "ilver", "orest", "under", "enter", "ossom", "ummer", "azel")
WORDS = [f"{start}{end}" for start in _STARTS for end in _ENDS][:VOCABULARY]


class WordModel(ToyModel):
    def decode(self, tokens) -> str:
        return "".join("\n" if token in self.stop_tokens else f" {WORDS[token]}." for token in tokens)
