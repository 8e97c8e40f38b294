"""Membership inference: prompts that hold private rows are found, prompts that do not are not."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from scipy.stats import norm

from mechanisms.accounting import best_guess
from mechanisms.audit.mechanism import AuditProgress
from mechanisms.audit.membership import (
    LOW,
    PROBABILITY,
    REFERENCES,
    RELEASED,
    ROWS,
    WORDS,
    ZERO_SHOT,
    Effort,
    Membership,
    Roc,
    allowed,
    allowed_area,
    corners,
    membership,
    roc,
)
from mechanisms.errors import UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record
from mechanisms.runs.score import ScoredSet
from tests.toy_model import VOCABULARY, ToyModel

LABELS = ("red", "blue")
TEMPLATE = PromptTemplate("Sort.", "Note", "Topic")


def data(name: str, rows: int) -> Dataset:
    """Notes that no letter of tells which file they are of."""
    notes = (hashlib.sha256(f"{name} note {i}".encode()).hexdigest()[:20] for i in range(rows))
    return Dataset(name, LABELS, tuple(Record(note, LABELS[i % 2]) for i, note in enumerate(notes)))


class Session:
    """Some texts are easy and some are hard; one that stands in the prompt is somewhat easier than it would be."""

    def __init__(self, prefix, rows, learned: float) -> None:
        self.prefix, self.learned, self.rows = bytes(prefix).decode(), learned, [bytes(row) for row in rows]
        self.texts = [bytes(row).decode().removeprefix("Note: ").removesuffix("\nTopic:") for row in rows]

    def logits(self):
        """What stood in the prompt behind the same letters is somewhat likelier than any other letter."""
        found = np.zeros((len(self.rows), VOCABULARY))
        for logits, row in zip(found, self.rows, strict=True):
            said = row.decode()
            for place in range(len(self.prefix)):
                if self.prefix.startswith(said, place) and place + len(said) < len(self.prefix):
                    logits[ord(self.prefix[place + len(said)])] = self.learned
        return found

    def advance(self, tokens):
        self.rows = [row + bytes([token]) for row, token in zip(self.rows, tokens, strict=True)]

    def keep(self, rows):
        self.rows = [self.rows[i] for i in rows]

    def score(self, continuation):
        label = bytes(continuation).decode()
        return np.array([self._hard(text, label) + self.learned * self._stands(text, label) for text in self.texts])

    def _stands(self, text, label):
        return f"Note: {text}\nTopic:{label}\n" in self.prefix

    def _hard(self, text, label):
        digest = hashlib.sha256(f"{text}{label}".encode()).digest()
        once = hashlib.sha256(f"{text}{label}{self.prefix}".encode()).digest()
        return digest[0] / 64 + once[0] / 640


class Learning(ToyModel):
    def __init__(self, learned: float = 2.0) -> None:
        super().__init__()
        self.learned = learned

    def open(self, prefix, rows, length, room):
        return Session(prefix, rows, self.learned)


PUBLIC = tuple(Demonstration(f"public {i}", LABELS[i % 2]) for i in range(4))
EFFORT = Effort(rows=40, prompts=30)


def attacked(demonstrations=PUBLIC, model=None, private=None, held_out=None, seed=1) -> dict[str, Membership]:
    task = ScoredSet(demonstrations, LABELS, TEMPLATE)
    private, held_out = private or data("private", 100), held_out or data("other", 100)
    told = membership(model or Learning(), task, private, held_out, EFFORT, SeededRandomness(seed))
    return {each.shown: each for each in told if not isinstance(each, AuditProgress)}


@pytest.mark.slow
def test_real_rows_are_found_and_released_demonstrations_without_any_are_not():
    found = attacked()
    assert list(found) == [ROWS, RELEASED]
    planted, released = found[ROWS].attacks, found[RELEASED].attacks
    assert planted[ZERO_SHOT].area > 0.9
    assert planted[REFERENCES].area > 0.97
    assert planted[REFERENCES].found > 0.5
    assert planted[WORDS].area > 0.97
    assert all(each.interval[0] <= 0.5 for each in released.values())


@pytest.mark.slow
def test_what_a_row_would_score_anyway_is_what_makes_an_attack_strong():
    planted = attacked()[ROWS].attacks
    assert planted[PROBABILITY].interval[1] < planted[REFERENCES].interval[0]
    assert not finds_nothing(planted[PROBABILITY])


@pytest.mark.slow
def test_a_set_of_real_rows_is_found():
    private = data("private", 24)
    shown = tuple(Demonstration(row.text, row.label) for row in private.records)
    released = attacked(shown, private=private)[RELEASED].attacks
    assert released[REFERENCES].area > 0.97
    assert released[WORDS].area > 0.97


@pytest.mark.slow
def test_a_model_that_learns_nothing_gives_nothing_away():
    """Its intervals miss a half about as often as they may."""
    found = [
        attacked(model=Learning(0.0), private=data(f"private {i}", 100), held_out=data(f"other {i}", 100))[ROWS].attacks
        for i in range(12)
    ]
    for name in (PROBABILITY, ZERO_SHOT, REFERENCES, WORDS):
        assert np.mean([each[name].area for each in found]) == pytest.approx(0.5, abs=0.06)
        assert sum(finds_nothing(each[name]) for each in found) >= 9


@pytest.mark.slow
def test_rows_of_both_files_are_no_strangers():
    """Else what is behind the demonstrations would count as a stranger that was found."""
    private = data("private", 40)
    both = Dataset("other", LABELS, (*data("other", 40).records, *private.records))
    shown = tuple(Demonstration(row.text, row.label) for row in private.records)
    assert attacked(shown, private=private, held_out=both)[RELEASED].attacks[REFERENCES].area > 0.97


@pytest.mark.slow
def test_labels_alone_tell_nothing():
    """As many of each label on both sides: else a model that likes one label would tell the files apart."""
    red = Dataset("private", LABELS, (*data("private", 60).records, *(Record(f"more {i}", "red") for i in range(60))))
    found = attacked(private=red)[RELEASED].attacks[PROBABILITY]
    assert found.members == found.others == 2 * 30


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 9])
def test_too_few_rows_and_empty_sets_are_refused(rows):
    with pytest.raises(UsageError):
        attacked(held_out=data("other", rows))
    with pytest.raises(UsageError):
        attacked(demonstrations=())
    with pytest.raises(UsageError):
        Effort(prompts=0)


# The curve of an attack against closed forms, and its intervals against simulations.


def finds_nothing(found: Roc) -> bool:
    """Whether guessing blindly would do as well, as far as these numbers of rows can tell."""
    return found.interval[0] <= 0.5 <= found.interval[1]


def test_scores_that_tell_everything_and_nothing():
    low, high = np.arange(50.0), np.arange(100.0, 150.0)
    assert roc(high, low).area == roc(high, low).found == 1.0
    assert roc(low, high).area == roc(low, high).found == 0.0
    assert roc(low, low).area == 0.5
    same = roc(np.zeros(40), np.zeros(60))
    assert (same.area, same.found) == (0.5, 0.0)  # ties are found by nobody
    assert finds_nothing(same)
    assert not finds_nothing(roc(high, low))
    assert 0.8 < roc(high, low).interval[0] < roc(high, low).interval[1] == 1.0


def test_the_area_and_the_points_are_those_of_two_normal_distributions():
    random = np.random.default_rng(1)
    found = roc(random.normal(1.0, 1.0, 20_000), random.normal(0.0, 1.0, 20_000))
    assert found.area == pytest.approx(norm.cdf(1 / math.sqrt(2)), abs=0.01)
    for rate, reached in found.points[1:-1]:
        assert reached == pytest.approx(norm.sf(norm.isf(rate) - 1), abs=0.02)
    assert found.points[-1] == (1.0, 1.0)


def test_the_intervals_cover_what_they_should():
    random = np.random.default_rng(2)
    truth, runs = float(norm.cdf(1.5 / math.sqrt(2))), 150
    found = [roc(random.normal(1.5, 1.0, 40), random.normal(0.0, 1.0, 60)) for _ in range(runs)]
    assert sum(each.interval[0] <= truth <= each.interval[1] for each in found) >= 0.9 * runs
    blind = [roc(random.normal(size=40), random.normal(size=60)) for _ in range(runs)]
    assert 0.9 * runs <= sum(finds_nothing(each) for each in blind) < runs


def test_the_false_positives_at_the_low_rate_are_as_few_as_said():
    others = np.arange(300.0)
    for members in (np.array([296.5, 296.5]), np.array([295.5, 299.5])):
        found = roc(members, others).found
        assert found == np.mean([(others > each).mean() <= LOW for each in members])


def test_what_a_claim_allows():
    assert allowed(0.0, 0.0, LOW) == pytest.approx(LOW)
    assert allowed(1.0, 1e-5, LOW) == pytest.approx(math.e * LOW + 1e-5)
    assert allowed(math.inf, 1e-5, LOW) == 1.0
    assert allowed(50.0, 0.0, 0.5) == pytest.approx(1.0)
    # Randomised response reaches the corner, and nothing passes it.
    wrong = 1 / (1 + math.exp(2.0))
    assert allowed(2.0, 0.0, wrong) == pytest.approx(1 - wrong)
    assert allowed(2.0, 0.0, 0.5) < 1.0


@pytest.mark.parametrize("ties", [3, 1000])
def test_the_curve_rises_to_its_end_and_has_the_area_below_it(ties):
    random = np.random.default_rng(3)
    found = roc(random.integers(1, ties + 1, 30) * 1.0, random.integers(0, ties, 40) * 1.0)
    rates, reached = np.array(found.curve).T
    assert (found.curve[0], found.curve[-1]) == ((0.0, 0.0), (1.0, 1.0))
    assert (np.diff(rates) >= 0).all()
    assert (np.diff(reached) >= 0).all()
    assert np.trapezoid(reached, rates) == pytest.approx(found.area)
    for rate, best in found.points[:-1]:
        assert best == pytest.approx(reached[rates <= rate + 1e-12].max())


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.5, 1e-5), (2.0, 0.1), (9.0, 0.0)])
def test_the_corners_and_the_area_of_what_a_claim_allows(epsilon, delta):
    for rate, reached in corners(epsilon, delta):
        assert allowed(epsilon, delta, rate) == pytest.approx(reached)
    grid = np.concatenate([np.linspace(0, 0.01, 10_001), np.linspace(0.01, 1, 10_001)])
    area = np.trapezoid([allowed(epsilon, delta, rate) for rate in grid], grid)
    assert allowed_area(epsilon, delta) == pytest.approx(area, abs=1e-6)


def test_without_a_claim_everything_is_allowed():
    assert allowed_area(math.inf, 1e-5) == 1.0
    assert allowed_area(1.0, 0.0) == pytest.approx(math.e / (1 + math.e))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 1e-5), (1.0, 0.2), (5.0, 1e-3), (700.0, 0.0)])
def test_the_best_guess_is_the_best_of_all_that_the_claim_allows(epsilon, delta):
    balanced = max((allowed(epsilon, delta, rate) + 1 - rate) / 2 for rate, _ in corners(epsilon, delta))
    assert best_guess(epsilon, delta) == pytest.approx(balanced)
    assert best_guess(epsilon, delta) == pytest.approx((1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)))


def test_too_few_rows_are_refused():
    with pytest.raises(UsageError):
        roc(np.zeros(1), np.zeros(9))
