"""Token-level mechanisms, one a file; every module of this package that defines `MECHANISM` is registered."""

from mechanisms.steps.distributions import TokenDistributions, TokenRelease
from mechanisms.steps.mechanism import TokenMechanism, mechanism_class, mechanism_names
from mechanisms.steps.transforms import NoTransform, Transform, transform_class, transform_names

__all__ = [
    "NoTransform", "TokenDistributions", "TokenMechanism", "TokenRelease", "Transform", "mechanism_class",
    "mechanism_names", "transform_class", "transform_names",
]  # fmt: skip
