"""A private accuracy of any set of demonstrations, as a run of its own in the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting import (
    BudgetSnapshot,
    Claim,
    Fingerprint,
    PrivacyLedger,
    PrivacyTarget,
    claim,
    fingerprint,
)
from mechanisms.errors import UsageError
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Floats, Randomness, SecureRandomness
from mechanisms.privacy_events import Composed, PrivacyEvent
from mechanisms.records import Dataset
from mechanisms.studio.data.after_counts import without_counts
from mechanisms.studio.data.charging import charged
from mechanisms.studio.data.units import Unit, units_of
from mechanisms.studio.evaluation.prototypes import nearest_prototype, one_record_each
from mechanisms.studio.recipes.any_set import AnySet
from mechanisms.studio.recipes.events import CandidateSet
from mechanisms.studio.recipes.reading import Reader, of_units, right
from mechanisms.studio.recipes.recipe import Division, Kind, Recipe, Stage
from mechanisms.studio.recipes.roles import divide
from mechanisms.studio.recipes.untouched import earlier_runs
from mechanisms.studio.synthesis.findings import DEMONSTRATIONS, PROTOTYPES, PUBLIC_ONLY, ZERO_SHOT, Score
from mechanisms.studio.synthesis.public_demonstrations import written_publicly
from mechanisms.studio.synthesis.synthesize import TEST_SEED
from mechanisms.tallies import Prototypes, Weighing
from mechanisms.tallies import Score as ScoreTally

_SCORE = Stage.SCORE.value
_ALL_BUT_ONE = 1e-9

_Compared = tuple[CandidateSet, Mapping[str, float] | None]
Arm = tuple[CandidateSet, Floats]
"""A set, and what is added to each label's log-probability under it."""


@dataclass(frozen=True)
class ScoreRequest:
    """Public configuration of a score.

    Attributes:
        target: what the scorers pay; its delta is the whole run's.
        by_user: the unit is all records of one user.
        share: w, the part of the units that scores: those at the end of the roles' range, as in a recipe.
        max_record_tokens: public cap on the tokens of a private text that the model reads.
        max_unit_records: R, public cap on a user's records that are taken.
        prototypes_epsilon: what the other units pay for class means of embeddings; None leaves them out.
    """

    target: PrivacyTarget
    by_user: bool = False
    share: float = 0.1
    max_record_tokens: int = 64
    max_unit_records: int = 3
    prototypes_epsilon: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UsageError("The share of the units that score must lie in (0, 1].")
        for name, most in (("max_record_tokens", 1024), ("max_unit_records", 64)):
            if not 1 <= getattr(self, name) <= most:
                raise UsageError(f"{name.replace('_', ' ')} must lie between 1 and {most}.")
        if self.prototypes_epsilon is not None and self.share > 1 - _ALL_BUT_ONE:
            raise UsageError("Prototypes are made of the units that do not score: choose a share below 1.")

    def tally(self, weighing: Weighing) -> ScoreTally:
        """What the scorers are asked for."""
        return ScoreTally(self.target.epsilon, self.by_user, weighing is Weighing.LABELS)

    def prototypes(self, labels: int) -> Prototypes | None:
        """What the others are asked for, calibrated."""
        if self.prototypes_epsilon is None:
            return None
        target = PrivacyTarget(self.prototypes_epsilon, self.target.delta)
        return Prototypes.costing(target, self.by_user, labels)


@dataclass(frozen=True)
class ScoreFound:
    """A released score.

    Attributes:
        score: the accuracies.
        claim, event: what the run cost, at most, and its privacy event.
        before: what the data set had spent.
        reason: why it is not private: an observer could predict the noise, or the set itself is not; None where it is.
    """

    score: Score
    claim: Claim
    event: Composed
    before: BudgetSnapshot
    reason: str | None


def score_set(
    dataset: Dataset,
    scored: AnySet,
    request: ScoreRequest,
    model: LanguageModel,
    ledger: PrivacyLedger,
    embedder: Embedder | None = None,
    randomness: Randomness | None = None,
) -> ScoreFound:
    """Score a set beside zero-shot and public-only, on private rows that are charged before any of them is read.

    Args:
        dataset: private.
        scored: public.
        request: public.
        model: the language model.
        ledger: where the run is reserved and charged.
        embedder: for prototypes.
        randomness: the operating system's, unless this is a test.

    Raises:
        BudgetRefused: the data set's cap does not allow it.
        UsageError: the model is too small for the prompts, or the set does not fit the data set.
    """
    if dataset.labels != scored.labels or dataset.by_user != request.by_user:
        raise UsageError("The data set must agree with the set on the labels, and with the request on the unit.")
    if request.prototypes_epsilon is not None and embedder is None:
        raise UsageError("Prototypes need an embedding model.")
    randomness = randomness or SecureRandomness()
    scored = scored.as_read_by(model)
    reader = Reader(model, scored.labels, request.max_record_tokens)
    arms = _arms(scored, model, reader)  # public, and the likeliest to fail: before anybody has paid
    prototypes = request.prototypes(len(scored.labels))
    tally = request.tally(scored.weighing)
    event = _event(tally, prototypes)
    claimed = claim(event, request.target.delta)
    untouched = request.share <= scored.spare + _ALL_BUT_ONE and _only(scored, fingerprint(dataset), ledger)
    with charged(dataset, _SCORE, event, claimed, ledger, randomness) as before:
        right, names, units = _asked(dataset, request, reader, arms, prototypes, embedder, randomness)
        counted = tally.cells(right) * scored.row_weights(reader.truth(units))[:, None]
        cells = tally.release(of_units(counted, units), randomness)
    score = Score.of_table(tally, cells, names, not scored.demonstrations, untouched, scored.weighing)
    return ScoreFound(score, claimed, event, before, _reason(scored, randomness))


