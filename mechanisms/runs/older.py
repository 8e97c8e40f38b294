"""Certificates of version 0.2.0, whose runs could do more: they are priced as they were, and no run is made of them.

Three things are no more. The stage "choose" released the better of several sets by report noisy max, which cost its
epsilon. A vote had rounds, with an even share each. A run that wrote more than it kept stated both numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.privacy_events import PrivacyEvent, Pure
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import WRITE
from mechanisms.runs.stage import PlannedStage
from mechanisms.runs.stages.calibrate import Calibrate
from mechanisms.runs.stages.vote import Vote
from mechanisms.tallies import Votes

CHOOSE, DISJOINT = "choose", "disjoint"
_RENAMED = {"division": "split", "tokens": "draft_tokens"}
_MOST_ROUNDS = 4
_DROPPED = ("drafts", "rounds", "sets")


@dataclass(frozen=True)
class _Rounds(Vote):
    """A vote in several rounds."""

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        assert isinstance(self.plan, OlderPlan)
        rounds = int(self.plan.stated["rounds"])
        return (Votes(self.plan.epsilon(self.name) / rounds, self.plan.by_user).event,) * rounds


@dataclass(frozen=True)
class _Choose(Calibrate):
    """The choice of a set; all of it that is left is its price."""

    name = CHOOSE
    place = 40

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (Pure(self.plan.epsilon(self.name)),)


@dataclass(frozen=True, kw_only=True)
class OlderPlan(Plan):
    """A plan with what is no more.

    Attributes:
        stated: the certificate's parameters.
        choice: the share of the stage "choose"; None where there was none.
    """

    stated: Mapping[str, Any] = field(default_factory=dict)
    choice: float | None = None

    @cached_property
    def stages(self) -> dict[str, PlannedStage]:
        found = dict(super().stages)
        if "vote" in found:
            found["vote"] = _Rounds(self)
        if self.choice is not None:
            found[CHOOSE] = _Choose(self)
        return dict(sorted(found.items(), key=lambda each: each[1].place))

    def role(self, stage: str) -> float:
        if stage != CHOOSE or self.choice is None:
            return super().role(stage)
        return self.choice if self.by_roles else 1.0

    def epsilon(self, stage: str) -> float:
        if stage != CHOOSE or self.choice is None:
            return super().epsilon(stage)
        return self.whole if self.by_roles else self.whole * self.choice

    def parameters(self) -> dict[str, Any]:
        if "division" not in self.stated:
            return super().parameters() | {"kept_per_label": self.stated["kept_per_label"]}
        older = {new: old for old, new in _RENAMED.items()}
        found = {older.get(name, name): value for name, value in super().parameters().items()}
        shares = found["shares"] | ({CHOOSE: self.choice} if self.choice is not None else {})
        return found | {"shares": shares} | {name: self.stated[name] for name in _DROPPED}


def is_older(stated: Mapping[str, Any]) -> bool:
    """Whether such parameters are of a run that is no more."""
    return "division" in stated or "kept_per_label" in stated


def plan_of(demo_set: DemoSet, planned: Callable[..., Plan]) -> Plan:
    """The plan of such a certificate.

    Args:
        planned: plans what is stated of the stages and of the writing; see `mechanisms.runs.certificate`.

    Raises:
        UsageError: a stated value is missing, of the wrong kind or out of range; the message begins with its field.
    """
    certificate = demo_set.certificate
    stated = dict(certificate.parameters)
    if "division" not in stated:
        kept = stated.pop("kept_per_label")
        if type(kept) is not int or not 1 <= kept <= stated.get("shots_per_label", 0):
            raise UsageError("privacy/parameters/kept_per_label: at most as many as were written must stand here.")
        return planned(demo_set, None, stated, OlderPlan, stated=certificate.parameters)
    for name in _DROPPED:
        if type(stated.get(name)) is not int or not 1 <= stated[name] <= 256:
            raise UsageError(f"privacy/parameters/{name}: a whole number must stand here.")
    if stated["rounds"] > _MOST_ROUNDS:
        raise UsageError(f"privacy/parameters/rounds: at most {_MOST_ROUNDS} must stand here.")
    shares = stated.get("shares")
    if not isinstance(shares, dict):
        raise UsageError("privacy/parameters/shares: an object must stand here.")
    choice = shares.get(CHOOSE)
    if choice is not None and not (isinstance(choice, float | int) and 0 < choice <= 1):
        raise UsageError(f"privacy/parameters/shares/{CHOOSE}: a share must stand here.")
    rest = {name: share for name, share in shares.items() if name != CHOOSE}
    new = {_RENAMED.get(name, name): value for name, value in stated.items()}
    new |= {"shares": rest, "weighing": stated.get("weighing", "rows"), "drafts": max(2, stated["drafts"])}
    written = stated.get("written") if WRITE in shares else None
    return planned(demo_set, new, written, OlderPlan, stated=certificate.parameters, choice=choice)
