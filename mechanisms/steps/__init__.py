"""Token-level mechanisms, one a file; every module of this package that defines `MECHANISM` is registered."""

from mechanisms.steps.distributions import TokenDistributions, TokenRelease
from mechanisms.steps.mechanism import TokenMechanism
from mechanisms.steps.registry import mechanism_class, mechanism_names

__all__ = [
    "TokenDistributions",
    "TokenMechanism",
    "TokenRelease",
    "mechanism_class",
    "mechanism_names",
]
