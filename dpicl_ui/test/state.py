"""The state of step 4: a loaded set, the test file, figures, and class prototypes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from dpicl_ui.data.state import GO_ON, Confirmed, DataState
from dpicl_ui.frame.job import Jobs
from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.frame.step_bar import Gate
from dpicl_ui.generate.state import GenerateState, Run
from mechanisms.accounting import fingerprint
from mechanisms.data.columns import ColumnMapping, LeftOut, breakdown, to_dataset, understood
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.signature import Signature, check_signature
from mechanisms.errors import DataError, UsageError
from mechanisms.evaluation.evaluate import PRIVATE, ZERO_SHOT, Accuracy, Scorecard, arms_of
from mechanisms.evaluation.prototypes import ClassPrototypes, PrototypesRequest
from mechanisms.evaluation.reader import Arm, as_read_by, check_labels, same_reader, without_corrections
from mechanisms.inference import LanguageModel
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.rounding import rounded_up
from mechanisms.runs.public_demonstrations import public_demonstrations
from mechanisms.runs.verification import verify

# What step 4 remembers: a loaded set, the test file, and figures.

NO_FILE = "Upload a labelled test file first."
_NO_KNOWN_LABEL = (
    "No row of the column '{column}' has one of the set's labels: choose the column that holds them, or bring a file "
    "with the same labels."
)
NOTHING = "There is nothing to test: write demonstrations in step 3, or load an exported set."


@dataclass(frozen=True, eq=False, repr=False)
class Loaded:
    """A set from an exported file, and the last run before it was loaded."""

    demo_set: DemoSet
    after: Run | None


@dataclass(frozen=True, eq=False, repr=False)
class Scored:
    """Figures of a set; with `owners`, private data sets that the scored rows belong to, they are the curator's alone.

    Attributes:
        test: the whole file; private.
        rows: those of its rows that are scored.
        cards: the figures of each arm so far.
        prototypes: the figure of class prototypes, where they were released.
    """

    of: DemoSet
    owners: tuple[str, ...]
    test: Dataset
    rows: tuple[Record, ...]
    cards: tuple[Scorecard, ...] = ()
    prototypes: Accuracy | None = None

    @property
    def shown(self) -> tuple[tuple[Scorecard, ...], tuple[str, ...], Accuracy | None, tuple[str, ...]]:
        """What the card of the figures shows; see `dpicl_ui.test.cards.accuracies`."""
        return self.cards, self.owners, self.prototypes, self.of.labels

    @property
    def complete(self) -> bool:
        """Whether the set's own figure, the last one, is there."""
        own = PRIVATE if self.of.demonstrations else ZERO_SHOT
        return any(card.name == own for card in self.cards)

    def with_card(self, card: Scorecard) -> Scored:
        """The figures with those of one more arm."""
        return replace(self, cards=(*self.cards, card))


class TestState(State):
    """Figures belong to the tested set. A loaded set is the tested one until a later run writes."""

    __test__ = False  # a name that pytest would collect

    def __init__(self, session: Session) -> None:
        self._generate = session.of(GenerateState)
        self._data = session.of(DataState)
        self._loaded: Loaded | None = None
        self._scored: Scored | None = None
        self.table: Table | None = None
        """The labelled test file; private."""
        self.merge_labels = False
        """Whether labels of the test file are read as those of the set that look alike."""
        self.allow_left_out = False
        """Whether many rows of the test file may take no part."""
        self._public: dict[tuple[str, str], tuple[Demonstration, ...]] = {}
        """Public demonstrations already written, by the tested set's content and by the model that wrote them."""

    def rows(self, text: str | None, label: str | None, tested: DemoSet) -> tuple[Dataset, LeftOut]:
        """The whole test file for a set, and which of its rows take no part; labels are read as in step 1.

        Raises:
            UsageError: there is no file, or no row of it has a label of the set.
            DataError: a column is missing, or many rows take no part and that was not allowed.
        """
        if (table := self.table) is None:
            raise UsageError(NO_FILE)
        merge = self.merge_labels or (self._data.file is not None and self._data.file.merge_labels)
        names = self._data.names_for(tested.labels)
        mapping = ColumnMapping(text or "", label or "", label_names=names, merge_labels=merge)
        mapping = understood(table, mapping, tested.labels)
        found = breakdown(table, mapping, tested.labels)
        if found.labels.keys().isdisjoint(tested.labels):
            raise UsageError(_NO_KNOWN_LABEL.format(column=label))
        left_out = found.left_out(tested.labels)
        if left_out.many and not self.allow_left_out:
            raise DataError(f"{left_out.sentence} Choose other columns, or tick '{GO_ON}' below the test file.")
        return to_dataset(table, mapping, "test file", tested.labels), left_out

    @property
    def loaded(self) -> DemoSet | None:
        """A set read from an exported file, unless a run has written since."""
        loaded = self._loaded
        return loaded.demo_set if loaded is not None and loaded.after is self._generate.written else None

    @property
    def tested(self) -> DemoSet | None:
        """The set under test: the loaded one, else the written one."""
        made = self._generate.made
        return self.loaded or (made.demo_set if made else None)

    @property
    def classifying(self) -> DemoSet:
        """The set under test, as examples for a classifier.

        Raises:
            UsageError: there is none, or it has a single label.
        """
        if (tested := self.tested) is None:
            raise UsageError(NOTHING)
        check_labels(tested.labels)
        return tested

    @property
    def scored(self) -> Scored | None:
        """Figures of the tested set."""
        scored = self._scored
        return scored if scored is not None and scored.of is self.tested else None

    def arms(self, demo_set: DemoSet, model: LanguageModel) -> tuple[Arm, ...]:
        """What a set is compared with, and the set itself last, as the model may read it.

        Public demonstrations are written once.

        Raises:
            UsageError: nothing was written, and nothing was chosen either.
        """
        _refuse_nothing(demo_set)
        return arms_of(as_read_by(demo_set, model), self._public_of(demo_set, model))

    def arms_elsewhere(self, demo_set: DemoSet, here: LanguageModel) -> tuple[Arm, ...]:
        """The same for a reader elsewhere; public demonstrations only where the set's own writer is the model here.

        Raises:
            UsageError: nothing was written, and nothing was chosen either.
        """
        _refuse_nothing(demo_set)
        public = self._public_of(demo_set, here) if same_reader(demo_set, here) else None
        return arms_of(without_corrections(demo_set), public)

    def _public_of(self, demo_set: DemoSet, model: LanguageModel) -> tuple[Demonstration, ...]:
        key = (demo_set.dumps(), model.sha256)
        if key not in self._public:
            self._public[key] = public_demonstrations(demo_set, model)
        return self._public[key]

    def load(self, demo_set: DemoSet) -> None:
        """Make a set from a file the tested one."""
        self._loaded = Loaded(demo_set, self._generate.written)

    def score(self, of: DemoSet, owners: tuple[str, ...], test: Dataset, rows: Sequence[Record]) -> Scored:
        """Begin new figures."""
        self._scored = scored = Scored(of, owners, test, tuple(rows))
        return scored

    def show(self, scored: Scored) -> None:
        """Replace the figures by a version with more of them."""
        self._scored = scored


