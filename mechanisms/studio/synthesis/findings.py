"""What the stages of a recipe found out: part of a demo set, and of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mechanisms import confidence
from mechanisms.privacy_events import PrivacyEvent, event_from_json
from mechanisms.tallies import Estimate

Json = dict[str, Any]

ZERO_SHOT, PUBLIC_ONLY, DEMONSTRATIONS, PROTOTYPES = "zero-shot", "public-only", "demonstrations", "prototypes"
"""What a score compares; a file's score has no other arms."""

_UNSTATED = 0.95
"""The level of intervals in files that do not say one."""
_UNTOUCHED, _TOUCHED = "private", "private, and they may have taken part in what was chosen"


@dataclass(frozen=True)
class StageRecord:
    """A stage that took part: its name, the share of the units that it read (1: all), and its event for one unit."""

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
    """Private accuracy of one arm: the estimate in [0, 1], and its interval, of sampling and noise together."""

    accuracy: float
    interval: tuple[float, float]

    @property
    def wide(self) -> bool:
        """Whether too few rows took part to say much."""
        return Estimate(self.accuracy, *self.interval).wide


@dataclass(frozen=True)
class Score:
    """Private accuracies on rows of the data set.

    Attributes:
        arms: by name.
        untouched: the rows took part in nothing that was chosen.
        level: of the intervals; None in files of before, which do not say it.
    """

    arms: Mapping[str, ArmScore]
    untouched: bool
    level: float | None = None

    @property
    def percent(self) -> str:
        """The level of the intervals in words."""
        return confidence.percent(_UNSTATED if self.level is None else self.level)

    @property
    def rows(self) -> str:
        """What the file says about the rows."""
        return _UNTOUCHED if self.untouched else _TOUCHED

    def exported(self, without: bool) -> str:
        """Name of the arm of what is exported; `without` demonstrations it is one of those that it is compared with."""
        if DEMONSTRATIONS in self.arms:
            return DEMONSTRATIONS
        return ZERO_SHOT if without else PUBLIC_ONLY

    def to_json(self) -> Json:
        """The format's `score`."""
        arms = {name: {"accuracy": each.accuracy, "interval": list(each.interval)} for name, each in self.arms.items()}
        return {"arms": arms, "rows": self.rows, **({} if self.level is None else {"level": self.level})}

    @classmethod
    def from_json(cls, document: Json) -> Score:
        """Read what fits the format's schema."""
        arms = {name: ArmScore(each["accuracy"], tuple(each["interval"])) for name, each in document["arms"].items()}
        return cls(arms, document["rows"] == _UNTOUCHED, document.get("level"))


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Attributes:
        among: how many arms (set and correction) there were.
        chosen: the set's name: "none" where no demonstrations serve best.
        correction: how its label probabilities are read: "none", "contextual", "prior" or "shares".
        zero_shot: measured correction of the label log-probabilities without demonstrations; None where not measured.
    """

    among: int
    chosen: str
    correction: str
    zero_shot: Mapping[str, float] | None = None

    def to_json(self) -> Json:
        """The format's `choice`."""
        read = {"zero_shot_prior": dict(self.zero_shot)} if self.zero_shot is not None else {}
        return {"among": self.among, "chosen": self.chosen, "correction": self.correction, **read}

    @classmethod
    def from_json(cls, document: Json) -> Choice:
        """Read what fits the format's schema."""
        return cls(document["among"], document["chosen"], document["correction"], document.get("zero_shot_prior"))
