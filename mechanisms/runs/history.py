"""The events of a run in a file: whether their order is possible, and whether the certificate covers them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import StudioError, UsageError
from mechanisms.records import Demonstration
from mechanisms.runs.certificate import plan_of
from mechanisms.runs.events import (
    DemoCompleted,
    DemoCutOff,
    DemoRefused,
    DemoStarted,
    Key,
    OfDemonstration,
    Release,
    RunStarted,
    SetsCompared,
    StageStarted,
    TokenReleased,
    key_of,
)
from mechanisms.runs.spec import CALIBRATE, SCORE, VOTE, WORDS, WRITE
from mechanisms.runs.stages.score import ScoreReleased
from mechanisms.runs.stages.vote import VotesReleased
from mechanisms.runs.stages.words import WordsReleased
from mechanisms.steps.mechanism import Norm


def require(true: bool, otherwise: str) -> None:
    if not true:
        raise UsageError(otherwise)


class History:
    """Checks whether events can be those of a run: its certificate covers them, their order is possible, and they agree
    with the set. `add` and `end` raise a UsageError with the reason if an event cannot come next."""

    def __init__(self, made: DemoSet) -> None:
        self.made = made
        try:
            self.plan = plan_of(self.made)
        except StudioError as error:
            raise UsageError(f"its certificate is wrong: {error}") from None
        self._stages = list(self.plan.stages)
        self._stage = ""
        self._steps: dict[Key, int] = {}
        self._whole: dict[Key, Demonstration] = {}
        self._finished: dict[Key, bool] = {}
        """For each interrupted demonstration, whether public text finishes it."""
        self._refused: set[Key] = set()
        self._ballots: set[Demonstration] = set()
        self._released: dict[str, Release] = {}
        self._compared: SetsCompared | None = None

    @property
    def started(self) -> RunStarted:
        nothing = replace(
            self.made,
            demonstrations=(),
            prior=None,
            score=None,
            baselines=None,
            refused=(),
            words=None,
            directions=None,
        )
        return RunStarted(nothing, self.plan)

    def add(self, event: Any) -> None:
        match event:
            case StageStarted(stage):
                done = self._stages.index(self._stage) if self._stage else -1
                require(self._stages[done + 1 : done + 2] == [stage], "a stage that was not planned next")
                self._stage = stage
            case DemoStarted() | TokenReleased() | DemoCompleted() | DemoRefused() | DemoCutOff():
                require(self._stage == WRITE, "a demonstration outside the stage that writes")
                self._write(event, key_of(event))
            case SetsCompared():
                self._compare(event)
            case Release():
                at_work = self.plan.stages.get(self._stage)
                if at_work is None or not isinstance(event, at_work.releases):
                    raise UsageError("a release outside its stage")
                require(self._stage not in self._released, "a release that was told before")
                at_work.check(event)
                self._released[self._stage] = event
                if isinstance(event, VotesReleased):
                    for label, ballot in event.ballots.items():
                        self._ballots |= {Demonstration(text, label) for text in ballot.drafts}
            case _:
                raise UsageError("an event that stands in no file")

    def end(self, stopped: bool) -> None:
        """End the run. Unless it was stopped, nothing may be missing; its set must follow from its events."""
        spec, made = self.plan.spec, self.made.demonstrations
        planned = len(self.plan.labels) * (spec.written or 0) if WRITE in self._stages else 0
        done = len(self._whole) + list(self._finished.values()).count(False)
        released = {*self._stages} - {WRITE} <= {*self._released}
        at_the_end = self._stage == self._stages[-1]
        require(stopped or (at_the_end and released and done == planned), "the run ends before it is complete")
        if VOTE in self._released:
            require(set(made) <= self._ballots, "the set has a demonstration that was not in a ballot")
        if self._compared is not None:
            require(made == self._compared.own, "the set is not the one that rows read under")
        elif VOTE not in self._stages:
            written = {each for key, each in self._whole.items() if key not in self._refused and each.text}
            for label in self.plan.labels:  # public drafts may only fill up a label with too few written texts
                foreign = [each for each in made if each.label == label and each not in written]
                room = spec.shots - sum(each.label == label for each in written)
                require(len(foreign) <= max(0, room), "the set has a demonstration that was not written")
        words = self._words
        released_words = (words.words_by_label, words.label_directions) if words else (None, None)
        for held, shown in zip((self.made.words, self.made.directions), released_words, strict=True):
            before = stopped and held is None  # it was stopped before the set had a text
            require(before or held == shown, "the set's words are not those that were released")
        scored = self._released.get(SCORE)
        score = scored.score if isinstance(scored, ScoreReleased) else None
        require(self.made.score == score, "the set's score is not the one that was released")

    @property
    def _words(self) -> WordsReleased | None:
        released = self._released.get(WORDS)
        return released if isinstance(released, WordsReleased) else None

    def _compare(self, event: SetsCompared) -> None:
        judges = self._stage in (CALIBRATE, SCORE) and self._stage not in self._released
        require(judges and self._compared is None, "sets that are compared out of their turn")
        for made in (event.public, event.own):
            told = Counter(each.label for each in made)
            few = set(told) <= set(self.plan.labels) and max(told.values(), default=0) <= self.plan.spec.shots
            require(few, "sets of other labels, or larger than planned")
        require(VOTE not in self._released or set(event.own) <= self._ballots, "a set that was not in a ballot")
        self._compared = event

    def _write(self, event: OfDemonstration, key: Key) -> None:
        planned = key[0] in self.plan.labels and key[1] <= self.plan.sampling.written
        written = key in self._whole
        match event:
            case DemoStarted():
                require(planned and key not in self._steps, "a demonstration that was not planned, or begins twice")
                known = self._words.words_by_label[key[0]] if self._words else ()
                require({*event.words} <= {*known}, "words that were not released of its label")
                self._steps[key] = 0
            case DemoCutOff(finished=finished):
                once = planned and not written and key not in self._finished
                require(once, "a demonstration that was not planned, or is cut off twice")
                require(key in self._steps or not finished, "a demonstration is finished that was not begun")
                self._finished[key] = finished
            case TokenReleased():
                in_turn = event.step == self._steps.get(key, -2) + 1 <= self.plan.sampling.tokens
                require(in_turn and not written and key not in self._finished, "a token out of its turn")
                self._check_token(event)
                self._steps[key] = event.step
            case DemoCompleted():
                require(key in self._steps and not written, "a demonstration that is not being written")
                require(self._finished.get(key, True), "a demonstration goes on that was left out")
                self._whole[key] = event.demonstration
            case DemoRefused():
                once = written and key not in self._refused
                require(once, "a demonstration is refused that is not written, or twice")
                self._refused.add(key)

    def _check_token(self, event: TokenReleased) -> None:
        """Check that the certificate covers a token, and that the token contains only its mechanism's release."""
        plan, count = self.plan, len(event.candidates)
        require(event.chosen < count == len(event.public), "a token that is no candidate")
        require(count <= plan.spec.candidates, "more candidates than the certificate's")
        require(len(event.trail) <= plan.mechanism.longest_trail, "more on a token's trail than its mechanism releases")
        for values in (event.scores, event.values):
            if values is not None:
                require(len(values) == count, "values that are not those of the candidates")
                # A selection mechanism is charged for its winner only, so it may release no values.
                norm = plan.mechanism.sensitivity(plan.sampling.unit_rows).norm
                require(norm is not Norm.RANGE, "values beside a token that its mechanism releases alone")
