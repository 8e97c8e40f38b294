"""Per-row transforms in front of a mechanism, one a file; every module here that defines `TRANSFORM` is registered."""

from mechanisms.steps.transforms.identity import NoTransform
from mechanisms.steps.transforms.transform import Transform, transform_class, transform_names

__all__ = ["NoTransform", "Transform", "transform_class", "transform_names"]
