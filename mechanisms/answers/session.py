"""Private answers, one question at a time: who is near pays first, then the shards answer, then noise decides."""

from __future__ import annotations

import numpy as np

from mechanisms.accounting import (
    IndividualFilter,
    PrivacyLedger,
    Reservation,
    check_reservation,
    fingerprint,
    reserve,
)
from mechanisms.answers.events import AnswerReleased, AnswersOpened
from mechanisms.answers.request import AnswerRequest, SearchableUnits
from mechanisms.answers.shards import (
    LabelRespondent,
    NeighbourLabels,
    Respondent,
    ShardAnswers,
    TextRespondent,
    keyword_texts,
)
from mechanisms.data.disclosures import SEEDED
from mechanisms.errors import UsageError
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.queries import QueryRelease, Retrieval, nearest_by_shard
from mechanisms.records import Dataset, Record
from mechanisms.sampling import seat_in_subsets

NO_AGREEMENT = (
    "The shards' answers do not agree on enough words for a private answer: this is what the model says "
    "without any data."
)
_SHOWN = (
    "Something of these rows is known without noise ({reasons}): what is chosen here (threshold, shards, questions a "
    "row) counts as public only if it was not chosen in view of it."
)


def open_session(
    dataset: Dataset,
    request: AnswerRequest,
    embedder: Embedder,
    model: LanguageModel | None,
    ledger: PrivacyLedger,
    randomness: Randomness | None = None,
    anew: bool = False,
) -> AnswerSession:
    """Reserve a session of questions in the ledger, or go on with the one that this file and these terms have.

    Args:
        dataset: private.
        request: public and calibrated.
        embedder: what similarities are measured with.
        model: the language model; None with `Retrieval.LABELS_ONLY`.
        ledger: where the reservation and what each unit has paid are kept.
        randomness: the operating system's, unless this is a test.
        anew: pay for a new reservation, although the data set has one for another file or other terms.

    Raises:
        BudgetRefused: the data set's cap does not allow the reservation.
        ReservedOtherwise: the data set's reservation is for another file or other terms, and `anew` is not set.
        UsageError: the model or the device is too small for the questions.
    """
    if dataset.by_user != request.by_user or (request.labels and dataset.labels != request.labels):
        raise UsageError("The data set and the request must agree on the labels and on the privacy unit.")
    randomness = randomness or SecureRandomness()
    respondent = _respondent(model, request)
    wanted = _reservation(dataset, request, randomness)
    notes = (*ledger.rows.recognise(wanted.data), *filter(None, [request.mechanism.caution(request.shards)]))
    paid = reserve(ledger, wanted, anew)
    # Embedding a large file takes minutes: a refusal comes before it, and a reservation outlives an interruption.
    units = SearchableUnits(dataset, request, embedder)
    if not randomness.private:
        ledger.rows.mark(wanted.data, SEEDED)
    shown = ledger.rows.marks(wanted.data)
    opened = AnswersOpened(
        name=dataset.name,
        unit=dataset.unit,
        epsilon=wanted.claim.epsilon,
        delta=wanted.claim.delta,
        rho=None if request.rho is None else request.queries * request.rho,
        queries=request.queries,
        asked=paid.asked,
        continued=paid.continued,
        noise=request.mechanism.deviation,
        private=randomness.private,
        public_inputs=request.public_inputs,
        notes=(*notes, *([_SHOWN.format(reasons="; ".join(shown))] if shown else [])),
        budget=ledger.snapshot(dataset.name, dataset.unit),
        shown=shown,
    )
    return AnswerSession(opened, request, units, embedder, respondent, model, paid, randomness)


def check_terms(dataset: Dataset, request: AnswerRequest, ledger: PrivacyLedger) -> None:
    """Say early that `open_session` would ask for a new reservation.

    Raises:
        ReservedOtherwise: the data set's reservation is for another file or other terms.
    """
    check_reservation(ledger, _reservation(dataset, request, SecureRandomness()))


def _reservation(dataset: Dataset, request: AnswerRequest, randomness: Randomness) -> Reservation:
    marked = "" if randomness.private else " with a test seed"
    return Reservation(
        data=fingerprint(dataset),
        mechanism=f"answers by {request.mechanism.name}{marked}",
        event=request.event,
        claim=request.claim(),
        terms=request.terms() + marked,
        queries=request.queries,
    )


