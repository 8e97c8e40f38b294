"""`synthesize`: demonstrations from a private file."""

from __future__ import annotations

import argparse
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.api import run
from mechanisms.cli.config_file import add_config
from mechanisms.cli.options import (
    FROM_THE_COLUMN,
    add_labels,
    add_plan_options,
    add_reading_options,
    field_names,
    labels_of,
    mechanism,
    transform,
)
from mechanisms.cli.output import add_json, check_apart, progress, show, show_json
from mechanisms.cli.run_words import Words, claim_in_words, recipe_in_words
from mechanisms.cli.synthesis_options import (
    accompanying_files,
    add_output_options,
    add_recipe_options,
    add_record_options,
    asked_of_stages,
    asks_for_stages,
    check_staged,
    label_column,
    open_template_of,
    outputs_of,
    read_answered,
    read_labelled,
    read_table_of,
    schema_of,
    template_of,
    write_records,
)
from mechanisms.data.columns import checked_dataset
from mechanisms.data.file_format import formats_in_words
from mechanisms.data.label_names import read_pairs
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.sizes import MeasuredSizes, measure_sizes
from mechanisms.data.sources import name_of
from mechanisms.demos.demo_set import DemoSet, Outputs, to_text
from mechanisms.demos.signature import signed
from mechanisms.errors import TooLong, UsageError
from mechanisms.files import atomic_write, check_writable
from mechanisms.inference.models import load_embedder
from mechanisms.inference.models.engines import ENGINES, LOCAL, opened
from mechanisms.inference.models.listing import default_name
from mechanisms.noise import Randomness, SecureRandomness, SeededRandomness
from mechanisms.records import Dataset, PromptTemplate, default_template
from mechanisms.runs.defaults import LABELLED, RECORDS
from mechanisms.runs.events import RunCompleted
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.lockstep import check_schema
from mechanisms.runs.preview import preview
from mechanisms.runs.recipe_request import RunRequest, has_stages
from mechanisms.runs.request import MIN_TOKENS, SynthesisRequest
from mechanisms.runs.spec import RunSpec
from mechanisms.sampling import Scheme

_SLACK = 1e-6


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("csv", metavar="FILE", help=formats_in_words())
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--label-column", help="default: label, or none ('') where there is an output or one label")
    parser.add_argument("--unit-column", help="user id: the privacy unit becomes all rows of a user")
    add_labels(parser)
    add_reading_options(parser)
    parser.add_argument("--epsilon", type=float, required=True)
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--sizes", metavar="counted|A=n,B=n", help="rows (or users) of each label, declared public")
    sizes.add_argument("--count-epsilon", type=float, metavar="E", help="measure them instead, for a share of epsilon")
    parser.add_argument("--name", help="the data set's name in the ledger (default: the file's name)")
    parser.add_argument("--instruction", help="what a prompt asks for")
    parser.add_argument("--text-field", help=f"how prompts call the text {FROM_THE_COLUMN}")
    parser.add_argument("--label-field", help=f"how prompts call the label {FROM_THE_COLUMN}")
    parser.add_argument("--candidates", type=int, default=SynthesisRequest.candidates, metavar="K")
    length = f"default: {LABELLED.max_record_tokens}, of records {RECORDS.max_record_tokens}"
    parser.add_argument("--max-record-tokens", type=int, help=length)
    parser.add_argument(
        "--text-words", type=int, metavar="N", help="words that a text usually has: lengths left open follow from it"
    )
    parser.add_argument("--max-unit-records", type=int, default=SynthesisRequest.max_unit_records)
    parser.add_argument(
        "--min-tokens", type=int, metavar="T", help=f"tokens before a text may end (default: {MIN_TOKENS})"
    )
    parser.add_argument("--best-of", type=int, default=1, metavar="B", help="write B times the shots, keep the surest")
    parser.add_argument("--drop-duplicates", action="store_true")
    _add_run_options(parser)
    add_record_options(parser)
    add_output_options(parser)
    add_config(parser)
    add_recipe_options(parser)
    add_plan_options(parser, by_rows=True)
    add_json(parser)
    parser.set_defaults(run=_synthesize)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default=default_name())
    parser.add_argument("--engine", choices=ENGINES, default=LOCAL, help="ray: rows over the workers of a cluster")
    parser.add_argument("--out", metavar="FILE", help="where the demo set goes (default: standard output)")
    parser.add_argument("--test-seed", type=int, help="reproducible and NOT PRIVATE: for tests only")
    _add_journal_options(parser)


