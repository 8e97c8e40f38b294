"""The state of step 4: a loaded set, the test file, figures, and class prototypes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from dpicl_ui.data.state import ConfirmedData, DataState
from dpicl_ui.frame.handlers import Jobs
from dpicl_ui.frame.services import Session, State, StepStatus
from dpicl_ui.generate.state import GenerateState, Run
from mechanisms.accounting import fingerprint
from mechanisms.data.columns import ColumnMapping, LeftOut, breakdown, to_dataset, understood
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.signature import Signature, check_signature
from mechanisms.errors import UsageError
from mechanisms.evaluation.class_prototypes import ClassPrototypes, PrototypesRequest
from mechanisms.evaluation.evaluate import PRIVATE, Accuracy, Scorecard, arms_of
from mechanisms.evaluation.reader import Arm, as_read_by, check_labels, same_reader, without_corrections
from mechanisms.inference import LanguageModel
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.rounding import rounded_up
from mechanisms.runs.drafts import public_demonstrations
from mechanisms.runs.verification import verify

NO_FILE = "Upload a labelled test file first."
_NO_KNOWN_LABEL = (
    "No row in the column '{column}' has one of the set's labels: choose the column with the labels, or bring a file "
    "with the same labels."
)
NOTHING = "There is nothing to test: write demonstrations in step 3, or load an exported set."


@dataclass(frozen=True, eq=False, repr=False)
class SetFigures:
    """A set's figures on `rows` of `test`: the test file without the rows that private data sets had at that time."""

    demo_set: DemoSet
    test: Dataset
    rows: tuple[Record, ...]
    cards: tuple[Scorecard, ...] = ()
    prototypes: Accuracy | None = None

    @property
    def complete(self) -> bool:
        """Whether the set's own figure, which comes last, has been measured."""
        return any(card.name == PRIVATE for card in self.cards)


class EvaluationState(State):
    """The state of step 4. Figures belong to the tested set; a loaded set is tested until a later run writes."""

    def __init__(self, session: Session) -> None:
        self._generate = session.of(GenerateState)
        self._data = session.of(DataState)
        self._loaded: tuple[DemoSet, Run | None] | None = None
        """A set from an exported file, and the last run before it was loaded."""
        self._scored: SetFigures | None = None
        self.table: Table | None = None
        """The labelled test file; private."""
        self._public: dict[tuple[str, str], tuple[Demonstration, ...]] = {}
        """Public demonstrations already written, by the tested set's content and by the model that wrote them."""

    def rows(self, text: str | None, label: str | None, tested: DemoSet) -> tuple[Dataset, LeftOut]:
        """The whole test file for a set, and the rows that are left out.

        Labels get the new names of step 1, and spellings of one label are merged.

        Raises:
            UsageError: there is no file, or none of its rows has a label of the set.
            DataError: a column is missing.
        """
        if (table := self.table) is None:
            raise UsageError(NO_FILE)
        names = self._data.names_for(tested.labels)
        mapping = ColumnMapping(text or "", label or "", label_names=names, merge_labels=True)
        mapping = understood(table, mapping, tested.labels)
        found = breakdown(table, mapping, tested.labels)
        if found.labels.keys().isdisjoint(tested.labels):
            raise UsageError(_NO_KNOWN_LABEL.format(column=label))
        return to_dataset(table, mapping, "test file", tested.labels), found.left_out(tested.labels)

    @property
    def loaded(self) -> DemoSet | None:
        """The set from an exported file, unless a run has written since."""
        demo_set, after = self._loaded or (None, None)
        return demo_set if after is self._generate.run_of_set else None

    @property
    def tested(self) -> DemoSet | None:
        """The set under test: the loaded one, otherwise the written one."""
        made = self._generate.made
        return self.loaded or (made.demo_set if made else None)

    @property
    def classifying(self) -> DemoSet:
        """The set under test, for use in a classifier.

        Raises:
            UsageError: there is none, or it has a single label.
        """
        if (tested := self.tested) is None:
            raise UsageError(NOTHING)
        check_labels(tested.labels)
        return tested

    @property
    def scored(self) -> SetFigures | None:
        scored = self._scored
        return scored if scored is not None and scored.demo_set is self.tested else None

    def arms(self, demo_set: DemoSet, model: LanguageModel, elsewhere: bool = False) -> tuple[Arm, ...]:
        """The arms to compare, the set itself last; public demonstrations are written once.

        Args:
            demo_set: the set under test.
            model: the model that is loaded here.
            elsewhere: whether another model reads. Public demonstrations are then an arm only if the model that wrote
                the set is loaded here.

        Raises:
            UsageError: the set has no demonstrations.
        """
        if not demo_set.demonstrations:
            raise UsageError(NOTHING)
        public = None if elsewhere and not same_reader(demo_set, model) else self._public_of(demo_set, model)
        return arms_of(without_corrections(demo_set) if elsewhere else as_read_by(demo_set, model), public)

    def _public_of(self, demo_set: DemoSet, model: LanguageModel) -> tuple[Demonstration, ...]:
        key = (demo_set.dumps(), model.sha256)
        if key not in self._public:
            self._public[key] = public_demonstrations(demo_set, model)
        return self._public[key]

    def load(self, demo_set: DemoSet) -> None:
        self._loaded = demo_set, self._generate.run_of_set

    def show(self, scored: SetFigures) -> SetFigures:
        self._scored = scored
        return scored


