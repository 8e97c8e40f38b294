"""`synthesize`: demonstrations from a private file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.cli.config import add_config
from mechanisms.cli.options import (
    FROM_THE_COLUMN,
    add_json,
    add_labels,
    add_model,
    add_private_rows,
    add_settings,
    add_test_seed,
    check_apart,
    check_noise,
    field_names,
    labels_of,
    loaded_private,
    model_progress,
    progress,
    randomness_of,
    show,
    show_json,
    spec_of,
)
from mechanisms.data.columns import HOW_TO_LEAVE_OUT
from mechanisms.data.sizes import MeasuredSizes, check_epsilon, measure_sizes
from mechanisms.data.sources import formats_in_words
from mechanisms.demos.demo_set import DemoSet, to_text
from mechanisms.demos.signature import signed
from mechanisms.errors import StudioError, UsageError, printable
from mechanisms.files import atomic_write, check_writable
from mechanisms.inference import LanguageModel
from mechanisms.inference.models import ENGINES, LOCAL, load_embedder, opened
from mechanisms.noise import Randomness
from mechanisms.records import Dataset
from mechanisms.rounding import rounded_up
from mechanisms.runs.checks import (
    Finding,
    Findings,
    Level,
    as_measured,
    budget_findings,
    check_disk,
    check_plan,
    check_with_model,
    draft_findings,
    plan_findings,
    time_findings,
    warned,
)
from mechanisms.runs.driver import drive
from mechanisms.runs.events import (
    CuratorEvent,
    DemoCompleted,
    DemoCutOff,
    DemoRefused,
    DemoStarted,
    Drafting,
    Release,
    RunStarted,
    StageStarted,
)
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.plan import Plan, plan_for, solved_flag
from mechanisms.runs.spec import Recipe, RunSpec, Split
from mechanisms.runs.text import FOREIGN, Gate
from mechanisms.runs.work import measure_embedder, measure_speed

_SLACK = 1e-6
_SHOWN = 60
"""The most characters of a text on a progress line."""
_PUBLIC = "public"
"""The name of the data set of a run that reads no file."""
_NO_SIZES = (
    "Say how large each label is: --sizes counted declares the file's counts public (those of users with "
    "--unit-column), --sizes A=n,B=n declares others, --count-epsilon E measures them with noise."
)
_CHECK = (
    "charge nothing and write no set: list every reason why the run would fail (error) or say little (warning), and "
    "what it takes (note); exit code 0 where it could run, 2 where not. What is counted in private rows is for their "
    "owner alone"
)
_UNCHECKED = "Not checked, because of what cannot be used yet: {}. Correct that, then check again."
_OTHER_OPTIONS = "The run that was cut off had other settings: give the same options."


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("csv", metavar="FILE", nargs="?", help=f"{formats_in_words()}; none with --mechanism public")
    add_labels(parser)
    add_private_rows(parser)
    add_model(parser)
    parser.add_argument("--engine", choices=ENGINES, default=LOCAL, help="ray: rows over the workers of a cluster")
    parser.add_argument("--out", metavar="FILE", help="where the demo set goes (default: standard output)")
    add_test_seed(parser)
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--journal", metavar="RUN", help="write the run down as it goes, so that it can be resumed")
    files.add_argument("--resume", metavar="RUN", help="go on with a run that was cut off, given the same options")
    parser.add_argument("--check", action="store_true", help=_CHECK)
    add_config(parser)
    add_settings(parser, usual=dict.fromkeys(("text_field", "label_field"), FROM_THE_COLUMN))
    add_json(parser)
    parser.set_defaults(run=_synthesize)


def _synthesize(options: argparse.Namespace) -> None:
    if options.check:
        _tell(options, _findings(options))
        return
    spec = _spec(options)
    for _, attempt in _demands(options, spec):
        attempt()
    ledger = PrivacyLedger()
    journal = _journal_of(options, ledger)
    dataset = _dataset(options, spec)
    for warning in ledger.rows.recognise(fingerprint(dataset)):
        progress(warning)
    randomness = randomness_of(options)
    requested = plan_for(spec, dataset)  # a bad plan is refused here, before sizes are measured
    with _model(options) as model:
        embedder = load_embedder() if requested.embeds else None
        if spec.count_epsilon is not None and not spec.public:
            requested = plan_for(
                spec, dataset, _measured(spec.count_epsilon, spec, dataset, ledger, randomness, journal)
            )
        plan, keep = _ready(requested, journal), partial(_keep, options, model)
        events = drive(
            plan, dataset, model, embedder, ledger, keep=keep, tell=progress, randomness=randomness, journal=journal
        )
        with closing(events):
            for line in (line for event in events for line in lines_of(event, dataset.name)):
                progress(line)


def _keep(options: argparse.Namespace, model: LanguageModel, demo_set: DemoSet, whole: bool) -> None:
    """Write a set to its file or to standard output."""
    if not whole:
        progress("ended early: what was released before is kept, with the certificate of the whole run")
    document = signed(demo_set)
    try:
        if options.out:
            atomic_write(Path(options.out), to_text(document))
    except UsageError:  # the journal stays, too: resuming it gives the set again
        progress("The set is on standard output: what it cost stays charged, so keep it from there.")
        show_json(document)
        raise
    if options.json or not options.out:
        show(options, document)
    if Gate(model, [each.text for each in demo_set.demonstrations]).foreign:
        progress(FOREIGN)


def _spec(options: argparse.Namespace) -> RunSpec:
    text_field, label_field = field_names(options)
    return spec_of(options, text_field=text_field, label_field=label_field)


def _demands(options: argparse.Namespace, spec: RunSpec | None) -> Iterator[tuple[str, Callable[[], None]]]:
    """The checks of the options before the file is read, each as a name and a function that refuses the options.

    If the spec was refused before (None), the checks of the spec are left out.
    """
    if spec is None or not spec.public:
        yield "file", partial(_check_file, options)
    if spec is not None:
        yield "noise", partial(check_noise, spec)
        yield "sizes", partial(_check_sizes, spec)
    yield "seed", partial(_check_seed, options)
    if options.out:
        yield "out", partial(check_writable, options.out)
    if journal := options.journal or options.resume:
        yield "journal", partial(check_writable, journal)
    places = (options.out, options.journal or options.resume)
    yield "files", partial(check_apart, *places, but=(options.csv, options.config))


def _check_sizes(spec: RunSpec) -> None:
    if not spec.public and spec.sizes is None and spec.count_epsilon is None:
        raise UsageError(_NO_SIZES)


def _check_file(options: argparse.Namespace) -> None:
    if options.csv is None:
        raise UsageError("Give the FILE of private rows: only --mechanism public needs none.")


def _check_seed(options: argparse.Namespace) -> None:
    randomness_of(options)
    if options.test_seed is not None and (options.journal or options.resume):
        raise UsageError("A run with a test seed is not private: leave out --journal and --resume.")


def _dataset(options: argparse.Namespace, spec: RunSpec) -> Dataset:
    """The private data set; an empty one for a public run, which opens no file."""
    labels = labels_of(options)
    return Dataset(options.name or _PUBLIC, labels, ()) if spec.public else loaded_private(options, labels)


def _measured(
    epsilon: float,
    spec: RunSpec,
    dataset: Dataset,
    ledger: PrivacyLedger,
    randomness: Randomness,
    journal: RunJournal | None,
) -> MeasuredSizes:
    """Measure the sizes of the labels, as the last step before the run; an interrupted run keeps its measured sizes.

    Raises a UsageError if the interrupted run measured none.
    """
    if journal is None or journal.started is None:
        return measure_sizes(dataset, epsilon, spec.delta, ledger, randomness)
    measured = journal.plan(fingerprint(dataset).content).measured
    if measured is None:
        raise UsageError("The run that was cut off measured no sizes: leave out --count-epsilon.")
    return measured


def _ready(requested: Plan, journal: RunJournal | None) -> Plan:
    """The calibrated plan, or the plan of the interrupted run; its cost and its warnings are printed."""
    resumed = journal is not None and journal.started is not None
    plan = _resumed(journal, requested) if journal is not None and resumed else requested.calibrated()
    claim, spec = plan.claim(), plan.spec
    cost = f"epsilon {rounded_up(claim.epsilon, 4)} (check {rounded_up(claim.check, 4)}) at delta {claim.delta:g}"
    progress(f"{cost}. {claim.remark}" if claim.remark else cost)
    if not plan.alone:
        shared = "units" if spec.split is Split.ROLES else "epsilon"
        shares = ", ".join(f"{stage} {rounded_up(share, 3)}" for stage, share in (spec.shares or {}).items())
        drafts = "" if spec.recipe is Recipe.TOKENS else f"; {spec.drafts} drafts a label"
        weighed = f"all {spec.weighing} count the same where they fit and score"
        progress(f"shares of {shared}: {shares}{drafts}; {weighed}")
    for finding in () if resumed else plan_findings(plan):
        progress(finding.message)
    return plan


def _findings(options: argparse.Namespace) -> Findings:
    """The findings on the run that the options describe. Nothing is charged, and no size is measured."""
    found = Findings()
    if options.resume:
        found.attempt("settings", _refuse_resumed)
    spec = found.attempt("settings", partial(_spec, options))
    for check, attempt in _demands(options, spec):
        found.attempt(check, attempt)
    for place in filter(None, (options.out, options.journal)):
        found.attempt("disk", partial(check_disk, Path(place)))
    ledger = found.attempt("ledger", PrivacyLedger)
    if ledger is not None and options.journal:
        found.attempt("journal", partial(_journal_of, options, ledger))
    dataset = _dataset_found(options, spec, found)
    with ExitStack() as used:
        model = found.attempt("model", lambda: used.enter_context(_model(options)))
        requested = None
        if spec is not None and dataset is not None and ledger is not None:
            if not spec.public:
                found.add(warned("ledger", each) for each in ledger.rows.recognise(fingerprint(dataset)))
            if requested := found.attempt("plan", partial(_requested, spec, dataset)):
                _planned_found(requested, dataset, ledger, model, found)
        needed = {
            "the settings": spec,
            "the file": dataset,
            "the ledger": ledger,
            "the model": model,
            "the plan": requested,
        }
        if unusable := [name for name, value in needed.items() if value is None]:
            found.add([Finding("not checked", Level.NOTE, _UNCHECKED.format(", ".join(unusable)))])
    return found


def _refuse_resumed() -> None:
    raise UsageError("A run that was cut off is checked when it goes on: leave out --check, or --resume.")


def _dataset_found(options: argparse.Namespace, spec: RunSpec | None, found: Findings) -> Dataset | None:
    """The rows of the file, or None if they cannot be read. If too many rows are left out, the others are still
    returned, with a finding."""
    if found.attempt("labels", partial(labels_of, options)) is None:
        return None
    if spec is not None and spec.public:
        return _dataset(options, spec)
    if options.csv is None:
        return None

    told: list[str] = []

    def read(allow: bool) -> Dataset:
        return loaded_private(options, labels_of(options), tell=told.append, allow_left_out=allow)

    dataset = found.attempt("file", partial(read, options.allow_left_out))
    with suppress(StudioError):  # the first attempt has added it as a finding
        dataset = dataset or read(True)
    refused = {each.message for each in found}
    found.add(warned("file", each) for each in told if f"{each} {HOW_TO_LEAVE_OUT}" not in refused)
    return dataset


def _model(options: argparse.Namespace) -> AbstractContextManager[LanguageModel]:
    return opened(options.model, options.engine, model_progress(options.model, stages=False))


def _requested(spec: RunSpec, dataset: Dataset) -> Plan:
    """The plan of the run. If sizes would be measured, or were not given, it has the file's true sizes."""
    if spec.public or spec.sizes is not None:
        return plan_for(spec, dataset)
    if spec.count_epsilon is None:
        return plan_for(spec.with_(sizes="counted"), dataset)
    check_epsilon(spec.count_epsilon)
    return plan_for(spec, dataset, as_measured(dataset, spec.count_epsilon, spec.delta))


