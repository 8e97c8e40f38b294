"""Mechanisms and transforms in whole runs: what the certificate says, what the ledger keeps, what is refused."""

import itertools
import json
import math
from dataclasses import replace
from typing import ClassVar

import pytest
from mechanisms.runs.preview import preview
from mechanisms.runs.request import SynthesisRequest

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.demos.demo_set import loads
from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.records import Dataset, Record, default_template
from mechanisms.runs.events import RunCompleted, TokenReleased
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class, mechanism_names, transform_class
from mechanisms.steps.gaussian import GaussianMechanism
from mechanisms.steps.mechanism import Norm
from tests.toy_model import ToyModel

pytestmark = pytest.mark.slow

LABELS = ("red", "blue")


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("DPICL_HOME", str(tmp_path))
    return PrivacyLedger(tmp_path)


def colours():
    return Dataset("colours", LABELS, tuple(Record(f"text {i}", LABELS[i % 2]) for i in range(40)))


@pytest.fixture
def dataset():
    return colours()


def a_request(name="gaussian", **changes):
    settings = {
        "labels": LABELS,
        "template": default_template(LABELS),
        "plan": SamplingPlan(subsets=8, tokens=4),
        "mechanism": mechanism_class(name)(),
        "target": PrivacyTarget(2.0, 1e-5),
        "sizes": dict.fromkeys(LABELS, 20),
        "content": fingerprint(colours()).content,
        "candidates": 12,
        "max_record_tokens": 8,
    }
    return SynthesisRequest(**(settings | changes))


def run(dataset, request, ledger, randomness=None):
    model = ToyModel()
    events = list(synthesize(dataset, request, model, ledger, randomness or SecureRandomness()))
    [completed] = [event for event in events if isinstance(event, RunCompleted)]
    return completed.demo_set, [e for e in events if isinstance(e, TokenReleased)], model


@pytest.mark.parametrize("name", [n for n in mechanism_names() if n not in ("public", "non-private")])
@pytest.mark.parametrize("scheme", list(Scheme))
def test_every_private_mechanism_runs_under_every_scheme_within_its_target(name, scheme, dataset, ledger):
    plan = SamplingPlan(scheme=scheme, subsets=8, tokens=4)
    if mechanism_class(name)().closed(plan):
        with pytest.raises(UsageError, match="Choose"):
            a_request(name, plan=plan)
        return
    request = a_request(name, plan=plan).calibrated()
    demo_set, _, _ = run(dataset, request, ledger)
    certificate = demo_set.certificate
    assert certificate.private
    assert 0.97 * 2.0 <= certificate.claim.epsilon <= 2.0
    assert ledger.snapshot("colours", "record").epsilon == pytest.approx(certificate.claim.epsilon)


@pytest.mark.parametrize("name", mechanism_names())
def test_scores_leave_a_run_only_where_the_mechanism_releases_them(name, dataset, ledger):
    _, released, _ = run(dataset, a_request(name).calibrated(), ledger)
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

        class Releaser:
            def step(self, distributions):
                release = mechanism.step(distributions, randomness)
                return replace(release, free=next(count) % 2 == 1)

        return Releaser()


@pytest.mark.parametrize("scheme", list(Scheme))
def test_every_demonstration_has_a_releaser_of_its_own_that_says_what_was_free(scheme, dataset, ledger):
    plan = SamplingPlan(scheme, subsets=8, tokens=4, shots=2)
    Counted.begun.clear()
    _, released, _ = run(
        dataset, a_request(mechanism=Counted(noise_multiplier=50.0), plan=plan), ledger, SeededRandomness(4)
    )
    assert Counted.begun == [plan] * 4
    assert [token.free for token in released] == [token.step % 2 == 0 for token in released]


def test_the_baseline_without_privacy_is_marked_and_costs_the_ledger_nothing(dataset, ledger):
    demo_set, _, _ = run(dataset, a_request("non-private").calibrated(), ledger)
    document = demo_set.to_json()
    assert document["privacy"]["private"] is False
    assert document["privacy"]["reason"]
    assert document["privacy"]["epsilon"] is None
    json.dumps(document, allow_nan=False)
    assert math.isinf(loads(demo_set.dumps()).certificate.claim.epsilon)
    assert ledger.snapshot("colours", "record").runs == 0


def test_a_private_certificate_must_state_a_number(dataset, ledger):
    demo_set, _, _ = run(dataset, a_request("non-private").calibrated(), ledger)
    document = demo_set.to_json()
    document["privacy"]["private"] = True
    with pytest.raises(UsageError, match="privacy/epsilon"):
        loads(json.dumps(document))


def test_previewing_no_privacy_promises_nothing():
    assert preview(a_request("non-private")).guarantee.startswith("No guarantee")


@pytest.mark.parametrize("name", ["gaussian", "noisy-max", "adadpsyn", "non-private"])
def test_a_transform_runs_in_front_and_is_certified(name, dataset, ledger):
    transform = transform_class("pta")(alpha=1.5, pta_top_p=0.9)
    demo_set, _, model = run(dataset, a_request(name, transform=transform).calibrated(), ledger)
    assert demo_set.certificate.transform == "pta"
    assert {"alpha": 1.5, "pta_top_p": 0.9, "base": True}.items() <= demo_set.certificate.parameters.items()
    assert (1, 1, 4) in model.opened, "no session holds the tokens so far alone"


class Watching(ToyModel):
    def __init__(self):
        super().__init__()
        self.sessions = []

    def open(self, prefix, rows, length, room):
        self.sessions.append(super().open(prefix, rows, length, room))
        return self.sessions[-1]


def test_the_base_session_holds_a_line_break_and_the_released_tokens_alone(dataset, ledger):
    request = a_request(transform=transform_class("pta")()).calibrated()
    model = Watching()
    events = list(synthesize(dataset, request, model, ledger, SeededRandomness(2)))
    # The last token needs no further step: it is in the text, and never goes into a session.
    ends = [e for e in events if isinstance(e, TokenReleased) and (e.step == 4 or e.stop)]
    texts = [e.text if e.stop else e.text[:-1] for e in ends]
    bases = [s.rows[0] for s in model.sessions if len(s.rows) == 1 and s.rows[0][0] == 10]
    assert [model.decode(row[1:]) for row in bases] == texts


def test_without_the_base_variant_there_is_no_third_session(dataset, ledger):
    transform = transform_class("pta")(base=False)
    _, _, model = run(dataset, a_request(transform=transform).calibrated(), ledger)
    assert (1, 1, 4) not in model.opened


def test_the_public_nucleus_narrows_the_candidates(dataset, ledger):
    seeded = SeededRandomness(1)
    narrowing = a_request(transform=transform_class("pta")(pta_top_p=0.3))
    _, narrow, _ = run(dataset, narrowing.calibrated(), ledger, seeded)
    _, wide, _ = run(dataset, a_request().calibrated(), ledger, SeededRandomness(1))
    assert max(len(token.candidates) for token in narrow) < min(len(token.candidates) for token in wide)


@pytest.mark.parametrize("name", ["blended-logits", "difference-clipping"])
def test_choices_without_sound_accounting_are_refused_with_the_reason(name):
    with pytest.raises(UsageError, match="Choose unit rows"):
        a_request(name, plan=SamplingPlan(subsets=8, tokens=4, unit_rows=False))
    with pytest.raises(UsageError, match="works on logits"):
        a_request(name, transform=transform_class("pta")())
