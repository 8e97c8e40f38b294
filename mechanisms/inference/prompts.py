"""Prompts as tokens: pieces are encoded one by one, so the end of a piece never depends on the next one.

For chat models the prompt is the user's message, in their own template, and the cue is the beginning of their answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.asking import NO_HINT, Hint, Wording
from mechanisms.inference.language_model import LanguageModel
from mechanisms.records import Demonstration, PromptTemplate, Record

_EXAMPLE = "\n\nExample:"
_CHARACTERS = 64
"""The most characters of a token that caps on tokens assume."""
MAX_QUERY_CHARACTERS = 4096
"""The most characters of a text for a reader without a tokenizer."""


def one_line(text: str) -> str:
    """The text on one line, because a line break ends a demonstration."""
    return " ".join(text.split())


def first_tokens(model: LanguageModel, text: str, cap: int) -> list[int]:
    """The first `cap` tokens of a text on one line. A long text is cut before it is encoded, to bound the time."""
    return model.encode(" " + one_line(text[: _CHARACTERS * cap]))[:cap]


class WritingPrompt:
    """The prompt for one text of a label: a sentence as to a person, in the model's chat template if it has one, after
    public exemplars with the sentences that ask for them.

    The text is the model's answer. A private prompt shows a row's texts as examples after the sentence; the public
    prompt shows none.

    Args:
        max_record_tokens: the public cap on the tokens of each example.
        records_per_row: the number of examples of full length that fit in a row.
        hint: words of the label in the sentence in addition to the owner's.

    Attributes:
        shown: the exemplars, which are the same for all labels with such a hint, and the text before the sentence.
        sentence: the sentence that asks for the text.
        prefix: `shown` and `sentence`, which all rows of a label share.
        cue: the end of every row, before the opening; the whole public row.
        length: positions of a private row, without the opening.
    """

    def __init__(
        self,
        model: LanguageModel,
        wording: Wording,
        label: str,
        max_record_tokens: int = 0,
        records_per_row: float = 0,
        hint: Hint = NO_HINT,
    ) -> None:
        self._model, self._cap = model, max_record_tokens
        before, after, shown, again = model.writing_turn
        self._chats = bool(after)
        self.cue = list(after) if after else model.encode(f"\n\n{wording.kind.capitalize()}:")
        if not after:
            shown, again = self.cue, model.encode("\n\n")
        self.shown = list(before)
        for sentence, text in wording.exemplar_pairs(hint) if again else ():
            self.shown += [*model.encode(sentence), *shown, *self.opening(text), *again]
        self.sentence = model.encode(wording.sentence_for(label, hint))
        self.prefix = [*self.shown, *self.sentence]
        self._lead = model.encode(_EXAMPLE)
        self.length = int(records_per_row * (len(self._lead) + max_record_tokens)) + len(self.cue)

    def opening(self, text: str) -> list[int]:
        return self._model.encode(text if self._chats or not text else f" {text}")

    def row(self, texts: Sequence[str]) -> list[int]:
        """A private row: as many of the texts as fit whole, the last one cut, then the cue."""
        tokens: list[int] = []
        for text in texts:
            tokens += [*self._lead, *first_tokens(self._model, text, self._cap)]
        return tokens[: self.length - len(self.cue)] + self.cue


class QueryWords:
    """The text of the classification prompt: instruction, demonstrations, query (Zhao et al. 2021)."""

    def __init__(self, template: PromptTemplate, demonstrations: Sequence[Demonstration]) -> None:
        lines = [f"{template.text}: {one_line(d.text)}\n{template.label}: {d.label}\n\n" for d in demonstrations]
        self.shown = f"{template.instruction}\n\n" + "".join(lines)
        self.field, self.cue = f"{template.text}:", f"{template.label}:"

    def as_text(self, query: str) -> str:
        """The whole prompt of a query as text, for a remote model; the query is cut at a public cap."""
        return f"{self.shown}{self.field} {one_line(query[:MAX_QUERY_CHARACTERS])}\n{self.cue}"


class QueryPrompt:
    """The classification prompt as tokens; `QueryWords` has its text.

    Attributes:
        prefix: tokens that all queries share.
        head: the first tokens of every query's row: the name of the text field.
        cap: the most tokens of a query.
        length: the most positions of a query's row.
    """

    def __init__(
        self,
        model: LanguageModel,
        template: PromptTemplate,
        demonstrations: Sequence[Demonstration],
        max_query_tokens: int,
    ) -> None:
        self._model, self.cap = model, max_query_tokens
        words, (before, after) = QueryWords(template, demonstrations), model.turn[:2]
        self.prefix = [*before, *model.encode(words.shown)]
        self.head = model.encode(words.field)
        self._tail = [*after, *model.encode(words.cue)] if after else model.encode(f"\n{words.cue}")
        self.length = len(self.head) + max_query_tokens + len(self._tail)

    def row(self, query: str) -> list[int]:
        """The query's own tokens, cut at the public cap."""
        return [*self.head, *first_tokens(self._model, query, self.cap), *self._tail]

    def label(self, label: str) -> list[int]:
        """The tokens whose probability is taken as that of a label."""
        return self._model.encode(" " + label)


class ShardPrompt:
    """The prompt of a shard: instruction, its examples, the question. Only the instruction is shared by all rows.

    Rows have a public length: up to `examples` records, each text and each label cut at its public cap.
    """

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
        self._middle = model.encode(f"\n{template.label}:")
        self._gap = model.encode("\n\n")
        fixed = len(self._query.head) + len(self._middle) + len(self._gap)
        self.prefix, self.label = self._query.prefix, self._query.label
        self.public_length = self._query.length
        self.length = examples * (fixed + sum(self._caps)) + self.public_length

    def row(self, examples: Sequence[Record], query: str) -> list[int]:
        tokens: list[int] = []
        for example in examples:
            text, label = (
                first_tokens(self._model, part, cap)
                for part, cap in zip((example.text, example.label), self._caps, strict=True)
            )
            tokens += [*self._query.head, *text, *self._middle, *label, *self._gap]
        return tokens + self._query.row(query)
