"""What programs call: from a private file to demonstrations, and from demonstrations to labels.

The command line calls it too, so both have one ledger, the same checks and the same defaults. Everything that takes a
`Dataset` reads private rows; what it returns may be released.

    from mechanisms import api

    data = api.load("notes.csv", ["Cards", "Loans"])                            # private
    planned = api.plan(data, sizes="counted", kind="message")                   # calibrated; nothing is charged yet
    print(planned.guarantee)
    demos = api.write(planned, data, "demos.json")                              # charged, and releasable
    print(api.classify(demos, ["Where is my card?"]))
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TypedDict, Unpack

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.answers import AnswerRequest, AnswerSession, ask_all, open_session
from mechanisms.data.columns import ColumnMapping, checked_dataset, completed
from mechanisms.data.label_names import LabelNames
from mechanisms.data.sizes import MeasuredSizes, disclosures_at_the_end, mark_scored, measure_sizes, owners_of
from mechanisms.data.sources import name_of, read_table
from mechanisms.data.table import FLAGS, Reading
from mechanisms.demos.demo_set import DemoSet, loads, to_text
from mechanisms.demos.signature import signed
from mechanisms.errors import AccountingError, NotWritten, TooLong, UsageError
from mechanisms.evaluation.by_directions import By
from mechanisms.evaluation.evaluate import PRIVATE, Progress, Scorecard, arms_of
from mechanisms.evaluation.evaluate import evaluate as evaluated
from mechanisms.evaluation.reader import (
    Arm,
    Classifier,
    LocalReader,
    Prediction,
    QueryReader,
    RemoteReader,
    as_read_by,
    check_labels,
    read_remotely_in_words,
    refuse_set_without_promise,
    same_reader,
    without_corrections,
)
from mechanisms.exports.export_format import Added, Released, format_named, packed
from mechanisms.files import atomic_write, check_writable, text_of
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.inference.models import default_model, listed_as, load_embedder, load_model
from mechanisms.inference.vocabulary import vocabulary
from mechanisms.noise import Randomness
from mechanisms.queries import Retrieval, query_mechanism_class
from mechanisms.records import Dataset, default_template
from mechanisms.runs.drafts import public_demonstrations
from mechanisms.runs.events import CuratorEvent, RunCompleted, SetKept
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.run import run as run_events
from mechanisms.runs.run_file import RunJournal
from mechanisms.runs.score import USUAL_SHARE, ScoredSet, ScoreFound, of_demo_set, read_set, score_set
from mechanisms.runs.spec import SETTINGS, RunSettings, RunSpec
from mechanisms.runs.verification import Verification, verify

__all__ = [
    "By", "NotWritten", "Plan", "Verification", "about_to_send", "ask", "ask_all", "ask_as", "classify",
    "disclosures", "evaluate", "export", "label_remotely", "load", "load_model", "mark_test_file", "measure",
    "plan", "predictions", "prepare_words", "read", "read_any", "read_by", "recognise", "resume", "run", "score",
    "verify", "write", "writer_of",
]  # fmt: skip

Keep = Callable[[DemoSet, RunCompleted | None], None]
"""Gets a set, and the end of its run; None for a run that was interrupted or failed after its first release."""
Reader = LanguageModel | RemoteReader
"""What reads public demonstrations: a model of this machine, or one behind an address."""
_SHARED = (
    "The test file shares rows with {names}: private rows never leave this machine. Bring rows that took no part, or "
    "read the set with a model of this machine."
)


class HowRead(TypedDict, total=False):
    """How a file is read, for editors and type checkers: `mechanisms.data.table.Reading` has meanings and defaults."""

    header: bool | None
    encoding: str | None
    separator: str | None
    escape: str | None
    sheet: str | None
    skip: int
    fill_merged: bool | None
    rows: str | None


# From a private file to demonstrations.


def load(
    path: str | Path,
    labels: Sequence[str],
    *,
    text: str | None = None,
    label: str | None = None,
    user: str | None = None,
    name: str | None = None,
    drop_duplicates: bool = False,
    label_names: LabelNames = (),
    merge_labels: bool = False,
    allow_left_out: bool = False,
    tell: Callable[[str], None] | None = None,
    **reading: Unpack[HowRead],
) -> Dataset:
    """A private file under its public label set; what is odd about the file, and which rows take no part, is a warning.

    Args:
        text, label: names of columns; None is the one called so, or else the one that the app would propose, which is
            said like what is odd.
        user: the name of a column of users: all rows of a user are the privacy unit.
        name: the data set's in the ledger; the file's name where it is left out.
        label_names: pairs of a file's label and what it is called from here on.
        merge_labels: labels are read as one that differ only in case, spaces, forms of characters, invisible ones, or
            as 1 and 1.0 do.
        allow_left_out: whether more than one row in twenty may be left out.
        tell: gets what is odd, in place of the warnings; private, like the warnings.
        reading: how the file is read, as far as its owner says so: `header`, `encoding`, `separator`, `escape`,
            `sheet`, `skip`, `fill_merged` and `rows` of `mechanisms.data.table.Reading`.

    Raises:
        UsageError: the labels are none.
        DataError: the file cannot be read, lacks a column, or many of its rows would be left out.
        ReadingAsked: the file can be read in more than one way: say which by `reading`.
    """
    if isinstance(labels, str):
        raise UsageError("Give the labels as a list, one text each.")
    if unknown := sorted(set(reading) - set(FLAGS)):
        raise UsageError(f"A file has no setting '{unknown[0]}': choose among {', '.join(FLAGS)}.")
    table = read_table(path, Reading(**reading, labels=tuple(labels)))
    said = ColumnMapping(text or "", label or "", user, drop_duplicates, label_names, merge_labels)
    mapping = completed(table, said, labels, tell or _warn)
    called = (name or name_of(path)).strip()
    return checked_dataset(table, mapping, called, tuple(labels), tell or _warn, allow_left_out)


def recognise(dataset: Dataset) -> list[str]:
    """What the ledger knows of a private file's rows, a sentence each: edited since, or used under another name."""
    return PrivacyLedger().rows.recognise(fingerprint(dataset))


