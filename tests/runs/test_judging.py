"""What is released of a run when noise is too small to matter, and what a row that breaks the model can change."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from mechanisms.runs.recipe import Division, Kind, Stage, divide
from mechanisms.runs.sets import NONE, PUBLIC

from mechanisms.data.sizes import units_of
from mechanisms.queries.retrieval import similarities
from mechanisms.runs import recipe as roles
from mechanisms.runs import stage as recipe_stages
from mechanisms.runs.events import ChoiceReleased, PriorsReleased, SetsMade, VotesReleased
from mechanisms.tallies import Choice
from mechanisms.tallies.tally import Histogram
from tests.recipes.running import LABELS, Log, Reading, begun, data, planned, recipe, rows
from tests.toy_embedder import ToyEmbedder

NO_NOISE = 90.0
"""An epsilon at which a whole vote of noise has probability e^-90."""


@pytest.fixture(autouse=True)
def _same_roles(monkeypatch):
    """Under a fresh key a hundred users have no chooser once in 38,000 times."""
    monkeypatch.setattr(roles, "derived_key", lambda purpose: b"k" * 32)


def drafts(model, template, label, labels, count, tokens, randomness, examples=(), taken=(), embedder=None):
    return tuple(f"{label} number {word}" for word in ("one", "two", "three", "four", "five"))


class Taught(Reading):
    """Finds the label only where one of the demonstrations is `key`; else it always says the first label."""

    key = ""

    def answer(self, prefix, query, label):
        return super().answer(prefix, query, label) if self.key in prefix else -9.0 * (label != LABELS[0])


def noiseless(used, dataset, model):
    request = planned(dataset, used, NO_NOISE * (1 if used.division is Division.ROLES else 4))
    return list(begun(dataset, request, model=model))


def true_votes(part, label: str) -> list[int]:
    """Counts by the definition, drafts in order."""
    embedder, ballot = ToyEmbedder(), drafts(None, None, label, LABELS, 5, 0, None)
    vectors = embedder.embed(ballot)
    texts = [record.text for record in part.records if record.label == label]
    found = Counter(int(similarities(vectors, vector).argmax()) for vector in embedder.embed(texts))
    return [found[i] for i in range(len(ballot))]


@pytest.mark.slow
@pytest.mark.parametrize("second", [0, 1])
def test_without_noise_the_nearest_drafts_win_the_best_set_is_chosen_and_scored_as_it_is(second, monkeypatch):
    monkeypatch.setattr(recipe_stages, "write_drafts", drafts)
    # Enough choosers that chance gives no other set more of them.
    shares = {Stage.VOTE: 0.2, Stage.CALIBRATE: 0.1, Stage.CHOOSE: 0.4, Stage.SCORE: 0.3}
    dataset, used = data(rows(400, wrong=40)), recipe(Kind.VOTE, Division.ROLES, shares=shares)
    parts = divide(dataset, used)
    votes = {label: true_votes(parts[Stage.VOTE], label) for label in LABELS}
    winners = {label: np.argsort(-np.array(found), kind="stable") for label, found in votes.items()}
    model = Taught(Log())
    model.key = drafts(None, None, "blue", LABELS, 5, 0, None)[winners["blue"][second]]
    events = noiseless(used, dataset, model)
    for each in (event for event in events if isinstance(event, VotesReleased)):
        assert list(each.votes) == votes[each.label]
        assert list(each.winners) == winners[each.label][: len(each.winners)].tolist()
    [made] = [event for event in events if isinstance(event, SetsMade)]
    able = {each.name for each in made.sets if model.key in {d.text for d in each.demonstrations}}
    [choice] = [event for event in events if isinstance(event, ChoiceReleased)]
    assert f"voted {second + 1}" in able
    assert choice.chosen[0] in able
    assert choice.chosen in choice.among
    demo_set = events[-1].demo_set
    assert demo_set.choice.chosen == choice.chosen[0]
    scorers = parts[Stage.SCORE].records
    arms = demo_set.score.arms
    named = {"zero-shot": [LABELS[0]] * len(scorers), "demonstrations": [record.text for record in scorers]}
    for arm in ("zero-shot", "demonstrations"):
        truly = np.mean([record.label in said for record, said in zip(scorers, named[arm], strict=True)])
        assert arms[arm].accuracy == pytest.approx(truly, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("division", Division)
def test_without_noise_priors_are_mean_probabilities(division, monkeypatch):
    monkeypatch.setattr(recipe_stages, "write_drafts", drafts)
    dataset, used = data(rows(400)), recipe(Kind.VOTE, division)
    events = noiseless(used, dataset, Taught(Log()))
    compared, fitted = (event for event in events if isinstance(event, PriorsReleased))
    assert [name for name, _ in compared.priors] == [NONE, PUBLIC, "voted 1", "voted 2"]
    assert all(sum(shares) == pytest.approx(1) for _, shares in compared.priors)
    # The key is empty: every set finds the label, so that calibrators' labels are what the model says.
    labels = [record.label for record in divide(dataset, used)[Stage.CALIBRATE].records]
    assert fitted.priors[0][1] == pytest.approx([labels.count(label) / len(labels) for label in LABELS], abs=0.02)


class Breaking(Reading):
    """Its logits for one text are not finite."""

    broken = "no text"

    def answer(self, prefix, query, label):
        return np.nan if self.broken in query else super().answer(prefix, query, label)


def contributions(dataset, request, broken: str, monkeypatch) -> list[np.ndarray]:
    """What every tally of a run was given, their releases being fixed, so that nothing public follows from them."""
    given: list[np.ndarray] = []

    def release(self, contributions, randomness):
        given.append(contributions)
        return np.arange(float(contributions.shape[1])) + 1

    monkeypatch.setattr(recipe_stages, "write_drafts", drafts)
    monkeypatch.setattr(Histogram, "release", release)
    monkeypatch.setattr(Choice, "release", lambda self, found, randomness: 0 if given.append(found) else 1)
    model = Breaking(Log())
    model.broken = broken
    list(begun(dataset, request, model=model))
    return given


@pytest.mark.slow
@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("division", Division)
def test_a_row_that_breaks_the_model_changes_its_own_contribution_alone(division, by_user, monkeypatch):
    dataset = data(rows(300, users=by_user), by_user)
    request = planned(dataset, recipe(Kind.VOTE, division))
    whole = contributions(dataset, request, "no text", monkeypatch)
    parts, seen = divide(dataset, request.recipe), set()
    for stage in (Stage.CALIBRATE, Stage.CHOOSE, Stage.SCORE):
        place, unit = 0, units_of(parts[stage], request.max_unit_records)[0]
        broken = contributions(dataset, request, f"{unit[0].text}\n", monkeypatch)
        for number, (one, other) in enumerate(zip(whole, broken, strict=True)):
            assert np.isfinite(other).all()
            assert (np.delete(one, place, 0) == np.delete(other, place, 0)).all()
            assert other[place].sum() <= max(1, one[place].sum())
            if not (one[place] == other[place]).all():
                seen.add(number)
    assert len(seen) >= 4, "some tally was never given a broken row"
