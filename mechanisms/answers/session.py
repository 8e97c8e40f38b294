"""A session of questions: its reservation, the units that pay for an answer, and the answers.

`open_session` reserves the cost of all questions.
"""

from __future__ import annotations

import operator
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting import Claim, IndividualFilter, PrivacyLedger, Reservation, fingerprint, reserve
from mechanisms.answers.plan import AnswerPlan
from mechanisms.answers.shards import LabelRespondent, NeighbourLabels, Respondent, TextRespondent
from mechanisms.data.disclosures import SEEDED
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import Accuracy
from mechanisms.files import keyed_digest, secret_key
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.queries import Retrieval, nearest_by_shard
from mechanisms.queries.retrieval import similarities
from mechanisms.records import Dataset, Record, unit_noun
from mechanisms.rounding import rounded_up
from mechanisms.sampling import copy_numbers, seat_in_subsets


class SearchableUnits:
    """The units that can answer and their vectors, in the order of their keyed digests; private.

    A digest is of a unit's identity: the user id, or the row's content and its copy number.
    """

    def __init__(self, dataset: Dataset, plan: AnswerPlan, embedder: Embedder) -> None:
        records = [record for record in dataset.records if not plan.labels or record.label in plan.labels]
        key, units = secret_key(), dict[str, list[Record]]()
        copies = copy_numbers((record.text, record.label) for record in records)
        for record, copy in zip(records, copies, strict=True):
            by_row = ("record", record.text, record.label, str(copy))
            identity = ("user", record.unit or "") if dataset.by_user else by_row
            units.setdefault(keyed_digest(("answer", *identity), key), []).append(record)
        self.digests = tuple(sorted(units))
        self.shard = np.array([int(digest[:16], 16) % plan.spec.shards for digest in self.digests], dtype=np.int64)
        self._records = [record for digest in self.digests for record in units[digest]]
        sizes = [len(units[digest]) for digest in self.digests]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        searched = bool(self._records) and plan.spec.retrieval is not Retrieval.POISSON
        self._vectors = embedder.embed([record.text for record in self._records]) if searched else None

    def __len__(self) -> int:
        return len(self.digests)

    def similarities(self, query: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Similarities to a question's vector: of every unit (its nearest record's), and of every record."""
        if self._vectors is None:
            return np.empty(0, dtype=np.float32), np.empty(0, dtype=np.float32)
        by_record = similarities(self._vectors, query)
        return np.maximum.reduceat(by_record, self._starts[:-1]), by_record

    def first_record(self, unit: int) -> Record:
        return self._records[int(self._starts[unit])]

    def examples(self, units: Iterable[int], by_record: NDArray[np.float32]) -> list[Record]:
        """The record of each unit that is nearest to the question."""
        bounds = [(int(self._starts[unit]), int(self._starts[unit + 1])) for unit in units]
        return [self._records[first + int(by_record[first:end].argmax())] for first, end in bounds]


@dataclass(frozen=True)
class AnswersOpened:
    """An open session, with the cost of all its questions charged to the ledger. All fields but `notes` may be
    released.

    Attributes:
        answered: the number of earlier answers under this reservation.
        continued: whether this continues an earlier reservation, without a new charge.
        private: False with a test seed.
        notes: warnings for the data owner alone, one line each; they may depend on rows.
        disclosures: the reasons why noiseless values of the data set count as known, on which threshold, shards and
            other choices may depend.
    """

    name: str
    unit: str
    plan: AnswerPlan
    claim: Claim
    answered: int
    continued: bool
    private: bool
    notes: tuple[str, ...]
    disclosures: tuple[str, ...]


@dataclass(frozen=True)
class AnswerReleased:
    """The answer to one question; all fields may be released.

    Attributes:
        zero_shot: the model's answer without data; empty without a model.
        labels, votes: the public label set and the noisy histogram, in votes of shards; empty for open answers.
        keywords: the released tokens as text, in order of token id; empty for labels, or if nothing was released.
        abstained: one line with the reason why `answer` is `zero_shot`; None for an answer from the data.
        threshold: the similarity from which on units took part and paid; None for Poisson samples.
        rho, delta: the answer's cost to each unit that took part; rho is None for Poisson samples.
        queries: the number of answers that every unit can pay for; `answered` were given under this reservation.
    """

    answer: str
    zero_shot: str
    labels: tuple[str, ...]
    votes: tuple[float, ...] | None
    keywords: tuple[str, ...]
    abstained: str | None
    threshold: float | None
    rho: float | None
    delta: float
    answered: int
    queries: int

    @property
    def sure_left(self) -> int:
        """The number of further answers that every unit can pay for; public.

        With a threshold more questions are possible: units that have paid for all their answers take no further part,
        and their number is private.
        """
        return max(0, self.queries - self.answered)


def reservation_in_words(opened: AnswersOpened) -> str:
    price = f"epsilon {rounded_up(opened.claim.epsilon, 4)} at delta {opened.claim.delta:g}"
    charged = (
        f"continues the reservation of {price}: nothing new is charged to the ledger of '{opened.name}'"
        if opened.continued
        else f"reserves {price} in the ledger of '{opened.name}', once for all questions under these terms"
    )
    return f"This session {charged}. {opened.answered} of {opened.plan.spec.queries} answers given so far."


def answer_in_words(opened: AnswersOpened, released: AnswerReleased) -> str:
    unit = unit_noun(opened.unit)
    if released.threshold is None:
        left = f"{released.sure_left} of {released.queries} answers are left; then a new reservation is needed."
        return f"Every {unit} paid for this answer, drawn or not. {left}"
    paid = f"Every {unit} with a similarity of {released.threshold:g} or more paid for 1 of {released.queries} answers."
    if released.sure_left:
        return f"{paid} Every {unit} can pay for at least {released.sure_left} more."
    return f"{paid} Some {unit}s may have paid for all their answers and take no further part; their number is private."


def open_session(
    dataset: Dataset,
    plan: AnswerPlan,
    embedder: Embedder,
    model: LanguageModel | None,
    ledger: PrivacyLedger,
    randomness: Randomness | None = None,
    anew: bool = False,
) -> AnswerSession:
    """Reserve a session of questions in the ledger, or continue the reservation of this file with these terms.

    The model is None with `Retrieval.LABELS_ONLY`; `anew` charges a new reservation if the existing one is for another
    file or other terms.

    Raises:
        BudgetRefused: the data set's cap does not allow the reservation.
        ReservedOtherwise: the data set's reservation is for another file or other terms, and `anew` is not set.
        UsageError: the model or the device is too small for the questions.
    """
    if dataset.by_user != plan.by_user or (plan.labels and dataset.labels != plan.labels):
        raise UsageError("The data set and the plan must agree on the labels and on the privacy unit.")
    randomness = randomness or SecureRandomness()
    if plan.spec.retrieval is Retrieval.LABELS_ONLY:
        respondent: Respondent = NeighbourLabels(plan)
    elif model is None:
        raise UsageError("This retrieval needs a language model: give one, or choose labels-only.")
    else:
        respondent = TextRespondent(model, plan) if plan.mechanism.open_answers else LabelRespondent(model, plan)
    marked = "" if randomness.private else " with a test seed"
    wanted = Reservation(
        data=fingerprint(dataset),
        mechanism=f"answers by {plan.mechanism.name}{marked}",
        event=plan.event,
        claim=plan.claim(),
        terms=plan.terms() + marked,
        queries=plan.spec.queries,
    )
    notes = (*ledger.rows.recognise(wanted.data), *filter(None, [plan.mechanism.caution(plan.spec.shards)]))
    paid = reserve(ledger, wanted, anew)
    # Refuse before the embedding, which takes minutes for a large file. The reservation survives an interruption.
    units = SearchableUnits(dataset, plan, embedder)
    if not randomness.private:
        ledger.rows.mark(wanted.data, SEEDED)
    disclosures = ledger.rows.disclosures(wanted.data)
    if disclosures:
        notes += (
            f"Values of these rows are known without noise ({'; '.join(disclosures)}): threshold, shards and questions "
            "per row count as public only if they were chosen independently of these values.",
        )
    opened = AnswersOpened(
        name=dataset.name,
        unit=dataset.unit,
        plan=plan,
        claim=wanted.claim,
        answered=paid.answered,
        continued=paid.continued,
        private=randomness.private,
        notes=notes,
        disclosures=disclosures,
    )
    return AnswerSession(opened, units, embedder, respondent, paid, randomness)


@dataclass(frozen=True, repr=False)
class AnswerSession:
    """Answers questions under one reservation, which several sessions may share; only one thread may use a session at a
    time."""

    opened: AnswersOpened
    _units: SearchableUnits
    _embedder: Embedder
    _respondent: Respondent
    _paid: IndividualFilter
    _randomness: Randomness

    def ask(self, text: str) -> AnswerReleased:
        """Answer one public question. The charge of every unit that takes part is on disk before the shards answer.

        Raises `UsageError` for an empty question, and with Poisson samples `BudgetRefused` once all answers are given.
        """
        plan = self.opened.plan
        if not text.strip():
            raise UsageError("The question is empty: write a question.")
        sampled = plan.spec.retrieval is Retrieval.POISSON
        examples = self._sampled() if sampled else self._nearest(text)
        shards = self._respondent.answer(examples, text)
        release = plan.mechanism.release(shards.histogram, self._randomness)
        answer, abstained = shards.zero_shot, None
        keywords: tuple[str, ...] = ()
        if release.chosen is None:
            abstained = (
                "The shards' answers do not agree on enough words for a private answer: this is the model's own "
                "answer, without any data."
            )
        elif isinstance(self._respondent, TextRespondent):
            keywords, answer = self._respondent.final(release.chosen, text)
        else:
            answer = plan.labels[release.chosen[0]]
        return AnswerReleased(
            answer=answer,
            zero_shot=shards.zero_shot,
            labels=plan.labels,
            votes=None if release.scores is None else tuple(release.scores.tolist()),
            keywords=keywords,
            abstained=abstained,
            threshold=None if sampled else plan.spec.threshold,
            rho=plan.rho,
            delta=plan.mechanism.delta,
            answered=self._paid.answered,
            queries=plan.spec.queries,
        )

    def _nearest(self, text: str) -> list[list[Record]]:
        """Charge every active unit at or above the threshold, and return each shard's nearest records among these
        units."""
        units, plan = self._units, self.opened.plan
        [query] = self._embedder.embed([text])
        by_unit, by_record = units.similarities(query)
        near = np.nonzero(by_unit >= plan.spec.threshold)[0]
        payers = near[self._paid.charge(units.digests[unit] for unit in near)]
        rows = nearest_by_shard(by_unit, units.shard, payers, plan.spec.shards, plan.spec.neighbours)
        return [units.examples(row, by_record) for row in rows]

    def _sampled(self) -> list[list[Record]]:
        """Charge every unit, then draw the units that join and a shard for each."""
        plan, units = self.opened.plan, self._units
        self._paid.charge_everybody()
        sampled = self._randomness.poisson_sample(len(units), plan.rate or 0.0)
        rows = seat_in_subsets(sampled, plan.spec.shards, self._randomness).rows
        return [[units.first_record(unit) for unit in row[: plan.spec.neighbours]] for row in rows]


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def exact_match(answer: str, reference: str) -> bool:
    """Whether two texts are equal up to case, punctuation, articles and spaces (Rajpurkar et al. 2016)."""
    one, other = (
        " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()) for text in (answer, reference)
    )
    return one == other


@dataclass(frozen=True)
class AnswersScored:
    """Scores of the answers to a labelled test file.

    Attributes:
        private, zero_shot: the scores of the private answers, and of the model's answers without data (None without a
            model). Open answers are right if `exact_match` holds.
        abstained: the number of questions answered by the model alone.
    """

    private: Accuracy
    zero_shot: Accuracy | None
    abstained: int


def ask_all(session: AnswerSession, test: Sequence[Record]) -> Iterator[AnswerReleased | AnswersScored]:
    """Ask every test question, then score the answers against the rows' labels."""
    released: list[AnswerReleased] = []
    for record in test:
        released.append(session.ask(record.text))
        yield released[-1]
    alike = operator.eq if session.opened.plan.labels else exact_match

    def accuracy(answers: list[str]) -> Accuracy:
        right = sum(alike(answer, row.label) for answer, row in zip(answers, test, strict=True))
        return Accuracy(right, len(test))

    zero_shot = [answer.zero_shot for answer in released]
    yield AnswersScored(
        private=accuracy([answer.answer for answer in released]),
        zero_shot=accuracy(zero_shot) if any(zero_shot) else None,
        abstained=sum(answer.abstained is not None for answer in released),
    )
