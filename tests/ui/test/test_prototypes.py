"""Class prototypes in step 4 without a browser: their cost, when it is charged, and where their figure stands."""

from __future__ import annotations

import asyncio
import functools
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.frame.sessions import Session, Sessions
from dpicl_ui.privacy.cards import duration
from dpicl_ui.test.cards import PROTOTYPES, accuracies, score_card, verdict
from dpicl_ui.test.measure import measuring
from dpicl_ui.test.state import PrototypesState, TestState
from dpicl_ui.test.step import EvaluationStep
from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.data.sources import read_table
from mechanisms.demos.findings import ArmScore, Score
from mechanisms.errors import BudgetRefused, UsageError
from mechanisms.evaluation.evaluate import PRIVATE, ZERO_SHOT, Accuracy
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.runs.work import Speed, Work
from tests.toy_embedder import ToyEmbedder
from tests.ui.generate.recording import demo_set
from tests.ui.tabs import confirm, services, write
from tests.ui.test_drawing import scorecard
from tests.ui.trees import text_of
from tests.word_model import WordModel

LABELS = ("News", "Sport")
WORDS = {"News": "minister vote", "Sport": "goal match"}
SET = demo_set(Demonstration("written", "News"))
NAME = PROTOTYPES[0]


def rows(count: int, user: str | None = None) -> tuple[Record, ...]:
    return tuple(Record(f"{WORDS[LABELS[i % 2]]} {user} {i}", LABELS[i % 2], user) for i in range(count))


LETTERS = Dataset("letters", LABELS, rows(400))


class Counting(ToyEmbedder):
    """Counts the texts that it embeds."""

    count = 0

    def embed(self, texts):
        self.count += len(texts)
        return super().embed(texts)


EMBEDDER, SESSIONS = Counting(), Sessions()
SPEED = Speed(0.01, 0.01, 0.1)


@functools.cache
def built() -> EvaluationStep:
    """Step 4 with toy models; each request brings its ledger along."""

    async def blocks() -> EvaluationStep:
        with gr.Blocks():
            ledgers: Any = SimpleNamespace(of=lambda request: request.ledger)
            embedder: Any = SimpleNamespace(embedder=lambda: EMBEDDER)
            return EvaluationStep(services(SESSIONS, ledgers, SimpleNamespace(model=WordModel, speed=SPEED), embedder))

    return asyncio.run(blocks())


class Place:
    """The handlers of step 4 in a tab of their own; a set is written, and a test file is there."""

    def __init__(self, folder: Path, dataset: Dataset = LETTERS) -> None:
        self.ledger, self._embedded = PrivacyLedger(folder), EMBEDDER.count
        self.request: Any = SimpleNamespace(session_hash=str(folder), username=None, ledger=self.ledger)
        self.session = SESSIONS.of(self.request)
        self.offer, self.measurement = built().prototypes, built().measurement
        self.confirmed = confirm(self.session, dataset)
        write(self.session, SET, dataset)
        lines = [f"{WORDS[LABELS[i % 2]]} later {i},{LABELS[i % 2]}" for i in range(20)]
        (folder / "test.csv").write_text("\n".join(["text,label", *lines]), encoding="utf-8")
        self.session.of(TestState).table = read_table(folder / "test.csv")

    @property
    def embedded(self) -> int:
        """Texts that were embedded for this tab."""
        return EMBEDDER.count - self._embedded

    def look(self, epsilon: Any = 0.5) -> tuple[str, bool]:
        """What the card says, and whether it can be pressed."""
        shown = self.offer._look(epsilon, self.request)
        return " ".join(text_of(shown[self.offer.cost]).split()), shown[self.offer.job.start].get_config()[
            "interactive"
        ]

    def press(self, epsilon: Any = 0.5) -> list[Any]:
        """Press the button, and wait."""
        self.offer._order(epsilon, self.request)
        shown = list(self.offer._release(self.request))
        return shown + list(self.measurement.add_prototypes(self.request))

    def measure(self, own_rows: bool = False) -> list[Any]:
        return list(self.measurement._measure("text", "label", 100, own_rows, False, self.request))

    def scores(self, shown: list[Any]) -> str:
        """The last list of figures."""
        return text_of([each for each in shown if self.measurement.scores in each][-1][self.measurement.scores])

    @property
    def state(self) -> PrototypesState:
        return self.session.of(PrototypesState)

    @property
    def spent(self) -> tuple[int, float]:
        unit = self.confirmed.dataset.unit
        now = self.ledger.snapshot("letters", unit)
        return now.runs, now.epsilon


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_price_and_what_then_is_left_are_shown_before_anything_is_charged(place: Place):
    words, free = place.look()
    assert free
    assert "costs epsilon 0.5 at delta 1e-05 for one row" in words
    assert "then stands at 0.5 of 10" in words
    assert "user" not in words
    assert f"takes {duration(SPEED.seconds(Work(embedded=sum(place.confirmed.sizes.values()))))}" in words
    assert (place.spent, place.embedded) == ((0, 0), 0)


