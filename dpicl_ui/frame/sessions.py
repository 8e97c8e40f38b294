"""What the server remembers for one open tab: in memory only, dropped when the tab closes."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, field

import gradio as gr

from dpicl_ui.ask.row_vectors import RowVectors
from dpicl_ui.privacy.form import PrivacyForm
from mechanisms.accounting import Fingerprint
from mechanisms.records import Dataset, Demonstration
from mechanisms.studio.answering.events import AnswerReleased, AnswersOpened
from mechanisms.studio.answering.request import AnswerRequest
from mechanisms.studio.answering.session import AnswerSession
from mechanisms.studio.data.counts import MeasuredSizes
from mechanisms.studio.data.csv_file import Inspection, Mapping, Table
from mechanisms.studio.evaluation.evaluate import Scorecard
from mechanisms.studio.synthesis.demo_set import DemoSet
from mechanisms.studio.synthesis.events import SynthesisEvent
from mechanisms.studio.synthesis.planner import Option
from mechanisms.studio.synthesis.preview import Preview


@dataclass(frozen=True, repr=False)
class Prepared:
    """A reservation that is about to be made: its rows are embedded. Private, but for the request.

    Attributes:
        anew: pay again, although the data set has a reservation.
    """

    dataset: Dataset
    request: AnswerRequest
    anew: bool


@dataclass(repr=False)
class Session:
    """One tab. Private: table, inspection, dataset, test table, vectors, asking. The rest is public or releasable."""

    table: Table | None = None
    mapping: Mapping | None = None
    inspection: Inspection | None = None
    field_names: tuple[str, str] = ("Text", "Label")
    dataset: Dataset | None = None
    measured: MeasuredSizes | None = None
    """Where the confirmed data set's label counts are not declared public: their measurement."""
    measurements: dict[Hashable, MeasuredSizes] = field(default_factory=dict)
    """Measurements paid for in this tab, by data set."""
    ledger_warnings: tuple[str, ...] = ()
    """What the ledger remarked about the data set's content."""

    form: PrivacyForm | None = None
    preview: Preview | None = None
    plans: tuple[Option, ...] = ()
    """What the planner offers, the best first."""
    plans_of: Dataset | None = None
    """The data set that it was found for."""

    stop: threading.Event = field(default_factory=threading.Event)
    recording: list[SynthesisEvent] = field(default_factory=list)
    """The last run's events; `PrivateDiagnostics` is not among them by type."""
    made: DemoSet | None = None
    """The set written in this tab."""
    made_of: Fingerprint | None = None
    """The data set that it was written from; private."""

    loaded: DemoSet | None = None
    """A set read from an exported file."""
    public: dict[str, tuple[Demonstration, ...]] = field(default_factory=dict)
    """Public demonstrations already written, by the tested set's content."""
    test_table: Table | None = None
    stop_test: threading.Event = field(default_factory=threading.Event)
    scorecards: list[Scorecard] = field(default_factory=list)
    scored_owners: tuple[str, ...] = ()
    """Private data sets that the scored rows belong to: the scorecards are then the curator's alone."""

    vectors: RowVectors | None = None
    """The rows' embeddings, as private as the rows."""
    prepared: Prepared | None = None
    asking: AnswerSession | None = None
    """The reservation that questions are paid from."""
    terms: str = ""
    """Its terms: these are paid for."""
    answers: list[tuple[AnswersOpened, AnswerReleased]] = field(default_factory=list)
    """What was asked in this tab, oldest first."""
    stop_ask: threading.Event = field(default_factory=threading.Event)

    moves: int = 0
    """How often the server has moved this tab to another step."""
    downloads: int = 0

    @property
    def tested(self) -> DemoSet | None:
        """The demo set that step 4 tests: a loaded one goes first."""
        return self.loaded or self.made

    @property
    def by_user(self) -> bool:
        """Whether the chosen columns make all rows of one user the privacy unit."""
        return self.mapping is not None and self.mapping.unit is not None

    @property
    def planned(self) -> float | None:
        """The epsilon that the planned run adds to the ledger, which has been charged with a measurement before."""
        if self.preview is None:
            return None
        return self.preview.claim.epsilon - (self.measured.epsilon if self.measured else 0.0)

    def forget_data(self) -> None:
        """Drop the confirmed data set and all that was planned on it; what was released stays."""
        self.dataset, self.measured, self.form, self.preview, self.plans = None, None, None, None, ()
        self.vectors, self.prepared, self.asking, self.terms = None, None, None, ""


class Sessions:
    """All open tabs, by Gradio's session hash and by who signed in: a hash that leaks opens nothing to others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[tuple[str, str], Session] = {}

    def of(self, request: gr.Request) -> Session:
        """The session of a request, made on first use."""
        with self._lock:
            return self._sessions.setdefault(_tab(request), Session())

    def drop(self, request: gr.Request) -> None:
        """The tab is closed: stop what runs there and forget its data."""
        with self._lock:
            session = self._sessions.pop(_tab(request), None)
        if session:
            session.stop.set()
            session.stop_test.set()
            session.stop_ask.set()


def _tab(request: gr.Request) -> tuple[str, str]:
    return request.username or "", request.session_hash or ""
