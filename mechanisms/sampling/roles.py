"""Roles: which part of a recipe a unit takes part in, by a keyed digest of the unit alone."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.sampling.disjoint import keyed_place

_PLACES = 2**52
"""As many as the numbers in [0, 1) that every float holds exactly."""


def role_place(key: bytes, identity: Sequence[str]) -> float:
    """The place of a unit in [0, 1): pseudo-random, and a function of the unit alone.

    Args:
        key: the installation's, for roles: a role is for good, in every run and under whatever name.
        identity: the user's id; or the record's text, its label and its copy number.
    """
    return keyed_place(key, identity, "role", _PLACES) / _PLACES
