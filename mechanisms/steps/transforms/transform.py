"""The protocol of a transform of each private row before a mechanism, and the registry of transforms."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from mechanisms.discovery import defined, pick
from mechanisms.noise import Floats, Integers
from mechanisms.steps.distributions import TokenDistributions

# The protocol of a transform: what is done to each private row by itself before a mechanism sees it.


class Transform(Protocol):
    """A public function of one row and of public rows, so that no mechanism's sensitivity changes. Subclass it."""

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def needs_base(self) -> bool:
        """Whether it needs the model's logits after the tokens so far without any prompt."""
        return False

    def narrow(self, public: Floats) -> Integers:
        """Positions, ascending, of the candidates to keep, from their public logits of shape (K,) alone."""
        ...

    def apply(self, distributions: TokenDistributions) -> TokenDistributions:
        """The same step with every row transformed. A non-finite row stays so and changes no other row."""
        ...


# The registry: all modules of this package that define `TRANSFORM`.


def transform_names() -> list[str]:
    """Names of all transforms, "none" first."""
    return sorted(_registered(), key=lambda name: (name != "none", name))


def transform_class(name: str) -> type[Transform]:
    """The transform of that name.

    Raises:
        UsageError: there is none.
    """
    return pick(_registered(), name, "transform", transform_names())


def _registered() -> dict[str, type[Transform]]:
    return defined("mechanisms.steps.transforms", "TRANSFORM")
