"""Step 4 without a page: the test file, another reader, and class prototypes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpicl_ui.data.cards import STAYS
from dpicl_ui.evaluation.cards import ARMS, PROTOTYPES
from dpicl_ui.evaluation.step import bundled_rows_for
from mechanisms.accounting import fingerprint
from mechanisms.data.sources import EXAMPLES, read_table
from mechanisms.demos.demo_set import DIRECTIONS, PUBLIC_ONLY, ZERO_SHOT, ArmScore, Score
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import BOTH, PRIVATE
from mechanisms.inference.remote import ChatServer
from mechanisms.records import Dataset, Record
from tests.chat_server import Reply, Server, query_of, serving
from tests.ui.evaluation.tab import DIRECTED, EMBEDDER, LABELS, LETTERS, SESSIONS, SET, WORDS, Tab, built, rows
from tests.ui.tabs import confirm, text_of

ROWS = "".join(f"something happened {i},{('News', 'Sport')[i % 2]}\n" for i in range(10))


@pytest.fixture
def tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tab:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    EMBEDDER.count = 0
    return Tab(tmp_path)


def test_rows_that_take_no_part_are_counted_by_reason_and_labels_that_look_alike_are_one(tab: Tab):
    tab.upload(f"text,label\n{ROWS}one more,NEWS\n,News\nlast,Weather\n")
    assert "2 of 13 rows are left out: 1 with an empty text, 1 with a label outside" in tab.notice()
    assert len(tab.scored.rows) == 11
    tab.upload(f"text,label\n{ROWS}")
    assert tab.notice() == ""


def test_a_test_file_without_a_header_is_asked_about(tab: Tab):
    tab.state.table = None
    shown, reading = tab.upload(ROWS), tab.measurement.reading
    assert shown[reading.card].visible
    assert tab.state.table is None
    shown = tab.measurement._read_so(tab.request, "row", "", "", None, "0")
    assert not shown[reading.card].visible
    assert [each for each, _ in shown[tab.measurement.text].choices] == ["1", "2"]
    assert shown[tab.measurement.label].value == "2"
    assert tab.notice(text="1", label="2") == ""


def test_a_refused_or_unclear_file_says_that_the_first_one_stays(tab: Tab):
    before = tab.state.table
    for content in (b"", b"text,label\nx\0,News\n", ROWS):
        assert STAYS in text_of(tab.upload(content)[tab.measurement.test_notice])
        assert tab.state.table is before


def test_a_file_with_none_of_the_labels_says_so_before_anything_is_written(tab: Tab):
    tab.bring(["one,Rain", "two,Snow"])
    with pytest.raises(UsageError, match="one of the set's labels"):
        tab.measure()
    assert tab.state.scored is None


def test_a_stop_keeps_what_was_measured(tab: Tab):
    measuring = tab.measurement._measure(tab.values(), tab.request)
    for _ in range(3):
        next(measuring)
    tab.measurement.job.halt(tab.request)
    assert any("Stopped" in text_of(each.get(tab.measurement.test_notice, [])) for each in measuring)
    assert not tab.scored.complete


# Bundled test rows are offered for the sets that they can test, and for no other.


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_the_example_finds_its_own_rows_which_are_none_that_wrote(example):
    rows, mapping = read_table(example.path).frame, example.mapping
    path = bundled_rows_for(sorted(set(rows[mapping.label])))
    assert path == example.test
    others = read_table(path).frame
    assert set(others[mapping.label]) == set(rows[mapping.label])
    assert not set(others[mapping.text]) & set(rows[mapping.text])


# Step 4 with another reader: nothing leaves unless it is asked for, no private row ever does, and no key stays.

KEY = "sk-not-to-be-seen"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(lambda asked: Reply("Sport" if "7" in query_of(asked) else "It is News")) as server:
        yield server


@pytest.fixture
def typed(server: Server) -> dict[str, str]:
    return {"who": "address", "address": server.url, "key": KEY}


def servers() -> int:
    """Readers elsewhere that this process holds, each with its key."""
    gc.collect()
    return sum(isinstance(each, ChatServer) for each in gc.get_objects())


def test_an_address_is_offered_to_an_owner_alone():
    for lasting, names in ((True, ["here", "address"]), (False, ["here"])):
        shown = built(lasting).reader
        assert [value for _, value in shown.who.choices] == names
        assert shown.who.value == "here"


@pytest.mark.parametrize("who", ["here", "address"])
def test_nothing_is_sent_but_to_a_reader_that_was_offered_and_chosen(
    tmp_path: Path, server: Server, typed: dict[str, str], who: str
):
    tab = Tab(tmp_path, step=built(lasting=False))
    assert "%" in tab.ask(**typed | {"who": who})
    assert "empty queries" in text_of(tab.measure(**typed | {"who": who})[tab.measurement.scores])
    assert server.asked == []


def test_an_address_answers_and_its_key_stays_nowhere(tab: Tab, server: Server, typed: dict[str, str]):
    before = servers()
    said = tab.ask(**typed)
    assert said.count("News") >= 3
    assert "%" not in said
    assert [asked.headers["Authorization"] for asked in server.asked] == [f"Bearer {KEY}"] * 3
    shown = tab.measure(**typed)
    assert [card.name for card in tab.scored.cards] == [ZERO_SHOT, PUBLIC_ONLY, PRIVATE]
    assert all(card.calibrated is None and card.raw.correct == 12 for card in tab.scored.cards)
    assert "uncorrected" in text_of(shown[tab.measurement.scores])
    assert len(server.asked) == 63
    assert not any(KEY in asked.body for asked in server.asked)
    assert servers() == before


def test_rows_that_private_data_have_are_counted_and_not_measured(tab: Tab):
    private, fresh = LETTERS.records[3].text, [f"text {i},{'Sport' if i % 2 else 'News'}" for i in range(6)]
    tab.bring([f"{private.upper()}!,Sport", f"{LETTERS.records[4].text},News", *fresh])
    assert "2 of its 8 rows are left out because private data sets contain them" in tab.notice()
    tab.measure()
    assert [row.text for row in tab.scored.rows] == [line.split(",")[0] for line in fresh]
    assert tab.ledger.rows.disclosures(fingerprint(LETTERS)) == ()
    for others in ([], ["a text of another label,Weather"]):
        tab.bring([f"{private},Sport", *others])
        with pytest.raises(UsageError, match="every row of this file"):
            tab.measure()


def test_a_file_with_private_rows_is_not_sent_at_all(tab: Tab, server: Server, typed: dict[str, str]):
    """A server that knows the file would see which rows are missing."""
    fresh = [f"text {i},{'Sport' if i % 2 else 'News'}" for i in range(6)]
    tab.bring([f"{LETTERS.records[3].text.upper()}!,Sport", *fresh])
    with pytest.raises(UsageError, match="contain 1 of this file's 7 rows, so none is sent"):
        tab.measure(**typed)
    assert server.asked == []
    tab.bring(fresh)
    tab.measure(**typed)
    assert server.asked


def test_a_set_that_promises_nothing_stays_here(tab: Tab, server: Server, typed: dict[str, str]):
    tab.state.load(replace(SET, certificate=replace(SET.certificate, private=False)))
    for press in (tab.ask, tab.measure):
        with pytest.raises(UsageError, match="no guarantee"):
            press(**typed)
    assert server.asked == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"address": ""}, "is not a URL"),
        ({"address": "http://example.org/v1"}, "must begin with https"),
        ({"model": " "}, "Name the model"),
        ({"key": f"{KEY}\nX: y"}, "occur in no key"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line_without_the_key(tab: Tab, typed: dict[str, str], changed, said):
    with pytest.raises(UsageError, match=said) as refused:
        tab.ask(**typed | changed)
    assert KEY not in str(refused.value)


# A set with directions: they classify with no language model, alone or joined with the set's answer.


@pytest.fixture
def directed(tmp_path: Path) -> Tab:
    return Tab(tmp_path, made=DIRECTED)


STRANGE = replace(DIRECTED, directions=replace(DIRECTED.directions, sha256="f" * 64))
"""With directions of another embedding model than the one that is here."""


def test_directions_are_measured_beside_the_set_and_named(directed: Tab):
    shown = directed.measure()
    cards = {card.name: card for card in directed.scored.cards}
    assert [*cards] == [ZERO_SHOT, PUBLIC_ONLY, DIRECTIONS, BOTH, PRIVATE]
    texts, truth = zip(*((row.text, LABELS.index(row.label)) for row in directed.scored.rows), strict=True)
    assert cards[DIRECTIONS].raw.correct == sum(DIRECTED.directions.nearest(texts, EMBEDDER) == truth)
    figures = text_of(shown[directed.measurement.scores])
    assert all(ARMS[name][0] in figures for name in cards)
    assert "For labels alone, the directions" in figures


@pytest.mark.parametrize("label", LABELS)
def test_a_typed_text_is_read_by_what_is_chosen(directed: Tab, label: str):
    titles = {by: ARMS[name][0] for by, name in (("model", PRIVATE), ("directions", DIRECTIONS), ("both", BOTH))}
    said = {by: directed.ask(by=by, query=WORDS[label]) for by in titles}
    for by in titles:
        assert [each for each, title in titles.items() if title in said[by]] == [by]
    assert said["directions"].split(ARMS[DIRECTIONS][1])[1].split()[0] == label


def test_directions_ask_no_language_model_and_send_nothing(directed: Tab, server: Server, typed: dict[str, str]):
    assert ARMS[DIRECTIONS][0] in directed.ask(by="directions", **typed)
    with pytest.raises(UsageError, match="answers in words"):
        directed.ask(by="both", **typed)
    assert server.asked == []
    directed.measure(**typed)
    assert [card.name for card in directed.scored.cards] == [ZERO_SHOT, PUBLIC_ONLY, DIRECTIONS, PRIVATE]


def test_the_choice_is_there_for_a_set_with_directions_and_begins_with_what_its_score_recommends(tab: Tab):
    def choice(made) -> tuple[bool, str]:
        tab.state.load(made)
        shown = tab.step._show_set(tab.request)[tab.step.by].get_config()
        return shown["visible"], shown["value"]

    worse = ArmScore(-0.2, (-0.3, -0.1))
    score = Score({"demonstrations": ArmScore(0.7, (0.65, 0.75))}, held_out=True, gains={DIRECTIONS: worse})
    assert choice(SET) == (False, "model")
    assert choice(DIRECTED) == (True, "model")
    assert choice(replace(DIRECTED, score=score)) == (True, "directions")
    assert choice(replace(SET, score=score)) == (False, "model")


def test_what_is_typed_is_read_behind_the_prompt_that_says_the_words(
    directed: Tab, server: Server, typed: dict[str, str]
):
    directed.ask(**typed)
    assert ["minister" in asked.prompt for asked in server.asked] == [False, False, True]


def test_directions_of_another_embedding_model_are_left_out_with_a_word(directed: Tab):
    directed.state.load(STRANGE)
    shown = directed.measure()
    assert [card.name for card in directed.scored.cards] == [ZERO_SHOT, PUBLIC_ONLY, PRIVATE]
    assert "belong to the embedding model" in text_of(shown[directed.measurement.readers])
    with pytest.raises(UsageError, match="belong to the embedding model"):
        directed.ask(by="directions")
    assert ARMS[PRIVATE][0] in directed.ask()


# Class prototypes in step 4: their cost, when it is charged, and where their figure stands.

NAME = PROTOTYPES[0]


def test_the_price_and_what_then_is_left_are_shown_before_anything_is_charged(tab: Tab):
    words, free = tab.price()
    assert free
    assert "costs epsilon 0.5 at delta 1e-05 for one row" in words
    assert "then stands at 0.5 of 10" in words
    assert "user" not in words
    assert (tab.spent, EMBEDDER.count) == ((0, 0), 0)


def test_they_are_paid_for_once_and_kept(tab: Tab):
    tab.release()
    runs, epsilon = tab.spent
    assert (runs, epsilon) == (1, pytest.approx(0.5, rel=0.01))
    words, free = tab.price()
    assert "Released with epsilon 0.5" in words
    assert not free
    with pytest.raises(UsageError, match="nothing was charged"):
        tab.release(2.0)
    confirm(tab.session, Dataset("letters", LABELS, LETTERS.records))  # the same file, opened once more
    assert not tab.price()[1]
    tab.measure()
    assert tab.spent == (1, epsilon)


@pytest.mark.parametrize("before", [True, False])
def test_their_figure_stands_beside_the_others_on_the_same_rows(tab: Tab, before: bool):
    first, second = (tab.release, tab.measure) if before else (tab.measure, tab.release)
    first()
    shown = text_of(second()[tab.measurement.scores])
    found = tab.scored.prototypes
    assert found is not None
    assert found.total == tab.scored.cards[0].raw.total == 20
    assert found.value > 0.7
    assert "Your demonstrations" in shown
    assert NAME in shown


def test_what_would_be_wasted_is_not_charged(tab: Tab):
    table, tab.state.table = tab.state.table, None
    with pytest.raises(UsageError, match="test file first"):
        tab.release()
    tab.state.table = table
    with pytest.raises(UsageError, match="Epsilon"):
        tab.release("much")
    tab.state.load(replace(SET, labels=("News", "Weather")))
    with pytest.raises(UsageError, match="labels"):
        tab.release()
    SESSIONS.drop(tab.request)
    with pytest.raises(UsageError, match="step 1"):
        tab.release()
    assert "step 1" in tab.price()[0]
    assert (tab.spent[0], EMBEDDER.count) == (0, 0)


def test_a_stop_before_it_begins_charges_nothing(tab: Tab):
    tab.offer._order(0.5, tab.request)
    tab.offer.job.halt(tab.request)
    with pytest.raises(UsageError, match="Nothing was charged"):
        list(tab.offer._release(tab.request))
    assert (tab.spent[0], EMBEDDER.count) == (0, 0)
    assert list(tab.offer._release(tab.request)) == []  # the order is gone


def begun(tab: Tab) -> Any:
    """A release that is charged, and has read no row."""
    tab.offer._order(0.5, tab.request)
    running = tab.offer._release(tab.request)
    next(running)
    next(running)
    return running


@pytest.mark.parametrize("how", ["a stop", "a closed tab"])
def test_what_ends_it_while_rows_are_read_releases_nothing_and_stays_spent(tab: Tab, how: str):
    running, state = begun(tab), tab.prototypes
    assert state.busy
    tab.offer.job.halt(tab.request) if how == "a stop" else SESSIONS.drop(tab.request)
    with pytest.raises(UsageError, match="stays spent"):
        list(running)
    assert (state.released, state.busy) == (None, False)
    assert EMBEDDER.count < len(LETTERS.records)
    assert tab.spent == (1, pytest.approx(0.5, rel=0.01))


def test_data_that_changed_after_the_button_was_pressed_is_not_charged(tab: Tab):
    tab.offer._order(0.5, tab.request)
    confirm(tab.session, Dataset("others", LABELS, rows(40)))
    with pytest.raises(UsageError, match="has changed. Nothing was charged"):
        list(tab.offer._release(tab.request))
    assert tab.ledger.snapshot("others", "record").runs == tab.spent[0] == 0


def test_for_users_one_row_each_counts_and_the_price_is_theirs(tmp_path: Path):
    EMBEDDER.count = 0
    users = tuple(record for i in range(30) for record in rows(6, f"user {i}"))
    tab = Tab(tmp_path, Dataset("letters", LABELS, users, "who"))
    words, free = tab.price()
    assert free
    assert "one user (column 'who')" in words
    assert "Only one row of each user counts" in words
    tab.release()
    assert tab.spent == (1, pytest.approx(0.5, rel=0.01))
    assert EMBEDDER.count == 30


def test_rows_that_turn_out_to_be_private_get_no_further_figure(tab: Tab):
    confirm(tab.session, Dataset("strangers", LABELS, rows(30)))
    tab.measure()
    mine = [Record(row.text, row.label) for row in tab.scored.test.records]
    confirm(tab.session, Dataset("letters", LABELS, (*LETTERS.records, *mine)))
    tab.offer._order(0.5, tab.request)
    list(tab.offer._release(tab.request))
    with pytest.raises(UsageError, match="measure again"):
        list(tab.measurement.add_prototypes(tab.request))
    assert tab.scored.prototypes is None
