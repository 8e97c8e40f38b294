"""The stages: what a unit says in each, what is released where noise is too small to matter, and what is used of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax

from mechanisms.data.units import units_of
from mechanisms.demos.demo_set import DIRECTIONS
from mechanisms.errors import UsageError
from mechanisms.kinds import openings_of
from mechanisms.noise import SeededRandomness
from mechanisms.queries.retrieval import similarities
from mechanisms.records import Record
from mechanisms.runs import roles
from mechanisms.runs import state as run_state
from mechanisms.runs.drafts import allotted
from mechanisms.runs.events import DemoStarted, Drafting, SetsCompared
from mechanisms.runs.judging import preferences, step
from mechanisms.runs.plan import Plan
from mechanisms.runs.roles import divide
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, VOTE, WORDS, Split
from mechanisms.runs.stages.calibrate import PriorsReleased
from mechanisms.runs.stages.openings import OpeningsReleased, OpeningsStage
from mechanisms.runs.stages.vote import VoteCollector, VotesReleased, winners
from mechanisms.runs.text import normalised_text
from mechanisms.tallies import OpeningFinder
from mechanisms.tallies.tally import Histogram
from tests.runs.running import LABELS, Log, Reading, begun, data, planned, rows, secrets, spec
from tests.toy_embedder import ToyEmbedder

NO_NOISE = 90.0
"""An epsilon at which a whole vote of noise has probability e^-90."""


def plan_of(records=None, **settings) -> Plan:
    records = data(rows(60)) if records is None else records
    return planned(records, spec("vote", "epsilon", (CALIBRATE, SCORE), **settings))


def stage_of(plan: Plan) -> OpeningsStage:
    stage = plan.stages[OPENINGS]
    assert isinstance(stage, OpeningsStage)
    return stage


def released(plan: Plan, records, **rest) -> OpeningsReleased:
    return next(event for event in begun(records, plan, **rest) if isinstance(event, OpeningsReleased))


# What a row votes for.


def test_openings_of_a_kind_are_a_part_of_all_and_where_no_kind_is_named_all_compete():
    every, messages, reviews = (
        openings_of("utterance"),
        openings_of("chat message"),
        openings_of("sentence from a film review"),
    )
    assert {*messages} | {*reviews} < {*every}
    assert not {"Hello", "Can you"} - {*messages}
    assert not {"Hello", "Can you"} & {*reviews}


@pytest.mark.parametrize("many", [1, 100], ids=["pooled", "by label"])
def test_without_noise_the_counts_are_those_of_its_role(many):
    """Nobody else's rows, each once."""
    starts = ["My", "The", "I have", "Nothing"]
    records = data([replace(each, text=f"{starts[i % 4]} {each.text}") for i, each in enumerate(rows(200))])
    sizes = dict.fromkeys(LABELS, many * 100)
    plan = planned(records, spec("vote", "roles", (CALIBRATE, SCORE), epsilon=NO_NOISE / 30 if many > 1 else NO_NOISE))
    plan = replace(plan, sizes=sizes)
    found = released(plan, records)
    assert set(found.counts) == ({*LABELS} if stage_of(plan).by_label else {""})
    assert (many > 1) <= stage_of(plan).by_label
    if plan.spec.epsilon < NO_NOISE:
        return
    mine = OpeningFinder(found.openings)
    for label, counts in found.counts.items():
        part = divide(records, plan)[OPENINGS].records
        votes = Counter(mine.index(each.text) for each in part if label in ("", each.label))
        del votes[None]
        assert {i: count for i, count in enumerate(counts) if count} == votes


# Which of them are used: post-processing of the released counts.


counts_of = st.lists(st.floats(-50, 500), min_size=4, max_size=12)


@given(counts_of, counts_of)
def test_what_is_used_clears_the_noise_and_has_its_share(one, other):
    plan = plan_of(sizes=dict.fromkeys(LABELS, 30))
    stage, names = stage_of(plan), tuple(f"o{i}" for i in range(4))
    counts = np.array((one + other)[:4])
    used = stage.used(names, {"": counts})
    assert used["red"] == used["blue"], "pooled"
    clear = {name for name, count in zip(names, counts, strict=True) if count > stage.clear_of_noise(len(names))}
    assert set(used["red"]) in (clear, set())
    if used["red"]:
        assert sum(used["red"].values()) == pytest.approx(1)
        best = max(used["red"], key=lambda each: used["red"][each])
        assert counts[names.index(best)] == max(counts)


