"""The stage "write": demonstrations token by token, each from a sample of the units whose role it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mechanisms.accounting import LedgerRun
from mechanisms.privacy_events import Approximate, PrivacyEvent
from mechanisms.runs.events import CuratorEvent, DemoCompleted, DemoRefused
from mechanisms.runs.plan import ALL, EventLists
from mechanisms.runs.resume import Journal
from mechanisms.runs.stage import PlannedStage, RunState
from mechanisms.runs.work import Work
from mechanisms.runs.writing import part_of
from mechanisms.sampling import Scheme

FAINT = 3.0
"""Signal-to-noise of a token below which rows decide little: its noise is read through what the model expects."""
_AROUND = 40
"""Approximate tokens around a row's text in its prompt."""


@dataclass(frozen=True)
class Write(PlannedStage):
    """Charged with the events of its mechanism, on the sample that its plan draws from the role.

    Each demonstration is charged before its first token, so that a run that is stopped costs what it began.
    """

    name = "write"
    place = 10
    title = "Write"
    question = "Token by token: what would the {unit}s write next?"
    noun = "the writing"
    wanted = None
    parts = 12
    releases = ()
    charges_itself = True

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """Where labels are written with different rates, those of a unit of the smallest label: it joins most often."""
        lists = dict(self.plan.composed_writing(self.plan.mechanism.event))
        return lists[ALL] if self.plan.by_user else lists[self.plan.smallest]

    def charges(self) -> EventLists:
        """The event lists of its mechanism, by label or for all that a user has."""
        return tuple(
            (self._list(name), events) for name, events in self.plan.composed_writing(self.plan.mechanism.event)
        )

    def _list(self, name: str) -> str:
        if not self.plan.by_roles:
            return name
        return self.name if self.plan.by_user else f"{self.name} {name}"

    def charge_of(self, label: str, number: int) -> tuple[str, tuple[PrivacyEvent, ...]]:
        """What a demonstration costs, and in which list: failure probabilities with the list's first one."""
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
        """An upper bound: a demonstration may end before its last token."""
        plan = self.plan
        sampling, rows = plan.sampling, plan.spec.max_record_tokens + _AROUND
        read = written = 0.0
        for label in plan.labels:
            capacity = plan.capacity(label) if plan.mechanism.uses_private_rows else 1
            if sampling.scheme is Scheme.PER_TOKEN:
                read += sampling.shots * sampling.tokens * capacity * (rows + sampling.tokens / 2)
            else:
                read += sampling.shots * capacity * rows
                written += sampling.shots * capacity * sampling.tokens
        return Work(read, written)

    def warnings(self) -> Iterator[str]:
        plan = self.plan
        label = plan.smallest
        smallest, expected = plan.sizes[label], plan.sampling.expected_sample
        if expected > plan.role(self.name) * smallest:
            yield (
                f"'{label}' has {smallest} units, fewer than the {expected} that a sample expects: all of them join "
                "each time. A smaller M leaves less noise to add."
            )
        signal = plan.signal_to_noise
        if signal is not None and signal < FAINT:
            times = FAINT / signal
            yield (
                f"A token's signal is {signal:.2g} times its noise: {smallest} units a label decide few tokens. About "
                f"{_rounded(smallest * times):,.0f} units a label, or epsilon {_rounded(plan.spec.epsilon * times):g}, "
                "would let them decide."
            )

    def task(self) -> str:
        return "may join in writing demonstrations, token by token."

    def begin(self, state: RunState) -> Writer:
        return Writer(self, state)


def _rounded(number: float) -> float:
    """A number in two significant digits, rounded up."""
    digits = 10.0 ** max(0, len(str(int(number))) - 2)
    return digits * -(-number // digits) if number >= 10 else round(number + 0.05, 1)


class Writer:
    """The step; see `Writing`, which marks each demonstration by itself."""

    def __init__(self, stage: Write, state: RunState) -> None:
        self._stage, self._state = stage, state
        self._texts: dict[tuple[str, int], str] = {}

    def events(
        self, run: LedgerRun | None, replayed: Sequence[CuratorEvent], journal: Journal | None
    ) -> Iterator[Sequence[CuratorEvent]]:
        state = self._state
        assert state.writing is not None

        def charge(label: str, number: int) -> None:
            if run is not None:
                run.charge(*self._stage.charge_of(label, number), part_of((label, number)))

        def reason(text: str) -> str | None:
            return state.gate.reason(text)  # which the first token need not wait for

        yield from state.writing.events(charge, state.openings, reason, run, replayed, journal)

    def apply(self, event: CuratorEvent) -> None:
        match event:
            case DemoCompleted(demonstration, number):
                self._texts[demonstration.label, number] = demonstration.text
            case DemoRefused(label, number, reason):
                self._texts.pop((label, number), None)
                self._state.refuse(label, reason)
            case _:
                return
        labels = self._state.plan.labels
        by_number = sorted(self._texts.items(), key=lambda each: each[0][1])
        self._state.written = {
            label: tuple(dict.fromkeys(text for (of, _), text in by_number if of == label)) for label in labels
        }


STAGE = Write
