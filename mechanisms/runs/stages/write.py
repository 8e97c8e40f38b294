"""The stage "write": demonstrations written token by token, each from a sample of the units that have this role."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mechanisms.accounting import LedgerRun
from mechanisms.asking import Hint
from mechanisms.demos.demo_set import Refusal
from mechanisms.privacy_events import ALL, Approximate, PrivacyEvent
from mechanisms.records import unit_nouns
from mechanisms.runs.drafts import allotted
from mechanisms.runs.events import (
    CuratorEvent,
    DemoCompleted,
    DemoCutOff,
    DemoRefused,
    DemoStarted,
    Key,
    TokenReleased,
    WritingEvent,
    key_of,
)
from mechanisms.runs.spec import WRITE
from mechanisms.runs.stage import PlannedStage, part_of
from mechanisms.runs.state import RunState
from mechanisms.runs.terms import EventLists
from mechanisms.runs.work import Work
from mechanisms.runs.writing import DemonstrationWriter, finish_publicly, groups, write_together
from mechanisms.sampling import Scheme

NO_SENTENCE = "it has no whole sentence"
OF_ANOTHER = "it is about what another label's rows are about"
FAINT = 3.0
"""The signal-to-noise ratio of a token below which rows decide little, since its noisy values are weighed against what
the model expects."""
_AROUND = 40
"""Approximate tokens around a row's text in its prompt."""


@dataclass(frozen=True)
class WriteStage(PlannedStage):
    """Writes demonstrations. Its privacy events are those of the mechanism on the plan's sample of the units.

    Each demonstration is charged before its first token, so that a stopped run costs only the demonstrations that it
    began.
    """

    name = WRITE
    order = 10
    title = "Write"
    question = "Token by token: what would the {unit}s write next?"
    noun = "the writing"
    role_units = None
    parts = 12
    releases = ()
    charges_itself = True

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """The events of a unit. If labels have different sampling rates, these are the events of the smallest label,
        whose units join most often."""
        lists = dict(self.plan.composed_writing(self.plan.mechanism.event))
        return lists[ALL] if self.plan.by_user else lists[self.plan.smallest]

    def charges(self) -> EventLists:
        """The event lists of the mechanism, for each label or for all rows of a user."""
        return tuple(
            (self._list(name), events) for name, events in self.plan.composed_writing(self.plan.mechanism.event)
        )

    def _list(self, name: str) -> str:
        if not self.plan.by_roles:
            return name
        return self.name if self.plan.by_user else f"{self.name} {name}"

    def charge_of(self, label: str, number: int) -> tuple[str, tuple[PrivacyEvent, ...]]:
        """The name of a demonstration's event list, and its events. The list's first demonstration also has the failure
        probabilities."""
        plan = self.plan
        sampling, mechanism = plan.sampling, plan.mechanism
        events = sampling.demonstration_events(mechanism.event, sampling.rate(plan.sizes[label]))
        first = number == 1 and (not plan.by_user or label == plan.labels[0])
        name = ALL if plan.by_user else label
        failures = tuple(
            each for each in dict(plan.composed_writing(mechanism.event))[name] if isinstance(each, Approximate)
        )
        return self._list(name), events + (failures if first else ())

    def work(self) -> Work:
        """An upper bound of the work, because a demonstration may end before its last token."""
        plan = self.plan
        sampling, rows = plan.sampling, plan.spec.max_record_tokens + _AROUND
        read = decoded = 0.0
        for label in plan.labels:
            capacity = plan.capacity(label) if plan.mechanism.uses_private_rows else 1
            if sampling.scheme is Scheme.PER_TOKEN:
                read += sampling.written * sampling.tokens * capacity * (rows + sampling.tokens / 2)
            else:
                read += sampling.written * capacity * rows
                decoded += sampling.written * capacity * sampling.tokens
        return Work(read, decoded)

    def warnings(self) -> Iterator[str]:
        plan = self.plan
        label = plan.smallest
        smallest, expected = plan.sizes[label], plan.sampling.expected_sample
        who = unit_nouns(plan.unit)
        if plan.mechanism.uses_private_rows and expected > plan.unit_share(self.name) * smallest:
            yield (
                f"'{label}' has {smallest} {who}, fewer than the {expected} of a sample (M): all of them join each "
                "time. With a smaller M less noise is added."
            )
        signal = plan.signal_to_noise
        if signal is not None and signal < FAINT:
            times = FAINT / signal
            yield (
                f"A token's signal is {signal:.2g} times its noise: {smallest} {who} a label decide few tokens. About "
                f"{_rounded(smallest * times):,.0f} {who} a label would let them decide, or epsilon "
                f"{_rounded(plan.spec.epsilon * times):g}, which protects less."
            )

    def task(self) -> str:
        return "may join in writing demonstrations, token by token."

    def begin(self, state: RunState) -> Writer:
        return Writer(self, state)


