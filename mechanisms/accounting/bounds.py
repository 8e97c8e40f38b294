"""What an accountant answers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """Epsilon lies in [lower, upper]."""

    lower: float
    upper: float
