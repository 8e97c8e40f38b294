"""Several continuations of the same rows as a tree, so that one pass reads all of them and what they share once.

Eighty labels of five tokens each would otherwise cost a pass for each token of each label. A token attends to its row
and to the tokens of its own branch, and stands where it would stand alone (tree attention, Miao et al. 2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from mechanisms.inference.language_model import Tokens

_EVERYTHING = "full_attention"


@dataclass(frozen=True)
class Branches:
    """The tree; public.

    Attributes:
        continuations: at least one token each.
        paths: all that a token of them comes after, each once; the first one is empty.
    """

    continuations: tuple[tuple[int, ...], ...]
    paths: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, continuations: Sequence[Tokens]) -> Branches:
        """The tree of these continuations."""
        found = tuple(map(tuple, continuations))
        return cls(found, tuple(dict.fromkeys(each[:i] for each in found for i in range(len(each)))))

    @property
    def tokens(self) -> torch.Tensor:
        """The last token of every path but the empty one, (nodes,)."""
        return torch.tensor([path[-1] for path in self.paths[1:]], dtype=torch.long)

    @property
    def depths(self) -> torch.Tensor:
        """How many tokens of its branch stand before each of them, (nodes,)."""
        return torch.tensor([len(path) - 1 for path in self.paths[1:]], dtype=torch.long)

    @property
    def seen(self) -> torch.Tensor:
        """Which tokens each of them attends to: those of its own branch up to itself, (nodes, nodes)."""
        nodes = self.paths[1:]
        return torch.tensor([[path[: len(other)] == other for other in nodes] for path in nodes], dtype=torch.bool)

    def after(self, path: tuple[int, ...]) -> tuple[list[int], list[int]]:
        """The continuations that go on from a path, by their places, and with which token each."""
        here = len(path)
        going = [i for i, each in enumerate(self.continuations) if len(each) > here and each[:here] == path]
        return going, [self.continuations[i][here] for i in going]


def attends_to_everything(config: Any) -> bool:
    """Whether every layer of a transformers config sees all positions: a window has a mask of its own."""
    text = config.get_text_config()
    kinds = getattr(text, "layer_types", None)
    return set(kinds) == {_EVERYTHING} if kinds else getattr(text, "sliding_window", None) is None
