"""Prompts as tokens: a row's length is public, and its tokens are its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.asking import Wording
from mechanisms.inference import QueryPrompt, Turn, WritingPrompt
from mechanisms.inference.language_model import NO_TURN
from mechanisms.inference.prompts import first_tokens, one_line
from mechanisms.records import Demonstration, PromptTemplate
from tests.toy_model import ToyModel

PLAIN = Wording("note")
ADDRESSED = Wording("message", "a patient", "a clinic")
TEXTS = st.lists(st.text(max_size=60), max_size=5)
CAPS = st.integers(1, 20)


class Chat(ToyModel):
    """A chat model."""

    def __init__(self) -> None:
        super().__init__()
        self.writing_turn = Turn(*map(self.encode, ("<user>", "<model>", "<said>", "<end><user>")))


class OneTurn(Chat):
    """A chat model whose template takes no further turn."""

    def __init__(self) -> None:
        super().__init__()
        self.writing_turn = self.writing_turn._replace(shown=[], again=[])


MODELS = [ToyModel(), Chat(), OneTurn()]
IDS = ["plain", "turns", "one turn"]
SHOWN = ADDRESSED.exemplar_pairs()


def text_of(tokens) -> str:
    return bytes(tokens).decode()


@pytest.mark.parametrize("model", MODELS, ids=IDS)
@pytest.mark.parametrize("asked", [PLAIN, ADDRESSED], ids=["asked", "addressed"])
@given(texts=TEXTS, cap=CAPS, room=st.integers(0, 4))
def test_a_row_is_no_longer_than_is_public_and_ends_with_the_cue(model, asked, texts, cap, room):
    prompt = WritingPrompt(model, asked, "pain", cap, room)
    row = prompt.row(texts)
    assert len(row) <= prompt.length
    assert row[len(row) - len(prompt.cue) :] == prompt.cue
    assert prompt.length == WritingPrompt(model, asked, "pain", cap, room).length
    assert prompt.length - len(prompt.cue) == room * (cap + len("\n\nExample:"))


@pytest.mark.parametrize("model", MODELS, ids=IDS)
@given(texts=TEXTS, others=TEXTS, cap=CAPS)
def test_a_rows_tokens_are_its_own_texts(model, texts, others, cap):
    one, other = (WritingPrompt(model, PLAIN, "pain", cap, 3) for _ in range(2))
    other.row(others)
    assert one.row(texts) == other.row(texts)
    lead, whole = model.encode("\n\nExample:"), []
    for text in texts:
        whole += [*lead, *first_tokens(model, text, cap)]
    room = one.length - len(one.cue)
    assert one.row(texts) == whole[:room] + one.cue


def test_a_model_without_a_template_goes_on_behind_the_kind_of_text():
    prompt = WritingPrompt(ToyModel(), ADDRESSED, "pain", 8, 1)
    shown = "".join(f"{sentence}\n\nMessage: {text}\n\n" for sentence, text in SHOWN)
    assert text_of(prompt.prefix) == shown + ADDRESSED.sentence_for("pain")
    assert text_of(prompt.cue) == "\n\nMessage:"
    assert text_of(prompt.row(["I am\nill"])) == "\n\nExample: I am il\n\nMessage:"


def test_a_chat_model_answers_with_the_text():
    answers = WritingPrompt(Chat(), PLAIN, "pain", 8, 1)
    assert text_of(answers.prefix) == f"<user>{PLAIN.sentence_for('pain')}"
    assert text_of(answers.cue) == "<model>"
    letter = WritingPrompt(Chat(), ADDRESSED, "pain", 8, 1)
    shown = "".join(f"{sentence}<said>{text}<end><user>" for sentence, text in SHOWN)
    assert text_of(letter.prefix) == f"<user>{shown}{ADDRESSED.sentence_for('pain')}"
    alone = WritingPrompt(OneTurn(), ADDRESSED, "pain", 8, 1)
    assert text_of(alone.prefix) == f"<user>{ADDRESSED.sentence_for('pain')}"
    own = WritingPrompt(Chat(), replace(ADDRESSED, sentence="Write of {label}."), "pain")
    assert text_of(own.prefix) == "<user>Write of pain."


@pytest.mark.parametrize(("model", "opening"), [(ToyModel(), " I am"), (Chat(), "I am")])
def test_an_opening_begins_the_text_as_the_model_would(model, opening):
    prompt = WritingPrompt(model, ADDRESSED, "pain")
    assert text_of(prompt.opening("I am")) == opening
    assert prompt.opening("") == []


@pytest.mark.parametrize("chat", [False, True])
def test_prompts_of_a_real_tokenizer_fit_their_public_length(chat, embedded_model):
    prompt = WritingPrompt(embedded_model, ADDRESSED if chat else PLAIN, "cards", 16, 2)
    for text in ("short", "x" * 100_000, "\n\n\u2028", "é" * 50, "<|im_end|>", ""):
        row = prompt.row([text, text, text])
        assert len(row) <= prompt.length
        assert row[len(row) - len(prompt.cue) :] == prompt.cue
    assert not set(embedded_model.encode(" <|im_end|>")) & embedded_model.stop_tokens


# The prompt that classifies.

SORT = PromptTemplate("Classify.", "T", "L")


@given(query=st.text(max_size=80), cap=CAPS, chat=st.booleans())
def test_a_querys_row_is_no_longer_than_is_public_and_its_own(query, cap, chat):
    model = ToyModel()
    model.turn = Turn(model.encode("<user>"), model.encode("<model>"), [], []) if chat else NO_TURN
    prompt = QueryPrompt(model, SORT, [Demonstration("one", "a")], cap)
    row = prompt.row(query)
    assert len(row) <= prompt.length
    assert row[: len(prompt.head)] == prompt.head
    other = QueryPrompt(model, SORT, [Demonstration("one", "a")], cap)
    other.row("something else")
    assert other.row(query) == row


def test_a_line_break_in_a_demonstration_begins_no_other():
    shown = text_of(QueryPrompt(ToyModel(), SORT, [Demonstration("one\n\nT: two", "a")], 8).prefix)
    assert shown == "Classify.\n\nT: one T: two\nL: a\n\n"


@given(st.text(max_size=200), CAPS)
def test_the_far_end_of_a_text_is_cut(text, cap):
    model = ToyModel()
    tokens = first_tokens(model, text, cap)
    assert len(tokens) <= cap
    assert tokens == model.encode(" " + one_line(text))[: len(tokens)]
