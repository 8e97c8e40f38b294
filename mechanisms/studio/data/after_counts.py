"""What a run costs that is planned on measured sizes: the measurement is the first event of every list.

The run is chosen in view of the sizes, so their epsilon is added to the cost of the others (basic composition).
"""

from __future__ import annotations

from dataclasses import replace

from mechanisms.accounting import Claim, claim
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Composed, Pure
from mechanisms.studio.data.counts import MeasuredSizes

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
