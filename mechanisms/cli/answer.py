"""`answer`: private answers to questions about the rows of a file, charged before the first."""

from __future__ import annotations

import argparse
from typing import Any

from mechanisms import api, confidence
from mechanisms.accounting import PrivacyTarget
from mechanisms.answers import (
    AnswerRequest,
    AnswerSession,
    AnswersOpened,
    AnswersScored,
    answer_in_words,
    odds_in_words,
    reservation_in_words,
)
from mechanisms.cli.options import (
    FROM_THE_COLUMN,
    add_json,
    add_labels,
    add_model,
    add_parameter_options,
    add_private_rows,
    check_says_something,
    described,
    field_names,
    given,
    in_json,
    labels_of,
    loaded,
    loaded_private,
    not_private,
    progress,
    show,
    told_of_owners,
    told_of_rows,
)
from mechanisms.data.sizes import SCORED
from mechanisms.discovery import Parameter, parameters
from mechanisms.errors import UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.queries import Retrieval, query_mechanism_class, query_mechanism_names
from mechanisms.records import Dataset, PromptTemplate, Record, default_template


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("csv", metavar="FILE")
    parser.add_argument("query", nargs="?", help="the question")
    parser.add_argument("--test", metavar="FILE", help="ask every row of a labelled file instead, and score them")
    parser.add_argument("--limit", type=int, help="ask only the first rows of the test file")
    parser.add_argument("--test-seed", type=int, help="reproducible and NOT PRIVATE: for tests only")
    data = parser.add_argument_group("data", "--label-column: the label, or the answer in words, without --labels")
    add_private_rows(data)
    add_labels(data, required=False)
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
    prompts.add_argument("--text-field", help=f"how prompts call the text (default: {FROM_THE_COLUMN})")
    prompts.add_argument("--label-field", help=f"how prompts call the label (default: {FROM_THE_COLUMN})")
    prompts.add_argument("--max-record-tokens", type=int, default=AnswerRequest.max_record_tokens)
    prompts.add_argument("--max-query-tokens", type=int, default=AnswerRequest.max_query_tokens)
    prompts.add_argument("--answer-tokens", type=int, default=AnswerRequest.answer_tokens)
    add_model(prompts)
    add_parameter_options(parser, _described())
    add_json(parser)
    parser.set_defaults(run=_answer)


def _described() -> dict[str, dict[str, Parameter]]:
    """The mechanisms' parameters except their noise, which follows from epsilon."""
    flags = described(query_mechanism_class(name) for name in query_mechanism_names())
    return {flag: users for flag, users in flags.items() if flag != "noise"}


def _request(options: argparse.Namespace) -> AnswerRequest:
    """The calibrated request that the options describe."""
    labels, rate = labels_of(options), options.rate
    if options.size is not None:
        if options.size < 1:
            raise UsageError("--size must be at least 1.")
        rate = min(1.0, options.shards * options.neighbours / options.size)
    chosen, values = query_mechanism_class(options.mechanism), given(options, _described())
    own = {each.flag: each.name for each in parameters(chosen)}
    if foreign := [flag for flag in values if flag not in own]:
        raise UsageError(f"--{foreign[0]} is no parameter of '{options.mechanism}'.")
    usual = default_template(labels, *field_names(options))
    return AnswerRequest(
        template=PromptTemplate(options.instruction or usual.instruction, usual.text, usual.label),
        mechanism=chosen(**{own[flag]: value for flag, value in values.items()}),
        target=PrivacyTarget(options.epsilon, options.delta),
        queries=options.queries,
        labels=labels,
        by_user=options.unit_column is not None,
        retrieval=Retrieval(options.retrieval),
        threshold=options.threshold,
        shards=options.shards,
        neighbours=options.neighbours,
        rate=rate,
        max_record_tokens=options.max_record_tokens,
        max_query_tokens=options.max_query_tokens,
        answer_tokens=options.answer_tokens,
    ).calibrated()


