"""A certificate, read back as the plan of the run that it states.

Runs of version 0.2.0 could do more. Theirs are priced as they were, and no run is made of them: the stage "choose"
released the better of several sets by report noisy max, which cost its epsilon; a vote had rounds, with an even share
each; a run that wrote more than it kept stated both numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mechanisms.data.columns import MOST_LABELS
from mechanisms.data.sizes import SMALLEST_EPSILON, MeasuredSizes
from mechanisms.demos.demo_set import LAST_READER, DemoSet
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Approximate, PrivacyEvent, Pure
from mechanisms.runs.plan import NO_FILE, Plan
from mechanisms.runs.spec import ALWAYS, SCORE, SETTINGS, WRITE, Group, RunSpec, certified
from mechanisms.runs.stage import PlannedStage
from mechanisms.runs.stages.calibrate import Calibrate
from mechanisms.runs.stages.vote import Vote
from mechanisms.steps import mechanism_class, mechanism_names, transform_class, transform_names
from mechanisms.tallies import Votes

MOST_DEMONSTRATIONS = 100_000
"""The most that a file may ask to account: each label can be a cost, and each demonstration a list, of its own."""
WHERE = "privacy/parameters"
_ALONE = {
    "epsilon": 1e6,
    "recipe": "tokens",
    "split": "epsilon",
    "shares": {WRITE: 1.0},
    "drafts": 2,
    "weighing": "rows",
}
"""Settings that a run that only writes does not state; it states what it costs, and no target."""
_NAMED = ("mechanism", "transform", "scheme")
"""Settings that it states beside its parameters."""
_CALLED = {"epsilon": "target_epsilon", "shots": "shots_per_label", "written": "shots_per_label"}
"""Settings that certificates call by another name."""


class _Measured(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    epsilon: float
    failure: float


def plan_of(demo_set: DemoSet) -> Plan:
    """The plan of the run whose certificate a set has; where it only writes, the target means nothing.

    A UsageError's message begins with the field of what is missing, of the wrong kind or out of range.
    """
    stated = demo_set.certificate.parameters
    if "division" in stated or "kept_per_label" in stated:
        return _older_plan(demo_set)
    if "recipe" not in stated:
        return _planned(demo_set, None, stated)
    return _planned(demo_set, stated, _within(stated, "written") if WRITE in _within(stated, "shares") else None)


def _planned(
    demo_set: DemoSet,
    stages: Mapping[str, Any] | None,
    written: Mapping[str, Any] | None,
    kind: type[Plan] = Plan,
    /,  # a kind of plan may have a field of the same name
    **more: Any,
) -> Plan:
    """The plan of what is stated of the run (None where it only writes) and of the writing (None where it does not)."""
    certificate, asked = demo_set.certificate, demo_set.asked
    if stages is None:
        assert written is not None
        of_run: Mapping[str, Any] = dict(written) | {name: getattr(certificate, name) for name in _NAMED}
        written = of_run
        values: dict[str, Any] = {**_ALONE}
    else:
        of_run = stages
        values = _read(stages, WHERE, Group.STAGES) | {"epsilon": _value(stages, "target_epsilon")}
    if written is not None:
        values |= _of_writing(written, stages is None)
    values |= _read(of_run, WHERE, Group.TASK, Group.PRIVACY, Group.CAPS)
    values |= {
        "delta": certificate.claim.delta,
        "score": SCORE in _within(values, "shares"),
        "shots": of_run.get("set_per_label") or _value(of_run, "shots_per_label"),
        "sizes": _within(of_run, "sizes"),
        **({"max_unit_records": _value(of_run, "max_unit_records")} if certificate.by_user else {}),
    }
    if asked is not None:
        values |= {"kind": asked.kind, "writer": asked.writer, "reader": asked.reader, "relation": asked.relation}
        values |= {"label_words": dict(asked.words), "sentence": asked.sentence, "exemplars": asked.exemplars}
    shots = (each for each in (values["shots"], values.get("written")) if isinstance(each, int | float))
    if len(demo_set.labels) > MOST_LABELS or len(demo_set.labels) * max(shots, default=1) > MOST_DEMONSTRATIONS:
        raise UsageError(f"{WHERE}/shots_per_label: so many labels or demonstrations cannot be checked.")
    spec = _spec(values, stages is None)
    assert isinstance(spec.sizes, dict)
    if set(spec.sizes) != set(demo_set.labels):
        raise UsageError(f"{WHERE}/sizes: every label must stand here, and nothing else.")
    if min(spec.sizes.values()) < 1:
        raise UsageError(f"{WHERE}/sizes: a size must be at least 1.")
    sizes = {label: spec.sizes[label] for label in demo_set.labels}
    with _naming(WHERE):
        return kind(
            spec=spec.with_(
                sizes=None,
                instruction=demo_set.template.instruction,
                text_field=demo_set.template.text,
                label_field=demo_set.template.label,
            ),
            labels=demo_set.labels,
            sizes=sizes,
            unit=certificate.unit,
            content=NO_FILE,
            measured=_measured(of_run, sizes),
            public_inputs=certificate.public_inputs,
            **more,
        )


def _read(stated: Mapping[str, Any], where: str, *groups: Group) -> dict[str, Any]:
    """The settings of some groups; one that may be left out, and is, means what it did before it could be chosen."""
    return {
        name: _value(stated, name, where) if name in stated or before is ALWAYS else before
        for name, before in certified(*groups)
    }


def _place(name: str, alone: bool) -> str:
    """The field of a certificate that states a setting."""
    if name == "delta" or (alone and name in _NAMED):
        return f"privacy/{name}"
    part = "/written" if not alone and SETTINGS[name].group is Group.TOKENS else ""
    return f"{WHERE}{part}/{_CALLED.get(name, name)}"


def _of_writing(written: Mapping[str, Any], alone: bool) -> dict[str, Any]:
    where = WHERE if alone else f"{WHERE}/written"
    values = {name: _value(written, name, where) for name in _NAMED} | _read(written, where, Group.TOKENS)
    for name, names in (("mechanism", mechanism_names()), ("transform", transform_names())):
        if values[name] not in names:
            raise UsageError(f"{_place(name, alone)}: this version knows no such {name}.")
    if values["scheme"] == DISJOINT:
        place = _place("scheme", alone)
        raise UsageError(f"{place}: disjoint samples: version {LAST_READER} of DP-ICL Studio checks this file.")
    unit_rows = _value(written, "unit_rows", where)
    own: dict[str, Any] = {}
    for config in (mechanism_class(values["mechanism"]), transform_class(values["transform"])):
        for each in parameters(config):  # one that is not stated means what there was before there was a choice
            name = each.flag.replace("-", "_")
            stated = name in written or each.before is None
            own[each.flag] = _value(written, name, where) if stated else each.before
    return values | {
        "parameters": own,
        "per_subset": None if unit_rows is True else _value(written, "per_subset", where),
        "written": _value(written, "shots_per_label", where),
    }


def implied(written: Mapping[str, Any], *of: Any) -> set[str]:
    """The parameters of mechanism and transform that a certificate may leave out, and does."""
    names = {each.flag.replace("-", "_") for config in of for each in parameters(config) if each.before is not None}
    return names - set(written)


def _spec(values: Mapping[str, Any], alone: bool) -> RunSpec:
    try:
        return RunSpec.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name, *deeper = [str(part) for part in first["loc"][:2]] or [""]
        place = "/".join([_place(name, alone) if name else WHERE, *deeper])
        said, *_ = str(first["msg"]).removeprefix("Value error, ").splitlines()
        raise UsageError(f"{place}: {said}") from None


def _value(stated: Mapping[str, Any], name: str, where: str = WHERE) -> Any:
    if name not in stated:
        raise UsageError(f"{where}/{name}: is missing.")
    return stated[name]


def _within(stated: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = _value(stated, name)
    if not isinstance(value, dict):
        raise UsageError(f"{WHERE}/{name}: an object must stand here.")
    return value


def _measured(stated: Mapping[str, Any], sizes: Mapping[str, int]) -> MeasuredSizes | None:
    if "measured" not in stated:
        return None
    field = f"{WHERE}/measured"
    try:
        cost = _Measured.model_validate(stated["measured"])
    except ValidationError as error:
        where = "/".join(map(str, error.errors()[0]["loc"]))
        raise UsageError(f"{field}/{where}: {error.errors()[0]['msg']}.") from None
    with _naming(field):
        Pure(cost.epsilon)
        Approximate(cost.failure)
        if cost.epsilon < SMALLEST_EPSILON or cost.failure <= 0:
            raise UsageError("no measurement of sizes is made with so little epsilon, or never fails.")
    return MeasuredSizes(dict(sizes), cost.epsilon, cost.failure, NO_FILE)


@contextmanager
def _naming(field: str) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{field}: {error}") from error


CHOOSE, DISJOINT = "choose", "disjoint"
_RENAMED = {"division": "split", "tokens": "draft_tokens"}
_MOST_ROUNDS = 4
_DROPPED = ("drafts", "rounds", "sets")


@dataclass(frozen=True)
class _Rounds(Vote):
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

    @property
    def shares(self) -> Mapping[str, float]:
        return {**super().shares, **({} if self.choice is None else {CHOOSE: self.choice})}

    def parameters(self) -> dict[str, Any]:
        if "division" not in self.stated:
            return super().parameters() | {"kept_per_label": self.stated["kept_per_label"]}
        older = {new: old for old, new in _RENAMED.items()}
        found = {older.get(name, name): value for name, value in super().parameters().items()}
        return found | {"shares": dict(self.shares)} | {name: self.stated[name] for name in _DROPPED}


def _older_plan(demo_set: DemoSet) -> Plan:
    parameters = demo_set.certificate.parameters
    stated = dict(parameters)
    if "division" not in stated:
        kept = stated.pop("kept_per_label")
        if type(kept) is not int or not 1 <= kept <= stated.get("shots_per_label", 0):
            raise UsageError(f"{WHERE}/kept_per_label: at most as many as were written must stand here.")
        return _planned(demo_set, None, stated, OlderPlan, stated=parameters)
    for name in _DROPPED:
        if type(stated.get(name)) is not int or not 1 <= stated[name] <= 256:
            raise UsageError(f"{WHERE}/{name}: a whole number must stand here.")
    if stated["rounds"] > _MOST_ROUNDS:
        raise UsageError(f"{WHERE}/rounds: at most {_MOST_ROUNDS} must stand here.")
    shares = _within(stated, "shares")
    choice = shares.get(CHOOSE)
    if choice is not None and not (isinstance(choice, float | int) and 0 < choice <= 1):
        raise UsageError(f"{WHERE}/shares/{CHOOSE}: a share must stand here.")
    rest = {name: share for name, share in shares.items() if name != CHOOSE}
    new = {_RENAMED.get(name, name): value for name, value in stated.items()}
    new |= {"shares": rest, "weighing": stated.get("weighing", "rows"), "drafts": max(2, stated["drafts"])}
    written = _within(stated, "written") if WRITE in shares else None
    return _planned(demo_set, new, written, OlderPlan, stated=parameters, choice=choice)
