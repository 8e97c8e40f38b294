"""Results of a run's stages, as part of a demo set and of its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mechanisms import confidence
from mechanisms.noise import Floats
from mechanisms.privacy_events import PrivacyEvent, event_from_json
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.tallies import Estimate, Weighing
from mechanisms.tallies import Score as ScoreTally

Json = dict[str, Any]

ZERO_SHOT, PUBLIC_ONLY, DEMONSTRATIONS, PROTOTYPES = "zero-shot", "public-only", "demonstrations", "prototypes"
"""The arms of a score; a file's score has no others."""

_UNSTATED = 0.95
"""The level of intervals in files that do not state it."""
_HELD_OUT = "private"


# Demonstrations and a prompt's template in the format.


def demonstrations_of(document: Json) -> tuple[Demonstration, ...]:
    return tuple(Demonstration(each["text"], each["label"]) for each in document["demonstrations"])


def task_of(template: PromptTemplate) -> Json:
    return {"instruction": template.instruction, "template": {"text": template.text, "label": template.label}}


def template_of(task: Json) -> PromptTemplate:
    return PromptTemplate(task["instruction"], task["template"]["text"], task["template"]["label"])


@dataclass(frozen=True)
class StageRecord:
    """A stage of a run: its name, the share of the units that it read (`role`), and its event for one unit."""

    name: str
    role: float
    event: PrivacyEvent

    def to_json(self) -> Json:
        """One of the format's `stages`."""
        return {"name": self.name, "role": self.role, "event": self.event.to_json()}

    @classmethod
    def from_json(cls, document: Json) -> StageRecord:
        """Read what fits the format's schema.

        Raises:
            UsageError: the event has a number out of range.
        """
        return cls(document["name"], document["role"], event_from_json(document["event"]))


@dataclass(frozen=True)
class ArmScore:
    """Private accuracy of an arm in [0, 1], with an interval that covers sampling and noise."""

    accuracy: float
    interval: tuple[float, float]

    @property
    def wide(self) -> bool:
        """Whether the interval is too wide to be useful."""
        return Estimate(self.accuracy, *self.interval).wide


@dataclass(frozen=True)
class Score:
    """Private accuracies on rows of the data set.

    Attributes:
        arms: by name.
        held_out: whether the rows took part in no choice.
        level: of the intervals; None in older files, which do not state it.
        gains: accuracy of the exported arm minus that of each other arm on the same rows, in [-1, 1].
        weighing: whether rows or labels count the same; by labels, accuracies are balanced.
    """

    arms: Mapping[str, ArmScore]
    held_out: bool
    level: float | None = None
    gains: Mapping[str, ArmScore] = field(default_factory=dict)
    weighing: Weighing = Weighing.ROWS

    @classmethod
    def of_table(
        cls, tally: ScoreTally, cells: Floats, names: Sequence[str], without: bool, held_out: bool, weighing: Weighing
    ) -> Score:
        """Compute the score from a released table.

        Args:
            tally: the tally that released it.
            cells: the table, shape (2^arms,).
            names: of the arms, in the table's order.
            without: the exported arm has no demonstrations.
        """
        found = {name: _in_file(tally.accuracy(cells, i)) for i, name in enumerate(names)}
        score = cls(found, held_out, confidence.LEVEL, weighing=weighing)
        own = names.index(score.exported(without))
        gains = {name: _in_file(tally.difference(cells, own, i)) for i, name in enumerate(names) if i != own}
        return replace(score, gains=gains)

    @property
    def percent(self) -> str:
        """The level of the intervals in words."""
        return confidence.percent(_UNSTATED if self.level is None else self.level)

    def exported(self, without: bool) -> str:
        """Name of the exported arm; `without` demonstrations it is one of the baselines."""
        if DEMONSTRATIONS in self.arms:
            return DEMONSTRATIONS
        return ZERO_SHOT if without else PUBLIC_ONLY

    def to_json(self) -> Json:
        """The format's `score`."""
        arms = {name: {"accuracy": each.accuracy, "interval": list(each.interval)} for name, each in self.arms.items()}
        gains = {name: {"value": each.accuracy, "interval": list(each.interval)} for name, each in self.gains.items()}
        return {
            "arms": arms,
            "rows": _HELD_OUT if self.held_out else "private, and they may have taken part in what was chosen",
            **({} if self.level is None else {"level": self.level}),
            **({"gains": gains} if gains else {}),
            **({} if self.weighing is Weighing.ROWS else {"weighing": self.weighing.value}),
        }

    @classmethod
    def from_json(cls, document: Json) -> Score:
        """Read what fits the format's schema."""
        arms = {name: ArmScore(each["accuracy"], tuple(each["interval"])) for name, each in document["arms"].items()}
        read = document.get("gains", {}).items()
        gains = {name: ArmScore(each["value"], tuple(each["interval"])) for name, each in read}
        weighing = Weighing(document.get("weighing", Weighing.ROWS))
        return cls(arms, document["rows"] == _HELD_OUT, document.get("level"), gains, weighing)


def _in_file(estimate: Estimate) -> ArmScore:
    return ArmScore(estimate.value, (estimate.low, estimate.high))


@dataclass(frozen=True)
class PublicSet:
    """The public-only set that a run was compared with, with the template and the correction for the comparison.

    Attributes:
        demonstrations: drafts taken without a vote.
        template: of their prompt.
        prior: measured correction of the label log-probabilities under them; None for any other model than the writer.
    """

    demonstrations: tuple[Demonstration, ...]
    template: PromptTemplate
    prior: Mapping[str, float] | None

    def to_json(self) -> Json:
        """The format's `baselines/public_only`."""
        return {
            "demonstrations": [asdict(each) for each in self.demonstrations],
            "task": task_of(self.template),
            **({} if self.prior is None else {"prior": dict(self.prior)}),
        }

    @classmethod
    def from_json(cls, document: Json) -> PublicSet:
        """Read what fits the format's schema."""
        return cls(demonstrations_of(document), template_of(document["task"]), document.get("prior"))


@dataclass(frozen=True)
class Baselines:
    """What a set is compared with, read alike: with corrections that the same rows measured.

    Attributes:
        zero_shot: correction of the label log-probabilities without demonstrations.
        public_only: the public set; None where a file has none.
    """

    zero_shot: Mapping[str, float] | None
    public_only: PublicSet | None

    def to_json(self) -> Json:
        """The format's `baselines`."""
        return {
            **({} if self.zero_shot is None else {"zero_shot_prior": dict(self.zero_shot)}),
            **({} if self.public_only is None else {"public_only": self.public_only.to_json()}),
        }

    @classmethod
    def from_json(cls, document: Json) -> Baselines:
        """Read what fits the format's schema; a `choice` of files written before has the same two fields."""
        public = document.get("public_only")
        return cls(document.get("zero_shot_prior"), None if public is None else PublicSet.from_json(public))


@dataclass(frozen=True)
class Refusal:
    """A text that rows wrote, and that was no text: why, by rules on public values alone."""

    label: str
    reason: str
