"""All demonstrations of a run that are written token by token: complete ones, those still to write, and those that a
crash interrupted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mechanisms.accounting import LedgerRun
from mechanisms.inference import LanguageModel
from mechanisms.noise import Randomness
from mechanisms.records import Dataset
from mechanisms.runs.drafts import allotted
from mechanisms.runs.events import (
    DemoCompleted,
    DemoCutOff,
    DemoRefused,
    DemoStarted,
    TokenReleased,
    WritingEvent,
)
from mechanisms.runs.lockstep import finish_publicly, groups, write_together
from mechanisms.runs.resume import Journal, check_replayed, mark_released
from mechanisms.runs.writer import DemonstrationWriter, Key

if TYPE_CHECKING:
    from mechanisms.runs.plan import Plan

Charge = Callable[[str, int], object]
"""Charges the demonstration of a label and a number."""
Judge = Callable[[str], str | None]
"""Why a text is none; None where it is one."""
NO_SENTENCE = "it has no whole sentence"


def part_of(key: Key) -> str:
    """The name of a demonstration's part in the ledger."""
    return f"write {key[0]} {key[1]}"


class Writing:
    """All demonstrations of a run, label by label. The caller of `events` charges them."""

    def __init__(
        self,
        dataset: Dataset,
        plan: Plan,
        model: LanguageModel,
        randomness: Randomness,
        curator: bool = False,
    ) -> None:
        """Prepare to write; nothing is charged yet.

        Raises:
            UsageError: the model or the device is too small.
        """
        self._dataset, self._plan, self._model = dataset, plan, model
        self._randomness, self._curator = randomness, curator
        self._keys = [(label, n) for label in plan.labels for n in range(1, plan.sampling.shots + 1)]
        self._openings: dict[Key, str] = {}
        self._tokens: dict[Key, list[TokenReleased]] = {}
        self._cut_off: set[Key] = set()
        self._ended: set[Key] = set()
        # What does not fit is refused here, before anybody has paid.
        deque(groups([self._writer(key, "") for key in self._keys], plan, model), maxlen=0)

    def _writer(self, key: Key, opening: str) -> DemonstrationWriter:
        units = self._dataset.units[key[0]]
        return DemonstrationWriter(units, self._plan, self._model, self._randomness, key, opening, self._curator)

    def events(
        self,
        charge: Charge,
        openings: Mapping[str, Mapping[str, float]],
        judge: Judge,
        run: LedgerRun | None = None,
        replayed: Sequence[Any] = (),
        journal: Journal | None = None,
    ) -> Iterator[Sequence[WritingEvent]]:
        """Write the demonstrations that are still missing; a finished one comes together with what the gate says of it.

        Args:
            charge: called before the first token of each demonstration, and again for one that was interrupted.
            openings: how texts of each label begin, each with its weight.
            judge: what it refuses is told, and stands in no set.
            run: the ledger's run, in which a demonstration is marked as released before its first token is yielded.
            replayed: the events that were yielded before the interruption.
            journal: turns events into the lines that the ledger keeps with a mark; without it nothing is marked.

        Raises:
            UsageError: the replayed events do not agree with the ledger.
        """
        seen = run.released if run else frozenset()
        for event in replayed:
            self._keep(event)
        told = (part_of(each) for each, tokens in self._tokens.items() if tokens or each in self._ended)
        check_replayed(told, run)
        if replayed and isinstance(replayed[-1], DemoCompleted):  # the interruption came before it was judged
            yield [*_judged(replayed[-1], judge)]
        for event in self._written(charge, openings, seen):
            if run and isinstance(event, TokenReleased | DemoCompleted) and part_of(_key(event)) not in seen:
                seen |= {part_of(_key(event))}
                mark_released(run, journal, part_of(_key(event)), event)
            self._keep(event)
            yield [event, *_judged(event, judge)]

    def _keep(self, event: object) -> None:
        match event:
            case DemoStarted(label, number, opening):
                self._openings[label, number] = opening
                self._tokens.setdefault((label, number), [])
            case TokenReleased():
                self._tokens.setdefault(_key(event), []).append(event)
            case DemoCutOff(label, number):
                self._cut_off.add((label, number))
            case DemoCompleted():
                self._ended.add(_key(event))
            case _:
                pass

    def _written(
        self, charge: Charge, openings: Mapping[str, Mapping[str, float]], seen: frozenset[str]
    ) -> Iterator[WritingEvent]:
        yield from self._finished(seen)
        left = [key for key in self._keys if part_of(key) not in seen]
        for label in dict.fromkeys(label for label, _ in left):
            mine = [key for key in left if key[0] == label]
            drawn = allotted(openings.get(label, {}), len(mine), self._randomness)
            writers = [
                self._writer(key, self._openings.get(key, opening)) for key, opening in zip(mine, drawn, strict=True)
            ]
            for group in groups(writers, self._plan, self._model):
                for writer in group:
                    charge(*writer.key)
                    if writer.key not in self._openings:
                        yield DemoStarted(*writer.key, writer.opening)
                yield from write_together(group, self._plan, self._model)

    def _finished(self, seen: frozenset[str]) -> Iterator[WritingEvent]:
        """Finish demonstrations that had released tokens before the interruption.

        Their sample is lost, and the charge does not cover tokens from a second sample: public text completes them.
        """
        going: list[DemonstrationWriter] = []
        for key in self._keys:
            if part_of(key) not in seen or key in self._ended:
                continue
            if not self._tokens.get(key):
                if key not in self._cut_off:
                    yield DemoCutOff(*key, finished=False)
                continue
            writer = self._writer(key, self._openings.get(key, ""))
            writer.restore(self._tokens[key])
            if not writer.ended and key not in self._cut_off:
                yield DemoCutOff(*key, finished=True)
            going.append(writer)
        for writer in going:
            yield from finish_publicly([writer], self._model)


def _judged(event: WritingEvent, judge: Judge) -> Iterator[DemoRefused]:
    if isinstance(event, DemoCompleted):
        text = event.demonstration.text
        if reason := judge(text) if text else NO_SENTENCE:
            yield DemoRefused(*_key(event), reason)


def _key(event: TokenReleased | DemoCompleted) -> Key:
    label = event.demonstration.label if isinstance(event, DemoCompleted) else event.label
    return label, event.number