def disclosures(dataset: Dataset) -> tuple[str, ...]:
    """What of a private file's rows was ever shown without noise."""
    return PrivacyLedger().rows.disclosures(fingerprint(dataset))


def measure(dataset: Dataset, epsilon: float, delta: float) -> MeasuredSizes:
    """The label sizes with noise, for `plan(dataset, measured=...)`; charged to this installation's ledger at once.

    Args:
        epsilon: what the measurement costs; the run's epsilon includes it.
        delta: the run's.

    Raises:
        UsageError: epsilon is too small to count anything with.
        BudgetRefused: the data set's cap does not allow it.
    """
    return measure_sizes(dataset, epsilon, delta, PrivacyLedger())


def plan(dataset: Dataset, *, measured: MeasuredSizes | None = None, **settings: Unpack[RunSettings]) -> Plan:
    """A run for a data set, calibrated to cost at most its epsilon; what is left out is as in the app.

    Args:
        measured: sizes from `measure`, in place of declared ones.
        settings: fields of `mechanisms.runs.spec.RunSpec`: `sizes` ("counted" declares the data set's own counts
            public, a mapping declares upper bounds), `epsilon`, `kind`, `writer`, `mechanism`, `tokens`, ...

    Raises:
        UsageError: a value is out of range, or a field is unknown; or sizes are to be measured, and are not.
        AccountingError: no noise meets the target, or the accountants disagree.
    """
    spec = RunSpec.of(**settings)
    if spec.count_epsilon is not None and measured is None and not spec.public:
        raise UsageError("A plan charges nothing: measure the sizes first, and give them: plan(..., measured=...).")
    return plan_for(spec, dataset, measured).calibrated()


