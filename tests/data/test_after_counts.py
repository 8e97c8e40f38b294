"""What a run costs that is planned on measured sizes."""

from __future__ import annotations

import pytest

from mechanisms.accounting import claim
from mechanisms.data.sizes import (
    MeasuredSizes,
    check_counted_here,
    claim_with_counts,
    left_after_counts,
    with_counts,
    without_counts,
)
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Approximate, Composed, Gaussian, Pure

MEASURED = MeasuredSizes({"a": 9, "b": 12}, 0.25, 1e-9, "this file")
RUN = Composed("label", (("a", (Gaussian(2.0), Approximate(1e-9))), ("b", (Gaussian(3.0),))))


def test_the_measurement_is_put_before_every_list_and_taken_off_again():
    certified = with_counts(RUN, MEASURED)
    assert certified != RUN
    assert {events[0] for _, events in certified} == {Pure(0.25)}
    assert without_counts(certified) == RUN
    assert with_counts(RUN, None) == RUN


def test_the_measurement_is_added_to_what_the_rest_claims():
    rest, whole = claim(RUN, 1e-5), claim_with_counts(with_counts(RUN, MEASURED), 1e-5, MEASURED)
    assert (whole.epsilon, whole.check) == (rest.epsilon + 0.25, rest.check + 0.25)
    assert claim_with_counts(RUN, 1e-5, None) == rest


def test_what_is_left_is_more_than_nothing():
    assert left_after_counts(1.0, MEASURED) == 0.75
    assert left_after_counts(0.25, None) == 0.25
    with pytest.raises(UsageError, match="a smaller --count-epsilon or a larger --epsilon"):
        left_after_counts(0.25, MEASURED)
    with pytest.raises(UsageError, match=r"Counting has used up epsilon: choose a larger one\."):
        left_after_counts(0.2, MEASURED, "a larger one")


def test_sizes_of_another_file_are_refused():
    check_counted_here(MEASURED, "this file")
    check_counted_here(None, "another file")
    with pytest.raises(UsageError, match="measured on another file"):
        check_counted_here(MEASURED, "another file")