def test_little_that_clears_the_noise_is_not_used():
    stage = stage_of(plan_of(sizes=dict.fromkeys(LABELS, 3000)))
    names, high = tuple("abcd"), 400.0
    assert stage.used(names, {label: np.array([high, high, 0, 0]) for label in ("", *LABELS)})["red"] == {}
    assert len(stage.used(names, {label: np.array([high, high, high, 0]) for label in ("", *LABELS)})["red"]) == 3
    few = {label: np.array([30.0, 30, 30, 0]) for label in ("", *LABELS)}
    assert stage.used(names, few)["red"] == {}, "they stand for hardly any of the voters"


@pytest.mark.parametrize("size", [30, 20_000], ids=["pooled", "by label"])
def test_a_release_that_does_not_follow_from_its_counts_is_refused(size):
    stage = stage_of(plan_of(sizes=dict.fromkeys(LABELS, size)))
    names, groups = ("I", "My", "The", "We"), LABELS if stage.by_label else ("",)
    counts = {group: np.array([4.0 * size, 2.0 * size, 1.0 * size, 0.0]) for group in groups}
    told = {group: tuple(each.tolist()) for group, each in counts.items()}
    honest = OpeningsReleased(names, told, stage.tally.deviation, stage.used(names, counts))
    assert honest.used["red"]
    stage.check(honest)
    some = groups[0]
    for event, words in (
        (replace(honest, noise=honest.noise / 2), "noise"),
        (replace(honest, used=honest.used | {"red": {}}), "do not follow"),
        (replace(honest, used={"red": honest.used["red"]}), "do not follow"),
        (replace(honest, used=honest.used | {"blue": {"forged": 1.0}}), "do not follow"),
        (replace(honest, counts=honest.counts | {some: (1.0, 2.0)}), "counts"),
        (replace(honest, counts=honest.counts | {"more": honest.counts[some]}), "counts"),
        (replace(honest, counts=honest.counts | {some: (0.0,) * 4}), "do not follow"),
    ):
        with pytest.raises(UsageError, match=words):
            stage.check(event)


# Where they stand.


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0.01, 1), min_size=1, max_size=8), st.integers(1, 60))
def test_openings_are_allotted_in_proportion_to_their_weights(weights, count):
    drawn, total = Counter(allotted(weights, count, SeededRandomness(1))), sum(weights.values())
    assert drawn.total() == count
    for name, weight in weights.items():
        assert abs(drawn[name] - count * weight / total) <= 1 + 1e-6


WEIGHTS = {"My": 0.5, "The": 0.25, "We": 0.25}


class Prompted(Reading):
    """Remembers what stands in each row of a public prompt for a text."""

    def __init__(self) -> None:
        super().__init__()
        self.public: list[str] = []

    def open(self, prefix, rows, length, room):
        shown = bytes(prefix).decode("ascii", "replace")
        prompts = [f"{shown}{bytes(row).decode('ascii', 'replace')}" for row in rows]
        if all("Write one note" in each for each in prompts) and not secrets(prompts):
            self.public += prompts
        return super().open(prefix, rows, length, room)


@pytest.mark.parametrize("recipe", ["vote", "both"])
def test_drafts_of_every_label_begin_with_openings_that_were_released(recipe, monkeypatch):
    """Of the first label too, whose drafts are tried before anybody has paid."""
    monkeypatch.setattr(OpeningsStage, "used", lambda *arguments: dict.fromkeys(LABELS, WEIGHTS))
    model, records = Prompted(), data(rows(60))
    model.log = Log()
    # Noise alone may release words, which would stand in sentences in place of names that no owner gave.
    plan = planned(records, spec(recipe, "roles", (CALIBRATE, SCORE), label_words={each: each for each in LABELS}))
    for event in begun(records, plan, model=model):
        if isinstance(event, OpeningsReleased):
            model.public.clear()
        if isinstance(event, DemoStarted):
            assert event.opening in WEIGHTS
    for label in LABELS:
        asked = [each for each in model.public if f"about {label}" in each]
        begun_with = [each.rpartition("Note:")[2].strip() for each in asked]
        ends = {opening for opening in WEIGHTS for text in begun_with if text.startswith(opening)}
        assert all(text.startswith(tuple(WEIGHTS)) for text in begun_with if text), label  # blank: how the model writes
        assert set(ends) == {*WEIGHTS}, label


