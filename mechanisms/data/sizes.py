"""Label sizes measured with noise, for a share of epsilon, if the curator does not declare them public."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.accounting import Claim, PrivacyLedger, claim, fingerprint
from mechanisms.data.units import charged
from mechanisms.errors import UsageError
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.privacy_events import ALL, Approximate, Composed, Pure
from mechanisms.records import Dataset

COUNTING = "label counts"
"""The name of a measurement of sizes in the ledger."""
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
    lists = ((ALL, cost),) if dataset.by_user else tuple((label, cost) for label in labels)
    event = Composed("dataset" if dataset.by_user else "label", lists)
    claimed = Claim(epsilon, failure, "closed form", epsilon, "closed form")
    with charged(dataset, COUNTING, event, claimed, ledger, randomness):
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
