"""Asking privately without a browser: the settings, the rows' vectors, what the handlers reserve, stop and refuse."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.ask.form import AskForm, described
from dpicl_ui.ask.state import AskState, Idle, Preparing, RowVectors
from dpicl_ui.ask.step import AskStep, public_rows
from dpicl_ui.data.state import DataState
from dpicl_ui.data.step import DataStep
from dpicl_ui.frame.model_loader import EmbedderLoader, ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger, Session, Sessions
from mechanisms.accounting import PrivacyLedger
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.sources import ANSWERED_EXAMPLES, EXAMPLES, RECORD_EXAMPLES, read_table
from mechanisms.demos.findings import ArmScore, Score
from mechanisms.errors import BudgetRefused, DataError, ModelUnavailable, ReservedOtherwise, UsageError
from mechanisms.queries import Retrieval
from mechanisms.records import Dataset, Record
from tests.toy_embedder import ToyEmbedder
from tests.ui.generate.recording import demo_set
from tests.ui.tabs import confirm, lend, services, write
from tests.ui.trees import text_of

LABELS = ["Billing", "Delivery"]
WORDS = ("epsilon", "mechanism", "queries", "delta", "shards", "neighbours", "retrieval", "answer_tokens")


def values(**changed: Any) -> list[Any]:
    """What the form's components hold, in order."""
    usual = dict(zip(WORDS, (4.0, "knn-votes", 5, 1e-5, 10, 4, Retrieval.LABELS_ONLY.value, 16), strict=True))
    texts = {"instruction": "", "text_name": "", "label_name": ""}
    own = {each.name: each.default for _, each in described()}
    known = usual | texts | own
    assert set(changed) <= set(known)
    return list((known | changed).values())


def request(**changed: Any) -> Any:
    return AskForm.read(*values(**changed)).request(tuple(LABELS), False, ("Message", "Topic"))