def _rounded(number: float) -> float:
    """A number rounded up to two significant digits."""
    digits = 10.0 ** max(0, len(str(int(number))) - 2)
    return digits * -(-number // digits) if number >= 10 else round(number + 0.05, 1)


class Writer:
    """The stage in a run: demonstrations that are complete, those still to write, and interrupted ones."""

    def __init__(self, stage: WriteStage, state: RunState) -> None:
        self._stage, self._state, self._plan = stage, state, stage.plan
        self._keys = [(label, n) for label in self._plan.labels for n in range(1, self._plan.sampling.written + 1)]
        self._begun: dict[Key, tuple[str, tuple[str, ...]]] = {}
        """Opening and words of demonstrations that have begun."""
        self._tokens: dict[Key, list[TokenReleased]] = {}
        self._cut_off: set[Key] = set()
        self._texts: dict[Key, str] = {}
        self._refused: set[Key] = set()
        self._last: CuratorEvent | None = None
        # Demonstrations that do not fit into the model are refused here, before any charge.
        deque(groups([self._writer(key, "") for key in self._keys], self._plan, state.model), maxlen=0)

    def _writer(self, key: Key, opening: str) -> DemonstrationWriter:
        """The writer of a demonstration. If the demonstration has begun, it keeps its opening and words."""
        state, (label, number) = self._state, key
        of_label = state.words.get(label, ())
        # The first demonstration gets the label's two best words, the next one the next two, and so on.
        turn = 2 * (number - 1) % max(1, len(of_label) - 1)
        opening, words = self._begun.get(key, (opening, of_label[turn : turn + 2]))
        units, hint = state.parts[WRITE].units_by_label[label], Hint(words, state.says(label))
        model, randomness = state.model, state.randomness
        return DemonstrationWriter(units, self._plan, model, randomness, key, opening, state.curator, hint)

    def ask(self, run: LedgerRun | None) -> Iterator[Sequence[CuratorEvent]]:
        """The events of all demonstrations. Each one is charged, or charged again, before its first token; a refusal
        is released together with the finished demonstration."""
        if self._last is not None:  # the run may have been interrupted before the gate judged the last demonstration
            yield [*self._judged(self._last)]
        for event in self._written(run, run.released if run else frozenset()):
            yield [event, *self._judged(event)]

    def _written(self, run: LedgerRun | None, seen: frozenset[str]) -> Iterator[WritingEvent]:
        state = self._state
        yield from self._finished(seen)
        left = [key for key in self._keys if part_of(key) not in seen]
        for label in dict.fromkeys(label for label, _ in left):
            mine = [key for key in left if key[0] == label]
            drawn = allotted(state.openings.get(label, {}), len(mine), state.randomness)
            writers = [self._writer(key, opening) for key, opening in zip(mine, drawn, strict=True)]
            for group in groups(writers, self._plan, state.model):
                for writer in group:
                    if run is not None:
                        run.charge(*self._stage.charge_of(*writer.key), part_of(writer.key))
                    if writer.key not in self._begun:
                        yield DemoStarted(*writer.key, writer.opening, writer.hint.words)
                yield from write_together(group, self._plan, state.model)

    def _finished(self, seen: frozenset[str]) -> Iterator[WritingEvent]:
        """Finish demonstrations that had released tokens before the interruption.

        Their sample is lost, and the charge does not cover tokens from a second sample, so public text completes them.
        """
        going: list[DemonstrationWriter] = []
        for key in self._keys:
            if part_of(key) not in seen or key in self._texts:
                continue
            if key not in self._tokens:
                if key not in self._cut_off:
                    yield DemoCutOff(*key, finished=False)
                continue
            writer = self._writer(key, "")
            writer.restore(self._tokens[key])
            if not writer.ended and key not in self._cut_off:
                yield DemoCutOff(*key, finished=True)
            going.append(writer)
        for writer in going:
            yield from finish_publicly([writer], self._state.model)

    def _judged(self, event: CuratorEvent) -> Iterator[DemoRefused]:
        if isinstance(event, DemoCompleted):
            text, margins = event.demonstration.text, self._state.margins
            reason = self._state.gate.reason(text) if text else NO_SENTENCE
            if not reason and margins is not None and margins.of_another_label(event.demonstration.label, text):
                reason = OF_ANOTHER
            if reason:
                yield DemoRefused(*key_of(event), reason)

    def apply(self, event: CuratorEvent) -> None:
        self._last = event
        match event:
            case DemoStarted(opening=opening, words=words):
                self._begun[key_of(event)] = opening, words
            case TokenReleased():
                self._tokens.setdefault(key_of(event), []).append(event)
            case DemoCutOff():
                self._cut_off.add(key_of(event))
            case DemoCompleted(demonstration):
                self._texts[key_of(event)] = demonstration.text
            case DemoRefused(label, _, reason):
                self._refused.add(key_of(event))
                self._state.refused.append(Refusal(label, reason))
        if isinstance(event, DemoCompleted | DemoRefused):
            found: dict[str, list[str]] = {label: [] for label in self._plan.labels}
            for key in self._keys:
                if key in self._texts and key not in self._refused and self._texts[key] not in found[key[0]]:
                    found[key[0]].append(self._texts[key])
            self._state.written = {label: tuple(texts) for label, texts in found.items()}


STAGE = WriteStage
