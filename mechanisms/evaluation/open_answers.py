"""Scores of answers in text, and the evaluation of demonstrations with outputs."""

from __future__ import annotations

import functools
import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from mechanisms.errors import UsageError
from mechanisms.evaluation.completions import answering
from mechanisms.evaluation.evaluate import Accuracy, Progress
from mechanisms.evaluation.reader import MAX_QUERY_TOKENS, Arm
from mechanisms.inference import LanguageModel
from mechanisms.records import PromptTemplate, Record

# Scores of an open answer against references: ROUGE, BLEU, ANLS and exact match, each in [0, 1].

_ANLS_FLOOR = 0.5
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True)
class AnswerScores:
    """Scores of an answer, or their means over questions; with several references the best one counts.

    Attributes:
        rouge_1, rouge_2, rouge_l: F1 over words, word pairs and the longest common subsequence of stems (Lin 2004).
            Words are made of a-z and 0-9.
        bleu: sentence BLEU without regard to case (Papineni et al. 2002; smoothing of Post 2018).
        anls: 1 minus the normalised edit distance, 0 if that is below one half (Biten et al. 2019).
        exact_match: whether the texts are equal but for case, punctuation, articles and spaces (Rajpurkar et al. 2016).
    """

    rouge_1: float
    rouge_2: float
    rouge_l: float
    bleu: float
    anls: float
    exact_match: float


@functools.cache
def _scorers() -> tuple[Any, Any]:
    """The scorers of ROUGE and BLEU. Their libraries take a second to import, for which no start of the app waits."""
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics.bleu import BLEU

    # Short answers have no 4-grams, so that only the n-gram orders in an answer count.
    return RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True), BLEU(effective_order=True, lowercase=True)


def score_answer(answer: str, references: Sequence[str]) -> AnswerScores:
    """Compare an answer with at least one reference."""
    scorer, bleu = _scorers()
    rouge = scorer.score_multi(references, answer)
    return AnswerScores(
        rouge_1=rouge["rouge1"].fmeasure,
        rouge_2=rouge["rouge2"].fmeasure,
        rouge_l=rouge["rougeL"].fmeasure,
        bleu=bleu.sentence_score(answer, references).score / 100,
        anls=max(_anls(answer, reference) for reference in references),
        exact_match=float(any(exact_match(answer, reference) for reference in references)),
    )


def exact_match(answer: str, reference: str) -> bool:
    """Whether two texts are equal but for case, punctuation, articles and spaces (Rajpurkar et al. 2016)."""
    return _bare(answer) == _bare(reference)


def token_f1(answer: str, reference: str) -> float:
    """F1 over the words of two texts without case, punctuation and articles (Rajpurkar et al. 2016).

    A text without words has F1 1 with another one without words, and 0 with any other.
    """
    said, wanted = Counter(_bare(answer).split()), Counter(_bare(reference).split())
    if not said or not wanted:
        return float(said == wanted)
    return 2 * (said & wanted).total() / (said.total() + wanted.total())


def mean_scores(scores: Sequence[AnswerScores]) -> AnswerScores:
    """The mean of each score over a non-empty sequence."""
    return AnswerScores(*np.mean([astuple(each) for each in scores], axis=0).tolist())


def _anls(answer: str, reference: str) -> float:
    plain = [" ".join(text.lower().split()) for text in (answer, reference)]
    similarity = Levenshtein.normalized_similarity(*plain)
    return similarity if similarity > _ANLS_FLOOR else 0.0


def _bare(text: str) -> str:
    """SQuAD's normal form."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


# Evaluation of demonstrations with outputs: exact matches and shared words.

_TOLD = 16
"""Rows between two reports of progress."""


@dataclass(frozen=True)
class OpenScorecard:
    """Results of one arm.

    Attributes:
        exact: answers that equal the row's output but for case, punctuation, articles and spaces.
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