def run(
    plan: Plan,
    dataset: Dataset,
    model: LanguageModel,
    ledger: PrivacyLedger,
    keep: Keep,
    *,
    randomness: Randomness | None = None,
    journal: RunJournal | None = None,
    embedder: Embedder | None = None,
) -> Generator[CuratorEvent, None, None]:
    """The events of a run, whose set is kept however the run ends.

    Args:
        plan: calibrated.
        keep: is called once, if anything was released, before this generator ends; the set has the marks of what was
            shown of its rows until then.
        randomness, journal, embedder: see `mechanisms.runs.run.run`.

    Raises:
        BudgetRefused: the data set's cap does not allow the run.
        StudioError: the run is refused, or could not go on.
    """
    events = run_events(plan, dataset, model, ledger, randomness, journal=journal, embedder=embedder)
    last: SetKept | RunCompleted | None = None
    try:
        with closing(events):
            for event in events:
                if isinstance(event, SetKept | RunCompleted):
                    last = event
                yield event
    finally:
        if last is not None:
            disclosures = disclosures_at_the_end(fingerprint(dataset), ledger)  # what was shown while it ran counts too
            keep(last.demo_set.with_disclosures(disclosures), last if isinstance(last, RunCompleted) else None)


def write(
    planned: Plan,
    dataset: Dataset,
    out: str | Path,
    model: LanguageModel | None = None,
    *,
    journal: str | Path | None = None,
) -> DemoSet:
    """Run a plan, and write its demonstrations into a file, with their certificate, signed.

    The run is charged to this installation's ledger before it reads a row, and stays charged if it fails. One in stages
    that fails leaves in the file what it had released.

    Args:
        planned: for this data set.
        model: the embedded one where none is given.
        journal: where the run is written down as it goes; `resume` goes on with it after a crash.

    Raises:
        UsageError: the plan is for another data set, or a file cannot be written.
        NotWritten: the file can no longer be written when the run has ended; `text` is what it was to hold.
        BudgetRefused: the data set's cap does not allow the run.
        StudioError: the run could not go on, or there is no model.
    """
    check_writable(str(out))
    ledger = PrivacyLedger()
    return _written(planned, dataset, out, model, ledger, RunJournal.new(Path(journal)) if journal else None)


def resume(journal: str | Path, dataset: Dataset, out: str | Path, model: LanguageModel | None = None) -> DemoSet:
    """Go on with a run that was cut off, on the same data set: nothing is charged twice, and no noise is drawn again.

    Raises:
        UsageError: the journal is of another data set or another model, or its run has ended.
        NotWritten, StudioError: see `write`.
    """
    check_writable(str(out))
    ledger = PrivacyLedger()
    cut_off = RunJournal.read(Path(journal), ledger)
    return _written(cut_off.plan(fingerprint(dataset).content), dataset, out, model, ledger, cut_off)


def _written(
    planned: Plan,
    dataset: Dataset,
    out: str | Path,
    model: LanguageModel | None,
    ledger: PrivacyLedger,
    journal: RunJournal | None,
) -> DemoSet:
    for remark in ledger.rows.recognise(fingerprint(dataset)):
        _warn(remark)
    made: list[DemoSet] = []

    def kept(demo_set: DemoSet, ended: RunCompleted | None) -> None:
        made.append(demo_set)
        _put(demo_set, Path(out))
        if journal is not None and ended is not None:
            try:
                journal.end(ended, ledger, demo_set.certificate.disclosures)
            except TooLong as error:
                _warn(str(error))

    embedder = load_embedder() if planned.embeds else None
    with closing(journal) if journal else nullcontext():
        for _ in run(planned, dataset, model or default_model(), ledger, kept, journal=journal, embedder=embedder):
            pass
    return made[-1]


def _put(demo_set: DemoSet, out: Path) -> None:
    text = to_text(signed(demo_set))
    try:
        atomic_write(out, text)
    except UsageError as error:
        raise NotWritten(f"{error} The set is not lost: this error's `text` holds it.", text) from error


