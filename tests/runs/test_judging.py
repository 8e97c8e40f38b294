"""What is released of a run when noise is too small to matter, and what a row that breaks the model can change."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mechanisms.data.sizes import units_of
from mechanisms.queries.retrieval import similarities
from mechanisms.runs import run as whole_run
from mechanisms.runs import stage as run_stage
from mechanisms.runs.run import divide
from mechanisms.runs.spec import CALIBRATE, SCORE, VOTE, Split
from mechanisms.runs.stages.calibrate import PriorsReleased
from mechanisms.runs.stages.vote import VotesReleased
from mechanisms.tallies.tally import Histogram
from tests.runs.running import LABELS, Reading, begun, data, planned, rows, spec
from tests.toy_embedder import ToyEmbedder

pytestmark = pytest.mark.slow

NO_NOISE = 90.0
"""An epsilon at which a whole vote of noise has probability e^-90."""


def drafts(model, wanted, gate, randomness, taken=(), embedder=None):
    return tuple(f"{wanted.label} number {word}" for word in ("one", "two", "three", "four", "five"))


@pytest.fixture(autouse=True)
def _same_drafts_and_roles(monkeypatch):
    monkeypatch.setattr(run_stage, "write_drafts", drafts)
    monkeypatch.setattr(whole_run, "derived_key", lambda purpose: b"k" * 32)


class Taught(Reading):
    """Finds the label only where one of the demonstrations is `key`; else it always says the first label."""

    key = ""

    def answer(self, prefix, query, label):
        return super().answer(prefix, query, label) if self.key in prefix else -9.0 * (label != LABELS[0])


def noiseless(asked, dataset, model):
    return list(begun(dataset, planned(dataset, asked), model=model))


def true_votes(part, label: str, ballot) -> list[int]:
    """Counts by the definition, drafts in order."""
    embedder = ToyEmbedder()
    vectors = embedder.embed(ballot)
    texts = [record.text for record in part.records if record.label == label]
    found = Counter(int(similarities(vectors, vector).argmax()) for vector in embedder.embed(texts))
    return [found[i] for i in range(len(ballot))]


def test_without_noise_the_nearest_drafts_win_and_the_set_is_scored_as_it_is():
    dataset, asked = data(rows(400, wrong=40)), spec("vote", "roles", (CALIBRATE,), epsilon=NO_NOISE, drafts=5)
    events = noiseless(asked, dataset, Taught())
    parts = divide(dataset, planned(dataset, asked))
    [released] = (event for event in events if isinstance(event, VotesReleased))
    for label, ballot in released.ballots.items():
        assert list(ballot.votes) == true_votes(parts[VOTE], label, ballot.drafts)
        best = np.argsort(-np.array(ballot.votes), kind="stable")
        assert ballot.winners[0] == best[0]
    scorers = parts[SCORE].records
    arms = events[-1].demo_set.score.arms
    truly = np.mean([record.label in record.text for record in scorers])
    for arm in arms.values():  # the key is empty: every set finds the label
        assert arm.accuracy == pytest.approx(truly, abs=1e-9)


def test_what_only_one_set_can_do_shows_in_its_figure_alone():
    dataset, asked = data(rows(400)), spec("vote", "epsilon", (CALIBRATE,), epsilon=5 * NO_NOISE, drafts=5)
    model = Taught()
    first = noiseless(asked, dataset, model)[-1].demo_set
    model.key = first.demonstrations[-1].text
    told = noiseless(asked, dataset, model)
    arms = told[-1].demo_set.score.arms
    assert told[-1].demo_set.demonstrations == first.demonstrations
    assert arms["demonstrations"].accuracy == pytest.approx(1, abs=1e-9)
    assert arms["zero-shot"].accuracy == pytest.approx(0.5, abs=0.01), "everything is called the first label"


@pytest.mark.parametrize("split", Split)
def test_without_noise_priors_are_mean_probabilities(split):
    whole = NO_NOISE * (1 if split is Split.ROLES else 2.5)
    dataset, asked = data(rows(400)), spec("vote", split, epsilon=whole, drafts=5)
    [released] = (event for event in noiseless(asked, dataset, Taught()) if isinstance(event, PriorsReleased))
    calibrators = divide(dataset, planned(dataset, asked))[CALIBRATE].records
    labels = [record.label for record in calibrators]
    # The key is empty: every set finds the label, so that calibrators' labels are what the model says.
    truly = np.array([labels.count(label) for label in LABELS])
    assert sum(map(sum, released.compared)) == pytest.approx(len(labels), abs=1), "each judges one set"
    assert np.array(released.compared).sum(axis=0) == pytest.approx(truly, abs=1)
    for refined in released.refined:
        assert np.array(refined) == pytest.approx(truly, abs=2)


class Breaking(Reading):
    """Its logits for one text are not finite."""

    broken = "no text"

    def answer(self, prefix, query, label):
        return np.nan if self.broken in query else super().answer(prefix, query, label)


def contributions(dataset, plan, broken: str, monkeypatch) -> list[np.ndarray]:
    """What every tally of a run was given, their releases being fixed, so that nothing public follows from them."""
    given: list[np.ndarray] = []

    def release(self, chunks, randomness):
        given.append(np.concatenate([*chunks]))
        return np.arange(float(given[-1].shape[1])) + 1

    monkeypatch.setattr(Histogram, "release_of", release)
    model = Breaking()
    model.broken = broken
    list(begun(dataset, plan, model=model))
    return given


@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("split", Split)
def test_a_row_that_breaks_the_model_changes_its_own_contribution_alone(split, by_user, monkeypatch):
    dataset = data(rows(300, users=by_user), by_user)
    plan = planned(dataset, spec("vote", split, drafts=5))
    whole = contributions(dataset, plan, "no text", monkeypatch)
    parts, seen = divide(dataset, plan), set()
    for stage in (CALIBRATE, SCORE):
        place, unit = 0, units_of(parts[stage], plan.spec.max_unit_records)[0]
        broken = contributions(dataset, plan, f"{unit[0].text}\n", monkeypatch)
        for number, (one, other) in enumerate(zip(whole, broken, strict=True)):
            assert np.isfinite(other).all()
            assert (np.delete(one, place, 0) == np.delete(other, place, 0)).all()
            assert other[place].sum() <= max(1, one[place].sum())
            if not (one[place] == other[place]).all():
                seen.add(number)
    assert len(seen) >= 4, "some tally was never given a broken row"