def _synthesize(options: argparse.Namespace) -> None:
    _check(options)
    schema, outputs = schema_of(options), outputs_of(options)
    if (schema or outputs) and asks_for_stages(options):
        what = "Records" if schema else "Outputs"
        raise UsageError(f"{what} are written token by token: leave out --recipe, --split and --shares.")
    ledger = PrivacyLedger()
    journal = _journal_of(options, ledger)
    dataset = _dataset(options, schema, outputs)
    spec = spec_of(options, schema, outputs)
    staged = spec.in_stages(len(dataset.labels))
    check_staged(options, staged)
    for warning in ledger.rows.recognise(fingerprint(dataset)):
        progress(warning)
    seeded = options.test_seed is not None
    randomness: Randomness = SeededRandomness(options.test_seed) if seeded else SecureRandomness()
    spec.request(dataset)  # refused here, before anything is measured
    with opened(options.model, options.engine) as model:
        if schema:
            check_schema(schema, model)
        embedder = load_embedder() if staged else None
        request = _with_sizes(spec, options, dataset, ledger, randomness, journal).request(dataset)
        with closing(journal) if journal else nullcontext():
            ready = _ready(request, journal)
            words, kept = Words(ready, dataset.name), partial(_keep, options, ledger, journal)
            events = run(ready, dataset, model, ledger, kept, randomness=randomness, journal=journal, embedder=embedder)
            with closing(events):
                for line in (line for event in events for line in words.of(event)):
                    progress(line)


def _keep(
    options: argparse.Namespace,
    ledger: PrivacyLedger,
    journal: RunJournal | None,
    demo_set: DemoSet,
    ended: RunCompleted | None,
) -> None:
    """Write a set where it goes, and, where its run has ended, the run where it was written down."""
    if ended is None:
        progress("ended early: what was released before is kept, with the certificate of the whole run")
    document = signed(demo_set)
    try:
        if options.out and not write_records(options.out, demo_set, document):
            atomic_write(Path(options.out), to_text(document))
    except UsageError:  # the run's file stays as it is too: gone on with, it gives the set again
        progress("The set is on standard output: what it cost stays charged, so keep it from there.")
        show_json(document)
        raise
    if options.json or not options.out:
        show(options, document)
    if journal is not None and ended is not None:
        try:
            journal.end(ended, ledger, demo_set.certificate.disclosures)
        except TooLong as error:
            progress(str(error))


def _dataset(options: argparse.Namespace, schema: RecordSchema | None, outputs: Outputs | None) -> Dataset:
    """The private data set; what is odd about its file, and which rows take no part, is told."""
    if schema:
        table, mapping = read_table_of(options, schema)
    elif outputs:
        table, mapping = read_answered(options)
    else:
        table, mapping = read_labelled(options)
    name = (options.name or name_of(options.csv)).strip()
    return checked_dataset(table, mapping, name, labels_of(options), progress, options.allow_left_out)


def _check(options: argparse.Namespace) -> None:
    if options.sizes is None and options.count_epsilon is None:
        raise UsageError(
            "Say how large each label is: --sizes counted declares the file's counts public (those of users with "
            "--unit-column), --sizes A=n,B=n declares others, --count-epsilon E measures them with noise."
        )
    if options.test_seed is not None and options.test_seed < 0:
        raise UsageError("--test-seed must not be negative.")
    if options.out:
        check_writable(options.out)
    written = (options.out, *accompanying_files(options.out or "").values(), options.journal or options.resume)
    check_apart(*written, but=(options.csv, options.config, options.label_names, options.schema))


def spec_of(options: argparse.Namespace, schema: RecordSchema | None, outputs: Outputs | None) -> RunSpec:
    """What the options ask for; until they are measured, sizes are the smallest that there can be.

    Raises:
        UsageError: a value is out of range, or does not go with the others.
    """
    labels = labels_of(options)
    return RunSpec(
        target=PrivacyTarget(options.epsilon, options.delta),
        sizes=_sizes(options, labels),
        template=_template(options, labels, schema, outputs),
        shots=options.shots_per_label,
        mechanism=mechanism(options),
        transform=transform(options),
        scheme=Scheme(options.scheme),
        subsets=options.subsets,
        per_subset=1 if options.per_subset is None else options.per_subset,
        unit_rows=options.per_subset is None,
        tokens=options.tokens,
        text_words=options.text_words,
        best_of=options.best_of,
        candidates=options.candidates,
        max_record_tokens=options.max_record_tokens,
        max_unit_records=options.max_unit_records,
        min_tokens=options.min_tokens,
        schema=schema,
        outputs=outputs,
        **asked_of_stages(options),
    )


def _sizes(options: argparse.Namespace, labels: tuple[str, ...]) -> Literal["counted"] | dict[str, int]:
    if options.sizes == "counted":
        return "counted"
    return dict.fromkeys(labels, 1) if options.sizes is None else _declared_sizes(options.sizes)