def prepare_words(tell: Callable[[float], object] = lambda share: None) -> None:
    """Place the public words of the stage "words" by the embedding model, once a machine: later runs find them.

    Args:
        tell: gets the share that is done, 0 to 1.

    Raises:
        ModelUnavailable: there is no embedding model.
    """
    vocabulary(load_embedder(), tell)


# What private rows say of a set, and private answers without one.


def score(
    scored: DemoSet | ScoredSet,
    dataset: Dataset,
    *,
    epsilon: float,
    delta: float,
    share: float = USUAL_SHARE,
    prototypes_epsilon: float | None = None,
    model: LanguageModel | None = None,
    max_record_tokens: int = SETTINGS["max_record_tokens"].field.default,
) -> ScoreFound:
    """A private accuracy of a set beside zero-shot and public-only, charged before any row is read.

    Args:
        scored: `read_any` reads one that somebody wrote by hand.
        dataset: private, with the set's labels.
        epsilon: what the units that score pay.
        share: the part of the units that scores.
        prototypes_epsilon: what the other units pay for class means of embeddings; None leaves them out.
        max_record_tokens: a longer text is cut there.

    Raises:
        BudgetRefused: the data set's cap does not allow it.
        UsageError: the set and the data set do not fit, or a value is out of range.
    """
    task = of_demo_set(scored) if isinstance(scored, DemoSet) else scored
    spec = RunSpec.of(epsilon=epsilon, delta=delta, max_record_tokens=max_record_tokens)
    embedder = load_embedder() if prototypes_epsilon is not None or task.directions is not None else None
    used = model or default_model()
    return score_set(dataset, task, spec, used, PrivacyLedger(), share, prototypes_epsilon, embedder)


def read_any(path: str | Path) -> ScoredSet:
    """A set to score: a demo set, or JSON by hand with its `demonstrations` and its `task` alone.

    Raises:
        UsageError: it is neither, or its task has no labels to tell apart.
    """
    return read_set(text_of(str(path)))


def ask(
    dataset: Dataset,
    *,
    queries: int,
    epsilon: float,
    delta: float,
    mechanism: str = "knn-votes",
    model: LanguageModel | None = None,
) -> AnswerSession:
    """A session of private answers, each found from the rows that are near its question: `ask(data, ...).ask(text)`.

    Args:
        queries: answers that every row can pay for.
        epsilon: what all answers together may cost a row; reserved in the ledger at once.

    Raises:
        BudgetRefused: the data set's cap does not allow the reservation.
        ReservedOtherwise: the data set has a reservation under other terms.
        UsageError: a value is out of range.
    """
    request = AnswerRequest(
        template=default_template(dataset.labels, "text", "label"),
        mechanism=query_mechanism_class(mechanism)(),
        target=PrivacyTarget(epsilon, delta),
        queries=queries,
        labels=dataset.labels,
        by_user=dataset.by_user,
    ).calibrated()
    return ask_as(request, dataset, model)


def ask_as(
    request: AnswerRequest,
    dataset: Dataset,
    model: LanguageModel | None = None,
    *,
    randomness: Randomness | None = None,
    anew: bool = False,
) -> AnswerSession:
    """`ask` with every setting; `ask_all` puts all rows of a labelled file to the session, and scores the answers.

    Args:
        request: calibrated.
        randomness: the operating system's, unless this is a test.
        anew: pay for a new reservation, although the data set has one for another file or other terms.

    Raises:
        BudgetRefused, ReservedOtherwise, UsageError: see `ask`.
    """
    reader = None if request.retrieval is Retrieval.LABELS_ONLY else model or default_model()
    return open_session(dataset, request, load_embedder(), reader, PrivacyLedger(), randomness, anew)


# With demonstrations: nothing private is read, and nothing is spent.


