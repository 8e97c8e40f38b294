"""The protocol of a transform: what is done to each private row by itself before a mechanism sees it."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from mechanisms.noise import Floats, Integers
from mechanisms.steps.distributions import TokenDistributions


class Transform(Protocol):
    """A public function of one row and of public rows, so that no mechanism's sensitivity changes. Subclass it."""

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def needs_base(self) -> bool:
        """Whether it asks for the model's logits after the tokens so far without any prompt."""
        return False

    def narrow(self, public: Floats) -> Integers:
        """Positions, ascending, of the candidates that stay, seen from their public logits of shape (K,) alone."""
        ...

    def apply(self, distributions: TokenDistributions) -> TokenDistributions:
        """The same step with every row transformed. A row that is not finite stays so, and touches no other."""
        ...
