"""The sentence below the slider: a bound, never rounded below what it is, for rows and for users."""

from __future__ import annotations

import re

import pytest

from dpicl_ui.privacy.settings import odds
from mechanisms.accounting import PrivacyTarget, best_guess
from tests.ui.trees import text_of


def share(target: PrivacyTarget, by_user: bool = False) -> float:
    found = re.search(r"at most\s+([\d.]+)%", text_of(odds(target, by_user, False)))
    assert found
    return float(found[1]) / 100


@pytest.mark.parametrize("epsilon", [0.1, 0.37, 1.0, 4.0, 5.0, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.1])
def test_what_is_said_bounds_the_best_guess_closely(epsilon: float, delta: float):
    right = best_guess(epsilon, delta)
    assert right <= share(PrivacyTarget(epsilon, delta)) <= right + 0.0011


def test_known_odds():
    assert share(PrivacyTarget(1.0, 1e-12)) == 0.732  # e / (1 + e) = .73106
    assert share(PrivacyTarget(100.0, 0.5)) == 1.0


def test_for_users_it_speaks_of_all_their_rows():
    target = PrivacyTarget(1.0, 1e-5)
    assert "all rows of one user are" in text_of(odds(target, True, False))
    assert "one row is" in text_of(odds(target, False, False))


def test_counts_that_were_declared_public_are_set_apart():
    target = PrivacyTarget(1.0, 1e-5)
    assert "declared public" in text_of(odds(target, False, True))
    assert "declared public" not in text_of(odds(target, False, False))
