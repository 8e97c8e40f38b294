"""`query`, `evaluate`, `score` and `export`: the uses of a demo set, and its accuracy on private rows."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mechanisms import api, confidence
from mechanisms.api import By
from mechanisms.cli.options import (
    add_device,
    add_json,
    add_model,
    add_private_rows,
    add_rows,
    add_settings,
    check_apart,
    check_limit,
    check_says_something,
    in_json,
    load_model,
    loaded,
    loaded_private,
    not_private,
    progress,
    report_rows,
    show,
    spec_of,
    warn_of_owners,
)
from mechanisms.demos.demo_set import DEMONSTRATIONS, DIRECTIONS, PUBLIC_ONLY, TOO_FEW, DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import BOTH, Scorecard
from mechanisms.evaluation.reader import check_labels, readers_in_words, same_reader
from mechanisms.evaluation.remote_reader import RemoteReader
from mechanisms.exports.export_format import ExportExtras, ReleasedFile, format_named, format_names
from mechanisms.files import text_of
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.listed import default_name
from mechanisms.inference.remote import KEY_VARIABLE, ChatServer, ServerAddress, key_from_environment
from mechanisms.records import Dataset
from mechanisms.runs.score import USUAL_SHARE, ScoredSet, ScoreFound
from mechanisms.sampling import ADJACENCY

READER_URL, READER_MODEL = "--reader-url", "--reader-model"
_NO_WRITER = "its writer, {writer}, is not among the models that are listed and on this machine"
_OTHER_READER = "another model wrote the set: read here by {reader}, without what was measured for the other one"
_NO_LABEL = "The answer names no label of the set, or several."


def _add_query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("demos", metavar="DEMOS")
    parser.add_argument("text")
    _add_by(parser)
    _add_reader_options(parser)
    add_json(parser)
    parser.set_defaults(run=_query)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("demos", metavar="DEMOS")
    parser.add_argument("--test", required=True, metavar="FILE")
    add_rows(parser)
    parser.add_argument("--limit", type=int, help="use only the first rows")
    _add_by(parser)
    _add_reader_options(parser)
    add_json(parser)
    parser.set_defaults(run=_evaluate)


def _add_by(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses what classifies."""
    words = (
        "what classifies: the model behind the demonstrations, the set's directions, which need no language model, or "
        "both together (default: what the set's private score recommends, else model)"
    )
    parser.add_argument("--by", choices=[*By], help=words)


def _add_reader_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a local model, and of a server with its model's name."""
    group = parser.add_argument_group(
        "reader",
        "a model of this machine, or one behind an OpenAI-compatible address, to which the demonstrations and the "
        f"queries then leave. If that wants a key: {KEY_VARIABLE} in the environment, and nowhere else.",
    )
    group.add_argument("--model", metavar="NAME", help=f"of this machine (default: {default_name()})")
    add_device(group)
    group.add_argument(
        READER_URL, metavar="URL", help="base of an API, such as https://HOST/v1; http:// for this machine alone"
    )
    group.add_argument(READER_MODEL, metavar="NAME", help="the model as that server calls it")


def _remote_reader(options: argparse.Namespace) -> RemoteReader | None:
    """The remote reader, or None if the options name none; nothing is sent yet. Raises a UsageError if the options
    contradict each other."""
    if options.reader_url is None and options.reader_model is None:
        return None
    if options.reader_url is None or options.reader_model is None:
        raise UsageError(f"A reader elsewhere needs both {READER_URL} and {READER_MODEL}.")
    if options.model is not None:
        raise UsageError(f"One model reads: leave out --model, or {READER_URL} and {READER_MODEL}.")
    address = ServerAddress.of(options.reader_url)
    return RemoteReader(ChatServer(address, options.reader_model, key_from_environment()))


def _model(options: argparse.Namespace, written: DemoSet) -> LanguageModel:
    """Load the local model, and print a note if another one wrote the set."""
    model = load_model(options.model)
    if not same_reader(written, model):
        progress(readers_in_words(written, model))
    return model


def _models(written: DemoSet, reader: LanguageModel | RemoteReader) -> dict[str, Any]:
    same = not isinstance(reader, RemoteReader) and same_reader(written, reader)
    return {"written_with": written.model_id, "read_by": reader.name, "same_model": same}


