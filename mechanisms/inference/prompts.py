"""Prompts as tokens: pieces are encoded one by one, so that where one ends never depends on what follows.

Chat models get the prompt as what the user says, in their own template, and the cue as the beginning of their answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from mechanisms.inference.language_model import LanguageModel
from mechanisms.records import Demonstration, PromptTemplate, Record

_WRITE = "Write one {} with the given {}.\n\n"
_WRITE_BOTH = "Write one {} with the given {}, and its {}.\n\n"
_CHARACTERS = 64
"""Characters of a token at most, as far as a cap on tokens is concerned."""
_SHOWN = 512
"""Tokens of a demonstration at most, where it shows how a text goes on: more than any run writes."""
MAX_QUERY_CHARACTERS = 4096
"""Of a text that is read where no tokenizer is at hand."""


def one_line(text: str) -> str:
    """Text on one line: a line break ends a demonstration."""
    return " ".join(text.split())


def first_tokens(model: LanguageModel, text: str, cap: int) -> list[int]:
    """The first `cap` tokens of a text on one line. Its far end is cut first: no text may take long to encode."""
    return model.encode(" " + one_line(text[: _CHARACTERS * cap]))[:cap]


class GenerationPrompt:
    """Prompts that ask for one more text of a label, and for what is said to it where private rows show outputs.

    Private prompt: instruction, the row's records, cue. Public prompt: instruction, cue. Each record's text is cut at
    `max_record_tokens`, its output at `max_output_tokens` (0: outputs are not shown), each row at `records_per_row`
    whole records, so every row fits in the public `length`.

    Attributes:
        prefix: tokens that all rows share.
        cue: the end of every row; the whole public row.
        between: what stands between a text and its output; empty where outputs are not shown.
        length: positions of a private row.
    """

    def __init__(
        self,
        model: LanguageModel,
        template: PromptTemplate,
        label: str,
        max_record_tokens: int,
        records_per_row: int,
        max_output_tokens: int = 0,
    ) -> None:
        self._model, self._cap, self._output_cap = model, max_record_tokens, max_output_tokens
        names = [each.lower() for each in (template.text, template.label, template.output or "")]
        instruction = (_WRITE_BOTH if max_output_tokens else _WRITE).format(*names)
        before, after = model.turn
        self.prefix = [*before, *model.encode(instruction)]
        self._head = model.encode(f"{template.label}: {label}\n{template.text}:")
        self.cue = [*after, *self._head]
        self.between = model.encode(f"\n{template.output}:") if max_output_tokens else []
        self._gap = model.encode("\n\n")
        block = len(self._head) + max_record_tokens + len(self.between) + max_output_tokens + len(self._gap)
        self.length = records_per_row * block + len(self.cue)

    def row(self, texts: Sequence[str], outputs: Sequence[str | None] = ()) -> list[int]:
        """A private row: as many of the texts as fit whole, the last one cut, then the cue.

        Args:
            texts: of the row's records.
            outputs: of the same records; may be left out where they are not shown.
        """
        budget = self.length - len(self.cue)
        tokens: list[int] = []
        for text, output in zip_longest(texts, outputs):
            tokens += [*self._head, *first_tokens(self._model, text, self._cap)]
            if self._output_cap:
                tokens += [*self.between, *first_tokens(self._model, output or "", self._output_cap)]
            tokens += self._gap
        return tokens[:budget] + self.cue


class DraftPrompt:
    """Asks for one text of a label from public text alone: in the model's chat template where it was trained with one.

    A small model that is asked writes texts of the label; one that continues plain text soon writes something else
    (research/docs/worth.md).

    Attributes:
        prefix: all that stands before the cue.
        cue: where the draft begins.
    """

    def __init__(
        self, model: LanguageModel, template: PromptTemplate, label: str, examples: Sequence[str], max_tokens: int
    ) -> None:
        """Put the question; each of the `examples`, public texts of the label, is cut at `max_tokens`."""
        before, after = model.writing_turn
        head, field = model.encode(f"{template.label}: {label}"), model.encode(f"{template.text}:")
        self.prefix = [*before, *model.encode(_WRITE.format(template.text.lower(), template.label.lower()))]
        for example in examples:
            shown = [*field, *first_tokens(model, example, max_tokens)]
            self.prefix += [*head, *model.encode("\n"), *shown, *model.encode("\n\n")]
        self.prefix += head
        self.cue = [*(after or model.encode("\n")), *field]


class QueryWords:
    """The words of the classification prompt: instruction, demonstrations, query (Zhao et al. 2021).

    Attributes:
        shown: instruction and demonstrations, which stand before every query.
        field: what a query begins with.
        cue: where the answer begins.
    """

    def __init__(self, template: PromptTemplate, demonstrations: Sequence[Demonstration]) -> None:
        lines = [f"{template.text}: {one_line(d.text)}\n{template.label}: {d.label}\n\n" for d in demonstrations]
        self.shown = f"{template.instruction}\n\n" + "".join(lines)
        self.field, self.cue = f"{template.text}:", f"{template.label}:"

    def whole(self, query: str) -> str:
        """The prompt of a query as one text, for a model that is asked elsewhere; the query is cut at a public cap."""
        return f"{self.shown}{self.field} {one_line(query[:MAX_QUERY_CHARACTERS])}\n{self.cue}"


class QueryPrompt:
    """The classification prompt as tokens; `QueryWords` has its words.

    Attributes:
        prefix: tokens that all queries share.
        head: the first tokens of every query's row: what a text is called.
        cap: tokens of a query at most.
        length: positions of a query's row at most.
    """

    def __init__(
        self,
        model: LanguageModel,
        template: PromptTemplate,
        demonstrations: Sequence[Demonstration],
        max_query_tokens: int,
    ) -> None:
        self._model, self.cap = model, max_query_tokens
        words, (before, after) = QueryWords(template, demonstrations), model.turn
        self.prefix = [*before, *model.encode(words.shown)]
        self.head = model.encode(words.field)
        self._tail = [*after, *model.encode(words.cue)] if after else model.encode(f"\n{words.cue}")
        self.length = len(self.head) + max_query_tokens + len(self._tail)

    def row(self, query: str) -> list[int]:
        """The query's own tokens, cut at the public cap."""
        body = first_tokens(self._model, query, self.cap)
        return [*self.head, *body, *self._tail]

    def label(self, label: str) -> list[int]:
        """The tokens whose probability says how likely a label is."""
        return self._model.encode(" " + label)


class CompletionPrompt:
    """Asks how a text goes on: demonstrations, and the text's beginning, piece by piece as in `GenerationPrompt`.

    Attributes:
        prefix: tokens that all texts share.
        head: what every row begins with.
        cap: tokens of a beginning at most.
        length: positions of a row at most.
    """

    def __init__(
        self,
        model: LanguageModel,
        template: PromptTemplate,
        label: str,
        demonstrations: Sequence[Demonstration],
        max_query_tokens: int,
    ) -> None:
        self._model, self.cap = model, max_query_tokens
        written = GenerationPrompt(model, template, label, _SHOWN, 1)
        self.prefix, self.head = list(written.prefix), written.cue
        for each in demonstrations:
            self.prefix += written.row([each.text])[: -len(written.cue)]
        self.length = len(self.head) + max_query_tokens

    def row(self, beginning: str) -> list[int]:
        """The last tokens of a text's beginning, up to the public cap: what it goes on from. A blank one is none."""
        said = one_line(beginning[-_CHARACTERS * self.cap :])
        return [*self.head, *(self._model.encode(f" {said}")[-self.cap :] if said else ())]


# The prompt of a shard: instruction, its examples, the question. Only the instruction is shared by all rows.


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
