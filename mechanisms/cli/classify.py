"""`query` and `evaluate`: the labels that a model gives behind a demo set."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mechanisms import api, confidence
from mechanisms.cli.output import add_json, in_json, not_private, progress, show, told_of_owners, told_of_rows
from mechanisms.cli.rows import add_rows, check_says_something, loaded
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import AS_READ, PUBLIC_ONLY, Comparison, Scorecard
from mechanisms.evaluation.reader import check_labels, readers_in_words, same_reader
from mechanisms.evaluation.remote_reader import RemoteReader
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.listing import default_name
from mechanisms.inference.remote import KEY_VARIABLE, ChatServer, ServerAddress, key_from_environment
from mechanisms.records import Dataset

READER_URL, READER_MODEL = "--reader-url", "--reader-model"
_NO_WRITER = "its writer, {writer}, is not among the models that are listed and on this machine"
_NO_LABEL = "The answer names no label of the set, or several."


def _add_query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("demos", metavar="DEMOS")
    parser.add_argument("text")
    _add_reader_options(parser)
    add_json(parser)
    parser.set_defaults(run=_query)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("demos", metavar="DEMOS", nargs="+", help="one set, or two to compare on the same rows")
    parser.add_argument("--test", required=True, metavar="FILE")
    add_rows(parser)
    parser.add_argument("--limit", type=int, help="use only the first rows")
    _add_reader_options(parser)
    add_json(parser)
    parser.set_defaults(run=_evaluate)


# The reader of a set: a model on this machine, or one on a server.


def _add_reader_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a local model, and of a server with its model's name."""
    group = parser.add_argument_group(
        "reader",
        "a model of this machine, or one behind an OpenAI-compatible address, to which the demonstrations and the "
        f"queries then leave. If that wants a key: {KEY_VARIABLE} in the environment, and nowhere else.",
    )
    group.add_argument("--model", metavar="NAME", help=f"of this machine (default: {default_name()})")
    group.add_argument(
        READER_URL, metavar="URL", help="base of an API, such as https://HOST/v1; http:// for this machine alone"
    )
    group.add_argument(READER_MODEL, metavar="NAME", help="the model as that server calls it")


def _remote_reader(options: argparse.Namespace) -> RemoteReader | None:
    """The remote reader, if the options name one; nothing is sent yet.

    Raises:
        UsageError: its options are incomplete, a local model is named too, or the address or key is invalid.
    """
    if options.reader_url is None and options.reader_model is None:
        return None
    if options.reader_url is None or options.reader_model is None:
        raise UsageError(f"A reader elsewhere needs both {READER_URL} and {READER_MODEL}.")
    if options.model is not None:
        raise UsageError(f"One model reads: leave out --model, or {READER_URL} and {READER_MODEL}.")
    address = ServerAddress.of(options.reader_url)
    return RemoteReader(ChatServer(address, options.reader_model, key_from_environment()))


def _model(options: argparse.Namespace, *written: DemoSet) -> LanguageModel:
    """Load the local model, with a note on each set that another model wrote."""
    model = api.load_model(options.model or default_name())
    for each in written:
        if not same_reader(each, model):
            progress(readers_in_words(each, model))
    return model


def _models(written: DemoSet, reader: LanguageModel | RemoteReader) -> dict[str, Any]:
    same = not isinstance(reader, RemoteReader) and same_reader(written, reader)
    return {"written_with": written.model_id, "read_by": reader.name, "same_model": same}


# `query`.


def _query(options: argparse.Namespace) -> None:
    check_says_something(options.text)
    written, remote = api.read(options.demos), _remote_reader(options)
    check_labels(written.labels)
    if remote is not None:
        show(options, _queried_elsewhere(remote, written, options.text))
        return
    model = _model(options, written)
    terms = _models(written, model) | not_private((), written.certificate.why_not_private)
    [prediction] = api.predictions(written, [options.text], model)
    readings = {"": prediction.answer, "_calibrated": prediction.calibrated, "_raw": prediction.raw}
    labels = {f"label{way}": written.labels[int(each.argmax())] for way, each in readings.items()}
    probabilities = {
        f"probabilities{way}": dict(zip(written.labels, each.tolist(), strict=True)) for way, each in readings.items()
    }
    show(options, labels | probabilities | terms)


def _queried_elsewhere(reader: RemoteReader, written: DemoSet, text: str) -> dict[str, Any]:
    for line in api.about_to_send(reader, [written]):
        progress(line)
    label = api.label_remotely(written, text, reader)
    if label is None:
        progress(_NO_LABEL)
    return {"label": label, **_models(written, reader)}


