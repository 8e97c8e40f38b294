"""The functions for Python programs: from a private file to demonstrations, and from demonstrations to labels.

The command line runs on the same plan, driver and ledger, so both have the same checks and defaults. A function
that takes a `Dataset` reads private rows. The sets of `write` and `resume` and the answers of a session may be
released; other results are for the curator unless their docstring says otherwise.

    from mechanisms import api

    data = api.load("notes.csv", ["Cards", "Loans"])                            # private
    planned = api.plan(data, sizes="counted", kind="message")                   # calibrated; nothing is charged yet
    print(planned.guarantee)
    demos = api.write(planned, data, "demos.json")                              # charged, and releasable
    print(api.classify(demos, ["Where is my card?"]))
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.answers.plan import AnswerPlan, plan_answers
from mechanisms.answers.session import AnswerSession, ask_all, open_session
from mechanisms.answers.spec import AnswerSettings, AnswerSpec
from mechanisms.data.columns import ColumnMapping, checked_dataset, complete_mapping
from mechanisms.data.disclosures import mark_scored, owners_of
from mechanisms.data.label_names import LabelNames
from mechanisms.data.sizes import MeasuredSizes, measure_sizes
from mechanisms.data.sources import name_of, read_table
from mechanisms.data.table import FLAGS, Reading
from mechanisms.demos.demo_set import DemoSet, loads, to_text
from mechanisms.demos.signature import signed
from mechanisms.errors import AccountingError, NotWritten, UsageError
from mechanisms.evaluation.by_directions import By
from mechanisms.evaluation.classifier import Classifier, Prediction
from mechanisms.evaluation.evaluate import PRIVATE, Progress, Scorecard, arms_of
from mechanisms.evaluation.evaluate import evaluate as evaluated
from mechanisms.evaluation.reader import (
    Arm,
    LocalReader,
    QueryReader,
    as_read_by,
    check_labels,
    same_reader,
    without_corrections,
)
from mechanisms.evaluation.remote_reader import RemoteReader, read_remotely_in_words, refuse_set_without_promise
from mechanisms.exports.export_format import ExportExtras, ReleasedFile, format_named, packed
from mechanisms.files import atomic_write, check_writable, text_of
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.inference.models import default_model, load_embedder, load_model
from mechanisms.inference.models.listed import listed_as
from mechanisms.inference.vocabulary import vocabulary
from mechanisms.noise import Randomness
from mechanisms.queries import Retrieval, query_mechanism_class
from mechanisms.records import Dataset
from mechanisms.runs.drafts import public_demonstrations
from mechanisms.runs.driver import drive
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.score import USUAL_SHARE, ScoredSet, ScoreFound, of_demo_set, read_set, score_set
from mechanisms.runs.spec import SETTINGS, RunSettings, RunSpec
from mechanisms.runs.verification import Verification, verify

__all__ = [
    "By", "NotWritten", "Plan", "Verification", "about_to_send", "ask", "ask_all", "ask_as", "classify",
    "disclosures", "drive", "evaluate", "export", "label_remotely", "load", "load_model", "mark_test_file", "measure",
    "plan", "predictions", "prepare_words", "read", "read_any", "read_by", "recognise", "resume", "score",
    "verify", "write", "writer_of",
]  # fmt: skip

Reader = LanguageModel | RemoteReader
"""A model that classifies with demonstrations: on this machine, or behind an address."""
_SHARED = (
    "The test file shares rows with {names}: private rows never leave this machine. Use rows of no private data "
    "set, or a model on this machine."
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
    """The rows of a private file whose labels are in the public label set, as a private data set.

    Remarks on the file, and the counts of rows that are left out, are Python warnings.

    Args:
        labels: the public label set.
        text, label: names of columns. None selects the column called "text" or "label", else the one that the app would
            propose, which a remark names.
        user: the name of the user column; all rows of a user are then one privacy unit.
        name: the data set's name in the ledger; None selects the file's name.
        label_names: pairs of a label in the file and its new name.
        merge_labels: True reads two labels as one if they differ only in case, spaces, forms of characters or invisible
            characters, or as 1 and 1.0 do.
        allow_left_out: True accepts a file of which more than one row in twenty is left out.
        tell: receives each remark instead of a warning; remarks are private.
        reading: how the file is read, with the fields and defaults of `mechanisms.data.table.Reading`.

    Raises:
        UsageError: `labels` is a single text or not a valid label set, or a setting of `reading` is unknown.
        DataError: the file cannot be read, it lacks a column, or too many of its rows would be left out.
        ReadingQuestion: the file can be read in several ways; `reading` has to select one.
    """
    if isinstance(labels, str):
        raise UsageError("Give the labels as a list, one text each.")
    if unknown := sorted(set(reading) - set(FLAGS)):
        raise UsageError(f"A file has no setting '{unknown[0]}': choose among {', '.join(FLAGS)}.")
    table = read_table(path, Reading(**reading, labels=tuple(labels)))
    said = ColumnMapping(text or "", label or "", user, drop_duplicates, label_names, merge_labels)
    mapping = complete_mapping(table, said, labels, tell or _warn)
    called = (name or name_of(path)).strip()
    return checked_dataset(table, mapping, called, tuple(labels), tell or _warn, allow_left_out)


def recognise(dataset: Dataset) -> list[str]:
    """Warnings, one sentence each, that rows known to the ledger were edited or used under another name.

    They are private.
    """
    return PrivacyLedger().rows.recognise(fingerprint(dataset))


def disclosures(dataset: Dataset) -> tuple[str, ...]:
    """The reasons, in words, why rows of a data set count as known without noise; private."""
    return PrivacyLedger().rows.disclosures(fingerprint(dataset))


def measure(dataset: Dataset, epsilon: float, delta: float) -> MeasuredSizes:
    """Noisy numbers of rows (or users) of each label, for `plan(dataset, measured=...)`.

    The measurement is charged to this installation's ledger at once.

    Args:
        epsilon: the cost of the measurement; the run's epsilon includes it.
        delta: the delta of the run.

    Raises:
        UsageError: epsilon is too small for any useful count.
        BudgetRefused: the data set's cap does not allow the cost.
    """
    return measure_sizes(dataset, epsilon, delta, PrivacyLedger())


def plan(dataset: Dataset, *, measured: MeasuredSizes | None = None, **settings: Unpack[RunSettings]) -> Plan:
    """The calibrated plan of a run: the least noise with which the run costs at most its epsilon and delta.

    Nothing is charged. Omitted settings have the command line's defaults.

    Args:
        measured: label sizes from `measure`, instead of declared ones.
        settings: the settings of `mechanisms.runs.spec.RunSpec`. As `sizes`, "counted" declares the data set's own
            counts public, and a mapping declares upper bounds.

    Raises:
        UsageError: a value is out of range, a setting is unknown, or sizes that `count_epsilon` measures are missing.
        AccountingError: no noise meets the target, or the accountants disagree.
    """
    spec = RunSpec.of(**settings)
    if spec.count_epsilon is not None and measured is None and not spec.public:
        raise UsageError("A plan charges nothing: measure the sizes first, and give them: plan(..., measured=...).")
    return plan_for(spec, dataset, measured).calibrated()


def write(
    planned: Plan,
    dataset: Dataset,
    out: str | Path,
    model: LanguageModel | None = None,
    *,
    journal: str | Path | None = None,
) -> DemoSet:
    """Run a plan, write its demonstrations and certificate into a signed file, and return the set.

    The run is charged to this installation's ledger before it reads a row, and stays charged if it fails. If a run in
    stages fails, the file contains the demonstrations released before.

    Args:
        planned: a plan for this data set.
        model: the model that writes the demonstrations; None selects the embedded model.
        journal: a file that records the run's releases, so that `resume` can continue it after a crash.

    Raises:
        UsageError: the plan is for another data set, or a file cannot be written.
        NotWritten: the file can no longer be written when the run has ended; the error's `text` has its content.
        BudgetRefused: the data set's cap does not allow the run.
        StudioError: the run cannot continue, or there is no model.
    """
    check_writable(str(out))
    ledger = PrivacyLedger()
    return _written(planned, dataset, out, model, ledger, RunJournal.new(Path(journal)) if journal else None)


def resume(journal: str | Path, dataset: Dataset, out: str | Path, model: LanguageModel | None = None) -> DemoSet:
    """Continue an interrupted run on the same data set, and return the set; nothing is charged or drawn twice.

    Args:
        journal: the file that `write` made.
        out, model: as in `write`.

    Raises:
        UsageError: the journal belongs to another data set or model, or its run has ended.
        NotWritten, StudioError: as in `write`.
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

    def keep(demo_set: DemoSet, whole: bool) -> None:
        made.append(demo_set)
        _put(demo_set, Path(out))

    used, embedder = model or default_model(), load_embedder() if planned.embeds else None
    for _ in drive(planned, dataset, used, embedder, ledger, keep=keep, tell=_warn, journal=journal):
        pass
    return made[-1]


