"""No transform: the mechanism sees the model's own logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.noise import Floats, Integers
from mechanisms.steps.distributions import TokenDistributions
from mechanisms.steps.transforms.transform import Transform


@dataclass(frozen=True)
class NoTransform(Transform):
    """Leaves everything as it is."""

    name: ClassVar[str] = "none"
    title: ClassVar[str] = "None"
    citation: ClassVar[str] = ""

    def narrow(self, public: Floats) -> Integers:
        """All stay."""
        return np.arange(len(public), dtype=np.int64)

    def apply(self, distributions: TokenDistributions) -> TokenDistributions:
        return distributions


TRANSFORM = NoTransform