# `evaluate`.


def _evaluate(options: argparse.Namespace) -> None:
    written = [api.read(path) for path in options.demos]
    remote = _remote_reader(options)
    if options.limit is not None and options.limit < 1:
        raise UsageError("--limit must be at least 1.")
    if len(written) > 2:
        raise UsageError("evaluate takes one set, or two to compare.")
    for each in written:
        check_labels(each.labels)
    whole = loaded(options, options.test, written[0].labels, name="test file")
    test = replace(whole, records=whole.records[: options.limit])
    if remote is not None:
        show(options, _evaluated_elsewhere(remote, options.demos, written, whole, test))
        return
    owners = api.mark_test_file(whole)
    told_of_owners(owners)
    terms = not_private(owners, *(each.certificate.why_not_private for each in written))
    model = _model(options, *written)
    if len(written) > 1:
        show(options, _compared(options.demos, written, test, model) | terms)
        return
    document = {"rows": 0, **_models(written[0], model), **terms}
    found = api.evaluate(written[0], test, model, told=told_of_rows)
    show(options, document | _of_labels(found, written[0].labels))


# The documents with figures of one set, of two sets, and of a remote reader.


def _of_labels(found: Mapping[str, Scorecard], labels: Sequence[str]) -> dict[str, Any]:
    own = [*found.values()][-1]
    place, naming = own.majority
    return {
        "rows": own.raw.total,
        "level": confidence.LEVEL,
        "majority": {"label": labels[place]} | in_json(naming),
        **{name: _readings(each, labels) for name, each in found.items()},
    }


def _readings(card: Scorecard, labels: Sequence[str]) -> dict[str, Any]:
    return {
        "raw": in_json(card.raw),
        **({"calibrated": in_json(card.calibrated)} if card.calibrated else {"without_answer": sum(card.silent)}),
        **({"prior": in_json(card.corrected)} if card.corrected else {}),
        "balanced": in_json(card.balanced),
        "recall": {label: in_json(each) for label, each in zip(labels, card.recalls, strict=True) if each},
        "confusion": {"labels": list(labels), "counts": card.confusion.tolist()},
    }


def _compared(
    names: Sequence[str], sets: Sequence[DemoSet], test: Dataset, reader: LanguageModel | RemoteReader
) -> dict[str, Any]:
    """Two sets compared in every reading; `names` are their files' names."""
    first, second = sets
    found = api.compare(first, second, test, reader, told=lambda done: progress(f"{done} rows read"))
    [total] = {each.first.total for each in found.values()}
    writers = [{"file": name, "written_with": each.model_id} for name, each in zip(names, sets, strict=True)]
    words = {}
    if AS_READ not in found:  # a reader that answers in words
        [read] = found.values()
        words = {"without_answer": dict(zip(("first", "second"), read.silent, strict=True))}
    return {
        "rows": total,
        "level": confidence.LEVEL,
        **dict(zip(("first", "second"), writers, strict=True)),
        "read_by": reader.name,
        **words,
        **{name: _of_both(each) for name, each in found.items()},
    }


def _of_both(each: Comparison) -> dict[str, Any]:
    return {
        "first": in_json(each.first),
        "second": in_json(each.second),
        "only_first_right": each.only_first,
        "only_second_right": each.only_second,
        "mcnemar_p": each.p_value,
    }


def _evaluated_elsewhere(
    reader: RemoteReader, names: Sequence[str], written: Sequence[DemoSet], whole: Dataset, test: Dataset
) -> dict[str, Any]:
    for line in api.about_to_send(reader, written, whole):
        progress(line)
    api.mark_test_file(whole)  # the rows may become part of a private data set later
    if len(written) > 1:
        return _compared(names, written, test, reader)
    [demo_set], left_out = written, dict[str, Any]()
    writer = api.writer_of(demo_set) if demo_set.demonstrations else None
    if writer is None and demo_set.demonstrations:
        reason = _NO_WRITER.format(writer=demo_set.model_id)
        progress(f"{PUBLIC_ONLY} is left out: {reason}.")
        left_out = {"left_out": {PUBLIC_ONLY: reason}}
    found = api.evaluate(demo_set, test, reader, writer=writer, told=told_of_rows)
    return {**_models(demo_set, reader), **_of_labels(found, demo_set.labels), **left_out}


COMMANDS = {"query": _add_query, "evaluate": _add_evaluate}
