"""The run that a certificate describes, built anew from what it states; a value that cannot be right is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mechanisms.accounting import PrivacyTarget
from mechanisms.errors import UsageError
from mechanisms.parameters import parameters
from mechanisms.privacy_events import Approximate, Composed, Pure
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import (
    TokenMechanism,
    Transform,
    mechanism_class,
    mechanism_names,
    transform_class,
    transform_names,
)
from mechanisms.studio.data.counts import SMALLEST_EPSILON, MeasuredSizes
from mechanisms.studio.synthesis.demo_set import MEASURED_SIZES, Certificate, DemoSet
from mechanisms.studio.synthesis.request import NO_FILE, SynthesisRequest

_MOST_LABELS, _MOST_DEMONSTRATIONS = 150, 100_000
"""What a file can ask to be accounted: every label can be a cost of its own, every demonstration a list of its own."""
_LEAST_RATE = 1e-12
_OLDER = (
    "This file is of an older version, which does not state label sizes: they were taken from the rates, and failure "
    "probabilities that the rates do not show were taken as stated."
)
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", dict: "an object"}


@dataclass(frozen=True)
class Rebuilt:
    """A certificate's run.

    Attributes:
        request: public; its target's epsilon means nothing, since a certificate states a claim, not a target.
        event: what the run's certificate has to show.
        failures_known: the failure probabilities of `event` are the run's.
        remark: what had to be taken as stated.
    """

    request: SynthesisRequest
    event: Composed
    failures_known: bool = True
    remark: str | None = None


def rebuilt(demo_set: DemoSet) -> Rebuilt:
    """The run of a demo set's certificate.

    Raises:
        UsageError: a stated value is missing, of the wrong kind or out of range; the message begins with its field.
    """
    certificate, stated = demo_set.certificate, _Stated(demo_set.certificate.parameters)
    older = demo_set.version == 1
    plan = _plan(certificate, stated)
    if len(demo_set.labels) > _MOST_LABELS or len(demo_set.labels) * plan.shots > _MOST_DEMONSTRATIONS:
        raise UsageError("privacy/parameters/shots_per_label: so many labels or demonstrations cannot be checked.")
    with _at("privacy/delta"):
        target = PrivacyTarget(1.0, certificate.claim.delta)
    sizes = _sizes_of_version_1(demo_set.labels, plan, stated) if older else _sizes(demo_set.labels, stated)
    with _at("privacy/parameters/sizes"):
        for size in sizes.values():
            plan.rate(size)
    used, transform = _mechanism(certificate, stated), _transform(certificate, stated)
    measured = (_measured_in_version_1 if older else _measured)(certificate, stated, sizes)
    caps = {name: stated.of(name, int) for name in ("candidates", "max_record_tokens")}
    if certificate.by_user:
        caps["max_unit_records"] = stated.of("max_unit_records", int)
    with _at("privacy/parameters"):
        request = SynthesisRequest(
            labels=demo_set.labels,
            template=demo_set.template,
            plan=plan,
            mechanism=used,
            target=target,
            sizes=sizes,
            content=NO_FILE,
            transform=transform,
            by_user=certificate.by_user,
            measured=measured,
            public_inputs=certificate.public_inputs,
            **caps,
        )
        known = not older or plan.scheme is not Scheme.DISJOINT
        return Rebuilt(request, request.certified_event(), known, _OLDER if older else None)


@contextmanager
def _at(field: str) -> Iterator[None]:
    """Name the field of a refused value."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{field}: {error}") from error


@dataclass(frozen=True)
class _Stated:
    """Values of a JSON object, each read as the kind that it has to be."""

    values: Mapping[str, Any]
    where: str = "privacy/parameters"

    def of(self, name: str, kind: type) -> Any:
        """The value of that name; JSON writes a whole number with or without a point."""
        value = self.values.get(name)
        if kind is float and type(value) is int:
            value = float(value)
        elif kind is int and type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not kind:
            raise UsageError(f"{self.where}/{name}: {_KINDS[kind]} must stand here.")
        return value

    def within(self, name: str) -> _Stated:
        """The object of that name."""
        return _Stated(self.of(name, dict), f"{self.where}/{name}")

    def own(self, config: Any) -> dict[str, Any]:
        """The described parameters of a mechanism's or a transform's class."""
        return {each.name: self.of(each.flag.replace("-", "_"), type(each.default)) for each in parameters(config)}


def _plan(certificate: Certificate, stated: _Stated) -> SamplingPlan:
    if certificate.scheme not in list(Scheme):
        raise UsageError("privacy/scheme: there is no such scheme.")
    numbers = {name: stated.of(name, int) for name in ("subsets", "per_subset", "tokens")}
    shots, unit_rows = stated.of("shots_per_label", int), stated.of("unit_rows", bool)
    share = stated.of("share", float) if "share" in stated.values else 1.0
    with _at("privacy/parameters"):
        return SamplingPlan(Scheme(certificate.scheme), shots=shots, unit_rows=unit_rows, share=share, **numbers)


def _mechanism(certificate: Certificate, stated: _Stated) -> TokenMechanism:
    if certificate.mechanism not in mechanism_names():
        raise UsageError("privacy/mechanism: this version knows no such mechanism.")
    used = mechanism_class(certificate.mechanism)
    with _at("privacy/parameters"):
        return used(**stated.own(used))


def _transform(certificate: Certificate, stated: _Stated) -> Transform:
    if certificate.transform not in transform_names():
        raise UsageError("privacy/transform: this version knows no such transform.")
    used = transform_class(certificate.transform)
    with _at("privacy/parameters"):
        return used(**stated.own(used))


def _sizes(labels: tuple[str, ...], stated: _Stated) -> dict[str, int]:
    sizes = stated.within("sizes")
    if set(sizes.values) != set(labels):
        raise UsageError(f"{sizes.where}: every label must stand here, and nothing else.")
    return {label: sizes.of(label, int) for label in labels}


def _sizes_of_version_1(labels: tuple[str, ...], plan: SamplingPlan, stated: _Stated) -> dict[str, int]:
    """The sizes that the rates show, n = M N / q; any size where everybody joins, which then costs the same."""
    rates = stated.within("rates")
    sizes = {}
    for label in labels:
        rate = rates.of(label, float)
        if not _LEAST_RATE <= rate <= 1:
            raise UsageError(f"{rates.where}/{label}: a rate must lie between {_LEAST_RATE:g} and 1.")
        sizes[label] = round(plan.expected_sample / rate)
    return sizes


def _measured(certificate: Certificate, stated: _Stated, sizes: dict[str, int]) -> MeasuredSizes | None:
    if "measured" not in stated.values:
        return None
    cost = stated.within("measured")
    measured = MeasuredSizes(sizes, cost.of("epsilon", float), cost.of("failure", float), NO_FILE)
    with _at(cost.where):
        Pure(measured.epsilon)
        Approximate(measured.failure)
        if measured.epsilon < SMALLEST_EPSILON or measured.failure <= 0:
            raise UsageError("no measurement of sizes is made with so little epsilon, or never fails.")
    return measured


def _measured_in_version_1(certificate: Certificate, stated: _Stated, sizes: dict[str, int]) -> MeasuredSizes | None:
    """The measurement that the event shows: version 1 has no other place for it."""
    if MEASURED_SIZES not in certificate.public_inputs:
        return None
    match certificate.event.lists[0][1]:
        case (Pure(epsilon, 1), *_, Approximate(failure)):
            return MeasuredSizes(sizes, epsilon, failure, NO_FILE)
    raise UsageError("privacy/event: sizes are said to be measured, but no list begins with that event.")
