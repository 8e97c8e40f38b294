"""A certificate, read back as the plan of the run that it states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mechanisms.data.columns import MOST_LABELS
from mechanisms.data.sizes import SMALLEST_EPSILON, MeasuredSizes
from mechanisms.demos.demo_set import DemoSet
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Approximate, Pure
from mechanisms.runs.plan import NO_FILE, Plan
from mechanisms.runs.spec import ALWAYS, SCORE, SETTINGS, WRITE, Group, RunSpec, certified
from mechanisms.steps import mechanism_class, mechanism_names, transform_class, transform_names

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
    if "recipe" not in stated:
        return _planned(demo_set, None, stated)
    return _planned(demo_set, stated, _within(stated, "written") if WRITE in _within(stated, "shares") else None)


def _planned(
    demo_set: DemoSet,
    stages: Mapping[str, Any] | None,
    written: Mapping[str, Any] | None,
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
        return Plan(
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