def test_how_long_measuring_takes_is_said_before_and_follows_the_rows_that_are_wanted(place: Place):
    few, many = (text_of(place.measurement._told(limit, place.request)) for limit in (10, 1000))
    tested = place.session.of(TestState).classifying
    ten, twenty, many_rows = (SPEED.seconds(measuring(tested, rows)) for rows in (10, 20, 1000))
    assert duration(ten) in few
    assert duration(twenty) in many, "the file has twenty rows"
    assert many_rows > 5 * twenty


def test_they_are_paid_for_once_and_kept(place: Place):
    place.press()
    runs, epsilon = place.spent
    assert runs == 1
    assert epsilon == pytest.approx(0.5, rel=0.01)
    words, free = place.look()
    assert "Released with epsilon 0.5" in words
    assert not free
    with pytest.raises(UsageError, match="nothing was charged"):
        place.press(2.0)
    confirm(place.session, Dataset("letters", LABELS, LETTERS.records))  # the same file, opened once more
    assert not place.look()[1]
    place.measure()
    assert place.spent == (1, epsilon)


def test_other_data_or_another_tab_has_none(place: Place):
    place.press()
    confirm(place.session, Dataset("letters", LABELS, LETTERS.records[1:]))
    assert place.state.released is None
    then = re.search(r"then stands at (\S+) of 10", place.look()[0])
    assert then is not None
    place.press()
    assert float(then[1]) == pytest.approx(place.spent[1], rel=0.01)  # the bounds of two runs are no plain sum
    other = Session()
    confirm(other, LETTERS)
    assert other.of(PrototypesState).released is None


@pytest.mark.parametrize("before", [True, False])
def test_their_figure_stands_beside_the_others_on_the_same_rows(place: Place, before: bool):
    first, second = (place.press, place.measure) if before else (place.measure, place.press)
    first()
    shown = place.scores(second())
    scored = place.session.of(TestState).scored
    assert scored is not None
    assert scored.prototypes is not None
    assert scored.prototypes.total == scored.cards[0].raw.total == 20
    assert scored.prototypes.value > 0.7
    assert "Your demonstrations" in shown
    assert NAME in shown
    low, high = scored.prototypes.interval
    assert f"({math.floor(100 * low)}% to {math.ceil(100 * high)}%)" in shown


def test_without_a_release_nothing_of_it_stands_in_the_list(place: Place):
    assert NAME not in place.scores(place.measure())
    assert place.embedded == 0


def test_figures_that_were_stopped_halfway_get_no_prototypes(place: Place):
    measuring = place.measurement._measure("text", "label", 100, False, False, place.request)
    for _ in range(3):
        next(measuring)
    place.measurement.job.halt(place.request)
    list(measuring)
    place.press()
    scored = place.session.of(TestState).scored
    assert scored is not None
    assert not scored.complete
    assert scored.prototypes is None


def test_over_the_cap_nothing_is_read_or_spent(place: Place):
    place.ledger.set_cap("letters", "record", Cap(0.4, 1e-4))
    words, free = place.look()
    assert "cap does not allow" in words
    assert not free
    with pytest.raises(BudgetRefused):
        place.press()
    assert (place.spent[0], place.embedded, place.state.busy) == (0, 0, False)
    place.press(0.3)
    assert place.spent[0] == 1


def test_what_would_be_wasted_is_not_charged(place: Place):
    state = place.session.of(TestState)
    table, state.table = state.table, None
    with pytest.raises(UsageError, match="test file first"):
        place.press()
    state.table = table
    with pytest.raises(UsageError, match="Epsilon"):
        place.press("much")
    state.load(replace(SET, labels=("News", "Weather")))
    with pytest.raises(UsageError, match="labels"):
        place.press()
    SESSIONS.drop(place.request)
    with pytest.raises(UsageError, match="step 1"):
        place.press()
    assert "step 1" in place.look()[0]
    assert (place.spent[0], place.embedded) == (0, 0)


def test_a_stop_before_it_begins_charges_nothing(place: Place):
    place.offer._order(0.5, place.request)
    place.offer.job.halt(place.request)
    with pytest.raises(UsageError, match="Nothing was charged"):
        list(place.offer._release(place.request))
    assert (place.spent[0], place.embedded) == (0, 0)
    assert list(place.offer._release(place.request)) == []  # the order is gone


def test_a_stop_while_rows_are_read_releases_nothing_and_stays_spent(place: Place):
    place.offer._order(0.5, place.request)
    running = place.offer._release(place.request)
    next(running)
    next(running)  # charged, no row read
    assert place.state.busy
    place.offer.job.halt(place.request)
    with pytest.raises(UsageError, match="stays spent"):
        list(running)
    assert place.state.released is None
    assert not place.state.busy
    assert place.spent[1] == pytest.approx(0.5, rel=0.01)
    place.press()
    assert place.spent[0] == 2


def test_a_closed_tab_stops_it(place: Place):
    place.offer._order(0.5, place.request)
    running = place.offer._release(place.request)
    next(running)
    next(running)
    SESSIONS.drop(place.request)
    with pytest.raises(UsageError):
        list(running)
    assert place.embedded < len(LETTERS.records)


