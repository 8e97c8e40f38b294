"""The settings of a session of private answers: one model of public values."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from typing import Literal, TypedDict

from mechanisms.discovery import Parameter, parameters
from mechanisms.errors import UsageError
from mechanisms.queries import QueryMechanism, Retrieval, query_mechanism_class, query_mechanism_names
from mechanisms.records import PromptTemplate, default_template
from mechanisms.settings import Spec, refused, setting

_NOISE = "noise"
"""The parameter of every mechanism that is determined by epsilon and delta."""


class Group(StrEnum):
    """The heading that a setting has in a help text."""

    BUDGET = "budget"
    ANSWERS = "answers"
    PROMPTS = "prompts"


_budget, _answers, _prompts = (partial(setting, group=each) for each in Group)


class AnswerSpec(Spec):
    """The settings of a session of questions."""

    queries: int = _budget(..., "Answers (Q)", "How many each row (or user) can pay for.", ge=1, le=1_000_000)
    epsilon: float = _budget(..., "Epsilon", "The cost of all answers together.", gt=0, le=1e6)
    delta: float = _budget(..., "Delta", "Failure probability of the claim, well under 1/n.", gt=0, lt=1)

    mechanism: str = _answers(
        "knn-votes", "Mechanism", "Releases an answer from the shards' answers.", words=query_mechanism_names()
    )
    parameters: dict[str, float | int | bool] = _answers(
        {}, "Parameters", "The mechanism's parameters, by their flags; its noise follows from epsilon."
    )
    retrieval: Retrieval = _answers(
        Retrieval.THRESHOLD,
        "Retrieval",
        "The model reads the nearest rows or Poisson samples, or the labels of the nearest rows vote without a model.",
    )
    threshold: float = _answers(
        0.3, "Least cosine similarity", "A row takes part, and pays, from this similarity on.", ge=-1, le=1
    )
    shards: int = _answers(10, "Shards (S)", "Groups of rows, which answer separately.", ge=1, le=1000)
    neighbours: int = _answers(4, "Neighbours (N)", "The most examples that a shard reads.", ge=1, le=64)
    rate: float | None = _answers(
        None,
        "Rate",
        "For Poisson samples: the probability that a row is drawn for a question.",
        otherwise="none",
        gt=0,
        le=1,
    )
    size: int | None = _answers(
        None,
        "Size",
        "For Poisson samples: a public number of rows instead of the rate, which is then S N / size.",
        otherwise="none",
        ge=1,
    )

    instruction: str | None = _prompts(None, "Instruction", "The task in the prompt.", otherwise="made of the labels")
    text_field: str = _prompts("Text", "Name of the text", "Its name in prompts.")
    label_field: str = _prompts("Label", "Name of the label", "Its name in prompts.")
    max_record_tokens: int = _prompts(
        64, "Tokens of a row", "Longer texts and open answers are cut.", unit="tokens", ge=1, le=1024
    )
    max_query_tokens: int = _prompts(
        96, "Tokens of a question", "Longer questions are cut.", unit="tokens", ge=1, le=1024
    )
    answer_tokens: int = _prompts(16, "Tokens of an open answer", "The most tokens.", unit="tokens", ge=1, le=256)

    def _contradictions(self) -> Iterator[str]:
        yield from refused(lambda: self.made_mechanism)
        yield from refused(lambda: PromptTemplate("", self.text_field, self.label_field))
        if (self.retrieval is Retrieval.POISSON) != (self.rate is not None or self.size is not None):
            yield "Poisson samples, and only these, need a public rate or size."
        if self.rate is not None and self.size is not None:
            yield "Give a rate or a size, not both."

    @property
    def made_mechanism(self) -> QueryMechanism:
        """The mechanism with its own parameters, not calibrated.

        Raises:
            UsageError: a parameter is out of range, or of another mechanism.
        """
        chosen = query_mechanism_class(self.mechanism)
        own = {each.flag: each for each in given_parameters(chosen)}
        if foreign := sorted(set(self.parameters) - set(own)):
            raise UsageError(f"--{foreign[0]} is no parameter of '{self.mechanism}'.")
        return chosen(**{own[flag].name: own[flag].typed(value) for flag, value in self.parameters.items()})

    @property
    def sampling_rate(self) -> float | None:
        """The probability that a unit is drawn for a question; None without Poisson samples."""
        return self.rate if self.size is None else min(1.0, self.shards * self.neighbours / self.size)

    def template(self, labels: tuple[str, ...]) -> PromptTemplate:
        return default_template(labels, self.text_field, self.label_field, self.instruction)


class Budget(TypedDict):
    """The settings that must be given."""

    queries: int
    epsilon: float
    delta: float


class AnswerSettings(Budget, total=False):
    """The settings of `AnswerSpec` as arguments of a Python function, for editors and type checkers."""

    mechanism: str
    parameters: dict[str, float | int | bool]
    retrieval: Retrieval | Literal["threshold", "poisson", "labels-only"]
    threshold: float
    shards: int
    neighbours: int
    rate: float | None
    size: int | None
    instruction: str | None
    text_field: str
    label_field: str
    max_record_tokens: int
    max_query_tokens: int
    answer_tokens: int


def given_parameters(mechanism: type[QueryMechanism]) -> Iterator[Parameter]:
    """The parameters of a mechanism that a spec may set: all but its noise."""
    return (each for each in parameters(mechanism) if each.flag != _NOISE)
