"""Audits of whole recipes that see releases alone, of many runs: what they prove of a unit, and of planted errors.

What a unit moves in one run is replayed in `tests/replay/test_recipes.py`.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage, divide
from mechanisms.runs.recipe_request import RecipeRequest

from mechanisms.accounting import PrivacyTarget, claim, fingerprint
from mechanisms.audit.mechanism import lower_bound
from mechanisms.data.sizes import units_of
from mechanisms.records import Dataset, Record, default_template
from mechanisms.runs import recipe as roles
from mechanisms.runs import request, run, stage
from mechanisms.runs.judging import of_units, preferences
from mechanisms.runs.stages import calibrate, vote
from tests.replay.tape import Noise, Tape
from tests.replay.world import Ledger
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

LABELS = ("red", "blue")
TEMPLATE = default_template(LABELS)
EPSILON, DELTA = 2.0, 1e-5
SHARES = {Stage.VOTE: 0.3, Stage.CALIBRATE: 0.2, Stage.CHOOSE: 0.2, Stage.SCORE: 0.2}
SURE = 60.0
"""Log-probability by which the model knows a label: more than any correction."""


class Session:
    """Knows the label that stands in the query; after demonstrations, the other."""

    def __init__(self, prefix, rows) -> None:
        self.shown, self.rows = b"draft" in bytes(prefix), rows

    def score(self, continuation):
        label = bytes(continuation).decode().strip()
        return np.array([SURE * ((label in bytes(row).decode()) != self.shown) for row in self.rows])


class Model(ToyModel):
    def open(self, prefix, rows, length, room):
        return Session(prefix, rows)


def drafts(
    model, template, label, labels, count, tokens, randomness, examples=(), taken=(), embedder=None
) -> tuple[str, ...]:
    return tuple(f"draft {i} {label} {'again ' * bool(examples)}w{i}" for i in range(count))


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(stage, "write_drafts", drafts)
    monkeypatch.setattr(request, "claim", functools.lru_cache(claim))  # the same in every run
    monkeypatch.setattr(roles, "derived_key", lambda purpose: b"k" * 32)  # who has which role is no matter of luck


def asked(data: Dataset, division: Division, **rest) -> RecipeRequest:
    recipe = Recipe(Kind.VOTE, division, SHARES, drafts=4, **rest)
    sizes, content = {"red": 90, "blue": 60}, fingerprint(data).content
    return RecipeRequest(
        labels=LABELS,
        template=TEMPLATE,
        recipe=recipe,
        target=PrivacyTarget(EPSILON, DELTA),
        sizes=sizes,
        content=content,
        by_user=data.by_user,
    )


def listened(data: Dataset, wanted: RecipeRequest, seed: int) -> list[Noise]:
    """The draws of a whole run."""
    tape = Tape(seed)
    request = replace(wanted, content=fingerprint(data).content)
    for _ in run.synthesize(data, request, Model(), Ledger(tape), tape, embedder=EMBEDDER):
        pass
    return tape.draws


EMBEDDER = ToyEmbedder()


def neighbours(others: int, name: str, by_user: bool) -> tuple[Dataset, Dataset, list[Record]]:
    """Some rows with one more unit behind them, and the same without it."""
    rows = [Record(f"w{i % 4} {LABELS[i % 2]} {i}", LABELS[i % 3 % 2], f"user {i}") for i in range(others)]
    unit = [Record(f"w{i % 4} red {name} {i}", LABELS[i % 2], name) for i in range(7)] if by_user else []
    unit += [Record(f"w1 red {name}", "red", name), *([Record("red", "green", name)] if by_user else [])]
    column = "who" if by_user else None
    return *(Dataset("d", LABELS, tuple(each), column) for each in ([*rows, *unit], rows)), unit


def role_of(unit: list[Record], data: Dataset, division: Division) -> Stage | None:
    """The role of a unit that stands last in its data set."""
    if division is Division.EPSILON:
        return None
    parts = divide(data, Recipe(Kind.VOTE, division, SHARES))
    return next((stage for stage, part in parts.items() if unit[0].text in {each.text for each in part.records}), None)


NAMES = [f"unit {i}" for i in range(24)]
"""As many units as it takes to have each role, and none."""


def voters_also_score(plant) -> None:
    def parts_of(data, recipe):
        parts = divide(data, recipe)
        both = [*parts[Stage.SCORE].records, *parts[Stage.VOTE].records]
        return {**parts, Stage.SCORE: replace(data, records=tuple(both))}

    plant.setattr(run, "divide", parts_of)


def a_vote_counts_twice(plant) -> None:
    plant.setattr(vote, "units_of", lambda data, most: [*units_of(data, most), *units_of(data, most)])


def a_calibrator_judges_all_sets(plant) -> None:
    """Each set's prior has the noise of an L1 norm of 1, and together they have that of their number."""

    def compare(self, tally):
        judging = self._state.judging
        units, everyone = judging.everyone(Stage.CALIBRATE)
        for candidate in self._state.sets:
            scores = yield from judging.read(Stage.CALIBRATE, candidate, everyone, 0.0, 1.0)
            contributions = of_units(preferences(scores, np.zeros(len(LABELS))), units)
            self._offer(candidate, tally.release(contributions, self._state.randomness), tally)

    plant.setattr(calibrate.Calibration, "_compare", compare)