def test_a_failure_stays_spent_and_can_be_tried_again(place: Place, monkeypatch: pytest.MonkeyPatch):
    def broken(texts: Any) -> Any:
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patched:
        patched.setattr(EMBEDDER, "embed", broken)
        with pytest.raises(RuntimeError):
            place.press()
    assert place.spent[0] == 1
    assert (place.state.released, place.state.busy) == (None, False)
    place.press()
    assert place.state.released is not None


def test_data_that_changed_after_the_button_was_pressed_is_not_charged(place: Place):
    place.offer._order(0.5, place.request)
    confirm(place.session, Dataset("others", LABELS, rows(40)))
    with pytest.raises(UsageError, match="has changed. Nothing was charged"):
        list(place.offer._release(place.request))
    assert place.ledger.snapshot("others", "record").runs == place.spent[0] == 0


def test_two_presses_are_one_release(place: Place):
    place.offer._order(0.5, place.request)
    place.offer._order(0.5, place.request)
    running = place.offer._release(place.request)
    next(running)
    with pytest.raises(UsageError, match="wait for them"):
        place.offer._order(0.5, place.request)
    list(running)
    assert list(place.offer._release(place.request)) == []
    assert place.spent[0] == 1


def test_for_users_one_record_each_counts_and_the_price_is_theirs(tmp_path: Path):
    users = tuple(record for i in range(30) for record in rows(6, f"user {i}"))
    place = Place(tmp_path, Dataset("letters", LABELS, users, "who"))
    words, free = place.look()
    assert free
    assert "one user (column 'who')" in words
    assert "One row of each user counts" in words
    place.press()
    assert place.spent == (1, pytest.approx(0.5, rel=0.01))
    assert place.embedded == 30


def test_rows_that_turn_out_to_be_private_are_not_scored_until_the_owner_asks(place: Place):
    stranger = Dataset("strangers", LABELS, rows(30))
    confirm(place.session, stranger)
    place.measure()
    mine = [Record(row.text, row.label) for row in place.session.of(TestState).scored.test.records]  # type: ignore
    confirm(place.session, Dataset("letters", LABELS, (*LETTERS.records, *mine)))
    place.offer._order(0.5, place.request)
    list(place.offer._release(place.request))
    with pytest.raises(UsageError, match="Measure again"):
        list(place.measurement.add_prototypes(place.request))
    scored = place.session.of(TestState).scored
    assert scored is not None
    assert scored.prototypes is None
    with pytest.raises(UsageError, match="shares rows with 'letters'"):
        place.measure()
    shown = place.scores(place.measure(own_rows=True))
    assert NAME in shown
    assert "Only on your screen" in shown
    assert "made of these very rows" in shown


@pytest.mark.parametrize(
    ("own", "others", "said"),
    [
        ((0.5, (0.4, 0.6)), [(0.55, (0.45, 0.65))], "do better than this model."),
        ((0.5, (0.4, 0.6)), [(0.6, (0.5, 0.75))], "look better than this model"),
        ((0.5, (0.4, 0.6)), [(0.9, (0.85, 0.95))], "do better than these demonstrations."),
        ((0.75, (0.65, 0.85)), [(0.9, (0.85, 0.95))], "look better than these demonstrations"),
        ((0.5, (0.4, 0.6)), [], "do better than this model."),
        ((0.8, (0.7, 0.9)), [(0.5, (0.4, 0.6))], ""),
        ((0.9, (0.85, 0.95)), [(0.5, (0.4, 0.6))], ""),
    ],
)
def test_what_is_said_of_prototypes_that_find_more_labels(own: Any, others: Any, said: str):
    words = verdict((0.8, (0.7, 0.9)), own, others)
    assert said in words
    assert bool(words) == bool(said)
    assert ("may be chance" in words) == ("look better" in said)


def test_the_list_says_that_prototypes_do_better():
    cards = [scorecard(ZERO_SHOT), scorecard(PRIVATE)]
    said = "For labels alone, class prototypes do better than this model"
    assert said in text_of(accuracies(cards, (), Accuracy(990, 1000)))
    assert "class prototypes do" not in text_of(accuracies(cards, (), Accuracy(300, 1000)))
    assert "very rows" not in text_of(accuracies(cards, (), Accuracy(990, 1000)))


def test_a_private_score_says_it_too():
    arms = {
        "zero-shot": ArmScore(0.5, (0.45, 0.55)),
        "demonstrations": ArmScore(0.6, (0.55, 0.65)),
        "prototypes": ArmScore(0.8, (0.75, 0.85)),
    }
    said = "For labels alone, class prototypes do better than this model"
    shown = text_of(score_card(replace(SET, score=Score(arms, held_out=True)), loaded=False))
    assert said in shown
    assert NAME in shown
    wide = arms | {"prototypes": ArmScore(0.8, (0.6, 0.95))}
    assert "For labels alone" not in text_of(score_card(replace(SET, score=Score(wide, True)), loaded=False))
    without = {"zero-shot": arms["zero-shot"], "prototypes": arms["prototypes"]}
    assert said in text_of(score_card(replace(SET, score=Score(without, True)), loaded=False))
