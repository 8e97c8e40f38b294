"""Prompts as tokens: pieces are encoded one by one, so that where one ends never depends on what follows."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.inference.language_model import LanguageModel
from mechanisms.records import Demonstration, PromptTemplate


def one_line(text: str) -> str:
    """Text on one line: a line break ends a demonstration."""
    return " ".join(text.split())


class GenerationPrompt:
    """Prompts that ask for one more text of a label.

    Private prompt: instruction, the row's records, cue. Public prompt: instruction, cue. Each record is cut at
    `max_record_tokens`, each row at `records_per_row` whole records, so every row fits in the public `length`.
    """

    def __init__(
        self, model: LanguageModel, template: PromptTemplate, label: str, max_record_tokens: int, records_per_row: int
    ) -> None:
        self._model, self._cap = model, max_record_tokens
        instruction = f"Write one {template.text.lower()} with the given {template.label.lower()}.\n\n"
        self.prefix = model.encode(instruction)
        self.cue = model.encode(f"{template.label}: {label}\n{template.text}:")
        self._gap = model.encode("\n\n")
        block = len(self.cue) + max_record_tokens + len(self._gap)
        self.length = records_per_row * block + len(self.cue)

    def row(self, texts: Sequence[str]) -> list[int]:
        """A private row: as many of the texts as fit whole, the last one cut, then the cue."""
        budget = self.length - len(self.cue)
        tokens: list[int] = []
        for text in texts:
            record = self._model.encode(" " + one_line(text))[: self._cap]
            tokens += [*self.cue, *record, *self._gap]
        return tokens[:budget] + self.cue


class QueryPrompt:
    """The classification prompt: instruction, demonstrations, query (Zhao et al. 2021)."""

    def __init__(
        self,
        model: LanguageModel,
        template: PromptTemplate,
        demonstrations: Sequence[Demonstration],
        max_query_tokens: int,
    ) -> None:
        self._model, self._template, self._cap = model, template, max_query_tokens
        shown = [f"{template.text}: {one_line(d.text)}\n{template.label}: {d.label}\n\n" for d in demonstrations]
        self.prefix = model.encode(f"{template.instruction}\n\n" + "".join(shown))
        self._head = model.encode(f"{template.text}:")
        self._tail = model.encode(f"\n{template.label}:")
        self.length = len(self._head) + max_query_tokens + len(self._tail)

    def row(self, query: str) -> list[int]:
        """The query's own tokens, cut at the public cap."""
        body = self._model.encode(" " + one_line(query))[: self._cap]
        return [*self._head, *body, *self._tail]

    def label(self, label: str) -> list[int]:
        """The tokens whose probability says how likely a label is."""
        return self._model.encode(" " + label)
