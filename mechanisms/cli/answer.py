"""`answer`: private answers to questions about the rows of a file, paid for one by one."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import Any

from mechanisms import confidence
from mechanisms.accounting import PrivacyLedger
from mechanisms.answers.events import AnswerReleased, AnswersOpened, answer_in_words, reservation_in_words
from mechanisms.answers.odds import odds_in_words
from mechanisms.answers.request import AnswerRequest
from mechanisms.answers.session import AnswerSession, AnswersScored, ArmScores, ask_all, open_session
from mechanisms.cli.answer_options import add_answer_options, answer_request
from mechanisms.cli.label_names import label_names
from mechanisms.cli.output import add_json, progress, show
from mechanisms.cli.scoring import about_to_score, not_private
from mechanisms.data.columns import ColumnMapping, asked_column, to_dataset
from mechanisms.data.sizes import SCORED
from mechanisms.data.sources import name_of, read_source
from mechanisms.data.table import Table
from mechanisms.errors import UsageError
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.embeddings import load_embedder
from mechanisms.noise import Randomness, SecureRandomness, SeededRandomness
from mechanisms.queries import Retrieval
from mechanisms.records import Dataset, Record


def add_commands(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("answer", help="private answers to questions, paid for one by one")
    parser.add_argument("csv", metavar="FILE")
    parser.add_argument("query", nargs="?", help="the question")
    parser.add_argument("--test", metavar="FILE", help="ask every row of a labelled file instead, and score them")
    parser.add_argument("--limit", type=int, help="ask only the first rows of the test file")
    parser.add_argument("--test-seed", type=int, help="reproducible and NOT PRIVATE: for tests only")
    add_answer_options(parser)
    add_json(parser)
    parser.set_defaults(run=_answer)


def _answer(options: argparse.Namespace) -> None:
    if (options.query is None) == (options.test is None):
        raise UsageError("Give a question, or a file of questions with --test FILE.")
    if options.limit is not None and options.limit < 1:
        raise UsageError("--limit must be at least 1.")
    if options.test_seed is not None and options.test_seed < 0:
        raise UsageError("--test-seed must not be negative.")
    request = answer_request(options)
    file = _test_file(options) if options.test else None
    test = _test_rows(file, options, request) if file else []
    if odds := odds_in_words(request):
        progress(odds)
    session = _open(options, request)
    for line in (*session.opened.notes, reservation_in_words(session.opened)):
        progress(line)
    if request.rate is not None and len(test) > session.opened.sure_left:
        raise UsageError(f"{session.opened.sure_left} answers are left of this reservation: ask fewer with --limit.")
    if file is not None:
        show(options, _scored(session, file, test))
        return
    released = session.ask(options.query)
    progress(answer_in_words(session.opened, released))
    show(options, _document(session.opened, released))


def _read(options: argparse.Namespace, path: str, unit: str | None) -> tuple[Table, ColumnMapping]:
    """A file with its text columns joined into one, and how to read it."""
    table = read_source(path)
    for remark in table.remarks:
        progress(remark)
    names = [name.strip() for name in options.text_column.split(",")]
    first, *others = (asked_column(table, name) for name in names)
    joined = first.str.cat(others, sep=" ") if others else first
    frame = table.frame.assign(**{options.text_column: joined})
    return replace(table, frame=frame), ColumnMapping(
        options.text_column, options.label_column, unit, label_names=label_names(options)
    )


def _test_file(options: argparse.Namespace) -> Dataset:
    return to_dataset(*_read(options, options.test, None), "test file", ())


def _scored(session: AnswerSession, file: Dataset, test: list[Record]) -> dict[str, Any]:
    """The figures with the session's terms; apart from them where the rows are somebody's private ones."""
    owners = about_to_score(file)
    terms = _terms(session.opened)
    if not owners:
        return _evaluated(session, test) | terms
    shown = sorted({*session.opened.shown, SCORED})
    marked = terms | {"curator_diagnostics_shown": True, "shown": shown}
    return _evaluated(session, test) | {"session": marked} | not_private(owners)


def _test_rows(file: Dataset, options: argparse.Namespace, request: AnswerRequest) -> list[Record]:
    usable = [row for row in file.records if not request.labels or row.label in request.labels][: options.limit]
    if not usable:
        raise UsageError(f"No test row has one of the labels {', '.join(request.labels)}.")
    if request.rate is not None and len(usable) > request.queries:
        raise UsageError(f"Poisson samples give {request.queries} answers in all: raise --queries to {len(usable)}.")
    return usable


def _open(options: argparse.Namespace, request: AnswerRequest) -> AnswerSession:
    table, mapping = _read(options, options.csv, options.unit_column)
    name = (options.name or name_of(options.csv)).strip()
    dataset = to_dataset(table, mapping, name, request.labels)
    seed = options.test_seed
    randomness: Randomness = SecureRandomness() if seed is None else SeededRandomness(seed)
    model = None if request.retrieval is Retrieval.LABELS_ONLY else load_model(options.model)
    return open_session(
        dataset, request, load_embedder(), model, PrivacyLedger(), randomness, anew=options.new_reservation
    )


def _document(opened: AnswersOpened, released: AnswerReleased) -> dict[str, Any]:
    return {
        "answer": released.answer,
        "zero_shot": released.zero_shot or None,
        "abstained": released.abstained,
        "votes": dict(zip(released.labels, released.votes, strict=True)) if released.votes else None,
        "keywords": list(released.keywords),
        "threshold": released.threshold,
        **_terms(opened),
        "rho_of_answer": released.rho,
        "delta_of_answer": released.delta,
        "answers_given": released.asked,
        "answers_left": released.sure_left,
    }


def _terms(opened: AnswersOpened) -> dict[str, Any]:
    return {
        "epsilon": opened.epsilon,
        "delta": opened.delta,
        "unit": opened.unit,
        "queries": opened.queries,
        "noise": opened.noise,
        "private": opened.private,
        "public_inputs": list(opened.public_inputs),
        "curator_diagnostics_shown": bool(opened.shown),
        "shown": list(opened.shown),
        "reservation": "continued" if opened.continued else "new",
    }


def _evaluated(session: AnswerSession, test: list[Record]) -> dict[str, Any]:
    document: dict[str, Any] = {"rows": len(test), "level": confidence.LEVEL}
    done = 0
    for event in ask_all(session, test):
        match event:
            case AnswerReleased():
                done += 1
                progress(f"{done} of {len(test)}")
            case AnswersScored():
                document["private_answers"] = _arm(event.private)
                document["zero_shot"] = _arm(event.zero_shot) if event.zero_shot else None
                document["abstained"] = event.abstained
    return document


def _arm(scores: ArmScores) -> dict[str, Any]:
    accuracy = scores.accuracy
    interval = [round(bound, 4) for bound in accuracy.interval]
    texts = {name: round(value, 4) for name, value in asdict(scores.texts).items()} if scores.texts else {}
    return {"accuracy": round(accuracy.value, 4), "interval": interval} | texts