def read(path: str | Path) -> DemoSet:
    """A demo set that was written before; `verify` checks what it claims.

    Raises:
        UsageError: it cannot be read, or is no demo set.
    """
    return loads(text_of(str(path)))


def classify(
    demo_set: DemoSet, texts: Sequence[str], model: LanguageModel | None = None, *, by: By | str | None = None
) -> list[str]:
    """The label of each text, by the model behind the demonstrations, by the set's directions, or by both together.

    Args:
        model: the embedded one where none is given; not used where directions alone classify.
        by: "model", "directions" or "both"; None is what the set's private score recommends, else the model.

    Raises:
        UsageError: the texts are none, the set has a single label, or no directions.
    """
    if isinstance(texts, str):
        raise UsageError("Give the texts as a list.")
    return [demo_set.labels[int(each.answer.argmax())] for each in predictions(demo_set, texts, model, by=by)]


def predictions(
    demo_set: DemoSet, texts: Sequence[str], model: LanguageModel | None = None, *, by: By | str | None = None
) -> list[Prediction]:
    """For each text the probabilities of the labels, as they are found, calibrated, and corrected if measured.

    Args:
        model, by: see `classify`.

    Raises:
        UsageError: the set has a single label, or no directions.
    """
    check_labels(demo_set.labels)
    chosen = read_by(demo_set, by)
    if chosen is By.MODEL:
        used = model or default_model()
        read = as_read_by(demo_set, used)
        return list(Classifier(used, read.prompt, read.labels, read.demonstrations, read.prior).predict(texts))
    embedder, directions = load_embedder(), demo_set.directions
    assert directions is not None
    directions.check(embedder)
    places = directions.places(texts, embedder)
    if chosen is By.DIRECTIONS:
        return [Prediction.by_places(place) for place in places]
    of_model = predictions(demo_set, texts, model, by=By.MODEL)
    return [each.joined_with(place) for each, place in zip(of_model, places, strict=True)]


def read_by(demo_set: DemoSet, by: By | str | None) -> By:
    """What classifies: what is asked for, else what the set's private score recommends, else the model.

    Raises:
        UsageError: the set has no directions.
    """
    if by is None:
        return By.DIRECTIONS if demo_set.directions_read_better else By.MODEL
    if By(by) is not By.MODEL and demo_set.directions is None:
        raise UsageError("This set has no directions: read it by its model, or make one with the stage 'words'.")
    return By(by)


# A set tried on rows that may be read as they are, by a model of this machine, or by one elsewhere, which gets no row
# that a private data set has, and no set that promises nothing.


def mark_test_file(test: Dataset) -> list[str]:
    """Mark a whole file's rows, whose figures have no noise; the names of the private data sets that have some of them.

    Later certificates of those data sets say that they were shown; figures of such rows are for their curator alone.
    """
    scored, ledger = fingerprint(test), PrivacyLedger()
    owners = owners_of(scored, ledger)
    mark_scored(scored, ledger)
    return owners


def about_to_send(reader: RemoteReader, demo_set: DemoSet, test: Dataset | None = None) -> list[str]:
    """What leaves this machine with a set and a whole test file, in sentences to be read before anything does.

    Raises:
        UsageError: private rows would leave: the file shares some, or the set promises nothing.
    """
    _check_may_leave(demo_set, test)
    return [reader.leaving, read_remotely_in_words(demo_set, reader)]


def label_remotely(demo_set: DemoSet, text: str, reader: RemoteReader) -> str | None:
    """The label that the answer of a model elsewhere names; None where it names none, or several.

    Raises:
        UsageError: the set promises nothing.
        ModelUnavailable: there is no answer.
    """
    _, shown = _read_by(reader, demo_set)
    return reader.label(shown.prompt, shown.labels, Arm(PRIVATE, shown.demonstrations), text)