def status(session: Session) -> StepStatus:
    """The status of step 4: always open, because it needs no private data; done when something was measured."""
    scored = session.of(EvaluationState).scored
    return StepStatus(done=scored is not None and bool(scored.cards))


class Measurements(Jobs[SetFigures]):
    """A tab's measurements on a test file."""


_THERE = "The class prototypes of this data set are already released: nothing was charged."


@dataclass(frozen=True, eq=False, repr=False)
class PrototypesOrder:
    """An order of class prototypes, and the data set confirmed at that moment; private except for the request."""

    confirmed: ConfirmedData
    request: PrototypesRequest


class PrototypesState(Jobs[PrototypesOrder]):
    """The releases of a tab, by the data set's name, unit, labels and content."""

    under_way = "Class prototypes are being released: wait until they are."

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._data = session.of(DataState)
        self._released: dict[Hashable, ClassPrototypes] = {}

    @property
    def released(self) -> ClassPrototypes | None:
        confirmed = self._data.confirmed
        return self._released.get(_key(confirmed.dataset)) if confirmed else None

    def refuse(self, order: PrototypesOrder) -> None:
        """Raise a `UsageError` if the data set's prototypes are released, because they would be charged twice."""
        if _key(order.confirmed.dataset) in self._released:
            raise UsageError(_THERE)

    def keep(self, order: PrototypesOrder, released: ClassPrototypes) -> None:
        """Store a release, so that this tab does not charge it again."""
        with self._lock:
            self._released[_key(order.confirmed.dataset)] = released


def _key(dataset: Dataset) -> Hashable:
    return dataset.name, dataset.unit, dataset.labels, fingerprint(dataset).content


LARGEST_DEMO_SET = 16 * 2**20
"""The most bytes of an exported file."""
_SIGNATURES = {
    Signature.VALID: ("This installation wrote the file, and it is unchanged.", "good"),
    Signature.CHANGED: ("The file was changed after this installation wrote it: use the original.", "bad"),
    Signature.FOREIGN: ("Another installation wrote the file: its signature cannot be checked here.", "info"),
    Signature.ABSENT: ("The file has no signature: nobody can tell here whether it was changed.", "info"),
}


def verified(demo_set: DemoSet) -> tuple[str, str]:
    """The result of checking a loaded set's certificate, which is computed again."""
    certificate, found = demo_set.certificate, verify(demo_set)
    if found.problems:
        return f"Loaded, but its certificate is wrong: {found.problems[0]}", "bad"
    if (reason := certificate.why_not_private) is not None:
        return f"Loaded. This set is not private: {reason}.", "warn"
    claim = certificate.claim
    cost = f"epsilon {rounded_up(claim.epsilon, 4)} at delta {claim.delta:g}"
    return f"Loaded. Its claim was computed again and holds: {cost}.", "good"


def origin(text: str) -> tuple[str, str]:
    """The result of checking a loaded file's signature."""
    return _SIGNATURES[check_signature(text)]