PLANTED = {
    voters_also_score: Stage.VOTE,
    a_vote_counts_twice: Stage.VOTE,
    a_calibrator_judges_all_sets: Stage.CALIBRATE,
}
"""Errors, and whose accounts they overdraw."""


def towards(draw: Noise, place: int) -> float:
    """How much a draw speaks for a unit, or for two, that add 1 at a place: about a log-likelihood ratio."""
    one = 1 if draw.scale < 2**20 else 2**30
    noisy = np.asarray(draw.outcome)[place]
    return float(np.abs(noisy + one) - np.abs(noisy - 3 * one)) / 2 / draw.scale


def evidence(draws: list[Noise], place: int) -> dict[Stage, float]:
    """How much each stage's releases speak for a unit of `Model` that is red and votes for the draft at a place.

    It prefers its own label under no set, the other under the others; is right zero-shot only.
    """
    chosen = next(i for i, draw in enumerate(draws) if draw.kind == "exponential_argmax")
    priors, selection, refined = draws[1:chosen], draws[chosen], draws[chosen + 1 : -1]
    sets = len(priors) if len(priors) > 1 else len(priors[0].values) // len(LABELS)
    if len(priors) > 1:
        compared = sum(towards(draw, min(k, 1)) for k, draw in enumerate(priors))
    else:  # which of the sets it judges nobody knows
        likely = [towards(priors[0], len(LABELS) * k + min(k, 1)) for k in range(sets)]
        compared = float(np.log(np.exp(likely).mean()))
    none = int(selection.outcome) < len(selection.values) // sets
    return {
        Stage.VOTE: towards(draws[0], place),
        Stage.CALIBRATE: compared + sum(towards(draw, 0 if none else 1) for draw in refined),
        Stage.CHOOSE: EPSILON / 2 * none,
        Stage.SCORE: towards(draws[-1], 1),
    }


def proved(role: Stage | None, stages: set[Stage], sets: int = 3) -> float:
    """Epsilon that runs with one unit, and with nobody, prove by what stages release; without a role it has all."""
    division = Division.ROLES if role else Division.EPSILON
    pairs = (neighbours(0, name, False) for name in NAMES)
    data, nobody, _ = next(pair for pair in pairs if role_of(pair[2], pair[0], division) is role)
    wanted = asked(data, division, sets=sets)
    place = int(asked_first(data, wanted).values.argmax())
    samples = []
    for each, seeds in ((data, range(RUNS)), (nobody, range(RUNS, 2 * RUNS))):
        found = (evidence(listened(each, wanted, seed), place) for seed in seeds)
        samples.append(np.array([sum(of[stage] for stage in stages) for of in found]))
    return lower_bound(samples[0], samples[1], DELTA)


def asked_first(data: Dataset, wanted: RecipeRequest) -> Noise:
    """The vote of everybody, whoever has which role."""
    return listened(data, replace(wanted, recipe=replace(wanted.recipe, division=Division.EPSILON)), 0)[0]


RUNS = 1200


@pytest.mark.parametrize("role", [None, Stage.VOTE, Stage.CHOOSE])
def test_the_releases_of_many_runs_come_near_the_claim_and_not_above(role):
    assert 0.2 * EPSILON < proved(role, {role} if role else {*SHARES}) <= EPSILON


BETRAYED = [
    (voters_also_score, {Stage.VOTE, Stage.SCORE}, 3),
    (a_vote_counts_twice, {Stage.VOTE}, 3),
    (a_calibrator_judges_all_sets, {Stage.CALIBRATE}, 6),
]


@pytest.mark.parametrize(("plant", "stages", "sets"), BETRAYED)
def test_the_releases_of_many_runs_betray_planted_errors(plant, stages, sets, monkeypatch):
    plant(monkeypatch)
    assert proved(PLANTED[plant], stages, sets) > EPSILON