def _planned_found(
    requested: Plan, dataset: Dataset, ledger: PrivacyLedger, model: LanguageModel | None, found: Findings
) -> None:
    """Calibrate a plan and add its findings, including those that need the model if there is one."""
    plan = found.attempt("plan", requested.calibrated)
    if plan is not None:
        found.add(check_plan(plan, dataset, ledger, to_measure=plan.measured is not None))
        found.add(budget_findings(plan, dataset, ledger))
    embedder = found.attempt("model", load_embedder) if requested.embeds else None
    if model is None or (requested.embeds and embedder is None):
        return
    found.add(check_with_model(plan or requested, dataset, model, embedder))
    found.add(found.attempt("drafts", lambda: [*draft_findings(requested, model, embedder)]) or ())
    if told := found.attempt("model", partial(measure_speed, model)):
        speed = replace(told, text=measure_embedder(embedder)) if embedder else told
        found.add(time_findings(plan or requested, speed))


def _tell(options: argparse.Namespace, found: Findings) -> None:
    """Print the findings. Raises a UsageError if the run would fail."""
    if options.json:
        show_json([asdict(each) for each in found])
    else:
        print("\n".join(printable(each.line) for each in found) or "No problems found.")
    progress("Nothing was charged. What is counted in the file's rows here is private: for their owner alone.")
    if found.errors:
        reasons = "1 error" if found.errors == 1 else f"{found.errors} errors"
        raise UsageError(f"The run would fail: correct the {reasons} of the list.")


