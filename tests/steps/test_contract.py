"""What every registered mechanism has to hold, whatever it is: a new file is tested by being there."""

import dataclasses
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accounting import PrivacyTarget, claim, rdp
from mechanisms.accounting.normal_form import normal_form
from mechanisms.discovery import parameters
from mechanisms.errors import AccountingError, UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Composed, from_json
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class, mechanism_names, transform_class, transform_names
from mechanisms.steps.mechanism import Norm
from mechanisms.steps.noisy_vector import NoisyVector
from tests.steps.inputs import CANDIDATES, Noiseless, a_step, distance, first_release, neighbours, public_rows, rows

pytestmark = pytest.mark.slow

NAMES = mechanism_names()
PRIVATE = [n for n in NAMES if mechanism_class(n).uses_private_rows and not mechanism_class(n).not_private]
TRANSFORMED = [(n, t) for n in NAMES for t in transform_names() if t == "none" or mechanism_class(n).takes_transform]
PLANS = [SamplingPlan(scheme, rows_per_token=20, tokens=10, unit_rows=u) for scheme in Scheme for u in (True, False)]
DELTA = 1e-5
BOUNDED = settings(max_examples=60)


def composition(plan: SamplingPlan, size: int = 2000):
    return lambda event: plan.compose(event, {"a": size}, DELTA)


def alone(event):
    return Composed("dataset", (("all", (event(10, 1.0),)),))


def open_plan(name: str) -> SamplingPlan:
    return next(plan for plan in PLANS if mechanism_class(name)().closed(plan) is None)


def fitted(name: str):
    return mechanism_class(name)().for_plan(open_plan(name))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_frozen_value_that_describes_itself(name):
    mechanism = mechanism_class(name)()
    assert dataclasses.is_dataclass(mechanism)
    assert hash(mechanism) == hash(mechanism_class(name)())
    assert mechanism.name == name
    assert mechanism.title
    assert mechanism.citation
    for each in parameters(mechanism):
        assert each.label
        assert each.help.endswith(".")
        assert each.citation
        assert each.low <= each.default <= each.high


@pytest.mark.parametrize(
    ("scheme", "epsilon"), [(Scheme.PER_TOKEN, 1.0), (Scheme.PER_DEMONSTRATION, 0.3), (Scheme.PER_DEMONSTRATION, 8.0)]
)
@pytest.mark.parametrize("name", PRIVATE)
def test_calibration_meets_its_target_and_two_accountants_agree(name, scheme, epsilon):
    plan = SamplingPlan(scheme, rows_per_token=20, tokens=10, written=2)
    if reason := mechanism_class(name)().closed(plan):
        assert "Choose" in reason
        return
    compose = composition(plan)
    calibrated = mechanism_class(name)().for_plan(plan).calibrate(compose, PrivacyTarget(epsilon, DELTA))
    claimed = claim(compose(calibrated.event), DELTA)
    assert 0.97 * epsilon <= claimed.epsilon <= epsilon
    assert claimed.check == pytest.approx(claimed.epsilon, rel=0.03)
    assert claimed.accountant != claimed.check_accountant
    [form] = {normal_form(events) for _, events in compose(calibrated.event)}
    orders = 1 + np.geomspace(0.05, 200, 60)
    renyi = min(rdp.to_epsilon(rdp.renyi(form, a), a, DELTA - form.failure) for a in orders)
    assert claimed.epsilon <= 1.02 * renyi, "a claim above a bound that anybody can compute"
    assert calibrated.signal_to_noise(plan) > 0


@pytest.mark.parametrize("name", [n for n in NAMES if n not in PRIVATE])
def test_baselines_claim_nothing_or_everything(name):
    mechanism, plan = fitted(name), PLANS[0]
    event = composition(plan)(mechanism.event)
    if mechanism.not_private:
        with pytest.raises(AccountingError):
            claim(event, DELTA)
    else:
        assert claim(event, DELTA).epsilon == 0


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: f"{p.scheme.value}-{'unit-rows' if p.unit_rows else 'subsets'}")
@pytest.mark.parametrize("name", PRIVATE)
def test_a_plan_is_either_accounted_or_closed_with_the_reason(name, plan):
    mechanism = mechanism_class(name)()
    if reason := mechanism.closed(plan):
        assert "Choose" in reason
        with pytest.raises(UsageError, match="Choose"):
            mechanism.for_plan(plan)
        return
    event = composition(plan)(mechanism.for_plan(plan).event)
    assert claim(event, DELTA).epsilon > 0
    assert from_json(event.to_json()) == event


