"""Token by token: whole runs on neighbours, for every mechanism, scheme and unit, in every form of a demonstration."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mechanisms.accounting import PrivacyTarget, fingerprint
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.demos.demo_set import Answers, Outputs
from mechanisms.records import Dataset, PromptTemplate, Record
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class, mechanism_names, transform_class
from tests.replay import price_list
from tests.replay.contract import replayed
from tests.replay.world import UNIT, Leaning, Ledger, charged, neighbours, one_key, quick_claims, tell_all

pytestmark = pytest.mark.usefixtures("one_key", "quick_claims")
assert one_key
assert quick_claims

LABELS, OTHERS, SIZE = ("a", "b"), 12, 40
UNITS = ("rows", "subsets", "users")
PRIVATE = [
    name
    for name in mechanism_names()
    if not mechanism_class(name).not_private and mechanism_class(name).uses_private_rows
]
LOOSE = ("adadpsyn", "svt-public")
"""Their events pay for refinements, or private tokens, that these rows do not need; `tests/steps` has rows that do."""


def plan_of(scheme: Scheme, unit: str) -> SamplingPlan:
    """Two batches, if they are disjoint; else samples that not everybody joins."""
    sample = SIZE // 2 if scheme is Scheme.DISJOINT else 16 if unit == "subsets" else 6
    rows = {"per_subset": sample, "unit_rows": False, "subsets": 1} if unit == "subsets" else {"subsets": sample}
    return SamplingPlan(scheme, tokens=3, shots=2, **rows)


CASES = [
    pytest.param(name, scheme, unit, id=f"{name}-{scheme.value}-{unit}")
    for name in PRIVATE
    for scheme in Scheme
    for unit in UNITS
    if mechanism_class(name)().closed(plan_of(scheme, unit)) is None
]


def planned(data: Dataset, plan: SamplingPlan, name: str, **changes) -> SynthesisRequest:
    values = {
        "labels": data.labels,
        "template": PromptTemplate("Classify.", "T", "L"),
        "plan": plan,
        "mechanism": mechanism_class(name)(),
        "target": PrivacyTarget(1.0, 1e-5),
        "sizes": dict.fromkeys(data.labels, SIZE),
        "content": "",
        "by_user": data.by_user,
        "candidates": 12,
        "max_record_tokens": 12,
    }
    return SynthesisRequest(**values | changes)


def release(request: SynthesisRequest):
    """A whole run, in a world where nothing is clipped; it charges and certifies what the price list says."""
    assert [*price_list.clipped(request)] == []

    def run(data, tape):
        wanted, ledger = request.for_content(fingerprint(data).content), Ledger(tape)
        last = tell_all(synthesize(data, wanted, Leaning(tape), ledger, tape), tape)
        price_list.compare(ledger.planned, price_list.of_run(wanted), "what was reserved")
        price_list.compare(charged(tape).items(), price_list.of_run(wanted), "what was charged")
        price_list.compare(last.demo_set.certificate.event, price_list.with_sizes(wanted), "what is certified")

    return run


def pair_of(unit: str, labels=LABELS):
    who = "me" if unit == "users" else None
    mine = [Record(f"{UNIT} {i}", label, who) for label in labels for i in range(2)] if who else []
    return neighbours(labels, mine or [Record(UNIT, labels[0])], OTHERS, unit == "users")


def cost(plan: SamplingPlan, name: str, unit: str, seed: int = 0, **changes):
    one, other = pair_of(unit)
    how = {"seed": seed, "joins": frozenset({OTHERS}), "payer": "a"}  # its label, its batch, or all labels of a user
    return replayed(release(planned(one, plan, name, **changes)), one, other, **how)


@pytest.mark.parametrize(("name", "scheme", "unit"), CASES)
def test_a_run_costs_a_unit_what_it_charges_and_not_much_less(name, scheme, unit):
    found = cost(plan_of(scheme, unit), name, unit)
    assert found.allowed
    assert found.noise > (0.15 if name in LOOSE else 0.95)
    assert (found.rate == pytest.approx(1)) == (scheme is not Scheme.DISJOINT and found.rate > 0)


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("unit", UNITS)
def test_amplified_tokens_cost_no_more(scheme, unit):
    """Nor where sizes were measured."""
    measured = MeasuredSizes(dict.fromkeys(LABELS, SIZE), 0.3, 1e-8, "")
    found = cost(plan_of(scheme, unit), "gaussian", unit, transform=transform_class("pta")(), measured=measured)
    assert found.allowed
    assert found.noise > 0.95


FORMS = {
    "best of two": {"kept": 1},
    "records": {"schema": RecordSchema({"type": "object", "properties": {"n": {"type": "string", "maxLength": 9}}})},
    "answers by rows": {"outputs": Outputs(tokens=2, max_tokens=4)},
    "answers by the model": {"outputs": Outputs(Answers.MODEL, max_tokens=4)},
}


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_demonstration_costs_no_more(form, unit, scheme):
    changes = dict(FORMS[form])
    if "outputs" in changes:
        changes["template"] = PromptTemplate("Answer.", "T", "L", "A")
    plan = replace(plan_of(scheme, unit), tokens=5)
    found = cost(plan, "gaussian", unit, **changes)
    assert found.allowed
    assert found.noise > (0.15 if form == "records" else 0.95)  # of a record most tokens are forced