def _put(demo_set: DemoSet, out: Path) -> None:
    text = to_text(signed(demo_set))
    try:
        atomic_write(out, text)
    except UsageError as error:
        raise NotWritten(f"{error} The set is not lost: this error's `text` has it.", text) from error


def prepare_words(tell: Callable[[float], object] = lambda share: None) -> None:
    """Embed the public words of the stage "words", and keep the embeddings on this machine for later runs.

    Args:
        tell: receives the share that is done, from 0 to 1.

    Raises:
        ModelUnavailable: there is no embedding model.
    """
    vocabulary(load_embedder(), tell)


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
    """The private accuracies of a set, of the model alone and of public text.

    The figures may be released if the result's `reason` is None; otherwise `reason` says why they are not private.

    The cost is charged to this installation's ledger before any row is read.

    Args:
        scored: a demo set, or a set from `read_any`.
        dataset: private rows with the set's labels.
        epsilon, delta: the cost to each unit that scores the set.
        share: the share of units that score the set, in (0, 1].
        prototypes_epsilon: the cost to each other unit, whose embeddings give class means for comparison; None omits
            these.
        model: the model that classifies the rows; None selects the embedded model.
        max_record_tokens: the public cap on the tokens of a row.

    Raises:
        BudgetRefused: the data set's cap does not allow the cost.
        UsageError: the set does not fit the data set, or a value is out of range.
    """
    task = of_demo_set(scored) if isinstance(scored, DemoSet) else scored
    spec = RunSpec.of(epsilon=epsilon, delta=delta, max_record_tokens=max_record_tokens)
    embedder = load_embedder() if prototypes_epsilon is not None or task.directions is not None else None
    used = model or default_model()
    return score_set(dataset, task, spec, used, PrivacyLedger(), share, prototypes_epsilon, embedder)