def _query(options: argparse.Namespace) -> None:
    check_says_something(options.text)
    written, remote = api.read(options.demos), _remote_reader(options)
    check_labels(written.labels)
    if remote is not None and options.by not in (None, By.MODEL):
        raise UsageError("A model elsewhere answers in words: leave out --by, or --reader-url.")
    if remote is not None:
        for line in api.about_to_send(remote, written):
            progress(line)
        label = api.label_remotely(written, options.text, remote)
        if label is None:
            progress(_NO_LABEL)
        show(options, {"label": label, **_models(written, remote)})
        return
    by = api.read_by(written, options.by)
    model = None if by is By.DIRECTIONS else _model(options, written)
    [prediction] = api.predictions(written, [options.text], model, by=by)
    readings = {"": prediction.answer, "_calibrated": prediction.calibrated, "_raw": prediction.raw}
    if model is None:
        readings = {"": prediction.answer}
    labels = {f"label{way}": written.labels[int(each.argmax())] for way, each in readings.items()}
    probabilities = {
        f"probabilities{way}": dict(zip(written.labels, each.tolist(), strict=True)) for way, each in readings.items()
    }
    terms = not_private((), written.certificate.why_not_private)
    read = _models(written, model) if model else {"written_with": written.model_id}
    show(options, labels | probabilities | {"by": str(by)} | read | terms)


def _evaluate(options: argparse.Namespace) -> None:
    written, remote = api.read(options.demos), _remote_reader(options)
    check_limit(options)
    check_labels(written.labels)
    whole = loaded(options, options.test, written.labels, name="test file")
    test = replace(whole, records=whole.records[: options.limit])
    if remote is not None:
        show(options, _evaluated_elsewhere(remote, written, whole, test))
        return
    owners = api.mark_test_file(whole)
    warn_of_owners(owners)
    terms = not_private(owners, written.certificate.why_not_private)
    model = _model(options, written)
    document = {"rows": 0, **_models(written, model), **terms}
    by = api.read_by(written, options.by)
    found = api.evaluate(written, test, model, told=report_rows)
    show(options, document | {"by": str(by)} | _of_labels(found, written.labels))


def _of_labels(found: Mapping[str, Scorecard], labels: Sequence[str]) -> dict[str, Any]:
    own = [*found.values()][-1]
    place, naming = own.majority
    document = {
        "rows": own.raw.total,
        "level": confidence.LEVEL,
        "majority": {"label": labels[place]} | in_json(naming),
    }
    for name, card in found.items():
        if name in (DIRECTIONS, BOTH):
            document[name] = in_json(card.raw) | {"balanced": in_json(card.balanced)}
            continue
        document[name] = {
            "raw": in_json(card.raw),
            **({"calibrated": in_json(card.calibrated)} if card.calibrated else {"without_answer": sum(card.silent)}),
            **({"prior": in_json(card.corrected)} if card.corrected else {}),
            "balanced": in_json(card.balanced),
            "recall": {label: in_json(each) for label, each in zip(labels, card.recalls, strict=True) if each},
            "confusion": {"labels": list(labels), "counts": card.confusion.tolist()},
        }
    return document


def _evaluated_elsewhere(reader: RemoteReader, demo_set: DemoSet, whole: Dataset, test: Dataset) -> dict[str, Any]:
    for line in api.about_to_send(reader, demo_set, whole):
        progress(line)
    api.mark_test_file(whole)  # the rows may become part of a private data set later
    left_out = dict[str, Any]()
    writer = api.writer_of(demo_set) if demo_set.demonstrations else None
    if writer is None and demo_set.demonstrations:
        reason = _NO_WRITER.format(writer=demo_set.model_id)
        progress(f"{PUBLIC_ONLY} is left out: {reason}.")
        left_out = {"left_out": {PUBLIC_ONLY: reason}}
    found = api.evaluate(demo_set, test, reader, writer=writer, told=report_rows)
    return {**_models(demo_set, reader), **_of_labels(found, demo_set.labels), **left_out}