def _respondent(model: LanguageModel | None, request: AnswerRequest) -> Respondent:
    if request.retrieval is Retrieval.LABELS_ONLY:
        return NeighbourLabels(request)
    if model is None:
        raise UsageError("A language model is needed, except with labels-only.")
    return TextRespondent(model, request) if request.mechanism.open_answers else LabelRespondent(model, request)


class AnswerSession:
    """Answers questions inside one reservation; for one thread at a time, though several sessions may share it.

    Attributes:
        opened: what was reserved.
    """

    def __init__(
        self,
        opened: AnswersOpened,
        request: AnswerRequest,
        units: SearchableUnits,
        embedder: Embedder,
        respondent: Respondent,
        model: LanguageModel | None,
        paid: IndividualFilter,
        randomness: Randomness,
    ) -> None:
        self.opened = opened
        self._request, self._units, self._embedder = request, units, embedder
        self._respondent, self._model = respondent, model
        self._paid, self._randomness = paid, randomness

    def ask(self, text: str, threshold: float | None = None) -> AnswerReleased:
        """Answer one question. Every unit that takes part has paid, on disk, before the shards are asked.

        Args:
            text: the question, public.
            threshold: similarity from which on units take part; the request's, unless given.

        Raises:
            UsageError: the question is empty, or the threshold is no cosine similarity.
            BudgetRefused: Poisson samples: all answers have been given.
        """
        threshold = self._request.threshold if threshold is None else threshold
        if not text.strip():
            raise UsageError("The question is empty: write one.")
        if not -1 <= threshold <= 1:
            raise UsageError("The threshold is a cosine similarity: choose one between -1 and 1.")
        sampled = self._request.retrieval is Retrieval.POISSON
        examples = self._sampled() if sampled else self._nearest(text, threshold)
        shards = self._respondent.answer(examples, text)
        release = self._request.mechanism.release(shards.histogram, self._randomness)
        return self._released(text, threshold, shards, release)

    def _nearest(self, text: str, threshold: float) -> list[list[Record]]:
        """Charge every active unit at or above the threshold, then let each shard take its nearest among them."""
        units, request = self._units, self._request
        [query] = self._embedder.embed([text])
        similarities = units.similarities(query)
        near = np.nonzero(similarities.by_unit >= threshold)[0]
        payers = near[self._paid.charge(units.digests[unit] for unit in near)]
        rows = nearest_by_shard(similarities.by_unit, units.shard, payers, request.shards, request.neighbours)
        return [units.examples(row, similarities) for row in rows]

    def _sampled(self) -> list[list[Record]]:
        """Charge everybody, then draw who joins, and which shard each joins."""
        request, units = self._request, self._units
        self._paid.charge_everybody()
        sampled = self._randomness.poisson_sample(len(units), request.rate or 0.0)
        rows = seat_in_subsets(sampled, request.shards, self._randomness).rows
        return [[units.first_record(unit) for unit in row[: request.neighbours]] for row in rows]

    def _released(self, text: str, threshold: float, shards: ShardAnswers, release: QueryRelease) -> AnswerReleased:
        request = self._request
        answer, abstained = shards.zero_shot, None
        keywords: tuple[str, ...] = ()
        if release.chosen is None:
            abstained = NO_AGREEMENT
        elif isinstance(self._respondent, TextRespondent) and self._model is not None:
            keywords = keyword_texts(self._model, release.chosen)
            answer = self._respondent.final(keywords, text)
        else:
            answer = request.labels[release.chosen[0]]
        return AnswerReleased(
            query=text,
            answer=answer,
            zero_shot=shards.zero_shot,
            labels=request.labels,
            votes=None if release.scores is None else tuple(release.scores.tolist()),
            keywords=keywords,
            abstained=abstained,
            threshold=None if request.retrieval is Retrieval.POISSON else threshold,
            rho=request.rho,
            delta=request.mechanism.delta,
            asked=self._paid.asked,
            queries=request.queries,
        )
