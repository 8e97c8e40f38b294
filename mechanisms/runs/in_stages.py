"""A run in stages: each is charged in its turn, and works on the releases of the stages before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mechanisms.accounting import LedgerRun
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness
from mechanisms.records import Dataset
from mechanisms.runs.events import CuratorEvent, Drafting, SetsMade, StageStarted
from mechanisms.runs.recipe import Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.resume import Journal, check_replayed
from mechanisms.runs.stage import RunState, release_name, stage_class, stage_of
from mechanisms.runs.writing import Writing


class Stages:
    """The stages of one run. Their state follows from the events that `apply` gets."""

    def __init__(
        self,
        request: RecipeRequest,
        parts: Mapping[Stage, Dataset],
        model: LanguageModel,
        embedder: Embedder,
        randomness: Randomness,
        writing: Writing | None,
        held_out: bool,
    ) -> None:
        self._request = request
        self._state = RunState(request, parts, model, embedder, randomness, writing, held_out)
        self._steps = {stage: stage_of(request, stage).begin(self._state) for stage in request.stages}
        self._stage: Stage | None = None

    def apply(self, event: CuratorEvent) -> None:
        """Update the state by an event, new or replayed.

        Raises:
            UsageError: the event cannot be of this run.
        """
        match event:
            case StageStarted(stage):
                self._stage = stage
            case SetsMade(sets):
                self._state.sets = sets
            case _ if self._stage in self._steps:
                self._steps[self._stage].apply(event)

    def draft(self) -> Iterator[Drafting]:
        """Write the first round's drafts, and check that prompts fit the model; all of it public, before any charge.

        Where rows write token by token they begin at once: drafts wait until the first stage that needs them, if
        prompts of the longest drafts that there can be fit the model.

        Raises:
            UsageError: the model writes no usable drafts, or prompts are too long for it.
        """
        if Stage.WRITE in self._steps:
            try:
                self._state.check_longest_drafts()
            except UsageError:
                pass  # real drafts may be shorter
            else:
                return
        yield from self._state.first_drafts()

    def events(
        self, run: LedgerRun | None, replayed: Sequence[CuratorEvent] = (), journal: Journal | None = None
    ) -> Iterator[Sequence[CuratorEvent]]:
        """What is left of all stages, each charged before its first release; what is let out together comes together.

        The caller applies the events before it asks for the next ones.

        Args:
            run: where stages are charged, and marked before they are told.
            replayed: the events that had been yielded when the run was cut off.
            journal: what the ledger notes of a part that is marked; nothing is marked without one.

        Raises:
            UsageError: that does not fit the ledger, or nothing is left to go on with.
        """
        assert run is not None, "a run in stages is always charged"
        check_replayed(_replayed_parts(replayed), run)
        entered = [event.stage for event in replayed if isinstance(event, StageStarted)]
        for stage, step in self._steps.items():
            if stage is not Stage.WRITE:
                yield from ([each] for each in self._state.first_drafts())
            for name, events in self._request.charges(stage):
                run.charge(name, events, stage)
            if stage not in entered:
                yield [StageStarted(stage, run.snapshot())]
            self._stage = stage
            yield from step.events(run, replayed, journal)
        yield from ([each] for each in self._state.first_drafts())
        yield from self._state.make_sets()

    def kept(self, demo_set: DemoSet) -> DemoSet:
        """The set with everything that has been released for it."""
        return self._state.kept(demo_set)

    def made(self, demo_set: DemoSet) -> DemoSet:
        """The set in the end: what was kept last."""
        return demo_set


def _replayed_parts(replayed: Sequence[CuratorEvent]) -> Iterator[str]:
    """The releases that were told, as the ledger calls them; the stage that writes marks its own."""
    stage = None
    for event in replayed:
        if isinstance(event, StageStarted):
            stage = event.stage
        elif stage is not None and isinstance(event, stage_class(stage).releases):
            yield release_name(stage, event)