def read_any(path: str | Path) -> ScoredSet:
    """The set in a file, for `score`: a demo set, or hand-written JSON with `demonstrations` and `task`.

    Raises:
        UsageError: the file is neither, or its task has fewer than two labels.
    """
    return read_set(text_of(str(path)))


def ask(dataset: Dataset, model: LanguageModel | None = None, **settings: Unpack[AnswerSettings]) -> AnswerSession:
    """A session of private answers; `ask(data, ...).ask(text)` answers a question from the rows nearest to it.

    The ledger reserves the cost of all answers at once.

    Args:
        model: the model that answers for each shard; None selects the embedded model.
        settings: the settings of `mechanisms.answers.spec.AnswerSpec`: `queries`, the number of answers for which each
            unit can pay; `epsilon` and `delta`, the cost of all answers together to a unit; and others with defaults.

    Raises:
        BudgetRefused: the data set's cap does not allow the reservation.
        ReservedOtherwise: the data set has a reservation under other terms.
        UsageError: a value is out of range.
    """
    spec = AnswerSpec.of(**settings)
    labels = () if query_mechanism_class(spec.mechanism).open_answers else dataset.labels
    return ask_as(plan_answers(spec, labels, dataset.by_user), dataset, model)


def ask_as(
    planned: AnswerPlan,
    dataset: Dataset,
    model: LanguageModel | None = None,
    *,
    randomness: Randomness | None = None,
    anew: bool = False,
) -> AnswerSession:
    """A session of private answers, as from `ask`, for a given plan.

    `ask_all` asks the session all questions of a labelled file, and scores the answers.

    Args:
        randomness: the source of noise; None selects the operating system's, and any other source is for tests.
        anew: True pays for a new reservation if the existing one is for another file or other terms.

    Raises:
        BudgetRefused, ReservedOtherwise, UsageError: as in `ask`.
    """
    reader = None if planned.spec.retrieval is Retrieval.LABELS_ONLY else model or default_model()
    return open_session(dataset, planned, load_embedder(), reader, PrivacyLedger(), randomness, anew)


