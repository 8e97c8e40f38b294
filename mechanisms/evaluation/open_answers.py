"""How well demonstrations make a model answer with text: the exact string, and the words that it shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mechanisms.errors import UsageError
from mechanisms.evaluation.classify import MAX_QUERY_TOKENS
from mechanisms.evaluation.evaluate import Accuracy, Progress
from mechanisms.evaluation.metrics import exact_match, token_f1
from mechanisms.evaluation.reader import Arm
from mechanisms.evaluation.responder import answering
from mechanisms.inference import LanguageModel
from mechanisms.records import PromptTemplate, Record

_TOLD = 16
"""Rows after which it is told how many are done."""


@dataclass(frozen=True)
class OpenScorecard:
    """How one set of demonstrations does.

    Attributes:
        exact: answers that are the row's output, but for case, punctuation, articles and spaces.
        f1: the mean of `token_f1`.
    """

    name: str
    exact: Accuracy
    f1: Accuracy


def evaluate_open(
    model: LanguageModel,
    template: PromptTemplate,
    arms: Sequence[Arm],
    test: Sequence[Record],
    max_tokens: int,
    max_query_tokens: int = MAX_QUERY_TOKENS,
) -> Iterator[Progress | OpenScorecard]:
    """Answer the test rows with each set of demonstrations in turn, in at most `max_tokens` tokens.

    Raises:
        UsageError: there are no rows, or one has no output.
    """
    wanted = [record.output for record in test if record.output is not None]
    if not wanted or len(wanted) < len(test):
        raise UsageError("Every test row needs an output to compare with, and there must be at least one.")
    texts, done = [record.text for record in test], 0
    for arm in arms:
        answers: list[str] = []
        for answer in answering(model, template, arm.demonstrations, max_tokens, max_query_tokens).answers(texts):
            answers.append(answer)
            done += 1
            if done % _TOLD == 0:
                yield Progress(done, len(arms) * len(texts))
        pairs = list(zip(answers, wanted, strict=True))
        exact, shared = sum(exact_match(*pair) for pair in pairs), sum(token_f1(*pair) for pair in pairs)
        yield OpenScorecard(arm.name, Accuracy(exact, len(pairs)), Accuracy(shared, len(pairs)))
