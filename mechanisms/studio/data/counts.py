"""Label sizes measured with noise, for a share of epsilon, where the curator does not declare them public."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.accounting import Claim, PrivacyLedger, fingerprint
from mechanisms.errors import UsageError
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.privacy_events import Approximate, Composed, Pure
from mechanisms.records import Dataset
from mechanisms.studio.data.charging import charged

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