def read(path: str | Path) -> DemoSet:
    """The demo set in a file; `verify` checks its certificate.

    Raises:
        UsageError: the file cannot be read, or is not a demo set.
    """
    return loads(text_of(str(path)))


def classify(
    demo_set: DemoSet, texts: Sequence[str], model: LanguageModel | None = None, *, by: By | str | None = None
) -> list[str]:
    """The label of each text.

    Args:
        texts: public texts, or texts that may be used without noise.
        model: the model that classifies; None selects the embedded model. Directions alone need no model.
        by: "model", "directions" of the set, or "both" together; None selects the directions if the set's private score
            found them better, else the model.

    Raises:
        UsageError: `texts` is a single text, or the set has fewer than two labels or lacks the directions.
    """
    if isinstance(texts, str):
        raise UsageError("Give the texts as a list.")
    return [demo_set.labels[int(each.answer.argmax())] for each in predictions(demo_set, texts, model, by=by)]


def predictions(
    demo_set: DemoSet, texts: Sequence[str], model: LanguageModel | None = None, *, by: By | str | None = None
) -> list[Prediction]:
    """For each text the probabilities of the labels: raw, calibrated, and, if the set has a correction, corrected.

    Args:
        texts, model, by: as in `classify`.

    Raises:
        UsageError: the set has fewer than two labels, or lacks the directions.
    """
    check_labels(demo_set.labels)
    chosen = read_by(demo_set, by)
    if chosen is By.MODEL:
        used = model or default_model()
        read = as_read_by(demo_set, used)
        return list(Classifier(used, read.prompt, read.labels, read.demonstrations, read.prior).predict(texts))
    embedder, directions = _embedder_of(demo_set), demo_set.directions
    assert embedder is not None
    assert directions is not None
    places = directions.places(texts, embedder)
    if chosen is By.DIRECTIONS:
        return [Prediction.by_places(place) for place in places]
    of_model = predictions(demo_set, texts, model, by=By.MODEL)
    return [each.joined_with(place) for each, place in zip(of_model, places, strict=True)]


def read_by(demo_set: DemoSet, by: By | str | None) -> By:
    """The classifier for a set: the argument `by` of `classify`, with None replaced by this set's default.

    Raises:
        UsageError: the set lacks the directions.
    """
    if by is None:
        return By.DIRECTIONS if demo_set.directions_read_better else By.MODEL
    if By(by) is not By.MODEL and demo_set.directions is None:
        raise UsageError("This set has no directions: classify by its model, or make a set with the stage 'words'.")
    return By(by)


# Evaluation on rows that may be used without noise, by a model on this machine or behind an address. The latter never
# receives a row of a private data set, or a set without a guarantee.


def mark_test_file(test: Dataset) -> list[str]:
    """Record in the ledger that the rows of a test file were used without noise.

    Later certificates of private data sets that contain some of these rows say so.

    Returns:
        The names of the private data sets that contain some of these rows. If there are any, the test file's figures
        are for their curator only.
    """
    scored, ledger = fingerprint(test), PrivacyLedger()
    owners = owners_of(scored, ledger)
    mark_scored(scored, ledger)
    return owners


def about_to_send(reader: RemoteReader, demo_set: DemoSet, test: Dataset | None = None) -> list[str]:
    """Sentences that state which texts leave this machine if a model behind an address evaluates a set on a test file.

    Raises:
        UsageError: the file has rows of a private data set, or the set has no guarantee, so nothing may leave this
    machine.
    """
    _check_rows_may_leave(test)
    refuse_set_without_promise(demo_set)
    return [reader.leaving, read_remotely_in_words(demo_set, reader)]