@pytest.mark.parametrize("split", list(Split))
@pytest.mark.parametrize("recipe", ["tokens", "vote", "both"])
def test_what_the_set_is_compared_with_is_written_without_what_rows_released(recipe, split, monkeypatch):
    monkeypatch.setattr(OpeningsStage, "used", lambda *arguments: dict.fromkeys(LABELS, WEIGHTS))
    plain, begun_with = run_state.write_drafts, dict[str, set[str]]()

    def noted(model, wanted, *rest):
        texts = plain(model, wanted, *rest)
        for text in texts:
            begun_with.setdefault(text, set()).update(wanted.openings or [""])
        return texts

    monkeypatch.setattr(run_state, "write_drafts", noted)
    records = data(rows(60))
    told = list(begun(records, planned(records, spec(recipe, split))))
    [compared] = (event for event in told if isinstance(event, SetsCompared))
    assert {each.label for each in compared.public} == {*LABELS}
    assert all(begun_with[each.text] == {""} for each in compared.public)
    drafting = [event.public for event in told if isinstance(event, Drafting)]
    assert drafting == [False] * (len(drafting) - 2) + [True] * 2
    ballots = [each for event in told if isinstance(event, VotesReleased) for each in event.ballots.values()]
    assert all(begun_with[text] == {*WEIGHTS} for each in ballots for text in each.drafts[each.written :])


def test_where_nothing_was_released_before_the_ballots_drafts_are_public(monkeypatch):
    monkeypatch.setattr(OpeningsStage, "used", lambda *arguments: {key: {} for key in LABELS})
    records = data(rows(60))
    told = list(begun(records, planned(records, spec("vote", without=(WORDS,)))))
    [compared], [votes] = ([event for event in told if isinstance(event, of)] for of in (SetsCompared, VotesReleased))
    assert {each.text for each in compared.public} <= {text for each in votes.ballots.values() for text in each.drafts}
    assert all(event.public for event in told if isinstance(event, Drafting))


BALLOTS = {
    "red": ("a rose in the garden", "an apple on the table", "fire in the night"),
    "blue": ("the sky at noon", "waves of the sea"),
}


def cast(*units: tuple[Record, ...], ballots=BALLOTS) -> np.ndarray:
    return np.array(list(VoteCollector(ToyEmbedder(64), ballots).contributions(units)))


def red(text: str) -> Record:
    return Record(text, "red")


def blue(text: str) -> Record:
    return Record(text, "blue")


def test_a_text_votes_for_the_nearest_draft_of_its_own_label():
    votes = cast((red("an apple on a chair"),), (red("the rose in my garden"),), (blue("waves of a lake"),))
    assert votes.tolist() == [[0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    assert cast((blue("an apple on a chair"),))[0, :3].sum() == 0  # nearest of all, but of another label


def test_a_user_has_one_vote_in_all_shared_by_its_records():
    [votes] = cast((red("an apple on the table"), red("a rose in the garden"), blue("the sky at noon")))
    assert votes == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3, 0])


def test_a_text_without_content_votes_for_nothing_and_still_counts_as_a_record():
    assert cast((red("  "),)).sum() == 0
    assert cast((red(""), red("a rose in the garden")))[0, 0] == 0.5


def apart(ballots) -> dict[str, np.ndarray]:
    """Vectors by which no text is like another one."""
    return {label: np.eye(max(1, len(of)))[: len(of)] for label, of in ballots.items()}


ANY_BALLOT = st.lists(st.tuples(st.sampled_from(["a", "A", "b.", "B", "c", "d", "e"]), st.integers(-3, 3)), max_size=6)


@given(st.fixed_dictionaries(dict.fromkeys(("red", "blue", "green"), ANY_BALLOT)), st.integers(1, 4))
def test_no_text_wins_twice_and_nothing_else_keeps_a_better_draft_from_winning(cast, most):
    ballots = {label: tuple(text for text, _ in of) for label, of in cast.items()}
    votes = {label: np.array([float(vote) for _, vote in of]) for label, of in cast.items()}
    found = winners(ballots, votes, most, apart(ballots))
    standing = {normalised_text(ballots[label][i]): votes[label][i] for label, places in found.items() for i in places}
    assert len(standing) == sum(map(len, found.values()))
    for label, places in found.items():
        assert len(places) <= most
        assert list(places) == sorted(places, key=lambda i: (-votes[label][i], i))
        for i in set(range(len(ballots[label]))) - set(places):
            better = len(places) == most and votes[label][places[-1]] >= votes[label][i]
            assert better or standing[normalised_text(ballots[label][i])] >= votes[label][i]


def test_of_texts_that_are_alike_in_meaning_one_stands_before_all_others():
    ballots = {"red": ("a", "b", "c", "d")}
    near = np.array([1.0, 0.0]), np.array([0.99, 0.14])
    vectors = {"red": np.stack([near[0], near[1] / np.linalg.norm(near[1]), [0.0, 1.0], [0.0, -1.0]])}
    votes = {"red": np.array([9.0, 8.0, 7.0, 1.0])}
    assert winners(ballots, votes, 2, vectors) == {"red": (0, 2)}
    assert winners(ballots, votes, 4, vectors) == {"red": (0, 2, 3, 1)}, "a set is as large as was asked for"


