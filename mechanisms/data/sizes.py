"""What is public of a data set before a run: disclosed values, units, sizes that are counted, declared or measured."""

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
    share_any,
)
from mechanisms.errors import StudioError, UsageError
from mechanisms.files import keyed_digest, secret_key
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.privacy_events import Approximate, Composed, Pure
from mechanisms.records import Dataset, Record

# Why clean values of a data set count as known: what the ledger remembers, and later certificates say.

CLEAN_VALUES = "clean values were on a screen"
NO_NOISE = "a run without noise"
SEEDED = "a run with a test seed, whose noise an observer can predict"
SCORED = "accuracy without noise on rows of it"
ATTACKED = "figures of attacks on rows of it, which have no noise"

UNKNOWN = "not known: the ledger could not be read when the run had ended"
"""Says less than there may be to say, never more."""

WHETHER_SHOWN = "whether clean values of its rows were shown before"
"""The mark follows from the rows themselves, so that a certificate has to name it among its public inputs."""
WHETHER_MET = "whether its rows took part in runs before"
"""The same of what a score says of its rows."""


def owners_of(test: Fingerprint, ledger: PrivacyLedger, own: Fingerprint | None = None) -> list[str]:
    """Names of the private data sets that share rows with a test file; private.

    An accuracy has no noise: one row more or less changes it. On rows that take part in no private data set that is no
    matter; where one of them does, the figures are the curator's alone, and may stand in no document that says private.

    Args:
        test: the whole file, whichever of its rows are scored.
        ledger: what the rows are compared with.
        own: a data set that is at hand, known to the ledger or not.
    """
    names = ledger.rows.names_that_share(test.rows)
    if own is not None and share_any(test.rows, own.rows):
        names = list(dict.fromkeys([*names, own.name]))
    return names


def shared_rows(test: Dataset, ledger: PrivacyLedger, own: Fingerprint | None = None) -> list[bool]:
    """Of each row of a test file whether private data sets have it as well; private. See `owners_of`."""
    rows = fingerprint(test).rows
    known = ledger.rows.shared(rows)
    if own is not None:
        known = np.union1d(known, np.intersect1d(rows, own.rows))
    return rows_among(test, known)


def without_rows(test: Dataset, left_out: Sequence[bool]) -> Dataset:
    """The file without some of its rows, as if it had never had them."""
    kept = [i for i, out in enumerate(left_out) if not out]
    witnesses = tuple(column[kept] for column in test.witnesses)
    return replace(test, records=[test.records[i] for i in kept], witnesses=witnesses)


def disclosures_at_the_end(data: Fingerprint, ledger: PrivacyLedger) -> tuple[str, ...]:
    """A data set's marks when a run has ended, whose set is paid for and must not be lost with the ledger."""
    try:
        return ledger.rows.disclosures(data)
    except StudioError:
        return (UNKNOWN,)


def mark_scored(test: Fingerprint, ledger: PrivacyLedger) -> None:
    """Remember, before they are shown, that there are figures of these rows: of public rows this never matters."""
    ledger.rows.mark_rows(test.rows, SCORED)


def mark_attacked(private: Fingerprint, ledger: PrivacyLedger, held_out: Fingerprint | None = None) -> None:
    """Remember, before they are shown, that there are figures of attacks on these rows.

    Args:
        private: the data set behind what is attacked.
        held_out: rows that it is compared with, which other data sets may share.
    """
    ledger.rows.mark(private, ATTACKED)
    if held_out is not None:
        ledger.rows.mark_rows(held_out.rows, ATTACKED)


# Units as tallies see them: each as at most R of its records, whatever its position in the file.

Unit = tuple[Record, ...]


def units_of(dataset: Dataset, max_records: int) -> Sequence[Unit]:
    """The units of a data set; private.

    Args:
        dataset: what a stage may read.
        max_records: R. Which records of a user are taken follows from their keyed digests, so from the user alone.
    """
    if not dataset.by_user:
        return dataset.members
    key = secret_key()
    return [_taken(unit, max_records, key) for unit in dataset.members]


def _taken(unit: Unit, most: int, key: bytes) -> Unit:
    if len(unit) <= most:
        return unit
    # Equal records say the same, so that which of them comes first does not matter.
    ordered = sorted(unit, key=lambda record: keyed_digest(("tally", record.text, record.label), key))
    return tuple(ordered[:most])


# A run that is one release: charged whole before the first row is read.


