"""Outputs: what a demonstration says to its text, where that is no label but text too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.records import Demonstration

_LONGEST = 256


class Answers(StrEnum):
    """Where outputs come from: written like the text and under its budget, or by the model from the released text."""

    PRIVATE = "private"
    MODEL = "model"


@dataclass(frozen=True)
class Outputs:
    """How a run comes by outputs; public.

    Attributes:
        answers: who writes them.
        tokens: of a demonstration's T charged tokens those that its text leaves to its output; a model's are free.
        max_tokens: cap on an output's tokens: of a private one in prompts, of one that a model writes.
    """

    answers: Answers = Answers.PRIVATE
    tokens: int = 8
    max_tokens: int = 16

    def __post_init__(self) -> None:
        if self.tokens < 1 or not 1 <= self.max_tokens <= _LONGEST:
            raise UsageError(f"An output has at least 1 token, and its cap lies between 1 and {_LONGEST}.")

    @property
    def charged(self) -> int:
        """Tokens of T that only the output may use."""
        return self.tokens if self.answers is Answers.PRIVATE else 0

    @property
    def shown(self) -> int:
        """Tokens of a private row's output that its prompt shows at most."""
        return self.max_tokens if self.answers is Answers.PRIVATE else 0

    def parameters(self) -> dict[str, Any]:
        """As a certificate states it."""
        own = {"tokens": self.tokens} if self.answers is Answers.PRIVATE else {}
        return {"answers": self.answers.value, **own, "max_tokens": self.max_tokens}


def with_something_said(demonstrations: Iterable[Demonstration]) -> tuple[Demonstration, ...]:
    """Those without the ones to whose text nothing is said: a public rule, an empty output is no example."""
    return tuple(each for each in demonstrations if each.output != "")


def longest_output(demo_set: DemoSet) -> int:
    """Tokens of an answer to a query at most: as many as a private row's output shows, or a model's has."""
    return (outputs_of(demo_set) or Outputs()).max_tokens


def outputs_of(demo_set: DemoSet) -> Outputs | None:
    """How a set came by its outputs: as its certificate states, or as usual where it states nothing; None without any.

    Raises:
        UsageError: a number is out of range.
    """
    if demo_set.template.output is None:
        return None
    stated = dict(demo_set.certificate.parameters.get("outputs", {}))
    answers = Answers(stated.pop("answers", Answers.PRIVATE))
    return Outputs(answers, **{name: int(value) for name, value in stated.items()})
