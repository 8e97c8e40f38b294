"""Token by token: whole runs on neighbours, for every mechanism, scheme and unit."""

from __future__ import annotations

from typing import Any

import pytest

from mechanisms.accounting import fingerprint
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.records import Dataset, Record
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.sampling import Scheme
from mechanisms.steps import mechanism_class, mechanism_names
from tests.replay.contract import replayed
from tests.replay.world import UNIT, Leaning, neighbours, whole_run
from tests.runs.running import alone

pytestmark = pytest.mark.usefixtures("one_key", "quick_claims", "any_text_passes")

LABELS, OTHERS, SIZE = ("a", "b"), 12, 40
SIZES = dict.fromkeys(LABELS, SIZE)
UNITS = ("rows", "subsets", "users")
PRIVATE = [
    name
    for name in mechanism_names()
    if not mechanism_class(name).not_private and mechanism_class(name).uses_private_rows
]
LOOSE = ("adadpsyn", "svt-public")
"""Their events pay for refinements, or private tokens, that these rows do not need; `tests/steps` has rows that do."""


def planned(data: Dataset, name: str, scheme: Scheme, unit: str, measured: bool = False, **changes: Any) -> Plan:
    """Samples that not everybody joins; as it is released, the noisy vector decides the token."""
    sample = {"per_subset": 16, "subsets": 1} if unit == "subsets" else {"subsets": 6}
    wanted = {"mechanism": name, "scheme": scheme, "tokens": 3, "written": 2, "shots": 2, "candidates": 12}
    asked = alone(**wanted | {"parameters": {}, "max_record_tokens": 12, "candidate_top_p": 1.0, **sample} | changes)
    counted = MeasuredSizes(SIZES, 0.3, 1e-8, fingerprint(data).content) if measured else None
    return plan_for(asked if measured else asked.with_(sizes=SIZES), data, counted)


def is_closed(name: str, scheme: Scheme, unit: str) -> bool:
    sampling = planned(Dataset("d", LABELS, ()), "gaussian", scheme, unit).sampling
    return mechanism_class(name)().closed(sampling) is not None


CASES = [
    pytest.param(name, scheme, unit, id=f"{name}-{scheme.value}-{unit}")
    for name in PRIVATE
    for scheme in Scheme
    for unit in UNITS
    if not is_closed(name, scheme, unit)
]


def pair_of(unit: str, labels=LABELS, others: int = OTHERS):
    who = "me" if unit == "users" else None
    mine = [Record(f"{UNIT} {i}", label, who) for label in labels for i in range(2)] if who else []
    return neighbours(labels, mine or [Record(UNIT, labels[0])], others, unit == "users")


def cost(name: str, scheme: Scheme, unit: str, seed: int = 1, **changes):
    """With this seed nobody else of a subset is ever left out together."""
    one, other = pair_of(unit)
    how = {"seed": seed, "joins": frozenset({OTHERS}), "payer": "all" if unit == "users" else "a"}
    return replayed(whole_run(planned(one, name, scheme, unit, **changes), Leaning), one, other, **how)


@pytest.mark.parametrize(("name", "scheme", "unit"), CASES)
def test_a_run_costs_a_unit_what_it_charges_and_not_much_less(name, scheme, unit):
    found = cost(name, scheme, unit)
    assert found.allowed
    assert found.noise > (0.15 if name in LOOSE else 0.95)
    assert (found.rate == pytest.approx(1)) == (found.rate > 0)


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("unit", UNITS)
def test_amplified_tokens_cost_no_more(scheme, unit):
    """Nor where sizes were measured."""
    found = cost("gaussian", scheme, unit, transform="pta", measured=True)
    assert found.allowed
    assert found.noise > 0.95


@pytest.mark.parametrize("unit", ["rows", "users"])
@pytest.mark.parametrize("others", [0, 1, 2, 3, 5])
def test_what_a_prompt_shows_does_not_follow_from_how_few_units_there_are(others, unit):
    """Exemplars and all else that rows share is the same with a unit and without it, also where it is the only one."""
    one, other = pair_of(unit, others=others)
    plan = planned(one, "gaussian", Scheme.PER_DEMONSTRATION, unit, kind="message", subsets=4)
    found = replayed(
        whole_run(plan, Leaning), one, other, joins=frozenset({others}), payer="a" if unit == "rows" else "all"
    )
    assert found.allowed
    assert plan.spec.wording.exemplar_pairs()


@pytest.mark.parametrize("name", ["gaussian", "adadpsyn"])
@pytest.mark.parametrize("prior", [0.001, 0.1, 1000.0])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_however_a_noisy_vector_is_read_its_token_follows_from_it(name, prior, temperature):
    """The event holds the vector: with the same one the neighbour decides the same."""
    used = {"prior-deviation": prior, "temperature": temperature}
    found = cost(name, Scheme.PER_DEMONSTRATION, "rows", parameters=used)
    assert found.allowed