@contextmanager
def charged(
    dataset: Dataset, what: str, event: Composed, claimed: Claim, ledger: PrivacyLedger, randomness: Randomness
) -> Iterator[BudgetSnapshot]:
    """Reserve and charge a run, then let the body read rows; what was charged stays, however the body ends.

    Args:
        dataset: private.
        what: the run's name in the ledger.
        event, claimed: what it costs.
        randomness: where its noise comes from. One that an observer could predict marks the data set.

    Yields:
        What the data set had spent before.

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


# Label sizes measured with noise, for a share of epsilon, where the curator does not declare them public.

FAILURE_SHARE = 1e-3
"""The part of delta that pays for a measured size that is below the true one."""
SMALLEST_EPSILON = 1e-3
"""With less, nothing can be counted."""


@dataclass(frozen=True)
class MeasuredSizes:
    """A released measurement.

    Attributes:
        sizes: for each label an upper bound of its units, which fails with probability at most `failure` in all.
        epsilon: what the measurement cost.
        content: keyed digest of the data set that was measured: no other may be run on these sizes.
    """

    sizes: dict[str, int]
    epsilon: float
    failure: float
    content: str

    @property
    def cost(self) -> dict[str, float]:
        """What a certificate says of the measurement, beside the sizes."""
        return {"epsilon": self.epsilon, "failure": self.failure}


def check_epsilon(epsilon: float) -> None:
    """Refuse what `measure_sizes` cannot count with.

    Raises:
        UsageError: epsilon is too small, or no number.
    """
    if not (math.isfinite(epsilon) and epsilon >= SMALLEST_EPSILON):
        raise UsageError(f"The epsilon for counting must be a number of at least {SMALLEST_EPSILON:g}.")


def measure_sizes(
    dataset: Dataset, epsilon: float, delta: float, ledger: PrivacyLedger, randomness: Randomness | None = None
) -> MeasuredSizes:
    """Count the units of each label with discrete Laplace noise, as a run of its own in the ledger.

    A record has one label, so the counts have L1 sensitivity 1; a user may have them all, which makes it the number of
    labels. A margin of `scale * ln(labels / failure)` is added, so that the bound fails with probability `failure`.

    Args:
        dataset: private.
        epsilon: the measurement's share.
        delta: the run's delta, a part of which is the failure probability.

    Raises:
        UsageError: epsilon is too small to count anything with.
        BudgetRefused: the data set's cap does not allow it.
    """
    check_epsilon(epsilon)
    randomness = randomness or SecureRandomness()
    labels = dataset.labels
    failure = FAILURE_SHARE * delta
    scale = (len(labels) if dataset.by_user else 1) / epsilon
    margin = math.ceil(scale * math.log(len(labels) / failure))
    # Whoever sees the sizes chooses the runs on them: the failure is charged here, and once more by each such run.
    cost = (Pure(epsilon), Approximate(failure))
    lists = (("all", cost),) if dataset.by_user else tuple((label, cost) for label in labels)
    event = Composed("dataset" if dataset.by_user else "label", lists)
    claimed = Claim(epsilon, failure, "closed form", epsilon, "closed form")
    with charged(dataset, "label counts", event, claimed, ledger, randomness):
        counted = dataset.counted_sizes()
        noisy = randomness.laplace(np.array([counted[label] for label in labels], dtype=np.int64), scale)
    sizes = {label: max(1, int(count) + margin) for label, count in zip(labels, noisy, strict=True)}
    return MeasuredSizes(sizes, epsilon, failure, fingerprint(dataset).content)


# What a run costs that is planned on measured sizes: the measurement is the first event of every list.
#
# The run is chosen in view of the sizes, so their epsilon is added to the cost of the others (basic composition).

_FLAGS = "a smaller --count-epsilon or a larger --epsilon"


def check_counted_here(measured: MeasuredSizes | None, content: str) -> None:
    """Refuse sizes of another data set.

    Args:
        measured: the measurement; None where sizes are declared public.
        content: keyed digest of the data set that the run is planned for.

    Raises:
        UsageError: another one was measured.
    """
    if measured is not None and measured.content != content:
        raise UsageError("The label sizes were measured on another file: measure those of this one.")


def left_after_counts(epsilon: float, measured: MeasuredSizes | None, instead: str = _FLAGS) -> float:
    """What is left of a run's epsilon for its releases.

    Args:
        epsilon: what the whole run may cost.
        measured: the measurement; None where sizes are declared public.
        instead: what to choose where nothing is left.

    Raises:
        UsageError: measuring the sizes has used it up.
    """
    if measured is None:
        return epsilon
    if measured.epsilon >= epsilon:
        raise UsageError(f"Counting has used up epsilon: choose {instead}.")
    return epsilon - measured.epsilon


def with_counts(event: Composed, measured: MeasuredSizes | None) -> Composed:
    """A run's event after the measurement of sizes, where there was one: what its certificate shows."""
    if measured is None:
        return event
    counting = Pure(measured.epsilon)
    return Composed(event.per, tuple((name, (counting, *events)) for name, events in event))


def without_counts(certified: Composed) -> Composed:
    """A run's event of what `with_counts` has put a measurement in front of."""
    return Composed(certified.per, tuple((name, events[1:]) for name, events in certified))


def claim_with_counts(certified: Composed, delta: float, measured: MeasuredSizes | None) -> Claim:
    """What a run's certified event costs, its measurement of sizes included."""
    if measured is None:
        return claim(certified, delta)
    released = claim(without_counts(certified), delta)
    return replace(released, epsilon=released.epsilon + measured.epsilon, check=released.check + measured.epsilon)