SIZES = (400, 150, 50)
SHARES = np.array(SIZES) / sum(SIZES)
EVEN = np.full(3, 1 / 3)


def scores(rows: int = 300, labels: int = 3) -> np.ndarray:
    """Log-probabilities of a model that prefers the last label."""
    drawn = np.random.default_rng(3).normal(size=(rows, labels)) * 2
    return log_softmax(drawn + np.array([*[0.0] * (labels - 1), 3.0]), axis=1)


@pytest.mark.parametrize("aim", [SHARES, EVEN], ids=["shares", "even"])
def test_a_fit_ends_where_mean_probabilities_are_the_aim(aim):
    seen, offset = scores(), np.zeros(3)
    for _ in range(200):
        offset = offset + step(preferences(seen, offset).sum(axis=0), aim)
    assert preferences(seen, offset).mean(axis=0) == pytest.approx(aim, abs=1e-6)
    assert step(preferences(seen, offset).sum(axis=0), aim) == pytest.approx(np.zeros(3), abs=1e-5)
    assert abs(preferences(seen, np.zeros(3)).mean(axis=0) - aim).max() > 0.2, "it was there before the fit"


@given(arrays(np.float64, 3, elements=st.floats(-1e6, 1e6)))
def test_whatever_noise_makes_of_sums_a_step_is_finite_and_bounded(noisy):
    found = step(noisy, SHARES)
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(0, abs=1e-9)
    assert np.ptp(found) <= np.log(3 / 0.02) + np.log(SIZES[0] / SIZES[-1]) + 0.02


@given(arrays(np.float64, 3, elements=st.floats(0, 1e3)), st.floats(0, 1e3), st.floats(0, 1e3))
def test_the_noisier_a_measurement_is_known_to_be_the_less_it_moves(noisy, one, other):
    assume(noisy.sum() >= 1)  # less than one row's worth is not scaled up, and there a step may grow by a hair
    low, high = sorted((one, other))
    aim = SHARES
    assert np.ptp(step(noisy, aim, high)) <= np.ptp(step(noisy, aim, low)) + 1e-9


def test_of_many_rows_known_noise_changes_nothing_and_of_no_rows_nothing_moves():
    aim = SHARES
    assert step(np.array([1e6, 2e6, 5e6]), aim, 4.0) == pytest.approx(step(np.array([1e6, 2e6, 5e6]), aim), abs=1e-4)
    assert step(np.zeros(3), aim, 4.0) == pytest.approx(np.zeros(3), abs=1e-12)


def drafts(model, wanted, gate, randomness, taken=(), embedder=None):
    return tuple(f"{wanted.label} number {word}" for word in ("one", "two", "three", "four", "five"))


@pytest.fixture
def same_drafts_and_roles(monkeypatch):
    monkeypatch.setattr(run_state, "write_drafts", drafts)
    monkeypatch.setattr(roles, "derived_key", lambda purpose: b"k" * 32)


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


@pytest.mark.slow
@pytest.mark.usefixtures("same_drafts_and_roles")
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
    made = events[-1].demo_set
    arms = dict(made.score.arms)
    near = made.directions.nearest([record.text for record in scorers], ToyEmbedder())
    by_directions = np.mean([LABELS[place] == record.label for place, record in zip(near, scorers, strict=True)])
    assert arms.pop(DIRECTIONS).accuracy == pytest.approx(by_directions, abs=1e-9)
    truly = np.mean([record.label in record.text for record in scorers])
    for arm in arms.values():  # the key is empty: every set finds the label
        assert arm.accuracy == pytest.approx(truly, abs=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("same_drafts_and_roles")
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


@pytest.mark.slow
@pytest.mark.usefixtures("same_drafts_and_roles")
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


@pytest.mark.slow
@pytest.mark.usefixtures("same_drafts_and_roles")
@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("split", Split)
def test_a_row_that_breaks_the_model_changes_its_own_contribution_alone(split, by_user, monkeypatch):
    dataset = data(rows(300, users=by_user), by_user)
    plan = planned(dataset, spec("vote", split, drafts=5))
    whole = contributions(dataset, plan, "no text", monkeypatch)
    parts, seen = divide(dataset, plan), set()
    for stage in (CALIBRATE, SCORE):
        place, unit = 0, units_of(parts[stage], 1)[0]
        broken = contributions(dataset, plan, f"{unit[0].text}\n", monkeypatch)
        for number, (one, other) in enumerate(zip(whole, broken, strict=True)):
            assert np.isfinite(other).all()
            assert (np.delete(one, place, 0) == np.delete(other, place, 0)).all()
            assert other[place].sum() <= max(1, one[place].sum())
            if not (one[place] == other[place]).all():
                seen.add(number)
    assert len(seen) >= 4, "some tally was never given a broken row"