def label_remotely(demo_set: DemoSet, text: str, reader: RemoteReader) -> str | None:
    """The label that a model behind an address gives to a text; None if its answer names none or several.

    Raises:
        UsageError: the set has no guarantee, so that it may not leave this machine.
        ModelUnavailable: the model does not answer.
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
    """Noiseless accuracies on labelled rows, by name: the model alone, public text, the set, and its directions.

    This records nothing in the ledger: call `mark_test_file` first if the rows may be in a private data set.

    Args:
        test: rows that may be used without noise.
        model: the model that classifies the rows; None selects the embedded model.
        writer: the model that writes the public-only set if `model` is behind an address (`writer_of` finds it); None
            omits that set.
        told: receives the number of rows that are done, and of all rows.

    Raises:
        UsageError: no row has a label of the set, the set has fewer than two labels, or private rows would leave.
        ModelUnavailable: the model behind an address does not answer.
    """
    check_labels(demo_set.labels)
    reader, shown = _read_by(model, demo_set, test)
    if isinstance(reader, LocalReader):
        writer, embedder = reader.model, reader.embedder
    else:
        embedder = _embedder_of(shown)
    arms = arms_of(shown, public_demonstrations(shown, writer) if writer else None)
    found: dict[str, Scorecard] = {}
    for each in evaluated(reader, shown.template, shown.labels, arms, test.records, embedder):
        if isinstance(each, Progress):
            told(each.done, each.total)
        else:
            found[each.name] = each
    return found


def writer_of(demo_set: DemoSet) -> LanguageModel | None:
    """The model that wrote a set; None if it is not in the list of models, or not on this machine."""
    name = listed_as(demo_set.model_id)
    model = load_model(name) if name else None
    return model if model is not None and same_reader(demo_set, model) else None


def _read_by(model: Reader | None, demo_set: DemoSet, test: Dataset | None = None) -> tuple[QueryReader, DemoSet]:
    """The reader of a set, and the set with only the corrections that are valid for that reader."""
    if isinstance(model, RemoteReader):
        _check_rows_may_leave(test)
        refuse_set_without_promise(demo_set)
        return model, without_corrections(demo_set)
    reader = LocalReader(model or default_model(), embedder=_embedder_of(demo_set))
    return reader, as_read_by(demo_set, reader.model)


def _embedder_of(demo_set: DemoSet) -> Embedder | None:
    """The model that places texts along a set's directions; None if it has none."""
    if demo_set.directions is None:
        return None
    embedder = load_embedder()
    demo_set.directions.check(embedder)
    return embedder


def _check_rows_may_leave(test: Dataset | None) -> None:
    if test is not None and (owners := owners_of(fingerprint(test), PrivacyLedger())):
        raise UsageError(_SHARED.format(names=", ".join(f"'{name}'" for name in owners)))


def export(
    text: str,
    to: str,
    out: str | Path,
    *,
    test: Dataset | None = None,
    licence: str | None = None,
    language: str | None = None,
) -> tuple[Path, ...]:
    """Write a demo set in the format of another tool.

    Args:
        text: the content of the set's file.
        to: a name of `mechanisms.exports.export_format.format_names`.
        out: a file; for a format of several files a folder or a .zip file.
        test: labelled texts that become tests of the prompt in the export. The ledger records their use.
        licence, language: those of the texts, as identifiers of the Hugging Face hub.

    Returns:
        The paths of the files that were written.

    Raises:
        UsageError: the text is not a demo set, the format has no place for the set or an addition, `test` has private
            rows, or a file cannot be written.
        AccountingError: the set's certificate is invalid; nothing is written.
    """
    added = ExportExtras(None if test is None else test.records, licence, language)
    released, path = ReleasedFile.read(text, added), Path(out)
    _check_rows_may_leave(test)
    files = format_named(to).write(released)
    if problems := verify(released.demo_set).problems:
        raise AccountingError(f"The certificate is refused, so nothing is written. {problems[0]}")
    in_one = len(files) == 1 or path.suffix == ".zip"
    if not in_one:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"Cannot make the folder '{path}': choose another place.") from error
    if test is not None:
        mark_test_file(test)  # the set will be tried on these rows, and they may become private ones later
    if in_one:
        atomic_write(path, packed(files))
        return (path,)
    for name, content in files.items():
        atomic_write(path / name, content)
    return tuple(path / name for name in files)


def _warn(remark: str) -> None:
    warnings.warn(remark, stacklevel=4)