def lines_of(event: CuratorEvent, name: str) -> Iterator[str]:
    """The progress lines for an event of a run on the data set `name`; tokens have none."""
    match event:
        case Drafting(label, number, of, public):
            yield f"{label}: writing {'public drafts' if public else 'drafts with released words'}, {number} of {of}"
        case RunStarted(budget=budget) if budget:
            spent = f"{rounded_up(budget.epsilon, 4)} of {budget.cap.epsilon:g}"
            yield f"'{name}' has spent {spent} before this run"
        case StageStarted(stage):
            yield f"stage {stage}"
        case DemoStarted(label, number):
            yield f"{label}, demonstration {number} is charged and begins"
        case DemoCompleted(demonstration, number):
            text = printable(demonstration.text)
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            yield f"{demonstration.label}, demonstration {number}: {shown}"
        case DemoRefused(label, number, reason):
            yield printable(f"{label}, demonstration {number}: refused, {reason}")
        case DemoCutOff(label, number, finished):
            how = "finished from public text alone" if finished else "left out"
            yield printable(f"{label}, demonstration {number}: cut off, {how}")
        case Release():
            yield from map(printable, event.lines())


def _journal_of(options: argparse.Namespace, ledger: PrivacyLedger) -> RunJournal | None:
    """The journal that the options name: an interrupted run's, a new one, or None."""
    if options.resume:
        return RunJournal.read(Path(options.resume), ledger)
    return RunJournal.new(Path(options.journal)) if options.journal else None


def _resumed(journal: RunJournal, requested: Plan) -> Plan:
    """The plan of the interrupted run. Raises a UsageError if the options describe another run."""
    plan = journal.plan(requested.content)
    # The noise was calibrated when the run began, so it is the journal's, not that of the options.
    solved = solved_flag(plan.spec.mechanism)
    noise = {flag: value for flag, value in plan.spec.parameters.items() if flag == solved}
    if requested.spec.mechanism == plan.spec.mechanism:
        requested = replace(requested, spec=requested.spec.with_(parameters=requested.spec.parameters | noise))
    if _fixed(plan) != _fixed(requested):
        raise UsageError(_OTHER_OPTIONS)
    if plan.claim().epsilon > requested.spec.epsilon * (1 + _SLACK):
        raise UsageError("The run that was cut off costs more than --epsilon: give the same options.")
    return plan


def _fixed(plan: Plan) -> tuple[object, ...]:
    """The parts of a plan's certificate that do not depend on its cost."""
    spec = plan.spec
    named = (plan.name, plan.transform_name, plan.scheme, plan.labels, plan.template, spec.wording, spec.delta)
    return (*named, plan.parameters())


COMMANDS = {"synthesize": _add_options}
