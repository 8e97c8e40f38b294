"""Measured label sizes: they bound the truth, they are charged, and their epsilon shows in the claim."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from mechanisms.accounting import PrivacyLedger, claim
from mechanisms.data.sizes import (
    MeasuredSizes,
    claim_with_counts,
    left_after_counts,
    measure_sizes,
    with_counts,
    without_counts,
)
from mechanisms.demos.demo_set import DemoSet, loads
from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness
from mechanisms.privacy_events import Approximate, Composed, Gaussian, Pure
from mechanisms.records import Dataset, Record
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.verification import verify
from tests.runs import running


def dataset() -> Dataset:
    return running.data(running.rows(60))


def planned(measured: MeasuredSizes, **said: Any) -> Plan:
    return plan_for(running.alone(epsilon=1.0, **said), dataset(), measured)


def written(plan: Plan, ledger: PrivacyLedger) -> DemoSet:
    return list(running.begun(dataset(), plan, ledger=ledger, randomness=SecureRandomness()))[-1].demo_set


def test_measured_sizes_bound_the_true_ones_and_are_charged():
    ledger = PrivacyLedger()
    measured = measure_sizes(dataset(), 0.5, 1e-5, ledger)
    for label, size in dataset().counted_sizes().items():
        assert size <= measured.sizes[label] <= size + 120
    assert ledger.snapshot("d", "record").epsilon == pytest.approx(0.5)


def test_a_measurement_pays_for_its_failure_when_it_is_made():
    ledger = PrivacyLedger()
    failures = [measure_sizes(dataset(), 1e-3, 1e-5, ledger).failure for _ in range(3)]
    with ledger.transaction() as database:
        spends = ledger._spends(database, "d", "record")
    assert sum(spend.delta for spend in spends) == pytest.approx(sum(failures)) == pytest.approx(3e-8)
    assert all(Approximate(1e-8) in events for spend in spends for events in spend.lists.values())


def test_noise_is_discrete_laplace_of_the_scale_asked_for():
    noise = SecureRandomness().laplace(np.zeros(20_000, dtype=np.int64), 2.0)
    values = np.arange(-8, 9)
    ratio = np.exp(-0.5)
    expected = 20_000 * (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)
    counts = np.array([(noise == value).sum() for value in values])
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-9, len(values))


def test_users_may_have_every_label_so_their_counts_are_noisier():
    records = tuple(Record("x", label, unit=f"u{i}") for i in range(20) for label in ("a", "b", "c"))
    by_user = Dataset("users", ("a", "b", "c"), records, "who")
    by_record = Dataset("records", ("a", "b", "c"), records)
    ledger = PrivacyLedger()
    # The margins, which grow as delta falls, are 58 apart: noise of scale 3 makes up for that once in 10^8 runs.
    wide, narrow = (measure_sizes(each, 1.0, 1e-9, ledger).sizes for each in (by_user, by_record))
    assert min(wide.values()) > max(narrow.values())


def test_the_claim_covers_counting_and_writing_together(any_text_passes):
    ledger = PrivacyLedger()
    measured = measure_sizes(dataset(), 0.2, 1e-5, ledger)
    calibrated = planned(measured).calibrated()
    assert 0.97 <= calibrated.claim().epsilon <= 1.0
    made = written(calibrated, ledger)
    certificate = made.certificate
    assert certificate.claim.epsilon == pytest.approx(calibrated.claim().epsilon)
    assert verify(loads(made.dumps())).claim.epsilon == pytest.approx(certificate.claim.epsilon)
    assert ledger.snapshot("d", "record").epsilon <= 1.0 + 1e-6
    assert "label sizes measured with noise" in certificate.public_inputs


def test_a_pure_mechanism_is_not_mistaken_for_the_counting(any_text_passes):
    ledger = PrivacyLedger()
    measured = measure_sizes(dataset(), 0.2, 1e-5, ledger)
    made = written(planned(measured, mechanism="noisy-max", parameters={}).calibrated(), ledger)
    found = verify(loads(made.dumps()))
    assert not found.problems
    assert found.claim.epsilon == pytest.approx(made.certificate.claim.epsilon)


def test_a_file_that_only_says_that_it_counted_is_found(any_text_passes):
    document = written(running.planned(dataset(), running.alone()), PrivacyLedger()).to_json()
    document["privacy"]["public_inputs"].append("label sizes measured with noise")
    problem, *_ = verify(loads(json.dumps(document))).problems
    assert problem.startswith("privacy/public_inputs")


def test_a_size_measured_too_small_does_not_show(any_text_passes):
    measured = measure_sizes(dataset(), 0.5, 1e-5, PrivacyLedger())
    too_small = replace(measured, sizes={"red": 5, "blue": 5})
    assert len(written(planned(too_small).calibrated(), PrivacyLedger()).demonstrations) == 2


# What a run costs that is planned on measured sizes.

MEASURED = MeasuredSizes({"a": 9, "b": 12}, 0.25, 1e-9, "this file")
RUN = Composed("label", (("a", (Gaussian(2.0), Approximate(1e-9))), ("b", (Gaussian(3.0),))))


def test_the_measurement_is_put_before_every_list_and_added_to_what_the_rest_claims():
    certified = with_counts(RUN, MEASURED)
    assert {events[0] for _, events in certified} == {Pure(0.25)}
    assert without_counts(certified) == with_counts(RUN, None) == RUN
    rest, whole = claim(RUN, 1e-5), claim_with_counts(certified, 1e-5, MEASURED)
    assert (whole.epsilon, whole.check) == (rest.epsilon + 0.25, rest.check + 0.25)
    assert claim_with_counts(RUN, 1e-5, None) == rest


def test_what_is_left_is_more_than_nothing():
    assert left_after_counts(1.0, MEASURED) == 0.75
    assert left_after_counts(0.25, None) == 0.25
    with pytest.raises(UsageError, match="a smaller --count-epsilon or a larger --epsilon"):
        left_after_counts(0.25, MEASURED)