def evaluate(
    demo_set: DemoSet,
    test: Dataset,
    model: Reader | None = None,
    *,
    writer: LanguageModel | None = None,
    told: Callable[[int, int], object] = lambda done, of: None,
) -> dict[str, Scorecard]:
    """Accuracies on labelled rows that may be read as they are: zero-shot, public-only, the set and, where it has
    directions, these alone and both together, by these names.

    Nothing is remembered of the rows here: where they may be somebody's, call `mark_test_file` first.

    Args:
        writer: writes the public-only set where a model elsewhere reads: see `writer_of`; None leaves that set out.
        told: gets how many rows are done, and of how many.

    Raises:
        UsageError: no row has one of the set's labels, or the set has a single one; or private rows would leave.
        ModelUnavailable: a model elsewhere does not answer.
    """
    check_labels(demo_set.labels)
    reader, shown = _read_by(model, demo_set, test)
    writer = reader.model if isinstance(reader, LocalReader) else writer
    arms = arms_of(shown, public_demonstrations(shown, writer) if writer else None)
    found: dict[str, Scorecard] = {}
    for each in evaluated(reader, shown.template, shown.labels, arms, test.records):
        if isinstance(each, Progress):
            told(each.done, each.total)
        else:
            found[each.name] = each
    return found


def writer_of(demo_set: DemoSet) -> LanguageModel | None:
    """The model that wrote a set, where it is listed and on this machine."""
    name = listed_as(demo_set.model_id)
    model = load_model(name) if name else None
    return model if model is not None and same_reader(demo_set, model) else None


def _read_by(model: Reader | None, demo_set: DemoSet, test: Dataset | None = None) -> tuple[QueryReader, DemoSet]:
    """Who reads, and the set as that one may."""
    if isinstance(model, RemoteReader):
        _check_may_leave(demo_set, test)
        return model, without_corrections(demo_set)
    embedder = None
    if demo_set.directions is not None:
        embedder = load_embedder()
        demo_set.directions.check(embedder)
    reader = LocalReader(model or default_model(), embedder=embedder)
    return reader, as_read_by(demo_set, reader.model)


def _check_may_leave(demo_set: DemoSet, test: Dataset | None) -> None:
    if test is not None:
        _check_rows_may_leave(test)
    refuse_set_without_promise(demo_set)


def _check_rows_may_leave(test: Dataset) -> None:
    if owners := owners_of(fingerprint(test), PrivacyLedger()):
        raise UsageError(_SHARED.format(names=", ".join(f"'{name}'" for name in owners)))


# In the shape of another tool.


def export(
    text: str,
    to: str,
    out: str | Path,
    *,
    test: Dataset | None = None,
    licence: str | None = None,
    language: str | None = None,
) -> tuple[Path, ...]:
    """Write a demo set in the shape of another tool; gives the files that it wrote.

    Args:
        text: of the set's file.
        to: a format's name; see `mechanisms.exports.export_format.format_names`.
        out: a file; for a format of several files a folder, or a .zip.
        test: labelled texts that leave with the set, as tests of its prompt.
        licence, language: of the texts, as the Hugging Face hub calls them.

    Raises:
        UsageError: the text is no demo set, the format has no place for it or for what is added, private rows would
            leave, or a file cannot be written.
        AccountingError: the set's certificate does not hold; nothing is written.
    """
    added = Added(None if test is None else test.records, licence, language)
    released, path = Released.read(text, added), Path(out)
    if test is not None:
        _check_rows_may_leave(test)
    files = format_named(to).write(released)
    if problems := verify(released.demo_set).problems:
        raise AccountingError(f"The certificate is refused, so nothing is written. {problems[0]}")
    if len(files) == 1 or path.suffix == ".zip":
        atomic_write(path, packed(files))
        return (path,)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"Cannot make the folder '{path}': choose another place.") from error
    for name, content in files.items():
        atomic_write(path / name, content)
    return tuple(path / name for name in files)


def _warn(remark: str) -> None:
    warnings.warn(remark, stacklevel=4)