def _with_sizes(
    spec: RunSpec,
    options: argparse.Namespace,
    dataset: Dataset,
    ledger: PrivacyLedger,
    randomness: Randomness,
    journal: RunJournal | None,
) -> RunSpec:
    """Measure the sizes where asked to: the last thing before the run, when everything else has been checked."""
    if options.count_epsilon is None:
        return spec
    if options.count_epsilon >= options.epsilon:
        raise UsageError("--count-epsilon must be smaller than --epsilon: the demonstrations need the rest.")
    if journal is not None and _is_resumed(journal):
        return replace(spec, sizes=_measured_before(journal, fingerprint(dataset).content))
    return replace(spec, sizes=measure_sizes(dataset, options.count_epsilon, options.delta, ledger, randomness))


def _template(
    options: argparse.Namespace, labels: tuple[str, ...], schema: RecordSchema | None, outputs: Outputs | None
) -> PromptTemplate:
    if schema:
        return template_of(options)
    text, label = field_names(options, options.text_column, label_column(options))
    usual = open_template_of(options) if outputs else default_template(labels, text, label)
    given = {"instruction": options.instruction, "text": options.text_field, "label": options.label_field}
    if outputs:
        given["output"] = options.output_field
    return replace(usual, **{name: value for name, value in given.items() if value is not None})


def _declared_sizes(text: str) -> dict[str, int]:
    try:
        return {label.strip(): int(size) for label, size in read_pairs(text)}
    except (ValueError, UsageError) as error:
        raise UsageError("--sizes takes 'counted', or LABEL=N for every label, separated by commas.") from error


def _ready(asked: RunRequest, journal: RunJournal | None) -> RunRequest:
    """The request calibrated, or as it was when the run was cut off; what it costs, and is weak in, is told."""
    if journal is not None and _is_resumed(journal):
        ready, warnings = _resumed(journal, asked), tuple[str, ...]()
        claimed = ready.claim()
    else:
        made = preview(asked)
        ready, claimed, warnings = made.request, made.claim, made.warnings if asked.stages else ()
    progress(claim_in_words(claimed))
    if has_stages(ready):
        progress(recipe_in_words(ready.recipe))
    for warning in warnings:
        progress(warning)
    return ready


# `--journal` and `--resume`: a run that can go on after a crash.


def _add_journal_options(parser: argparse.ArgumentParser) -> None:
    """The options; one of them at most."""
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--journal", metavar="RUN", help="write the run down as it goes, so that it can be gone on with")
    files.add_argument("--resume", metavar="RUN", help="go on with a run that was cut off, given the same options")


def _journal_of(options: argparse.Namespace, ledger: PrivacyLedger) -> RunJournal | None:
    """The journal that the options ask for.

    Raises:
        UsageError: the file cannot be used, or the run is not private.
    """
    path = options.journal or options.resume
    if path is None:
        return None
    if options.test_seed is not None:
        raise UsageError("A run with a test seed is not private: leave out --journal and --resume.")
    check_writable(path)
    return RunJournal.read(Path(path), ledger) if options.resume else RunJournal.new(Path(path))


def _measured_before(journal: RunJournal, content: str) -> MeasuredSizes:
    """The sizes that were measured, and charged, before the run began.

    Args:
        content: keyed digest of the data set.

    Raises:
        UsageError: none were.
    """
    measured = journal.request(content).measured
    if measured is None:
        raise UsageError("The run that was cut off measured no sizes: leave out --count-epsilon.")
    return measured


def _resumed(journal: RunJournal, asked: RunRequest) -> RunRequest:
    """The request of the run that was cut off, where the options ask for the same.

    Raises:
        UsageError: they ask for something else.
    """
    request = journal.request(asked.content)
    if bool(request.stages) != bool(asked.stages):
        have = "has" if request.stages else "has no"
        raise UsageError(f"The run that was cut off {have} stages: give the same options.")
    asked = asked.apportioned()
    if request.written is not None and asked.written is not None:
        _check_same(request.written, asked.written)
    if has_stages(asked):
        same = replace(asked, written=request.written)
        if (request.parameters(), request.template) != (same.parameters(), same.template):
            raise UsageError("The run that was cut off had other settings: give the same options.")
    elif request.claim().epsilon > asked.target.epsilon * (1 + _SLACK):
        raise UsageError("The run that was cut off costs more than --epsilon: give the same options.")
    return request


def _check_same(request: SynthesisRequest, asked: SynthesisRequest) -> None:
    """Noise was calibrated when the run began: it is the run's, whatever is asked."""
    if request.mechanism.name == asked.mechanism.name:
        asked = replace(asked, mechanism=request.mechanism)
    if _settings(request) != _settings(asked):
        raise UsageError("The run that was cut off had other settings: give the same options.")


def _settings(request: SynthesisRequest) -> tuple[Any, ...]:
    names = (request.mechanism.name, request.transform.name, request.plan.scheme)
    schema = request.schema.digest if request.schema else None
    return request.parameters(), *names, request.labels, request.template, schema, request.target.delta


def _is_resumed(journal: RunJournal | None) -> bool:
    """Whether it is of a run that was cut off."""
    return journal is not None and journal.replayed is not None


COMMANDS = {"synthesize": _add_options}
