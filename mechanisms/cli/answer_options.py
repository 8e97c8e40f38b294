"""The options of `answer`, and the public request that they describe."""

from __future__ import annotations

import argparse
from typing import Any

from mechanisms.accounting import PrivacyTarget
from mechanisms.answers.request import AnswerRequest
from mechanisms.cli.label_names import add_label_names, labels_of
from mechanisms.cli.parameter_options import add_parameter_options, described, given
from mechanisms.discovery import Parameter, parameters
from mechanisms.errors import UsageError
from mechanisms.inference.models.listing import EMBEDDED
from mechanisms.queries import QueryMechanism, Retrieval, query_mechanism_class, query_mechanism_names
from mechanisms.records import PromptTemplate, answer_template


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """Files and columns, mechanism, retrieval, budget, prompts."""
    data = parser.add_argument_group("data")
    data.add_argument("--text-column", default="text", metavar="A[,B,...]", help="several are joined in this order")
    data.add_argument("--label-column", default="label", help="the label, or the answer in words")
    add_label_names(data)
    data.add_argument("--unit-column", help="user id: the privacy unit becomes all rows of a user")
    data.add_argument("--labels", metavar="A,B,...", help="the public label set; leave it out for open answers")
    data.add_argument("--name", help="the data set's name in the ledger (default: the file's name)")
    answers = parser.add_argument_group("answers")
    answers.add_argument("--mechanism", default="knn-votes", choices=query_mechanism_names())
    answers.add_argument("--retrieval", default=Retrieval.THRESHOLD.value, choices=[each.value for each in Retrieval])
    answers.add_argument(
        "--threshold",
        type=float,
        default=AnswerRequest.threshold,
        help="cosine similarity from which on a row takes part, and pays (default: %(default)s)",
    )
    answers.add_argument("--shards", type=int, default=AnswerRequest.shards, metavar="S", help="groups asked apart")
    answers.add_argument("--neighbours", type=int, default=AnswerRequest.neighbours, metavar="N", help="examples each")
    rate = answers.add_mutually_exclusive_group()
    rate.add_argument("--rate", type=float, metavar="q", help="poisson: probability that a row is drawn")
    rate.add_argument("--size", type=int, metavar="n", help="poisson: public number of rows; the rate is S N / n")
    budget = parser.add_argument_group("budget")
    budget.add_argument("--queries", type=int, required=True, metavar="Q", help="answers that every row can pay for")
    budget.add_argument("--epsilon", type=float, required=True, help="what all answers together may cost")
    budget.add_argument("--delta", type=float, required=True, help="failure probability of the claim, well under 1/n")
    budget.add_argument("--new-reservation", action="store_true", help="pay again, for a changed file or other terms")
    prompts = parser.add_argument_group("prompts")
    prompts.add_argument("--instruction", help="what a prompt asks for")
    prompts.add_argument("--text-field", help="how prompts call the text (default: the first text column's name)")
    prompts.add_argument("--label-field", help="how prompts call the label (default: the column's name)")
    prompts.add_argument("--max-record-tokens", type=int, default=AnswerRequest.max_record_tokens)
    prompts.add_argument("--max-query-tokens", type=int, default=AnswerRequest.max_query_tokens)
    prompts.add_argument("--answer-tokens", type=int, default=AnswerRequest.answer_tokens)
    prompts.add_argument("--model", default=EMBEDDED)
    add_parameter_options(parser, _described())


def _described() -> dict[str, dict[str, Parameter]]:
    """The mechanisms' parameters but their noise, which follows from epsilon."""
    flags = described(query_mechanism_class(name) for name in query_mechanism_names())
    return {flag: users for flag, users in flags.items() if flag != "noise"}


def answer_request(options: argparse.Namespace) -> AnswerRequest:
    """The calibrated request that the options describe.

    Raises:
        UsageError: a value is out of range, or does not go with the others.
    """
    labels = labels_of(options)
    return AnswerRequest(
        template=_template(options, labels),
        mechanism=_mechanism(options),
        target=PrivacyTarget(options.epsilon, options.delta),
        queries=options.queries,
        labels=labels,
        by_user=options.unit_column is not None,
        retrieval=Retrieval(options.retrieval),
        threshold=options.threshold,
        shards=options.shards,
        neighbours=options.neighbours,
        rate=_rate(options),
        max_record_tokens=options.max_record_tokens,
        max_query_tokens=options.max_query_tokens,
        answer_tokens=options.answer_tokens,
    ).calibrated()


def _rate(options: argparse.Namespace) -> float | None:
    if options.size is None:
        return None if options.rate is None else float(options.rate)
    if options.size < 1:
        raise UsageError("--size must be at least 1.")
    return min(1.0, float(options.shards * options.neighbours / options.size))


def _mechanism(options: argparse.Namespace) -> QueryMechanism:
    chosen, values = query_mechanism_class(options.mechanism), given(options, _described())
    own = {each.flag: each.name for each in parameters(chosen)}
    if foreign := [flag for flag in values if flag not in own]:
        raise UsageError(f"--{foreign[0]} is no parameter of '{options.mechanism}'.")
    arguments: dict[str, Any] = {own[flag]: value for flag, value in values.items()}
    return chosen(**arguments)


def _template(options: argparse.Namespace, labels: tuple[str, ...]) -> PromptTemplate:
    text = options.text_field or options.text_column.split(",")[0]
    usual = answer_template(labels, text, options.label_field or options.label_column)
    return PromptTemplate(options.instruction or usual.instruction, usual.text, usual.label)
