"""The plan of a run, read back from the certificate of its set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mechanisms.data.sizes import SMALLEST_EPSILON, MeasuredSizes
from mechanisms.demos.demo_set import DemoSet
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Approximate, Pure
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import SCORE, WRITE, RunSpec, stated
from mechanisms.runs.terms import NO_FILE
from mechanisms.settings import PARAMETERS
from mechanisms.steps import mechanism_class, mechanism_names, transform_class, transform_names

WHERE = "privacy/parameters"


class _Measured(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    epsilon: float
    failure: float


def plan_of(demo_set: DemoSet) -> Plan:
    """The plan of the run that a set's certificate describes.

    Raises a UsageError if a field is missing, of the wrong type or out of range; its message begins with the field.
    """
    certificate, template = demo_set.certificate, demo_set.template
    spec = _spec(demo_set)
    sizes = _sizes(spec, demo_set.labels)
    with _naming(WHERE):
        return Plan(
            spec=spec.with_(
                sizes=None, instruction=template.instruction, text_field=template.text, label_field=template.label
            ),
            labels=demo_set.labels,
            sizes=sizes,
            unit=certificate.unit,
            content=NO_FILE,
            measured=_measured(certificate.parameters, sizes),
            public_inputs=certificate.public_inputs,
        )


def _spec(demo_set: DemoSet) -> RunSpec:
    certificate = demo_set.certificate
    held = certificate.parameters
    shares = _within(held, "shares")
    values = {name: _value(held, name) for name in stated(WRITE in shares, certificate.by_user)}
    values |= {"delta": certificate.claim.delta, "sizes": _within(held, "sizes"), "score": SCORE in shares}
    if WRITE in shares:
        values[PARAMETERS] = _own(held)
    try:
        return RunSpec.model_validate(values | RunSpec.of_wording(demo_set.wording))
    except ValidationError as error:
        first = error.errors()[0]
        place = [str(part) for part in first["loc"][:2]]
        if place[:1] == [PARAMETERS]:
            place = [place[1].replace("-", "_")]
        said, *_ = str(first["msg"]).removeprefix("Value error, ").splitlines()
        where = "privacy" if place[:1] == ["delta"] else WHERE
        raise UsageError(f"{'/'.join([where, *place])}: {said}") from None


def _own(held: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of mechanism and transform, by their command-line flags."""
    for name, names in (("mechanism", mechanism_names()), ("transform", transform_names())):
        if held[name] not in names:
            raise UsageError(f"{WHERE}/{name}: this version knows no such {name}.")
    configs = mechanism_class(held["mechanism"]), transform_class(held["transform"])
    return {each.flag: _value(held, each.field) for config in configs for each in parameters(config)}


def _sizes(spec: RunSpec, labels: tuple[str, ...]) -> dict[str, int]:
    assert isinstance(spec.sizes, dict)
    if set(spec.sizes) != set(labels):
        raise UsageError(f"{WHERE}/sizes: every label must stand here, and nothing else.")
    if min(spec.sizes.values()) < 1:
        raise UsageError(f"{WHERE}/sizes: a size must be at least 1.")
    return {label: spec.sizes[label] for label in labels}


def _value(held: Mapping[str, Any], name: str) -> Any:
    if name not in held:
        raise UsageError(f"{WHERE}/{name}: is missing.")
    return held[name]


def _within(held: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = _value(held, name)
    if not isinstance(value, dict):
        raise UsageError(f"{WHERE}/{name}: an object must stand here.")
    return value


def _measured(held: Mapping[str, Any], sizes: Mapping[str, int]) -> MeasuredSizes | None:
    if "measured" not in held:
        return None
    field = f"{WHERE}/measured"
    try:
        cost = _Measured.model_validate(held["measured"])
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
