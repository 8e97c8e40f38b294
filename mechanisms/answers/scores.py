"""Scores of an answer in text against references: ROUGE, BLEU, ANLS and exact match, each in [0, 1]."""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

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
