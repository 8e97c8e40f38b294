"""The prompt of a shard: instruction, its examples, the question. Only the instruction is shared by all rows."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.inference.language_model import LanguageModel
from mechanisms.inference.prompts import QueryPrompt, first_tokens
from mechanisms.records import PromptTemplate, Record


class ShardPrompt:
    """Rows of a public length: up to `examples` records, each text and each label cut at its public cap."""

    def __init__(
        self,
        model: LanguageModel,
        template: PromptTemplate,
        examples: int,
        max_text_tokens: int,
        max_label_tokens: int,
        max_query_tokens: int,
    ) -> None:
        self._model = model
        self._caps = max_text_tokens, max_label_tokens
        self._query = QueryPrompt(model, template, (), max_query_tokens)
        self._head = model.encode(f"{template.text}:")
        self._middle = model.encode(f"\n{template.label}:")
        self._gap = model.encode("\n\n")
        fixed = len(self._head) + len(self._middle) + len(self._gap)
        self.prefix = self._query.prefix
        self.public_length = self._query.length
        self.length = examples * (fixed + sum(self._caps)) + self.public_length

    def row(self, examples: Sequence[Record], query: str) -> list[int]:
        """A shard's row: its examples in the given order, then the question."""
        tokens: list[int] = []
        for example in examples:
            text, label = (
                first_tokens(self._model, part, cap)
                for part, cap in zip((example.text, example.label), self._caps, strict=True)
            )
            tokens += [*self._head, *text, *self._middle, *label, *self._gap]
        return tokens + self._query.row(query)

    def label(self, label: str) -> list[int]:
        """The tokens whose probability says how likely a label is."""
        return self._query.label(label)
