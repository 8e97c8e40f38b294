"""The work of reading texts under a set of demonstrations, from public numbers; and the time of step 4."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechanisms.demos.demo_set import DemoSet, longest_output
from mechanisms.evaluation.completions import MOST_ANSWERED
from mechanisms.evaluation.reader import CONTENT_FREE, LENGTHS, MAX_QUERY_TOKENS, MOST_ROWS
from mechanisms.records import PromptTemplate
from mechanisms.runs.forecast import ModelSpeed, Work

FRAME = 6
"""Approximate tokens around a classified or shown text: field names and line breaks."""
USUAL = 0.8
"""Approximate mean length of a draft or a demonstration, as a share of its cap."""
NAMES_READ = 6
"""Tokens of a label's name for the embedding model, with the special ones around a text."""
TEXT_READ, _MOST_TEXT_READ = 64, 256
"""Approximate tokens of a text for the embedding model, and its own cap."""
_CHARACTERS = 4.5
"""Approximate characters per token of names and instructions in a Latin script."""


def text_tokens(cap: int) -> int:
    """Approximate tokens of a private text for the embedding model, which has a cap of its own.

    Args:
        cap: on the tokens that the language model reads. Above `TEXT_READ`, texts are taken to be as long as the cap.
    """
    return min(_MOST_TEXT_READ, max(TEXT_READ, cap))


def tokens_of(text: str) -> int:
    """Approximate tokens of a name or an instruction: a forecast has no tokenizer."""
    return max(1, round(len(text) / _CHARACTERS))


def shown_tokens(template: PromptTemplate, labels: Sequence[str], shots: int, tokens: float) -> float:
    """Tokens before a query: the instruction, and `shots` demonstrations of each label of so many tokens."""
    each = tokens + FRAME
    return tokens_of(template.instruction) + 1 + shots * sum(each + tokens_of(label) for label in labels)


def prompt_work(labels: Sequence[str], shown: float, cap: int) -> Work:
    """The work of opening a classifier with a set: its prompt, and its queries without content."""
    rows = 1 << (len(CONTENT_FREE) - 1).bit_length()
    return Work(positions=shown, pairs=shown**2 / 2) + _passes(labels, shown, rows, cap + FRAME)


def reading_work(labels: Sequence[str], shown: float, rows: float, cap: int) -> Work:
    """The work of reading `rows` texts behind a prompt of `shown` tokens.

    How long private texts are must not show. Each has one of a few shapes, whose batches blank rows fill. The shapes
    are taken to be equally frequent. A cap above `MAX_QUERY_TOKENS` means that the owner declared long texts: then all
    texts are taken to have the longest shape.
    """
    if rows <= 0:
        return Work()
    lengths = [math.ceil(cap / LENGTHS) * (i + 1) + FRAME for i in range(LENGTHS)]
    if cap > MAX_QUERY_TOKENS:
        lengths = lengths[-1:]
    filled = MOST_ROWS * math.ceil(rows / len(lengths) / MOST_ROWS)
    return sum((_passes(labels, shown, filled, each) for each in lengths), Work())


def _passes(labels: Sequence[str], shown: float, rows: float, length: float) -> Work:
    """Rows of one length behind a prompt, and every label's further tokens behind them."""
    further = sum(tokens_of(label) - 1 for label in labels)
    asked = further + 1 if further else 0
    own = Work(positions=rows * length, pairs=rows * length * shown)
    return own + Work(positions=rows * further, pairs=rows * further * (shown + length), words=rows * asked)


def measuring_seconds(tested: DemoSet, rows: int, speed: ModelSpeed) -> float:
    """Seconds that it takes to read so many rows of a test file with a set, with as long a public one, and with none.

    The public one is written first, where it does not come with the set.
    """
    labels, shown = tested.labels, shown_tokens(tested.template, tested.labels, 0, 0)
    texts = [tokens_of(each.text) for each in tested.demonstrations]
    behind = shown + sum(texts) + sum(FRAME + tokens_of(each.output or each.label) for each in tested.demonstrations)
    work = Work(positions=len(texts) * 2 * FRAME, rows=sum(texts), steps=sum(texts), words=sum(texts))
    for length in (shown, behind, behind) if texts else (shown,):
        if tested.template.output is not None:
            work += answering_work(length, rows, longest_output(tested))
        else:
            work += prompt_work(labels, length, MAX_QUERY_TOKENS) + reading_work(labels, length, rows, MAX_QUERY_TOKENS)
    return work.seconds(speed)


def answering_work(shown: float, rows: int, tokens: int) -> Work:
    """The work of answering `rows` texts behind a prompt of `shown` tokens; every answer takes `tokens` steps."""
    length = MAX_QUERY_TOKENS + FRAME
    read = Work(positions=shown + rows * length, pairs=shown**2 / 2 + rows * length * shown)
    said = rows * tokens
    return read + Work(
        pairs=said * (shown + length), rows=said, steps=math.ceil(rows / MOST_ANSWERED) * tokens, words=said
    )


def embedding_seconds(texts: int, speed: ModelSpeed) -> float:
    """Seconds that it takes to embed so many texts of usual length."""
    return Work(embedded=texts * TEXT_READ).seconds(speed)
