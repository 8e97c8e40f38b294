"""AdaDPSyn: what the paper's settings cost, each release's own sensitivity, and its noise."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from mechanisms.accounting import claim
from mechanisms.accounting.normal_form import SampledGaussian, normal_form
from mechanisms.noise import SeededRandomness
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import adadpsyn
from mechanisms.steps.adadpsyn import AdaDPSyn
from tests.steps.inputs import CANDIDATES, a_step

GRID = adadpsyn.GRID
BOUNDED = settings(max_examples=150)
corner = st.integers(0, CANDIDATES - 1).map(lambda i: np.eye(CANDIDATES)[i])
spread = st.lists(st.floats(-8, 8), min_size=CANDIDATES, max_size=CANDIDATES).map(lambda v: softmax(np.array(v)))
point = (corner | spread).map(adadpsyn.on_grid)
points = st.lists(point, min_size=1, max_size=9).map(np.stack)
radius = st.floats(0.01, adadpsyn.INITIAL_RADIUS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma1", "claimed", "actual"), [(1.23, 1, 0.054), (0.92, 2, 0.235), (0.71, 4, 1.22), (0.58, 8, 3.30)]
)
def test_the_papers_agnews_settings_cost_far_less_than_it_claims(sigma1, claimed, actual):
    plan = SamplingPlan(Scheme.PER_TOKEN, rows_per_token=10, per_subset=2, unit_rows=False, tokens=100)
    event = plan.compose(AdaDPSyn(sigma1=sigma1, sigma0=10, sigma2=3).event, {"World": 30000}, 1 / 30000)
    found = claim(event, 1 / 30000)
    assert found.check == pytest.approx(actual, rel=0.01)
    assert found.epsilon < claimed / 2


def test_one_gaussian_stands_for_every_release_of_a_step():
    mechanism = AdaDPSyn(sigma0=7, sigma1=2, sigma2=5, refinements=3, theta=0.05)
    releases = [7.0] * mechanism.queries + [2.0] * 4 + [5.0] * 3
    assert mechanism.sigma_eff == pytest.approx(1 / math.sqrt(sum(1 / s**2 for s in releases)))
    [(primitive, count)] = normal_form([mechanism.event(9, 0.1)]).primitives
    assert (primitive, count) == (SampledGaussian(mechanism.sigma_eff / 3, 0.1), 1)


@pytest.mark.parametrize(("theta", "queries"), [(0.1, 6), (0.5, 2), (0.01, 14)])
def test_the_radius_search_makes_exactly_the_queries_that_are_charged(theta, queries):
    recorder = Recorder()
    adadpsyn.good_radius(adadpsyn.on_grid(np.eye(CANDIDATES)), 4, theta, 10.0, recorder)
    assert AdaDPSyn(theta=theta).queries == queries == sum(len(values) for values, _ in recorder.calls)


class Recorder(SeededRandomness):
    """Keeps what was given noise, and how much."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.calls = []

    def gaussian(self, values, scale):
        self.calls.append((np.array(values), scale))
        return super().gaussian(values, scale)


@given(points=points, target=st.integers(1, 9), at=radius, added=point, place=st.integers(0, 8))
@BOUNDED
def test_a_ball_volume_moves_by_two_at_most(points, target, at, added, place):
    def volume(some):
        return adadpsyn._ball_volume(adadpsyn._squared_distances(some), target, at) / target

    appeared = np.vstack([points, added])
    replaced = points.copy()
    replaced[place % len(points)] = added
    for other in (appeared, replaced):
        assert abs(volume(points) - volume(other)) <= 2


@given(points=points, at=radius, centre=point, added=point)
@BOUNDED
def test_a_coverage_count_moves_by_one_at_most(points, at, centre, added):
    replaced = np.vstack([points[:-1], added])
    assert abs(adadpsyn.within(points, centre, at) - adadpsyn.within(replaced, centre, at)) <= 1
    assert 0 <= adadpsyn.within(np.vstack([points, added]), centre, at) - adadpsyn.within(points, centre, at) <= 1


