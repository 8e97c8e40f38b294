"""The settings of "Ask privately" as one value, and the request that they describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpicl_ui.frame.numbers import number, whole
from mechanisms.accounting import PrivacyTarget
from mechanisms.answers.request import AnswerRequest
from mechanisms.discovery import Parameter, parameters
from mechanisms.errors import UsageError
from mechanisms.queries import QueryMechanism, Retrieval, query_mechanism_class, query_mechanism_names
from mechanisms.records import PromptTemplate, answer_template


def query_mechanisms() -> list[type[QueryMechanism]]:
    """The mechanisms to choose from, those that answer with a label first."""
    return [query_mechanism_class(name) for name in query_mechanism_names()]


def described() -> list[tuple[type[QueryMechanism], Parameter]]:
    """The parameters that are asked for, each with its owner: the order of `AskForm.parameters`.

    The noise is not among them: it follows from epsilon.
    """
    every = ((each, parameter) for each in query_mechanisms() for parameter in parameters(each))
    return [(owner, parameter) for owner, parameter in every if parameter.name != "noise"]


@dataclass(frozen=True)
class AskForm:
    """Everything that fixes a reservation; public.

    Attributes:
        instruction, text_name, label_name: of the prompt; empty for the usual ones.
        parameters: values of all mechanisms' parameters, in the order of `described`.
    """

    epsilon: float
    mechanism: str
    queries: int
    delta: float
    shards: int
    neighbours: int
    retrieval: str
    answer_tokens: int
    instruction: str
    text_name: str
    label_name: str
    parameters: tuple[float, ...]

    @classmethod
    def read(cls, *values: Any) -> AskForm:
        """The form from its components' values, in the order of the fields.

        Raises:
            UsageError: a number is missing or not a number.
        """
        epsilon, mechanism, queries, delta, shards, neighbours, retrieval, tokens, *rest = values
        instruction, text_name, label_name, *own = rest
        return cls(
            number("Epsilon", epsilon),
            str(mechanism),
            whole("The number of questions", queries),
            number("Delta", delta),
            whole("The number of groups", shards),
            whole("The number of examples", neighbours),
            str(retrieval),
            whole("The length of an answer", tokens),
            str(instruction or "").strip(),
            str(text_name or "").strip(),
            str(label_name or "").strip(),
            tuple(number(parameter.label, value) for (_, parameter), value in zip(described(), own, strict=True)),
        )

    @property
    def open_answers(self) -> bool:
        """Answers are words, and labels stay private."""
        return query_mechanism_class(self.mechanism).open_answers

    def request(self, labels: tuple[str, ...], by_user: bool, field_names: tuple[str, str]) -> AnswerRequest:
        """The calibrated request.

        Args:
            labels: the public label set; not used for open answers.
            by_user: the unit is all rows of one user.
            field_names: how prompts call text and label, unless the form says otherwise.

        Raises:
            UsageError: a value is out of range.
        """
        if not self.open_answers and len(labels) < 2:
            raise UsageError("Votes need at least two labels: choose them in step 1, or ask for answers in words.")
        labels = () if self.open_answers else labels
        return AnswerRequest(
            template=self._template(labels, field_names),
            mechanism=self._mechanism(),
            target=PrivacyTarget(self.epsilon, self.delta),
            queries=self.queries,
            labels=labels,
            by_user=by_user,
            retrieval=Retrieval.THRESHOLD if self.open_answers else Retrieval(self.retrieval),
            shards=self.shards,
            neighbours=self.neighbours,
            answer_tokens=self.answer_tokens,
        ).calibrated()

    def _template(self, labels: tuple[str, ...], field_names: tuple[str, str]) -> PromptTemplate:
        text = self.text_name or field_names[0]
        label = self.label_name or (field_names[1] if labels else "Answer")
        usual = answer_template(labels, text, label)
        return PromptTemplate(self.instruction or usual.instruction, usual.text, usual.label)

    def _mechanism(self) -> QueryMechanism:
        owner = query_mechanism_class(self.mechanism)
        pairs = zip(described(), self.parameters, strict=True)
        values: dict[str, Any] = {
            each.name: type(each.default)(value) for (of, each), value in pairs if of.name == self.mechanism
        }
        return owner(**values)
