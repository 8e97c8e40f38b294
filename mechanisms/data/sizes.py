"""Facts of a data set before a run: marks of disclosed values, units, and label sizes measured with noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.accounting import (
    BudgetSnapshot,
    Claim,
    Fingerprint,
    PrivacyLedger,
    claim,
    fingerprint,
    rows_among,
)
from mechanisms.errors import StudioError, UsageError
from mechanisms.files import keyed_digest, secret_key
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.privacy_events import Approximate, Composed, Pure
from mechanisms.records import Dataset, Record

# Reasons why noiseless values of a data set count as known; the ledger stores them and certificates list them.

CLEAN_VALUES = "clean values were on a screen"
NO_NOISE = "a run without noise"
SEEDED = "a run with a test seed, whose noise an observer can predict"
SCORED = "accuracy without noise on rows of it"
COMPARED = "rows of it beside its demonstrations"
UNKNOWN = "not known: the ledger could not be read when the run had ended"
"""Replaces marks that cannot be read; there may be several."""
WHETHER_SHOWN = "whether clean values of its rows were shown before"
"""The mark depends on the rows, so a certificate lists it among its public inputs."""
WHETHER_MET = "whether its rows took part in runs before"
"""The same for a score's mark."""
WHETHER_VERBATIM = "whether a text of the set stands in its rows word for word"
"""The same for a set that this installation did not sign."""
LABEL_WEIGHTS = "label sizes stated with the set, which weigh the labels"


def owners_of(test: Fingerprint, ledger: PrivacyLedger) -> list[str]:
    """The names of the private data sets that share rows with a test file; private.

    An accuracy has no noise, so one row changes it. If a row belongs to a private data set, the figures are for the
    curator only, and no document with them may be marked private.
    """
    return ledger.rows.names_that_share(test.rows)


def shared_rows(test: Dataset, ledger: PrivacyLedger, own: Fingerprint | None = None) -> list[bool]:
    """For each row of a test file, whether a private data set contains it, too; private."""
    rows = fingerprint(test).rows
    known = ledger.rows.shared(rows)
    if own is not None:
        known = np.union1d(known, np.intersect1d(rows, own.rows))
    return rows_among(test, known)


def without_rows(test: Dataset, left_out: Sequence[bool]) -> Dataset:
    kept = [i for i, out in enumerate(left_out) if not out]
    witnesses = tuple(column[kept] for column in test.witnesses)
    return replace(test, records=[test.records[i] for i in kept], witnesses=witnesses)


def disclosures_at_the_end(data: Fingerprint, ledger: PrivacyLedger) -> tuple[str, ...]:
    """A data set's marks after a run; `UNKNOWN` instead of an error if the ledger cannot be read, so that the paid set
    is not lost."""
    try:
        return ledger.rows.disclosures(data)
    except StudioError:
        return (UNKNOWN,)


def mark_scored(test: Fingerprint, ledger: PrivacyLedger) -> None:
    """Mark rows before their figures are shown; has no effect for public rows."""
    ledger.rows.mark_rows(test.rows, SCORED)


# Units for tallies, with at most R records each, chosen independently of the order in the file.

Unit = tuple[Record, ...]


def units_of(dataset: Dataset, max_records: int) -> Sequence[Unit]:
    """The units of a data set; private. The R records of a user are chosen by keyed digests of the user's own rows
    alone."""
    if not dataset.by_user:
        return dataset.members
    key = secret_key()

    def place(record: Record) -> str:  # equal digests belong to equal records, whose order does not matter
        return keyed_digest(("tally", record.text, record.label), key)

    return [
        unit if len(unit) <= max_records else tuple(sorted(unit, key=place)[:max_records]) for unit in dataset.members
    ]


# A run of a single release: charged in full before the first row is read.


@contextmanager
def charged(
    dataset: Dataset, what: str, event: Composed, claimed: Claim, ledger: PrivacyLedger, randomness: Randomness
) -> Iterator[BudgetSnapshot]:
    """Reserve and charge a run, then let the body read rows; the charge stays even if the body fails.

    Yields the data set's spending before the run. Predictable `randomness` marks the data set.

    Raises:
        BudgetRefused: the data set's cap does not allow it.
    """
    data = fingerprint(dataset)
    run = ledger.begin(data, f"{what}{'' if randomness.private else ' with a test seed'}", event, claimed)
    try:
        if not randomness.private:
            ledger.rows.mark(data, SEEDED)
        for name, events in event:
            run.charge(name, events)
        yield run.before
    finally:
        run.finish()


