"""Mechanisms and transforms in whole runs: what the certificate says, what the ledger keeps, what is refused."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from mechanisms.demos.demo_set import loads
from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.runs.events import RunCompleted, TokenReleased
from mechanisms.runs.plan import Plan
from mechanisms.sampling import Scheme
from mechanisms.steps import mechanism_class, mechanism_names
from mechanisms.steps.gaussian import GaussianMechanism
from mechanisms.steps.mechanism import Norm
from tests.runs.neighbours import Spelling, written_by
from tests.runs.running import alone, begun, data, ledger, planned, rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("any_text_passes")]


def plan_of(name: str = "gaussian", **settings: Any) -> Plan:
    wanted = {"mechanism": name, "parameters": {}, "tokens": 4, "subsets": 8, "candidates": 12}
    return planned(data(rows(40)), alone(**wanted | settings))


def ran(plan: Plan, account=None, randomness=None, model=None):
    model = model or Spelling()
    used = {"ledger": account, "randomness": randomness or SecureRandomness(), "model": model}
    events = list(begun(data(rows(40)), plan, **used))
    [completed] = [event for event in events if isinstance(event, RunCompleted)]
    return completed.demo_set, [event for event in events if isinstance(event, TokenReleased)], model


@pytest.mark.parametrize("name", mechanism_names())
def test_scores_leave_a_run_only_where_the_mechanism_releases_them(name):
    _, released, _ = ran(plan_of(name))
    mechanism = mechanism_class(name)()
    whole_vector = mechanism.sensitivity(True).norm is not Norm.RANGE and mechanism.not_private is None
    assert released
    assert all((token.scores is not None) == whole_vector for token in released)


class Counted(GaussianMechanism):
    """Its releasers know which token of their own they are at."""

    begun: ClassVar[list] = []

    def begin(self, plan, randomness):
        self.begun.append(plan)
        mechanism, count = self, itertools.count()

        def releaser(distributions):
            return replace(mechanism.step(distributions, randomness), free=next(count) % 2 == 1)

        return releaser


@pytest.mark.parametrize("scheme", list(Scheme))
def test_every_demonstration_has_a_releaser_of_its_own_that_says_what_was_free(scheme):
    plan = written_by(plan_of(scheme=scheme, written=2, shots=2), Counted(noise_multiplier=50.0))
    Counted.begun.clear()
    _, released, _ = ran(plan, randomness=SeededRandomness(4))
    assert Counted.begun[-4:] == [plan.sampling] * 4
    assert [token.free for token in released] == [token.step % 2 == 0 for token in released]


def test_the_baseline_without_privacy_is_marked_and_costs_the_ledger_nothing():
    account = ledger()
    demo_set, _, _ = ran(plan_of("non-private"), account)
    document = demo_set.to_json()
    assert document["privacy"]["private"] is False
    assert document["privacy"]["reason"]
    assert document["privacy"]["epsilon"] is None
    json.dumps(document, allow_nan=False)
    assert math.isinf(loads(demo_set.dumps()).certificate.claim.epsilon)
    assert account.snapshot("d", "record").runs == 0
    document["privacy"]["private"] = True
    with pytest.raises(UsageError, match="privacy/epsilon"):
        loads(json.dumps(document))


@pytest.mark.parametrize("name", ["gaussian", "noisy-max", "adadpsyn", "non-private"])
def test_a_transform_runs_in_front_and_is_certified(name):
    plan = plan_of(name, transform="pta", parameters={"alpha": 1.5, "pta-top-p": 0.9})
    demo_set, _, model = ran(plan)
    assert demo_set.certificate.transform == "pta"
    assert {"alpha": 1.5, "pta_top_p": 0.9, "base": True}.items() <= demo_set.certificate.parameters.items()
    assert (1, 1, 4) in model.opened, "no session holds the tokens so far alone"


class Watching(Spelling):
    def __init__(self):
        super().__init__()
        self.sessions = []

    def open(self, prefix, rows, length, room):
        self.sessions.append(super().open(prefix, rows, length, room))
        return self.sessions[-1]


def test_the_base_session_holds_a_line_break_and_the_released_tokens_alone():
    model = Watching()
    _, released, _ = ran(plan_of(transform="pta"), model=model)
    bases = [s.rows[0][1:] for s in model.sessions if len(s.rows) == 1 and s.rows[0][:1] == [10]]
    written = [[token.token for token in released if token.label == label] for label in ("red", "blue")]
    # The last token needs no further step: it is in the text, and never goes into a session.
    assert bases == [tokens[:-1] for tokens in written]


@pytest.mark.parametrize("name", ["blended-logits", "difference-clipping"])
def test_choices_without_sound_accounting_are_refused_with_the_reason(name):
    with pytest.raises(UsageError, match="Choose unit rows"):
        _ = plan_of(name, per_subset=1).mechanism
    with pytest.raises(UsageError, match="works on logits"):
        plan_of(name, transform="pta")