@pytest.mark.parametrize("unit_rows", [True, False], ids=["unit-rows", "subsets"])
@pytest.mark.parametrize(("name", "transform"), TRANSFORMED)
def test_no_unit_moves_the_aggregate_further_than_claimed_and_no_row_stops_a_step(name, transform, unit_rows):
    mechanism = fitted(name)
    if mechanism.closed(SamplingPlan(unit_rows=unit_rows)):
        assert unit_rows is False
        return

    @given(pair=neighbours(unit_rows), seed=st.integers(0, 2**32))
    @BOUNDED
    def holds(pair, seed):
        one, other = (transform_class(transform)().apply(each) for each in pair)
        assert distance(mechanism, one, other) <= mechanism.sensitivity(unit_rows).on_lattice * (1 + 1e-12)
        for each in (one, other):
            release = first_release(mechanism, each, SeededRandomness(seed))
            assert 0 <= release.index < CANDIDATES

    holds()


@pytest.mark.parametrize("transform", transform_names())
@pytest.mark.parametrize("name", [n for n in NAMES if mechanism_class(n).uses_private_rows])
@given(hostile=st.sampled_from([np.nan, np.inf, -np.inf]), place=st.integers(0, CANDIDATES - 1), public=public_rows)
@BOUNDED
def test_a_row_that_is_not_finite_counts_as_nobody_or_as_the_public_row(name, transform, hostile, place, public):
    mechanism, spoilt = fitted(name), np.array([[0.0, 1, 2, 3, 4], [4.0, 3, 2, 1, 0]])
    if transform != "none" and not mechanism.takes_transform:
        return
    apply = transform_class(transform)().apply
    spoilt[1, place] = hostile
    alone = mechanism.aggregate(apply(a_step(spoilt[:1], public, expected=2)))
    assert (mechanism.aggregate(apply(a_step(spoilt, public))) == alone).all()
    if mechanism.closed(SamplingPlan(unit_rows=False)) is None:
        step = apply(a_step(spoilt, public, unit_rows=False))
        expected = dataclasses.replace(step, rows=np.stack([step.rows[0], public]))
        assert (mechanism.aggregate(step) == mechanism.aggregate(expected)).all()


@pytest.mark.parametrize("name", [n for n in NAMES if mechanism_class(n).uses_private_rows])
@given(logits=st.lists(rows, min_size=1, max_size=6), public=public_rows)
@BOUNDED
def test_without_noise_a_step_releases_the_aggregate(name, logits, public):
    mechanism = fitted(name)
    if hasattr(mechanism, "refinements"):  # projecting rows into a ball is meant to change their sum
        mechanism = dataclasses.replace(mechanism, refinements=0)
    if isinstance(mechanism, NoisyVector):
        mechanism = dataclasses.replace(mechanism, temperature=0.0)
    step = a_step(np.stack(logits), public)
    aggregate, release = mechanism.aggregate(step), first_release(mechanism, step, Noiseless())
    if release.free:
        assert release == first_release(mechanism, a_step(np.empty((0, CANDIDATES)), public, expected=1), Noiseless())
        return
    assert release.index == np.argmax(aggregate if release.values is None else release.values)
    if release.scores is not None:
        unit = mechanism.sensitivity(True).on_lattice
        np.testing.assert_allclose(release.scores, aggregate / unit, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in NAMES if not mechanism_class(n).uses_private_rows])
@given(logits=st.lists(rows, min_size=1, max_size=6), public=public_rows)
@BOUNDED
def test_what_uses_no_private_rows_does_not_depend_on_them(name, logits, public):
    releases = [
        first_release(mechanism_class(name)(), a_step(each, public, expected=9), SeededRandomness(7))
        for each in (np.stack(logits), np.empty((0, CANDIDATES)))
    ]
    assert releases[0].free
    assert releases[1].free
    assert releases[0].index == releases[1].index
    assert (releases[0].scores == releases[1].scores).all()


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_released_only_where_noise_covers_the_whole_vector(name):
    mechanism = fitted(name)
    release = first_release(mechanism, a_step(np.eye(CANDIDATES)), SeededRandomness(3))
    selection = mechanism.sensitivity(True).norm is Norm.RANGE
    assert (release.scores is None) == (selection or mechanism.not_private is not None)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_out_of_range_are_refused_by_name(name):
    for each in parameters(mechanism_class(name)):
        for wrong in (each.low - 1, each.high * 2 + 1, math.nan, math.inf, -math.inf):
            with pytest.raises(UsageError, match=re.escape(f"{each.label} (--{each.flag}) ")):
                mechanism_class(name)(**{each.name: wrong})
        if isinstance(each.default, int):
            with pytest.raises(UsageError, match=re.escape(f"{each.label} (--{each.flag}) must be a whole number")):
                mechanism_class(name)(**{each.name: each.low + 0.5})


def test_an_unknown_mechanism_or_transform_is_refused_with_the_choices():
    with pytest.raises(UsageError, match="gaussian"):
        mechanism_class("laplace")
    with pytest.raises(UsageError, match="pta"):
        transform_class("none at all")