def _add_score(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("csv", metavar="FILE")
    parser.add_argument("demos", metavar="DEMOS", help="a demo set, or JSON by hand with 'demonstrations' and 'task'")
    add_private_rows(parser)
    parser.add_argument("--epsilon", type=float, required=True, help="what the units that score pay")
    parser.add_argument(
        "--share",
        type=float,
        default=USUAL_SHARE,
        metavar="W",
        help="the part of the units that scores: in a recipe with roles, the scorers' (default: %(default)s)",
    )
    parser.add_argument(
        "--prototypes-epsilon",
        type=float,
        metavar="E",
        help="also score class means of embeddings, without a language model; the units that do not score pay E",
    )
    add_model(parser)
    add_settings(parser, ("delta", "max_record_tokens"))
    add_json(parser)
    parser.set_defaults(run=_score)


def _score(options: argparse.Namespace) -> None:
    scored = api.read_any(options.demos)
    spec = spec_of(options)
    dataset = loaded_private(options, scored.labels)
    for warning in api.recognise(dataset):
        progress(warning)
    model = load_model(options.model)
    if scored.model_sha256 not in (None, model.sha256):
        progress(_OTHER_READER.format(reader=model.name))
    settings = spec.model_dump(include={"epsilon", "delta", "max_record_tokens"})
    found = api.score(
        scored, dataset, share=options.share, prototypes_epsilon=options.prototypes_epsilon, model=model, **settings
    )
    for name, arm in found.score.arms.items():
        if arm.wide:
            progress(f"{name}: {TOO_FEW} to say much; raise --share or --epsilon")
    read = {**({"written_with": scored.writer} if scored.writer else {}), "read_by": model.name}
    show(options, read | _of_score(found, options.share, scored, dataset))


def _of_score(found: ScoreFound, share: float, scored: ScoredSet, dataset: Dataset) -> dict[str, Any]:
    """A document like a demo set's `score`, with the cost, and with the sizes by which labels are weighed."""
    own = found.score.exported(without=DEMONSTRATIONS not in found.score.arms)
    return {
        **found.score.to_json(),
        "gains": {
            f"{own} over {name}": {"value": gain.accuracy, "interval": list(gain.interval)}
            for name, gain in found.score.gains.items()
        },
        "private": found.reason is None,
        **({"reason": found.reason} if found.reason else {}),
        "epsilon": found.claim.epsilon,
        "epsilon_check": found.claim.check,
        "delta": found.claim.delta,
        "unit": dataset.unit,
        "adjacency": ADJACENCY,
        "share": share,
        "event": found.event.to_json(),
        "public_inputs": list(found.public_inputs),
        **({} if scored.sizes is None else {"sizes": dict(scored.sizes), "weights": dict(scored.weights)}),
        "shown": list(api.disclosures(dataset)),
        "spent_before": {"epsilon": found.before.epsilon, "delta": found.before.delta},
    }


def _add_export(parser: argparse.ArgumentParser) -> None:
    listed = "; ".join(f"{name}: {format_named(name).title}" for name in format_names())
    parser.epilog = f"Formats: {listed}."
    parser.add_argument("demos", metavar="DEMOS", help="a demo set, as `synthesize` and the app write it")
    parser.add_argument("--format", required=True, choices=format_names(), metavar="NAME", help="see below")
    parser.add_argument(
        "--out", required=True, metavar="PATH", help="a file; a format of several files makes a folder, or a .zip"
    )
    tests = parser.add_argument_group("tests of the prompt", "for promptfoo; they leave with the set")
    tests.add_argument("--test", metavar="FILE", help="labelled texts that took no part")
    add_rows(tests)
    card = parser.add_argument_group("what the card of a Hugging Face data set says, and the set does not know")
    card.add_argument("--licence", metavar="ID", help="of the texts, such as cc-by-4.0 (default: none is stated)")
    card.add_argument("--language", metavar="CODE", help="of the texts, such as en (default: none is stated)")
    add_json(parser)
    parser.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> None:
    released = ReleasedFile.read(text_of(options.demos))
    made, chosen = released.demo_set, format_named(options.format)
    check_apart(options.out, but=(options.demos, options.test))
    test = loaded(options, options.test, made.labels, name="test file") if options.test else None
    card = {"licence": options.licence, "language": options.language}
    written = [str(path) for path in api.export(released.text, chosen.name, options.out, test=test, **card)]
    added = ExportExtras(None if test is None else test.records, **card)
    for said in filter(None, (chosen.caution(made), chosen.reading(made), chosen.advice(made, added))):
        progress(said)
    show(options, {"format": chosen.name, "files": written, "digest": released.digest})


COMMANDS = {"query": _add_query, "evaluate": _add_evaluate, "score": _add_score, "export": _add_export}
