"""Transforms of each private row before the mechanism: none, or plausible token amplification."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import log_softmax, softmax

from mechanisms.discovery import parameter, pick, validate
from mechanisms.errors import UsageError
from mechanisms.noise import Floats, Integers
from mechanisms.steps.distributions import TokenDistributions


class Transform(Protocol):
    """A function of one private row and of public rows; so it changes no mechanism's sensitivity.

    A frozen dataclass of public values; a method with a body here is the default that subclasses inherit.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    proof: ClassVar[str]
    """`FILE#HEADING` of the proof that it changes no mechanism's sensitivity."""
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def needs_base(self) -> bool:
        """True if the transform needs the model's logits after the tokens so far without any prompt."""
        return False

    def narrow(self, public: Floats) -> Integers:
        """Ascending positions of the candidates to keep; the default keeps all.

        Args:
            public: the candidates' public logits, shape (K,).
        """
        return np.arange(len(public), dtype=np.int64)

    def apply(self, distributions: TokenDistributions) -> TokenDistributions:
        """The same step with every private row transformed separately. A row with a non-finite value keeps one."""
        return distributions


@dataclass(frozen=True)
class NoTransform(Transform):
    """No transform: the mechanism sees the model's own logits."""

    name: ClassVar[str] = "none"
    title: ClassVar[str] = "None"
    citation: ClassVar[str] = ""
    proof: ClassVar[str] = "docs/mechanisms.md#what-every-step-has-in-common"


@dataclass(frozen=True)
class PlausibleTokenAmplification(Transform):
    """Amplify a row's difference from the public prompt: `p_base (p_i / p_pub)^alpha`, renormalised for each row on S.

    `p_base` is the model's distribution after the tokens so far, without a prompt. All factors but `p_i` are public, so
    a row is still a distribution that depends only on its own unit. Noise is added once, to the sum.
    """

    name: ClassVar[str] = "pta"
    title: ClassVar[str] = "Plausible token amplification"
    citation: ClassVar[str] = "Yamasaki et al. 2025, equation 13"
    proof: ClassVar[str] = "docs/mechanisms.md#transform-pta-yamasaki-et-al-2025-equation-13"

    alpha: float = parameter(
        2.0,
        label="Amplification",
        help="Exponent of the ratio of private to public probability; 0 ignores the private rows.",
        low=0.0,
        high=10.0,
        citation="Yamasaki et al. 2025, equation 13 (alpha)",
    )
    pta_top_p: float = parameter(
        1.0,
        label="Public nucleus",
        help="Keep only the most likely candidates that together have this share of the public distribution.",
        low=0.05,
        high=1.0,
        citation="Yamasaki et al. 2025, variant PA2",
    )
    base: bool = parameter(
        True,
        label="Base probability",
        help="Multiply by the probability of the token after the tokens so far, without a prompt.",
        low=0,
        high=1,
        citation="Yamasaki et al. 2025, variant PA3 without",
    )

    def __post_init__(self) -> None:
        validate(self)

    @property
    def needs_base(self) -> bool:
        return bool(self.base)

    def narrow(self, public: Floats) -> Integers:
        """Ascending positions of the most likely candidates that together have the share `pta_top_p`; at least one."""
        probabilities = np.asarray(softmax(public), dtype=np.float64)
        order = np.argsort(-probabilities, kind="stable")
        before = np.cumsum(probabilities[order]) - probabilities[order]
        return np.sort(order[before < self.pta_top_p]).astype(np.int64)

    def apply(self, distributions: TokenDistributions) -> TokenDistributions:
        """The same step with amplified rows, as log-probabilities plus a constant.

        Raises:
            UsageError: the distributions lack the base row, which the transform needs.
        """
        base = self._log_base(distributions)
        with np.errstate(all="ignore"):  # a row that is not finite stays so
            ratio = log_softmax(distributions.rows, axis=1) - log_softmax(distributions.public)
            return replace(distributions, rows=base + self.alpha * ratio)

    def _log_base(self, distributions: TokenDistributions) -> Floats:
        if not self.base:
            return np.zeros(len(distributions.public))
        if distributions.base is None:
            raise UsageError("Give the base row: the model's distribution after the tokens so far.")
        # Clipped at a negligible probability, so that an impossible token of the base makes no row infinite.
        with np.errstate(all="ignore"):
            return np.asarray(np.nan_to_num(log_softmax(distributions.base), nan=0.0, neginf=-1e4), dtype=np.float64)


_TRANSFORMS: dict[str, type[Transform]] = {each.name: each for each in (NoTransform, PlausibleTokenAmplification)}


def transform_names() -> list[str]:
    """Names of all transforms, "none" first."""
    return list(_TRANSFORMS)


def transform_class(name: str) -> type[Transform]:
    """The transform of that name.

    Raises:
        UsageError: no transform has that name.
    """
    return pick(_TRANSFORMS, name, "transform", transform_names())