def _refuse_nothing(demo_set: DemoSet) -> None:
    if not demo_set.demonstrations and demo_set.choice is None:
        raise UsageError(NOTHING)


def gate(session: Session) -> Gate:
    """Always open, since it needs no private data; done when something was measured."""
    scored = session.of(TestState).scored
    return Gate(done=scored is not None and bool(scored.cards))


class Measurements(Jobs[Scored]):
    """The measurements of a tab, each with the figures that it begins with."""


# What step 4 remembers of class prototypes: the release under way, and what was released for each data set.

_THERE = "The class prototypes of this data set are there already: nothing was charged."


@dataclass(frozen=True, eq=False, repr=False)
class Wanted:
    """A release, on the data set that is there when it is ordered; private but for the request."""

    confirmed: Confirmed
    request: PrototypesRequest


class PrototypesState(Jobs[Wanted]):
    """A release belongs to a data set's name, unit, labels and content, and is there whenever these are confirmed."""

    under_way = "Class prototypes are being made: wait for them."

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._data = session.of(DataState)
        self._released: dict[Hashable, ClassPrototypes] = {}

    @property
    def released(self) -> ClassPrototypes | None:
        """The prototypes of the confirmed data set."""
        confirmed = self._data.confirmed
        return self._released.get(_key(confirmed.dataset)) if confirmed else None

    def refuse(self, wanted: Wanted) -> None:
        """Refuse to pay twice; see `Jobs.refuse`."""
        if _key(wanted.confirmed.dataset) in self._released:
            raise UsageError(_THERE)

    def keep(self, wanted: Wanted, released: ClassPrototypes) -> None:
        """Store a release, so that it is not charged again in this tab."""
        with self._lock:
            self._released[_key(wanted.confirmed.dataset)] = released


def _key(dataset: Dataset) -> Hashable:
    return dataset.name, dataset.unit, dataset.labels, fingerprint(dataset).content


# A set out of an exported file: what to say of its claim and its signature.

LARGEST_DEMO_SET = 16 * 2**20
"""Bytes of a file."""
_SIGNATURES = {
    Signature.VALID: ("Written by this installation and unchanged.", "good"),
    Signature.CHANGED: ("Changed since this installation wrote it.", "bad"),
    Signature.FOREIGN: ("Written elsewhere: its signature cannot be checked here.", "info"),
    Signature.ABSENT: ("Without a signature.", "info"),
}


def verified(demo_set: DemoSet) -> tuple[str, str]:
    """The result of the check of a loaded set: whether its certificate, built anew, agrees."""
    certificate, found = demo_set.certificate, verify(demo_set)
    if found.problems:
        return f"Loaded, but its certificate is wrong: {found.problems[0]}", "bad"
    if (reason := certificate.why_not_private) is not None:
        return f"Loaded. This set is not private: {reason}.", "warn"
    claim = certificate.claim
    cost = f"epsilon {rounded_up(claim.epsilon, 4)} at delta {claim.delta:g}"
    return f"Loaded. Its claim was accounted anew and holds: {cost}.", "good"


def origin(text: str) -> tuple[str, str]:
    """The result of the check of a loaded file's signature."""
    return _SIGNATURES[check_signature(text)]
