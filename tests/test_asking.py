"""How a model is asked to write: one sentence, made of the owner's words or the owner's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.asking import LABEL, LONGEST, Hint, Wording, in_words
from mechanisms.errors import UsageError

WORDS = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=20).filter(str.strip)


@pytest.mark.parametrize(
    ("wording", "sentence"),
    [
        (Wording(), "Write one text about card arrival, in one or two sentences."),
        (Wording("review", relation="that is"), "Write one review that is card arrival, in one or two sentences."),
        (
            Wording("message", "a patient", "a clinic"),
            "You are a clinic. A patient writes you one message about card arrival, in one or two sentences.",
        ),
        (
            Wording("message", "a patient"),
            "You are a patient. Write one message about card arrival, in one or two sentences.",
        ),
        (Wording("note", reader="a clinic"), "Write one note about card arrival to a clinic, in one or two sentences."),
        (Wording(words={"card_arrival": "a late card"}), "Write one text about a late card, in one or two sentences."),
        (Wording(sentence="Say {label}: {label}!"), "Say card arrival: card arrival!"),
    ],
)
def test_the_sentence_is_made_of_the_words_that_were_said(wording, sentence):
    assert wording.sentence_for("card_arrival") == sentence


@pytest.mark.parametrize(
    ("wording", "hint", "sentence"),
    [
        (Wording(), Hint(), "Write one text about card arrival, in one or two sentences."),
        (Wording(), Hint(named=False), "Write one text about card arrival, in one or two sentences."),
        (
            Wording("message"),
            Hint(("cream", "skin")),
            "Write one message about card arrival, with words like cream and skin, in one or two sentences.",
        ),
        (
            Wording("message", "a patient", "a clinic"),
            Hint(("cream", "skin"), named=False),
            "You are a clinic. A patient writes you one message with words like cream and skin, in one or two "
            "sentences.",
        ),
        (
            Wording("note", reader="a clinic", words={"card_arrival": "a late card"}),
            Hint(("cream",)),
            "Write one note about a late card, with words like cream to a clinic, in one or two sentences.",
        ),
        (Wording(sentence="Say {label}!"), Hint(("cream", "skin")), "Say card arrival (cream and skin)!"),
        (Wording(sentence="Say {label}!"), Hint(("cream", "skin"), named=False), "Say cream and skin!"),
        (Wording(sentence="Say {label}!"), Hint(named=False), "Say card arrival!"),
    ],
)
def test_released_words_stand_beside_the_labels_name_or_instead_of_it(wording, hint, sentence):
    assert wording.sentence_for("card_arrival", hint) == sentence


@given(st.lists(st.sampled_from(["cream", "skin", "pulse"]), max_size=2, unique=True), st.booleans(), st.booleans())
def test_a_label_is_always_asked_for_by_its_name_or_by_words(words, named, addressed):
    wording = Wording("note", "a patient", "a clinic") if addressed else Wording("note")
    said = wording.sentence_for("card_arrival", Hint(tuple(words), named))
    assert all(word in said for word in words)
    assert ("card arrival" in said) == (named or not words)
    assert (said == wording.sentence_for("card_arrival")) == (not words)


def test_where_a_writer_addresses_a_reader_the_model_is_the_reader():
    wording = Wording("message", "a patient", "a clinic")
    assert wording.addressed
    assert wording.sentence_for("pain") == (
        "You are a clinic. A patient writes you one message about pain, in one or two sentences."
    )
    assert not Wording("message", "a patient").addressed
    assert not Wording("message", reader="a clinic").addressed
    assert not Wording("message", "a patient", "a clinic", sentence="Write of {label}.").addressed


@pytest.mark.parametrize(
    ("wording", "sentence"),
    [
        (Wording("message"), "Write one message about opening hours, in one or two sentences."),
        (
            Wording("short message", "a patient", "a clinic"),
            "You are a library. A reader writes you one short message about opening hours, in one or two sentences.",
        ),
        (Wording("question", "a pupil"), "You are a pupil. Write one question about the sea, in one or two sentences."),
        (
            Wording("question", "a customer", "a bank"),
            "You are a library. A reader writes you one question about opening hours, in one or two sentences.",
        ),
        (
            Wording("news item", "a reporter", relation="that is", words={"weather": "rain"}),
            "You are a journalist. Write one news item about the weather, in one or two sentences.",
        ),
    ],
)
def test_exemplars_are_asked_for_in_the_same_form(wording, sentence):
    assert wording.exemplar_pairs()[0][0] == sentence


@pytest.mark.parametrize("named", [True, False])
def test_exemplars_are_asked_for_with_words_of_their_own_where_the_text_is(named):
    wording = Wording("message", "a patient", "a clinic")
    sentence, text = wording.exemplar_pairs(Hint(("heart", "pulse"), named))[1]
    about = " about the heating," if named else ""
    assert sentence == (
        f"You are a landlord. A tenant writes you one message{about} with words like cold and bedroom, in one or two "
        "sentences."
    )
    assert text == wording.exemplar_pairs()[1][1]
    assert wording.exemplar_pairs(Hint((), named=True)) == wording.exemplar_pairs()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_as_many_exemplars_are_shown_as_are_wanted(count):
    assert len(Wording("question", exemplars=count).exemplar_pairs()) == count
    assert Wording("question", exemplars=count).exemplar_pairs() == Wording("question").exemplar_pairs()[:count]


@pytest.mark.parametrize(
    "kind",
    [
        "text", "clinical note", "post-operative note", "lab report", "Nachricht", "answer to a question",
        "job posting", "comment on a news article", "article", "preview", "questionnaire answer", "compost",
        "something new", "of", "",
    ],
)  # fmt: skip
def test_what_is_called_as_no_known_kind_is_shown_nothing(kind):
    assert Wording(kind or "?", "a patient", "a clinic").exemplar_pairs() == ()


@pytest.mark.parametrize(
    ("kind", "like"),
    [
        ("Short messages to a shop", "message"),
        ("sentence from a film review", "review"),
        ("first sentence of an encyclopedia article", "encyclopaedia entry"),
        ("local news", "news item"),
        ("e-mail", "message"),
    ],
)
def test_a_kind_is_known_by_how_such_a_text_is_called(kind, like):
    texts = [text for _, text in Wording(kind).exemplar_pairs()]
    assert texts == [text for _, text in Wording(like).exemplar_pairs()] != []


def test_behind_a_sentence_of_the_owners_own_nothing_is_shown():
    assert Wording("message", sentence="Schreibe eine Nachricht über {label}.").exemplar_pairs() == ()


def test_exemplars_of_letters_are_asked_for_as_letters():
    sentence, text = Wording("message", "a patient", "a clinic").exemplar_pairs()[1]
    assert sentence == "You are a landlord. A tenant writes you one message about the heating, in one or two sentences."
    assert text.startswith("The radiator")


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("card_arrival", "card arrival"),
        ("Lost-or_stolen  Card", "lost or stolen card"),
        ("USA", "USA"),
        ("SPORT", "sport"),
        ("__", "__"),
        ("Ärger", "ärger"),
    ],
)
def test_labels_are_said_in_words(label, words):
    assert in_words(label) == words
    assert Wording().named(label) == words
    assert Wording(words={label: "x"}).named(label) == "x"


def test_the_owners_own_sentence_spells_a_label_as_the_owner_does():
    assert (
        Wording(sentence="Schreibe über {label}.").sentence_for("Lieferung_Ausland")
        == "Schreibe über Lieferung Ausland."
    )
    assert "about lieferung ausland" in Wording().sentence_for("Lieferung_Ausland")


@given(
    WORDS,
    WORDS,
    st.dictionaries(WORDS, WORDS, max_size=3),
    st.sampled_from(["", f"x {LABEL}", f"{LABEL} {{x}} %s"]),
    st.integers(0, 6),
)
def test_what_a_file_holds_of_it_comes_back(kind, writer, words, sentence, exemplars):
    wording = Wording(kind, writer, words=words, sentence=sentence, exemplars=exemplars)
    assert Wording(**wording.to_json()) == wording


@pytest.mark.parametrize(
    "said",
    [
        {"kind": " "},
        {"relation": ""},
        {"kind": "x" * (LONGEST + 1)},
        {"writer": "x" * (LONGEST + 1)},
        {"words": {"a": "x" * (LONGEST + 1)}},
        {"sentence": "no place for it"},
        {"sentence": LABEL + "x" * 4 * LONGEST},
    ],
)
def test_what_makes_no_sentence_is_refused_in_words(said):
    with pytest.raises(UsageError) as refused:
        Wording(**said)
    assert "\n" not in str(refused.value)
