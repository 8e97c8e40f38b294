"""All demonstrations of a run: complete ones, those still to write, and those that a crash interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mechanisms.accounting import BudgetSnapshot, LedgerRun
from mechanisms.demos.demo_set import without_empty_outputs
from mechanisms.inference import LanguageModel
from mechanisms.noise import Randomness
from mechanisms.records import Dataset, Demonstration
from mechanisms.runs.events import DemoCompleted, DemoCutOff, DemoStarted, TokenReleased, WritingEvent
from mechanisms.runs.lockstep import finish_publicly, groups, write_together
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.resume import DemonstrationKey, Journal, check_replayed, demonstration_key, mark_released, part_of
from mechanisms.runs.writer import DemonstrationWriter
from mechanisms.sampling import Scheme

_DIVISION_DRAWS = 4
"""Draws of 52 bits in the secret of a division."""


Charge = Callable[[str, int], BudgetSnapshot | None]
"""Charges the demonstration of a label and a number; returns the ledger's state after it."""


class Writing:
    """All demonstrations of a run, written label by label. The caller of `events` charges them.

    Attributes:
        completed: finished demonstrations.
    """

    def __init__(
        self,
        dataset: Dataset,
        request: SynthesisRequest,
        model: LanguageModel,
        randomness: Randomness,
        curator: bool = False,
    ) -> None:
        """Prepare to write; nothing is charged yet.

        Raises:
            UsageError: the model or the device is too small, or no record can be written by the schema.
        """
        plan = request.plan
        # The secret is drawn for each run, so that earlier releases say nothing about this division of units.
        division = randomness.uniform(_DIVISION_DRAWS).tobytes() if plan.scheme is Scheme.DISJOINT else b""
        self._writers = {
            (label, number): DemonstrationWriter(
                dataset.units[label], request, model, randomness, label, number, division, curator
            )
            for label in request.labels
            for number in range(1, plan.shots + 1)
        }
        self._request, self._model = request, model
        self._planned = list(groups(list(self._writers.values()), request, model))
        self._tokens: dict[DemonstrationKey, list[TokenReleased]] = {}
        self.completed: dict[DemonstrationKey, Demonstration] = {}
        self._cut_off: dict[DemonstrationKey, DemoCutOff] = {}

    def events(
        self,
        charge: Charge,
        run: LedgerRun | None = None,
        replayed: Sequence[Any] = (),
        journal: Journal | None = None,
    ) -> Iterator[WritingEvent]:
        """Write the demonstrations that are still missing.

        Args:
            charge: called before the first token of each demonstration, and again for one that was interrupted.
            run: the ledger's run, in which a demonstration is marked as released before its first token is yielded.
            replayed: the events that were yielded before the interruption.
            journal: turns events into the lines that the ledger keeps with a mark; without it nothing is marked.

        Raises:
            UsageError: the replayed events do not agree with the ledger.
        """
        seen = run.released if run else frozenset()
        for event in replayed:
            self._keep(event)
        check_replayed(
            (part_of(each) for each, replayed in self._tokens.items() if replayed or each in self.completed), run
        )
        for event in self._written(charge, seen):
            if (
                run
                and isinstance(event, TokenReleased | DemoCompleted)
                and part_of(demonstration_key(event)) not in seen
            ):
                seen |= {part_of(demonstration_key(event))}
                mark_released(run, journal, part_of(demonstration_key(event)), event)
            self._keep(event)
            yield event

    def _keep(self, event: object) -> None:
        match event:
            case DemoStarted():
                self._tokens.setdefault(demonstration_key(event), [])
            case TokenReleased():
                self._tokens.setdefault(demonstration_key(event), []).append(event)
            case DemoCutOff():
                self._cut_off[event.label, event.number] = event
            case DemoCompleted():
                self.completed[demonstration_key(event)] = event.demonstration
            case _:
                pass

    def _written(self, charge: Charge, seen: frozenset[str]) -> Iterator[WritingEvent]:
        if not seen:
            for group in self._planned:
                yield from self._together(group, charge)
            return
        yield from self._finished(seen)
        left = [writer for each, writer in self._writers.items() if part_of(each) not in seen]
        if self._request.plan.scheme is Scheme.DISJOINT:  # with the secret gone a unit could stand in two batches
            for writer in left:
                yield from self._dropped(writer)
            return
        for group in groups(left, self._request, self._model):
            yield from self._together(group, charge)

    def _together(self, group: Sequence[DemonstrationWriter], charge: Charge) -> Iterator[WritingEvent]:
        for writer in group:
            each = writer.label, writer.number
            begun, paid = each in self._tokens, charge(*each)
            if not begun:
                yield DemoStarted(*each, paid)
        yield from write_together(group, self._request, self._model)

    def _finished(self, seen: frozenset[str]) -> Iterator[WritingEvent]:
        """Finish demonstrations that had released tokens before the interruption.

        Their sample is lost, and the charge does not cover tokens from a second sample: public text completes them.
        """
        going = []
        for each, writer in self._writers.items():
            if part_of(each) not in seen or each in self.completed:
                continue
            if not self._tokens.get(each):
                yield from self._dropped(writer)
                continue
            writer.restore(self._tokens[each])
            if not writer.ended and each not in self._cut_off:
                yield DemoCutOff(*each, finished=True)
            going.append(writer)
        if going:
            yield from finish_publicly(going, self._request, self._model)

    def _dropped(self, writer: DemonstrationWriter) -> Iterator[DemoCutOff]:
        if (writer.label, writer.number) not in self._cut_off:
            yield DemoCutOff(writer.label, writer.number, finished=False)

    @property
    def demonstrations(self) -> tuple[Demonstration, ...]:
        """The finished demonstrations."""
        return without_empty_outputs(self.completed[each] for each in self._writers if each in self.completed)
