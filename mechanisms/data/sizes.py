"""A run that is one release: charged whole before the first row is read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.accounting import BudgetSnapshot, Claim, PrivacyLedger, claim, fingerprint
from mechanisms.data.disclosures import SEEDED
from mechanisms.errors import UsageError
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.privacy_events import Approximate, Composed, Pure
from mechanisms.records import Dataset


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
