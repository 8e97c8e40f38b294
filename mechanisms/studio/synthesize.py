"""Synthesis: the one place where private text meets a model meets noise, and where the ledger is charged."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mechanisms.accounting import BudgetSnapshot, LedgerRun, PrivacyLedger
from mechanisms.errors import DataError, ModelUnavailable, UsageError
from mechanisms.home import secret_key
from mechanisms.inference import GenerationPrompt, LanguageModel, Session
from mechanisms.noise import Integers, Randomness, SecureRandomness
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.sampling import Scheme, Seating, keyed_place, poisson_sample, seat_in_slots, seat_in_subsets
from mechanisms.steps import TokenDistributions
from mechanisms.studio.content import content_digest
from mechanisms.studio.demo_set import Certificate, DemoSet
from mechanisms.studio.events import (
    CuratorEvent,
    DemoCompleted,
    DemoStarted,
    PrivateDiagnostics,
    RunCompleted,
    RunStarted,
    TokenReleased,
)
from mechanisms.studio.request import SynthesisRequest

TEST_SEED = "made with a test seed: an observer can predict the noise"


@dataclass(frozen=True)
class _Rows:
    """The private rows of a step in the model, and which of them hold a unit; None on overflow."""

    session: Session | None
    occupied: np.ndarray[tuple[int], np.dtype[np.bool_]]


def synthesize(
    dataset: Dataset,
    request: SynthesisRequest,
    model: LanguageModel,
    ledger: PrivacyLedger,
    randomness: Randomness | None = None,
    curator: bool = False,
) -> Generator[CuratorEvent, None, None]:
    """Write synthetic demonstrations, label by label, and tell about every token.

    Each demonstration is charged whole before its first token. Closing the generator at any point stops the run within
    one token; what was charged stays charged.

    Args:
        dataset: private.
        request: public and calibrated.
        model: the language model.
        ledger: where the run is reserved and charged.
        randomness: the operating system's, unless this is a test.
        curator: also yield `PrivateDiagnostics`; the demo set is then marked.

    Raises:
        BudgetRefused: the data set's cap does not allow the run.
        DataError: a label has more units than declared.
    """
    randomness = randomness or SecureRandomness()
    _check(dataset, request)
    claimed, event = request.release_claim(), request.event
    run: LedgerRun | None = None
    reason = request.mechanism.not_private or (None if randomness.private else TEST_SEED)
    # What promises nothing has no cost that a ledger could add up: it stays on the curator's screen, marked.
    if request.mechanism.uses_private_rows and not request.mechanism.not_private:
        digest = content_digest(dataset)
        name = request.mechanism.name if randomness.private else f"{request.mechanism.name} with a test seed"
        run = ledger.begin(dataset.name, dataset.unit, digest, name, event, claimed)
    if request.mechanism.uses_private_rows and (curator or request.mechanism.not_private):
        ledger.mark_shown(dataset.name)
    before = run.before if run else None
    certificate = Certificate(
        private=reason is None,
        reason=reason,
        claim=request.claim(),
        unit=dataset.unit,
        mechanism=request.mechanism.name,
        transform=request.transform.name,
        scheme=request.plan.scheme.value,
        parameters=request.parameters(),
        event=request.certified_event(),
        public_inputs=request.public_inputs,
        curator_diagnostics_shown=ledger.was_shown(dataset.name),
        spent_before=(before.epsilon, before.delta) if before else (0.0, 0.0),
    )
    demo_set = DemoSet((), request.labels, request.template, certificate, model.name, model.sha256)
    try:
        plan = request.plan
        yield RunStarted(demo_set, plan.shots, plan.tokens, plan.subsets, before)
        demonstrations: list[Demonstration] = []
        for label in request.labels:
            for number in range(1, plan.shots + 1):
                budget = _charge(run, request, label, number)
                yield DemoStarted(label, number, budget)
                units = dataset.units[label]
                writer = DemonstrationWriter(units, request, model, randomness, label, number, curator)
                yield from writer.tokens()
                demonstrations.append(writer.demonstration)
                yield DemoCompleted(writer.demonstration, number)
        yield RunCompleted(demo_set.with_demonstrations(tuple(demonstrations)), run.snapshot() if run else None)
    finally:
        if run:
            run.finish()


def _check(dataset: Dataset, request: SynthesisRequest) -> None:
    if dataset.labels != request.labels or dataset.by_user != request.by_user:
        raise UsageError("The data set and the request must agree on the labels and on the privacy unit.")
    if request.measured is not None or not request.mechanism.uses_private_rows:
        return  # a measured size that is too small is part of delta, and must not show
    for label, size in dataset.counted_sizes().items():
        if size > request.sizes[label]:
            raise DataError(f"The file has more {dataset.unit}s labelled '{label}' than declared: correct its size.")


def _charge(run: LedgerRun | None, request: SynthesisRequest, label: str, number: int) -> BudgetSnapshot | None:
    if run is None:
        return None
    run.charge(*request.charge(label, number))
    return run.snapshot()


def _repeating(written: list[int]) -> set[int]:
    """Tokens that would write a run of three tokens a second time; follows from released tokens alone."""
    last = tuple(written[-2:])
    return {written[i + 2] for i in range(len(written) - 2) if tuple(written[i : i + 2]) == last}


class DemonstrationWriter:
    """Writes one demonstration from the units of one label; the caller has charged it."""

    def __init__(
        self,
        units: Sequence[tuple[Record, ...]],
        request: SynthesisRequest,
        model: LanguageModel,
        randomness: Randomness,
        label: str,
        number: int,
        curator: bool = False,
    ) -> None:
        self._units = units
        self._request, self._model, self._randomness = request, model, randomness
        self._label, self._number, self._curator = label, number, curator
        self._key = secret_key()
        self._prompt = GenerationPrompt(
            model, request.template, label, request.max_record_tokens, request.records_per_row
        )
        # The tokens so far alone start behind a line break: a session cannot be empty.
        self._blank = model.encode("\n")
        self._needs_base = request.transform.needs_base and request.mechanism.uses_private_rows
        self._written: list[int] = []

    @property
    def text(self) -> str:
        """The demonstration so far."""
        return self._model.decode(self._written)

    @property
    def demonstration(self) -> Demonstration:
        """What has been written, as a demonstration."""
        return Demonstration(self.text.strip(), self._label)

    def whole(self) -> Demonstration:
        """Write it to the end, without telling about the tokens."""
        deque(self.tokens(), maxlen=0)
        return self.demonstration

    def tokens(self) -> Iterator[CuratorEvent]:
        """Release up to T tokens; stopping early is decided on released tokens alone."""
        request, prompt = self._request, self._prompt
        public = self._model.open(prompt.prefix, [prompt.cue], len(prompt.cue), request.plan.tokens)
        base = self._model.open([], [self._blank], len(self._blank), request.plan.tokens) if self._needs_base else None
        private: _Rows | None = None
        for step in range(1, request.plan.tokens + 1):
            if request.mechanism.uses_private_rows and (private is None or request.plan.scheme is Scheme.PER_TOKEN):
                private = self._join()
            columns = self._candidates(public, first=step == 1)
            distributions = self._distributions(public, private, base, columns)
            release = request.mechanism.step(distributions, self._randomness)
            token = int(columns[release.index])
            stop = token in self._model.stop_tokens
            if not stop:
                self._written.append(token)
            yield TokenReleased(
                label=self._label,
                number=self._number,
                step=step,
                text=self.text,
                candidates=tuple(self._model.decode([int(column)]) for column in columns),
                chosen=release.index,
                scores=None if release.scores is None else tuple(release.scores.tolist()),
                public=tuple((distributions.public_probabilities * request.plan.subsets).tolist()),
                stop=stop,
            )
            if self._curator and private is not None:
                yield PrivateDiagnostics(step, tuple(distributions.probabilities().sum(axis=0).tolist()))
            if stop:
                return
            public.advance(token)
            if base is not None:
                base.advance(token)
            if private is not None and private.session is not None and request.plan.scheme is not Scheme.PER_TOKEN:
                private.session.advance(token)

    def _join(self) -> _Rows:
        """Draw who joins and put them into the model, the tokens so far behind their cue."""
        request = self._request
        seating = self._seat()
        occupied = np.array([bool(row) or not request.plan.unit_rows for row in seating.rows])
        if seating.overflow:
            return _Rows(None, occupied)
        rows = [self._row(seats) + self._written for seats in seating.rows]
        length = self._prompt.length + len(self._written)
        room = 0 if request.plan.scheme is Scheme.PER_TOKEN else request.plan.tokens
        return _Rows(self._model.open(self._prompt.prefix, rows, length, room), occupied)

    def _seat(self) -> Seating:
        plan, size = self._request.plan, self._request.sizes[self._label]
        if plan.scheme is Scheme.DISJOINT:
            sampled = self._batch()
            if not plan.unit_rows:
                return Seating(self._hashed_rows(sampled))
        else:
            sampled = poisson_sample(len(self._units), plan.rate(size), self._randomness)
        if plan.unit_rows:
            return seat_in_slots(sampled, self._request.capacity(self._label), self._randomness)
        return seat_in_subsets(sampled, plan.subsets, self._randomness)

    def _place(self, unit: int, purpose: str, places: int) -> int:
        records = self._units[unit]
        owner = records[0].unit
        identity = [owner] if owner is not None else [records[0].text, str(self._copies[unit])]
        return keyed_place(self._key, identity, f"{purpose} {self._label}", places)

    @cached_property
    def _copies(self) -> list[int]:
        """How many earlier units say exactly the same: equal rows must not share a coin. One row more or less adds or
        takes one pair (content, copy), whichever of the equal rows it is."""
        seen: Counter[str] = Counter()
        copies = []
        for records in self._units:
            copies.append(seen[records[0].text])
            seen[records[0].text] += 1
        return copies

    def _batch(self) -> Integers:
        """The units of this demonstration's disjoint batch."""
        batches = self._request.plan.batches(self._request.sizes[self._label])
        members = [i for i in range(len(self._units)) if self._place(i, "batch", batches) == self._number - 1]
        return np.array(members, dtype=np.int64)

    def _hashed_rows(self, members: Integers) -> tuple[tuple[int, ...], ...]:
        rows: list[list[int]] = [[] for _ in range(self._request.plan.subsets)]
        for unit in members.tolist():
            rows[self._place(unit, "row", len(rows))].append(unit)
        return tuple(tuple(row) for row in rows)

    def _row(self, seats: tuple[int, ...]) -> list[int]:
        cap = self._request.max_unit_records
        return self._prompt.row([record.text for seat in seats for record in self._units[seat][:cap]])

    def _candidates(self, public: Session, first: bool) -> Integers:
        """S: the K likeliest tokens of the public distribution that neither end an empty text nor repeat it."""
        logits = public.logits()[0]
        if not np.isfinite(logits).any():
            raise ModelUnavailable("The model gives no usable logits for the public prompt: choose another model.")
        usable = np.where(np.isfinite(logits), logits, -np.inf)
        if first:
            usable[list(self._model.stop_tokens)] = -np.inf
        usable[list(_repeating(self._written))] = -np.inf
        order = np.argsort(-usable, kind="stable")[: self._request.candidates]
        columns = np.asarray(order[np.isfinite(usable[order])], dtype=np.int64)
        return columns[self._request.transform.narrow(logits[columns])]

    def _distributions(
        self, public: Session, private: _Rows | None, base: Session | None, columns: Integers
    ) -> TokenDistributions:
        public_row = public.logits(columns)[0]
        plan = self._request.plan
        session = private.session if private else None
        rows = session.logits(columns) if session else np.empty((0, len(columns)))
        occupied = private.occupied if private and session else np.empty(0, dtype=np.bool_)
        base_row = base.logits(columns)[0] if base else None
        distributions = TokenDistributions(rows, occupied, public_row, plan.subsets, plan.unit_rows, base_row)
        overflow = private is not None and session is None
        return self._request.transform.apply(distributions.public_step() if overflow else distributions)