def _asked(
    dataset: Dataset,
    request: ScoreRequest,
    reader: Reader,
    arms: Mapping[str, Arm],
    prototypes: Prototypes | None,
    embedder: Embedder | None,
    randomness: Randomness,
) -> tuple[NDArray[np.bool_], list[str], Sequence[Unit]]:
    """Whether each scorer's record is right under each arm, the names of the arms, and the scorers; private.

    What the prototypes ask of the others has been charged.
    """
    scorers, others = _parts(dataset, request.share)
    units, names = units_of(scorers, request.max_unit_records), list(arms)
    columns = [_right(reader, arm, units) for arm in arms.values()]
    if prototypes is not None and embedder is not None:
        means = _means(others, prototypes, embedder, randomness)
        texts = [record.text for unit in units for record in unit]
        columns.append(nearest_prototype(texts, means, embedder) == reader.truth(units))
        names.append(PROTOTYPES)
    return np.stack(columns, axis=1), names, units


def _arms(scored: AnySet, model: LanguageModel, reader: Reader) -> dict[str, Arm]:
    """What is compared; a set without demonstrations is zero-shot itself."""
    own = scored.template
    wanted: list[_Compared] = [
        (CandidateSet(ZERO_SHOT, (), own), scored.zero_shot if scored.demonstrations else scored.prior)
    ]
    if scored.demonstrations:
        wanted += [
            _public_only(scored, model),
            (CandidateSet(DEMONSTRATIONS, scored.demonstrations, own), scored.prior),
        ]
    arms: dict[str, Arm] = {}
    for candidate, prior in wanted:
        contextual = reader.under(candidate).contextual  # opens the prompt: one that is too long is refused here
        arms[candidate.name] = (
            candidate,
            contextual if prior is None else np.array([prior[each] for each in scored.labels]),
        )
    return arms


def _public_only(scored: AnySet, model: LanguageModel) -> _Compared:
    """The public-only set that stood in the choice, read like the chosen one; else one that is written now."""
    if public := scored.public_only:
        return CandidateSet(PUBLIC_ONLY, public.demonstrations, public.template), public.prior
    written = written_publicly(
        scored.demonstrations, scored.labels, scored.template, model, scored.tokens, scored.min_tokens, scored.tries
    )
    return CandidateSet(PUBLIC_ONLY, written, scored.template), None


def _event(tally: ScoreTally, prototypes: Prototypes | None) -> Composed:
    """Scorers and the others are disjoint: each list is paid by its own units, and the larger one counts."""
    lists: list[tuple[str, tuple[PrivacyEvent, ...]]] = [(_SCORE, (tally.event,))]
    if prototypes is not None:
        lists.append((PROTOTYPES, (prototypes.event,)))
    return Composed("role", tuple(lists))


def _reason(scored: AnySet, randomness: Randomness) -> str | None:
    return scored.reason if randomness.private else TEST_SEED


def _only(scored: AnySet, data: Fingerprint, ledger: PrivacyLedger) -> bool:
    """Whether no run that the ledger knows can have read the scorers' rows but to count them.

    That is so where there was one run, by roles, which did not score, and it did what the set says that made it. Of
    another one nobody knows which rows it left out.
    """
    made = scored.event
    if made is None or made.per != "role" or _SCORE in dict(made) or ledger.rows.marks(data):
        return False
    uncounted = without_counts(made)  # the ledger knows the measurement of sizes as a run of its own
    return [run["event"] for run in earlier_runs(data, ledger)] in ([made.to_json()], [uncounted.to_json()])


def _parts(dataset: Dataset, share: float) -> tuple[Dataset, Dataset]:
    """The units that score, and those that do not."""
    if share > 1 - _ALL_BUT_ONE:
        return dataset, dataset  # nobody is asked to do both: see `ScoreRequest`
    parts = divide(dataset, Recipe(Kind.VOTE, Division.ROLES, {Stage.VOTE: 1 - share, Stage.SCORE: share}))
    return parts[Stage.SCORE], parts[Stage.VOTE]


def _right(reader: Reader, arm: Arm, units: Sequence[Unit]) -> NDArray[np.bool_]:
    candidate, offset = arm
    texts = [record.text for unit in units for record in unit]
    return right(reader.under(candidate).log_probabilities(texts), offset, reader.truth(units))


def _means(others: Dataset, prototypes: Prototypes, embedder: Embedder, randomness: Randomness) -> Floats:
    """A direction for each label; each unit gives one record, with whatever label that has."""
    texts, places = one_record_each(others)
    return prototypes.release(Prototypes.contributions(places, embedder.embed(texts).astype(np.float64)), randomness)