@pytest.mark.parametrize("mechanism", ["knn-votes", "soft-votes", "keywords"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_whole_price_is_what_was_chosen(mechanism: str, epsilon: float):
    made = request(mechanism=mechanism, epsilon=epsilon)
    assert 0.95 * epsilon < made.claim().epsilon <= epsilon * (1 + 1e-9)
    assert made.claim().delta <= 1e-5


def test_open_answers_keep_labels_private():
    made = request(mechanism="keywords", fewest_keywords=3, most_keywords=7)
    assert made.labels == ()
    assert made.retrieval is Retrieval.THRESHOLD
    assert (made.mechanism.fewest_keywords, made.mechanism.most_keywords) == (3, 7)
    assert all(label not in made.template.instruction for label in LABELS)
    assert all(label in request().template.instruction for label in LABELS)


def test_each_mechanism_has_its_own_parameters():
    changed = {"sharpness": 2.0, "fewest_keywords": 3}
    assert request(mechanism="soft-votes", **changed).mechanism.sharpness == 2.0
    assert not hasattr(request(mechanism="knn-votes", **changed).mechanism, "sharpness")


def test_what_is_typed_goes_before_what_is_usual():
    usual, typed = request().template, request(instruction="Sort them.", text_name="Letter").template
    assert (usual.text, usual.label) == ("Message", "Topic")
    assert (typed.instruction, typed.text, typed.label) == ("Sort them.", "Letter", "Topic")


@pytest.mark.parametrize(
    ("changed", "about"),
    [({"epsilon": None}, "Epsilon"), ({"queries": 2.5}, "whole"), ({"shards": "x"}, "groups"), ({"delta": 2}, "elta")],
)
def test_odd_input_is_one_line(changed: dict[str, Any], about: str):
    with pytest.raises(UsageError, match=about) as error:
        request(**changed)
    assert "\n" not in str(error.value)


def test_votes_need_two_labels():
    with pytest.raises(UsageError, match="two labels"):
        AskForm.read(*values()).request(("Billing",), False, ("Text", "Label"))


class Counting(ToyEmbedder):
    """Counts the texts that it embeds."""

    count = 0

    def embed(self, texts):
        self.count += len(texts)
        return super().embed(texts)


def test_rows_are_embedded_once_and_to_the_bit():
    counting = Counting()
    vectors = RowVectors(counting)
    texts = [f"row {i % 40}" for i in range(60)]
    reports = list(vectors.learn(texts))
    assert len(reports) > 1
    assert reports == sorted(reports)
    assert reports[-1] == (40, 40)
    assert (vectors.embed(texts) == ToyEmbedder().embed(texts)).all()
    assert list(vectors.learn(texts)) == []
    assert counting.count == 40


def test_the_embedding_model_waits_for_the_language_model(monkeypatch: pytest.MonkeyPatch):
    # Loaded side by side, transformers gave them each other's dtype.
    monkeypatch.setattr("mechanisms.inference.models.embeddings.load_embedder", ToyEmbedder)
    language_model = ModelLoader("no such model")
    found: list[Any] = []
    asked = threading.Thread(target=lambda: found.append(EmbedderLoader(language_model).embedder()), daemon=True)
    asked.start()
    asked.join(0.2)
    assert found == []
    language_model.start()
    asked.join(60)
    assert found[0].name == ToyEmbedder.name


def test_questions_are_not_remembered():
    vectors = RowVectors(counting := Counting())
    assert (vectors.embed(["a question"]) == ToyEmbedder().embed(["a question"])).all()
    vectors.embed(["a question"])
    assert counting.count == 2


def test_asking_needs_a_file_and_no_confirmed_labels(place: Place):
    bar = place.step._app.bar
    assert bar.value(Session())["steps"][5]["why"]
    steps = bar.value(place.session)["steps"]
    assert not steps[5]["why"]
    assert steps[1]["why"]


class Place:
    """The handlers of the place, with a toy embedder and no model, in one tab with a small file."""

    def __init__(self, folder: Path) -> None:
        self.ledger, self.sessions = PrivacyLedger(folder), Sessions()
        self.step = asyncio.run(self.built())
        lend(self.step.offer, embedder=SimpleNamespace(embedder=ToyEmbedder))
        self.request: Any = SimpleNamespace(session_hash="tab", username=None)
        self.session = self.sessions.of(self.request)
        self.write(folder / "letters.csv", 60)

    async def built(self) -> AskStep:
        # Blocks made outside an event loop open one of their own and never close it.
        with gr.Blocks() as self.page:
            app = services(self.sessions, CuratorLedger(self.ledger))
            self.data = DataStep(app)
            return AskStep(app, self.data)

    def write(self, path: Path, rows: int) -> None:
        words = ("invoice refund", "parcel late")
        lines = [f"{words[i % 2]} {i},{LABELS[i % 2]}" for i in range(rows)]
        path.write_text("\n".join(["message,topic", *lines]), encoding="utf-8")
        state = self.session.of(DataState)
        state.open(read_table(path), ("Text", "Label"))
        state.read(ColumnMapping("message", "topic"))

    def reserve(self, anew: bool = False, public: bool = True, **changed: Any) -> list[Any]:
        inputs = ("letters", LABELS, public, 0.3, *values(**changed))
        shown = list(self.step.offer._preparing(anew)(self.request, *inputs))
        return shown + list(self.step.offer._open(self.request))

    def ask(self, question: str, threshold: float = 0.1) -> list[Any]:
        return list(self.step._ask(question, threshold, self.request))

    def look(self) -> dict[Any, Any]:
        """What the page shows once it has looked."""
        return self.step._look(self.request)

    def listeners(self) -> list[dict[str, Any]]:
        return self.page.config["dependencies"]

    @property
    def state(self) -> AskState:
        return self.session.of(AskState)

    @property
    def runs(self) -> int:
        return self.ledger.snapshot("letters", "record").runs


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_one_reservation_pays_for_all_questions(place: Place):
    place.reserve()
    before = place.ledger.snapshot("letters", "record").epsilon
    assert before == pytest.approx(4, rel=0.05)
    for i in range(3):
        place.ask(f"parcel late {i}")
    shown = place.look()
    assert text_of(shown[place.step.answers]).count("→") == 2
    assert place.runs == 1
    assert place.ledger.snapshot("letters", "record").epsilon == before
    left = text_of(shown[place.step.reserved])
    assert "2 questions left" in " ".join(left.split())


def test_labels_stay_private_until_somebody_says_otherwise(place: Place):
    with pytest.raises(DataError, match="label names become public"):
        place.reserve(public=False)
    assert place.runs == 0


def test_the_price_is_shown_before_anything_is_charged(place: Place):
    shown = place.step._recalculate(place.request, "letters", LABELS, True, 0.3, *values())
    assert "epsilon 4" in text_of(shown[place.step.offer.outcome])
    assert "at least 5" in text_of(shown[place.step.offer.outcome])
    assert place.runs == 0
    assert "step 4" not in text_of(shown[place.step.offer.outcome])
    refused = place.step._recalculate(place.request, "letters", ["Billing"], True, 0.3, *values())
    assert "two labels" in text_of(refused[place.step.offer.outcome])


def test_a_set_with_a_private_score_is_pointed_out(place: Place):
    score = Score({"demonstrations": ArmScore(0.75, (0.71, 0.78))}, held_out=True)
    write(place.session, replace(demo_set(), score=score), Dataset("letters", tuple(LABELS), ()))
    shown = place.step._recalculate(place.request, "letters", LABELS, True, 0.3, *values())
    assert "71 to 78 of 100" in text_of(shown[place.step.offer.outcome])


def test_a_stop_while_rows_are_read_charges_nothing_and_opens_nothing(place: Place):
    preparing = place.step.offer._preparing(False)(place.request, "letters", LABELS, True, 0.3, *values())
    next(preparing)
    place.step.offer._stop(place.request)
    with pytest.raises(UsageError, match="Nothing was charged"):
        list(preparing)
    assert list(place.step.offer._open(place.request)) == []
    assert (place.state.open, place.runs) == (None, 0)


def test_other_terms_are_refused_and_may_be_paid_again(place: Place):
    place.reserve()
    place.ask("parcel late")
    with pytest.raises(UsageError, match="other terms"):
        place.reserve(epsilon=2.0)
    assert place.runs == 1
    place.ask("still answers")
    place.reserve(anew=True, epsilon=2.0)
    assert place.runs == 2
    assert len(place.state.answers) == 2


def test_other_terms_are_refused_before_rows_are_read_and_no_other_refusal_offers_to_pay_again(
    place: Place, tmp_path: Path
):
    place.reserve()
    place.write(tmp_path / "letters.csv", 60)
    assert not place.look()[place.step.offer.anew].visible
    with pytest.raises(DataError):
        next(place.step.offer._preparing(False)(place.request, "letters", LABELS, False, 0.3, *values()))
    assert not place.look()[place.step.offer.anew].visible
    lend(place.step.offer, embedder=None)
    with pytest.raises(ReservedOtherwise):
        next(place.step.offer._preparing(False)(place.request, "letters", LABELS, True, 0.3, *values(epsilon=2.0)))
    assert place.look()[place.step.offer.anew].visible


def test_a_changed_file_needs_a_new_reservation(place: Place, tmp_path: Path):
    place.reserve()
    place.write(tmp_path / "letters.csv", 61)
    with pytest.raises(UsageError, match="reserve its price first"):
        place.ask("parcel late")
    with pytest.raises(UsageError, match="file differs"):
        place.reserve()
    place.reserve(anew=True)
    assert place.runs == 2


def test_the_same_file_and_terms_go_on_for_nothing(place: Place, tmp_path: Path):
    place.reserve()
    place.ask("parcel late")
    place.write(tmp_path / "letters.csv", 60)
    place.reserve()
    assert place.runs == 1
    shown = text_of(place.look()[place.step.reserved])
    assert "continues" in shown
    assert "4" in shown


def test_beyond_the_cap_nothing_opens(place: Place):
    with pytest.raises(BudgetRefused):
        place.reserve(epsilon=9.0, delta=9e-4)
    assert isinstance(place.state.stage, Idle)
    assert place.state.open is None


def test_a_missing_embedding_model_is_one_line(place: Place):
    def missing() -> Any:
        raise ModelUnavailable("The embedding model is not available: install it.")

    lend(place.step.offer, embedder=SimpleNamespace(embedder=missing))
    with pytest.raises(ModelUnavailable):
        place.reserve()
    assert place.runs == 0


def test_an_empty_question_costs_nothing(place: Place):
    place.reserve()
    with pytest.raises(UsageError, match="Type a question"):
        place.ask("  ")
    assert place.state.open is not None
    assert place.state.open.asking.opened.asked == 0
    place.ask("parcel late")
    assert "1 of 5" in text_of(place.look()[place.step.reserved])


def test_a_closed_tab_stops_and_forgets(place: Place):
    preparing = place.step.offer._preparing(False)(place.request, "letters", LABELS, True, 0.3, *values())
    next(preparing)
    assert isinstance(place.state.stage, Preparing)
    place.sessions.drop(place.request)
    with pytest.raises(UsageError, match="Stopped"):
        list(preparing)
    assert place.sessions.of(place.request).of(AskState).open is None
    assert place.runs == 0


def test_one_listener_alone_shows_cards_and_the_page_calls_it_one_at_a_time(place: Place):
    step = place.step
    cards = (step.asking, step.open_card, step.setup, step.offer_card, step.reserved, step.answers)
    shows = [each for each in place.listeners() if {card._id for card in cards} & set(each["outputs"])]
    assert [each["targets"] for each in shows] == [[(step.beat._id, "change")]]
    assert shows[0]["trigger_mode"] == "always_last"


def test_whatever_may_change_the_state_is_followed_by_a_beat(place: Place):
    beat, listeners = place.step.beat._id, place.listeners()
    followed = {each["trigger_after"] for each in listeners if each["outputs"] == [beat]}
    changing = {each["id"] for each in place.data.changing}
    # A file, here, on the hub or as it was asked about, four columns, labels (ticked, all, none, renamed, read as one),
    # sizes, rows that are left out, name, and the length of a text (sent or left); then how prompts call the fields:
    # chosen, sent or left.
    usual = 17
    records = 6  # what a row is, the form, the record's name (left or sent), a schema's file, and the form again
    named = 3 * len(place.data.names.inputs)
    assert len(changing) == len((*EXAMPLES, *ANSWERED_EXAMPLES, *RECORD_EXAMPLES)) + usual + records + named
    assert changing <= followed
    [opens] = {each["id"] for each in listeners if each["targets"] == [(place.step.offer.reserve._id, "click")]}
    [opened] = {each["id"] for each in listeners if each["trigger_after"] == opens}
    assert opened in followed
    numbers = [place.step._beat(place.request) for _ in range(3)]
    assert len(set(numbers)) == 3


def test_a_look_before_the_reservation_is_followed_by_one_after_it(place: Place):
    late = place.look()
    beat = place.step._beat(place.request)
    place.reserve()
    assert not late[place.step.asking].visible
    assert place.step._beat(place.request) != beat
    shown = place.look()
    assert shown[place.step.asking].visible
    assert not shown[place.step.setup].visible


def test_other_terms_can_be_looked_at_while_a_reservation_is_open(place: Place):
    place.reserve()
    place.step._reconsider(place.request)
    shown = place.look()
    assert all(shown[each].visible for each in (place.step.asking, place.step.setup, place.step.offer_card))
    place.reserve(anew=True, epsilon=2.0)
    assert not place.look()[place.step.setup].visible


def test_data_that_changes_while_the_ledger_is_charged_opens_nothing(place: Place, tmp_path: Path):
    inputs = ("letters", LABELS, True, 0.3, *values())
    list(place.step.offer._preparing(False)(place.request, *inputs))
    opening = place.step.offer._open(place.request)
    next(opening)
    place.write(tmp_path / "letters.csv", 60)
    with pytest.raises(UsageError, match="keeps the reservation"):
        list(opening)
    assert (place.state.open, place.runs) == (None, 1)


def test_what_the_noise_does_to_an_answer_is_said_before_it_is_paid_for(place: Place):
    def said(**changed: Any) -> str:
        shown = place.step._recalculate(place.request, "letters", LABELS, True, 0.3, *values(**changed))
        return text_of(shown[place.step.offer.outcome])

    assert "78 of 100 questions" in said()
    assert "1 question instead of 5" in said()
    assert "instead of" not in said(epsilon=10.0, queries=1)
    assert place.runs == 0


def test_more_groups_are_proposed_only_where_public_rows_allow_them(place: Place):
    def said() -> str:
        shown = place.step._recalculate(place.request, "letters", LABELS, True, 0.3, *values())
        return text_of(shown[place.step.offer.outcome])

    assert public_rows(place.session) is None
    assert "20 groups of 4" in said()
    rows = Dataset("letters", tuple(LABELS), tuple(Record(f"text {i}", LABELS[i % 2]) for i in range(12)))
    confirm(place.session, rows)
    assert public_rows(place.session) == 12
    assert "20 groups" not in said()