def _answer(options: argparse.Namespace) -> None:
    if (options.query is None) == (options.test is None):
        raise UsageError("Give a question, or a file of questions with --test FILE.")
    if options.query is not None:
        check_says_something(options.query)
    if options.limit is not None and options.limit < 1:
        raise UsageError("--limit must be at least 1.")
    if options.test_seed is not None and options.test_seed < 0:
        raise UsageError("--test-seed must not be negative.")
    request = _request(options)
    file = loaded(options, options.test, request.labels, name="test file") if options.test else None
    test = _test_rows(file, options, request) if file else []
    if odds := odds_in_words(request):
        progress(odds)
    dataset = loaded_private(options, request.labels)
    model = None if request.retrieval is Retrieval.LABELS_ONLY else api.load_model(options.model)
    randomness = None if options.test_seed is None else SeededRandomness(options.test_seed)
    session = api.ask_as(request, dataset, model, randomness=randomness, anew=options.new_reservation)
    for line in (*session.opened.notes, reservation_in_words(session.opened)):
        progress(line)
    left = request.queries - session.opened.asked
    if request.rate is not None and len(test) > left:
        raise UsageError(f"This reservation has {left} answers left: ask fewer with --limit.")
    if file is not None:
        show(options, _scored(session, file, test))
        return
    released = session.ask(options.query)
    progress(answer_in_words(session.opened, released))
    document = {
        "answer": released.answer,
        "zero_shot": released.zero_shot or None,
        "abstained": released.abstained,
        "votes": dict(zip(released.labels, released.votes, strict=True)) if released.votes else None,
        "keywords": list(released.keywords),
        "threshold": released.threshold,
        **_terms(session.opened),
        "rho_of_answer": released.rho,
        "delta_of_answer": released.delta,
        "answers_given": released.asked,
        "answers_left": released.sure_left,
    }
    show(options, document)


def _scored(session: AnswerSession, file: Dataset, test: list[Record]) -> dict[str, Any]:
    """The figures with the session's terms, which stand apart if the test file has private rows."""
    owners = api.mark_test_file(file)
    told_of_owners(owners)
    document: dict[str, Any] = {"rows": len(test), "level": confidence.LEVEL}
    for done, event in enumerate(api.ask_all(session, test), start=1):
        if isinstance(event, AnswersScored):
            document["private_answers"] = in_json(event.private)
            document["zero_shot"] = in_json(event.zero_shot) if event.zero_shot else None
            document["abstained"] = event.abstained
        else:
            told_of_rows(done, len(test))
    terms = _terms(session.opened)
    if not owners:
        return document | terms
    shown = sorted({*session.opened.disclosures, SCORED})
    marked = terms | {"curator_diagnostics_shown": True, "shown": shown}
    return document | {"session": marked} | not_private(owners)


def _test_rows(file: Dataset, options: argparse.Namespace, request: AnswerRequest) -> list[Record]:
    usable = [row for row in file.records if not request.labels or row.label in request.labels][: options.limit]
    if not usable:
        raise UsageError(f"No test row has one of the labels {', '.join(request.labels)}.")
    if request.rate is not None and len(usable) > request.queries:
        raise UsageError(f"Poisson samples give {request.queries} answers in all: raise --queries to {len(usable)}.")
    return usable


def _terms(opened: AnswersOpened) -> dict[str, Any]:
    return {
        "epsilon": opened.claim.epsilon,
        "delta": opened.claim.delta,
        "unit": opened.unit,
        "queries": opened.request.queries,
        "noise": opened.request.mechanism.deviation,
        "private": opened.private,
        "public_inputs": list(opened.request.public_inputs),
        "curator_diagnostics_shown": bool(opened.disclosures),
        "shown": list(opened.disclosures),
        "reservation": "continued" if opened.continued else "new",
    }


COMMANDS = {"answer": _add_options}