@given(points=points, at=radius, centre=point, added=point)
@BOUNDED
def test_a_centred_sum_moves_by_its_radius_or_twice_that(points, at, centre, added):
    before = adadpsyn.projected_offsets(points, centre, at).sum(axis=0)
    appeared = adadpsyn.projected_offsets(np.vstack([points, added]), centre, at).sum(axis=0)
    replaced = adadpsyn.projected_offsets(np.vstack([points[:-1], added]), centre, at).sum(axis=0)
    assert np.linalg.norm((appeared - before).astype(float)) <= at * GRID
    assert np.linalg.norm((replaced - before).astype(float)) <= 2 * at * GRID


@given(points=points, at=radius, centre=point)
@BOUNDED
def test_offsets_within_the_ball_stay_as_they_are(points, at, centre):
    offsets = points - centre
    inside = (offsets.astype(float) ** 2).sum(axis=1) < (0.999 * at * GRID) ** 2
    np.testing.assert_array_equal(adadpsyn.projected_offsets(points, centre, at)[inside], offsets[inside])


@given(points=points, order=st.randoms(use_true_random=False), others=points, at=radius)
@BOUNDED
def test_counts_do_not_depend_on_who_else_is_there(points, order, others, at):
    """Exactly: a distance that changed its last bit with the arrays' shapes would move counts without bound."""
    together = adadpsyn._squared_distances(np.vstack([points, others]))[: len(points), : len(points)]
    np.testing.assert_array_equal(together, adadpsyn._squared_distances(points))
    shuffled = points[order.sample(range(len(points)), len(points))]
    alone = [adadpsyn._ball_volume(adadpsyn._squared_distances(each), 3, at) for each in (points, shuffled)]
    assert alone[0] == alone[1]


@pytest.mark.parametrize(("unit_rows", "first", "factor"), [(True, 1.0, 1), (False, math.sqrt(2), 2)])
def test_every_noise_is_its_own_sensitivity_times_its_multiplier(unit_rows, first, factor, monkeypatch):
    monkeypatch.setattr(adadpsyn, "good_radius", lambda *_: 0.1)
    rows = np.tile(np.log([0.6, 0.1, 0.1, 0.1, 0.1]), (50, 1))
    mechanism, recorder = AdaDPSyn(sigma1=0.01, sigma2=0.02, refinements=2, lambda_=0.5), Recorder()
    mechanism.step(a_step(rows, unit_rows=unit_rows), recorder)
    mean, first_check, projected, second_check, *_ = recorder.calls
    margin = math.sqrt(CANDIDATES) / 50 * 0.5 * 0.01
    assert mean[1] == pytest.approx(first * 0.01 * GRID)
    assert [first_check[1], second_check[1]] == pytest.approx([0.02 * GRID] * 2)
    assert first_check[0] == [50 * GRID]
    assert projected[1] == pytest.approx(factor * (0.1 + first * margin) * 0.01 * GRID)


def test_the_noise_of_the_radius_search_fits_a_sensitivity_of_two():
    recorder = Recorder()
    adadpsyn.good_radius(adadpsyn.on_grid(np.eye(CANDIDATES)), 4, 0.1, 1.5, recorder)
    for volumes, deviation in recorder.calls:
        unit_of_l = 4 * 1024
        assert deviation == pytest.approx(2 * 1.5 * unit_of_l)
        assert (volumes % 1024 == 0).all()
        assert (volumes <= 4 * unit_of_l).all()


def test_agreement_shrinks_the_noise():
    rows = np.tile(np.log([0.6, 0.1, 0.1, 0.1, 0.1]), (200, 1))
    step = a_step(rows)
    errors = {}
    for refinements in (0, 2):
        mechanism = AdaDPSyn(sigma1=5.0, sigma0=1.0, sigma2=1.0, refinements=refinements, theta=0.02, lambda_=1.5)
        draws = [mechanism.step(step, SeededRandomness(seed)).scores for seed in range(40)]
        errors[refinements] = np.std(np.array(draws) - 200 * softmax(rows[0]))
    assert errors[2] < 0.4 * errors[0]


def test_calibration_raises_the_side_noises_only_where_they_would_eat_the_budget():
    generous = AdaDPSyn(sigma0=10, sigma2=3)._with_effective(0.4)
    assert (generous.sigma0, generous.sigma2) == (10, 3)
    tight = AdaDPSyn(sigma0=10, sigma2=3)._with_effective(40.0)
    for each in (generous, tight):
        means = (each.refinements + 1) / each.sigma1**2
        assert means * each.sigma_eff**2 >= 0.8 - 1e-9
    assert tight.sigma_eff == pytest.approx(40.0)
