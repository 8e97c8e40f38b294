"""A session of questions over a test file: what the private answers are worth, beside the model's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mechanisms.answers.events import AnswerReleased
from mechanisms.answers.session import AnswerSession
from mechanisms.evaluation.evaluate import Accuracy
from mechanisms.evaluation.metrics import AnswerScores, mean_scores, score_answer
from mechanisms.records import Record


@dataclass(frozen=True)
class ArmScores:
    """How one kind of answers did.

    Attributes:
        accuracy: right labels; for open answers exact matches.
        texts: means of the scores of open answers; None for labels.
    """

    accuracy: Accuracy
    texts: AnswerScores | None


@dataclass(frozen=True)
class AnswersScored:
    """How the answers to a labelled test file did.

    Attributes:
        private, zero_shot: the answers, and what the model says without any data; None where no model was asked.
        abstained: questions whose answer is the model's own.
    """

    private: ArmScores
    zero_shot: ArmScores | None
    abstained: int


def ask_all(session: AnswerSession, test: Sequence[Record]) -> Iterator[AnswerReleased | AnswersScored]:
    """Ask every test question, then score the answers against the rows' labels."""
    released: list[AnswerReleased] = []
    for record in test:
        released.append(session.ask(record.text))
        yield released[-1]
    truths = [record.label for record in test]
    open_answers = not released[0].labels
    zero_shot = [answer.zero_shot for answer in released]
    yield AnswersScored(
        private=_scores([answer.answer for answer in released], truths, open_answers),
        zero_shot=_scores(zero_shot, truths, open_answers) if open_answers or any(zero_shot) else None,
        abstained=sum(answer.abstained is not None for answer in released),
    )


def _scores(answers: Sequence[str], truths: Sequence[str], open_answers: bool) -> ArmScores:
    if not open_answers:
        right = sum(answer == truth for answer, truth in zip(answers, truths, strict=True))
        return ArmScores(Accuracy(right, len(truths)), None)
    scores = [score_answer(answer, [truth]) for answer, truth in zip(answers, truths, strict=True)]
    return ArmScores(Accuracy(sum(each.exact_match == 1 for each in scores), len(truths)), mean_scores(scores))
