"""A noisy vector read through the public distribution: its limits, its weights, and what decides a token."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mechanisms.discovery import parameters
from mechanisms.noise import SeededRandomness
from mechanisms.steps import mechanism_class, mechanism_names
from mechanisms.steps.distributions import choose
from mechanisms.steps.noisy_vector import AS_RELEASED, NoisyVector, posterior_mean
from tests.steps.inputs import CANDIDATES, Noiseless, a_step, first_release, public_rows, rows

NAMES = [name for name in mechanism_names() if issubclass(mechanism_class(name), NoisyVector)]
SCORES = st.lists(st.floats(-50, 50), min_size=CANDIDATES, max_size=CANDIDATES).map(np.array)
HOSTILE = st.lists(
    st.one_of(st.floats(-1e9, 1e9), st.sampled_from([0.0, 5e-324, -0.0, 1e9])),
    min_size=CANDIDATES,
    max_size=CANDIDATES,
).map(np.array)
TAU, DEVIATION, EXPECTED = st.floats(1e-3, AS_RELEASED), st.floats(1e-3, 1e6), st.integers(1, 500)


def told(public, expected):
    """A step of which only what is public is told."""
    return a_step(np.zeros((1, CANDIDATES)), public, expected=expected)


@given(SCORES, public_rows, EXPECTED, TAU, DEVIATION)
def test_it_weighs_the_two_by_their_precision(scores, public, expected, tau, deviation):
    step, s = told(public, expected), deviation / expected
    own, prior = 1 / s**2, 1 / tau**2
    wanted = (own * scores / expected + prior * step.public_probabilities) / (own + prior)
    values = posterior_mean(scores, step, deviation, tau)
    np.testing.assert_allclose(values, wanted, rtol=1e-9, atol=1e-9)
    low, high = (
        np.minimum(scores / expected, step.public_probabilities),
        np.maximum(scores / expected, step.public_probabilities),
    )
    assert (values >= low - 1e-9).all()
    assert (values <= high + 1e-9).all()


# In a mechanism's step.


def deciding(name: str, **changes) -> NoisyVector:
    made = mechanism_class(name)(**{"temperature": 0.0} | changes)
    assert isinstance(made, NoisyVector)
    return made


def least_noise(name: str, **changes) -> NoisyVector:
    """Every noise parameter at its lower bound."""
    noise = {"adadpsyn": ("sigma1", "sigma0", "sigma2")}.get(name, (mechanism_class(name).calibrated,))
    low = {each.name: each.low for each in parameters(mechanism_class(name)) if each.name in noise}
    return deciding(name, **low | changes)


@pytest.mark.parametrize("name", NAMES)
@given(logits=st.lists(rows, min_size=1, max_size=6), public=public_rows)
def test_with_hardly_any_noise_the_rows_decide(name, logits, public):
    step = a_step(np.stack(logits), public)
    release = first_release(least_noise(name), step, Noiseless())
    best = np.sort(release.scores)
    assume(best[-1] - best[-2] > 1e-2)
    assert release.index == int(np.argmax(release.scores))


@pytest.mark.parametrize("name", NAMES)
@given(logits=st.lists(rows, min_size=1, max_size=6), public=public_rows)
def test_under_very_much_noise_the_model_decides(name, logits, public):
    step = a_step(np.stack(logits), public)
    noise = mechanism_class(name).calibrated
    loud = next(each.high for each in parameters(mechanism_class(name)) if each.name == noise)
    release = first_release(deciding(name, **{noise: loud}), step, Noiseless())
    best = np.sort(step.public_probabilities)
    assume(best[-1] - best[-2] > 1e-6)
    assert release.index == int(np.argmax(step.public_probabilities))


@pytest.mark.parametrize("name", NAMES)
@given(
    scores=HOSTILE,
    public=public_rows,
    expected=EXPECTED,
    deviation=st.floats(0, 1e6),
    seed=st.integers(0, 9),
    temperature=st.sampled_from([0.0, 0.05, 1.0, 2.0]),
    top_p=st.sampled_from([0.05, 0.8, 1.0]),
    tau=TAU,
)
def test_what_decides_follows_from_the_release_and_from_public_values(
    name, scores, public, expected, deviation, seed, temperature, top_p, tau
):
    mechanism = deciding(name, temperature=temperature, top_p=top_p, prior_deviation=tau)
    step = told(public, expected)
    others = replace(step, rows=np.full((3, CANDIDATES), np.nan), occupied=np.array([True, False, True]))
    one, other = (mechanism.read(scores, each, deviation, SeededRandomness(seed)) for each in (step, others))
    assert one.index == other.index
    assert (one.scores == scores).all()  # the release keeps the noisy vector
    assert (one.values == posterior_mean(scores, step, deviation, tau)).all()
    assert one.index == choose(one.values, temperature, top_p, SeededRandomness(seed))
    assert 0 <= one.index < CANDIDATES
    assert np.isfinite(one.values).all()


@pytest.mark.parametrize("name", NAMES)
def test_made_by_place_a_mechanism_gets_its_noise(name):
    made = mechanism_class(name)(1.5)
    assert getattr(made, made.calibrated) == 1.5
