"""Token-level writing as its parameters state it: a run of its own, or the stage "write" of a recipe."""

from __future__ import annotations

from mechanisms.accounting import PrivacyTarget
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import (
    TokenMechanism,
    Transform,
    mechanism_class,
    mechanism_names,
    transform_class,
    transform_names,
)
from mechanisms.studio.certificates.stated import Stated, at, check_extent
from mechanisms.studio.data.counts import MeasuredSizes
from mechanisms.studio.synthesis.demo_set import DemoSet
from mechanisms.studio.synthesis.outputs import outputs_of
from mechanisms.studio.synthesis.request import NO_FILE, SynthesisRequest


def plan_of(demo_set: DemoSet, named: Stated, stated: Stated, share: float = 1.0) -> SamplingPlan:
    """The sampling plan.

    Args:
        demo_set: whose labels are written for.
        named: where the scheme stands.
        stated: where the parameters stand.
        share: of the units that may join.
    """
    scheme = Scheme(named.known("scheme", list(Scheme)))
    numbers = {name: stated.of(name, int) for name in ("subsets", "per_subset", "tokens")}
    shots, unit_rows = stated.of("shots_per_label", int), stated.of("unit_rows", bool)
    with at(stated.where):
        plan = SamplingPlan(scheme, shots=shots, unit_rows=unit_rows, share=share, **numbers)
    check_extent(demo_set.labels, shots, stated)
    return plan


def writing_of(
    demo_set: DemoSet,
    named: Stated,
    stated: Stated,
    plan: SamplingPlan,
    sizes: dict[str, int],
    measured: MeasuredSizes | None,
) -> SynthesisRequest:
    """The request that states such parameters; its target's epsilon means nothing.

    Args:
        demo_set: whose task it is.
        named: where mechanism and transform stand.
        stated: where the parameters stand.
        plan: who joins a step.
        sizes: of the labels.
        measured: the measurement that they come from.
    """
    certificate = demo_set.certificate
    with at("privacy/delta"):
        target = PrivacyTarget(1.0, certificate.claim.delta)
    with at(f"{stated.where}/sizes"):
        for size in sizes.values():
            plan.rate(size)
    used, transform = _mechanism(named, stated), _transform(named, stated)
    caps = {name: stated.of(name, int) for name in ("candidates", "max_record_tokens")}
    if certificate.by_user:
        caps["max_unit_records"] = stated.of("max_unit_records", int)
    for name, field in (("min_tokens", "min_tokens"), ("kept_per_label", "kept")):
        if name in stated.values:
            caps[field] = stated.of(name, int)
    with at(stated.where):
        return SynthesisRequest(
            labels=demo_set.labels,
            template=demo_set.template,
            plan=plan,
            mechanism=used,
            target=target,
            sizes=sizes,
            content=NO_FILE,
            transform=transform,
            by_user=certificate.by_user,
            schema=demo_set.schema,
            outputs=outputs_of(demo_set),
            measured=measured,
            public_inputs=certificate.public_inputs,
            **caps,
        )


def _mechanism(named: Stated, stated: Stated) -> TokenMechanism:
    used = mechanism_class(named.known("mechanism", mechanism_names()))
    with at(stated.where):
        return used(**stated.own(used))


def _transform(named: Stated, stated: Stated) -> Transform:
    used = transform_class(named.known("transform", transform_names()))
    with at(stated.where):
        return used(**stated.own(used))