# Label sizes measured with noise, for a share of epsilon, if the curator does not declare them public.

FAILURE_SHARE = 1e-3
"""The part of delta for a measured size below the true one."""
SMALLEST_EPSILON = 1e-3
"""The least epsilon for a count."""


@dataclass(frozen=True)
class MeasuredSizes:
    """A released upper bound on the units of each label; with probability at most `failure` any of them is too small.

    They are valid only for the data set with the keyed digest `content`.
    """

    sizes: dict[str, int]
    epsilon: float
    failure: float
    content: str


def check_epsilon(epsilon: float) -> None:
    if not (math.isfinite(epsilon) and epsilon >= SMALLEST_EPSILON):
        raise UsageError(f"The epsilon for counting must be a number of at least {SMALLEST_EPSILON:g}.")


def measure_sizes(
    dataset: Dataset, epsilon: float, delta: float, ledger: PrivacyLedger, randomness: Randomness | None = None
) -> MeasuredSizes:
    """Count the units of each label with discrete Laplace noise, as a run of its own in the ledger.

    The counts' L1 sensitivity is 1 for records, which have one label, and the number of labels for users, who may have
    every label. Each count gets a margin of `scale * ln(labels / failure)`, so any bound fails with probability at most
    `failure`, a part of the run's `delta`.

    Raises:
        UsageError: epsilon is too small for any useful count, or not a number.
        BudgetRefused: the data set's cap does not allow it.
    """
    check_epsilon(epsilon)
    randomness = randomness or SecureRandomness()
    labels = dataset.labels
    failure = FAILURE_SHARE * delta
    scale = (len(labels) if dataset.by_user else 1) / epsilon
    margin = math.ceil(scale * math.log(len(labels) / failure))
    # Later runs depend on the sizes: the failure probability is charged here, and again by each such run.
    cost = (Pure(epsilon), Approximate(failure))
    lists = (("all", cost),) if dataset.by_user else tuple((label, cost) for label in labels)
    event = Composed("dataset" if dataset.by_user else "label", lists)
    claimed = Claim(epsilon, failure, "closed form", epsilon, "closed form")
    with charged(dataset, "label counts", event, claimed, ledger, randomness):
        counted = dataset.counted_sizes()
        noisy = randomness.laplace(np.array([counted[label] for label in labels], dtype=np.int64), scale)
    sizes = {label: max(1, int(count) + margin) for label, count in zip(labels, noisy, strict=True)}
    return MeasuredSizes(sizes, epsilon, failure, fingerprint(dataset).content)


# The cost of a run planned on measured sizes: the measurement is the first event of every list. The run is chosen in
# view of the sizes, so their epsilon is added to its own (basic composition).


def left_after_counts(epsilon: float, measured: MeasuredSizes | None) -> float:
    """A run's epsilon minus the measurement's, if there was one; a `UsageError` if nothing is left."""
    if measured is None:
        return epsilon
    if measured.epsilon >= epsilon:
        raise UsageError("Counting has used up epsilon: choose a smaller --count-epsilon or a larger --epsilon.")
    return epsilon - measured.epsilon


def with_counts(event: Composed, measured: MeasuredSizes | None) -> Composed:
    """A run's event as in its certificate: with the measurement of sizes first, if there was one."""
    if measured is None:
        return event
    counting = Pure(measured.epsilon)
    return Composed(event.per, tuple((name, (counting, *events)) for name, events in event))


def without_counts(certified: Composed) -> Composed:
    """The inverse of `with_counts`, for an event with a measurement."""
    return Composed(certified.per, tuple((name, events[1:]) for name, events in certified))


def claim_with_counts(certified: Composed, delta: float, measured: MeasuredSizes | None) -> Claim:
    """The claim for a run's certified event, including the measurement of sizes."""
    if measured is None:
        return claim(certified, delta)
    released = claim(without_counts(certified), delta)
    return replace(released, epsilon=released.epsilon + measured.epsilon, check=released.check + measured.epsilon)
