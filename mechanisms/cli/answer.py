"""`answer`: private answers to questions about the rows of a file, charged before the first answer."""

from __future__ import annotations

import argparse
from typing import Any

from mechanisms import api, confidence
from mechanisms.answers.plan import AnswerPlan, odds_in_words, plan_answers
from mechanisms.answers.session import (
    AnswerSession,
    AnswersOpened,
    AnswersScored,
    answer_in_words,
    reservation_in_words,
)
from mechanisms.answers.spec import AnswerSpec, given_parameters
from mechanisms.cli.options import (
    FROM_THE_COLUMN,
    add_flags,
    add_json,
    add_labels,
    add_model,
    add_parameter_options,
    add_private_rows,
    add_test_seed,
    check_limit,
    check_says_something,
    described,
    field_names,
    in_json,
    labels_of,
    load_model,
    loaded,
    loaded_private,
    not_private,
    progress,
    randomness_of,
    read_spec,
    report_rows,
    show,
    warn_of_owners,
)
from mechanisms.data.disclosures import SCORED
from mechanisms.discovery import Parameter
from mechanisms.errors import UsageError
from mechanisms.queries import Retrieval, query_mechanism_class, query_mechanism_names
from mechanisms.records import Dataset, Record


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("csv", metavar="FILE")
    parser.add_argument("query", nargs="?", help="the question")
    parser.add_argument("--test", metavar="FILE", help="ask every row of a labelled file instead, and score them")
    parser.add_argument("--limit", type=int, help="ask only the first rows of the test file")
    add_test_seed(parser)
    data = parser.add_argument_group("data", "--label-column: the label, or the answer in words, without --labels")
    add_private_rows(data)
    add_labels(data, required=False)
    parser.add_argument("--new-reservation", action="store_true", help="pay again, for a changed file or other terms")
    add_flags(parser, AnswerSpec.flagged(), dict.fromkeys(("text_field", "label_field"), FROM_THE_COLUMN))
    add_model(parser)
    add_parameter_options(parser, _described())
    add_json(parser)
    parser.set_defaults(run=_answer)


def _described() -> dict[str, dict[str, Parameter]]:
    return described((query_mechanism_class(name) for name in query_mechanism_names()), given_parameters)


def _plan(options: argparse.Namespace) -> AnswerPlan:
    """The calibrated plan that the options describe."""
    text_field, label_field = field_names(options)
    spec = read_spec(AnswerSpec, options, _described(), text_field=text_field, label_field=label_field)
    return plan_answers(spec, labels_of(options), options.unit_column is not None)


def _answer(options: argparse.Namespace) -> None:
    if (options.query is None) == (options.test is None):
        raise UsageError("Give a question, or a file of questions with --test FILE.")
    if options.query is not None:
        check_says_something(options.query)
    check_limit(options)
    randomness = randomness_of(options)
    plan = _plan(options)
    file = loaded(options, options.test, plan.labels, name="test file") if options.test else None
    test = _test_rows(file, options, plan) if file else []
    if odds := odds_in_words(plan):
        progress(odds)
    dataset = loaded_private(options, plan.labels)
    model = None if plan.spec.retrieval is Retrieval.LABELS_ONLY else load_model(options.model)
    session = api.ask_as(plan, dataset, model, randomness=randomness, anew=options.new_reservation)
    for line in (*session.opened.notes, reservation_in_words(session.opened)):
        progress(line)
    left = plan.spec.queries - session.opened.answered
    if plan.rate is not None and len(test) > left:
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
        "answers_given": released.answered,
        "answers_left": released.sure_left,
    }
    show(options, document)


def _scored(session: AnswerSession, file: Dataset, test: list[Record]) -> dict[str, Any]:
    """The figures with the session's terms, which are in a field of their own if the test file has private rows."""
    owners = api.mark_test_file(file)
    warn_of_owners(owners)
    document: dict[str, Any] = {"rows": len(test), "level": confidence.LEVEL}
    for done, event in enumerate(api.ask_all(session, test), start=1):
        if isinstance(event, AnswersScored):
            document["private_answers"] = in_json(event.private)
            document["zero_shot"] = in_json(event.zero_shot) if event.zero_shot else None
            document["abstained"] = event.abstained
        else:
            report_rows(done, len(test))
    terms = _terms(session.opened)
    if not owners:
        return document | terms
    shown = sorted({*session.opened.disclosures, SCORED})
    marked = terms | {"curator_diagnostics_shown": True, "shown": shown}
    return document | {"session": marked} | not_private(owners)


def _test_rows(file: Dataset, options: argparse.Namespace, plan: AnswerPlan) -> list[Record]:
    usable = [row for row in file.records if not plan.labels or row.label in plan.labels][: options.limit]
    if not usable:
        raise UsageError(f"No test row has one of the labels {', '.join(plan.labels)}.")
    if plan.rate is not None and len(usable) > plan.spec.queries:
        raise UsageError(f"Poisson samples give {plan.spec.queries} answers in all: raise --queries to {len(usable)}.")
    return usable


def _terms(opened: AnswersOpened) -> dict[str, Any]:
    return {
        "epsilon": opened.claim.epsilon,
        "delta": opened.claim.delta,
        "unit": opened.unit,
        "queries": opened.plan.spec.queries,
        "noise": opened.plan.mechanism.deviation,
        "private": opened.private,
        "public_inputs": list(opened.plan.public_inputs),
        "curator_diagnostics_shown": bool(opened.disclosures),
        "shown": list(opened.disclosures),
        "reservation": "continued" if opened.continued else "new",
    }


COMMANDS = {"answer": _add_options}
