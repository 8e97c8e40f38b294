"""Free completion: the prompt that is gone on with, and how surprised a model is by how real texts go on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from mechanisms.data.record_schema import RecordSchema
from mechanisms.errors import UsageError
from mechanisms.evaluation.completions import completing, completion_perplexities, longest_text
from mechanisms.evaluation.reader import Arm
from mechanisms.inference import CompletionPrompt, GenerationPrompt
from mechanisms.records import Demonstration, PromptTemplate
from tests.toy_model import VOCABULARY, ToyModel, ToySession
from tests.ui.generate.recording import demo_set

SHOWN = Demonstration("dear team", "Note")
SET = replace(demo_set(), labels=("Note",)).with_demonstrations((SHOWN,))
SCHEMA = RecordSchema({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]})
TEXTS = ["dear all", "dear", "hello there, how are you"]


class Taught(ToyModel):
    """Every token is as likely as any other, until a demonstration is shown: then an x, and a line break behind it."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        session._row = taught
        return session


def taught(row: list[int]) -> np.ndarray:
    if b"dear team" not in bytes(row):
        return np.zeros(VOCABULARY)
    return np.eye(VOCABULARY)[10 if row[-1] == ord("x") else ord("x")] * 9


class Chat(ToyModel):
    turn = ([1, 2], [3])


def test_only_a_set_of_one_kind_of_text_completes():
    assert SET.completes
    for other in (
        demo_set(),
        replace(SET, template=PromptTemplate("i", output="Answer")),
        replace(SET, schema=SCHEMA),
    ):
        assert not other.completes


@pytest.mark.parametrize("model", [ToyModel(), Chat()])
def test_a_beginning_stands_where_the_writer_would_begin_a_text(model):
    written = GenerationPrompt(model, SET.template, "Note", 50, 1)
    none = CompletionPrompt(model, SET.template, "Note", (), 50)
    one = CompletionPrompt(model, SET.template, "Note", (SHOWN,), 50)
    assert (none.prefix, none.head) == (written.prefix, written.cue)
    # What a private row's prompt would have held stands before the row, which ends with the beginning.
    assert one.prefix == [*none.prefix, *written.row([SHOWN.text])[: -len(written.cue)]]
    assert one.row("dear  all")[len(one.head) :] == model.encode(" dear all")
    assert one.row("  ") == one.head
    assert len(one.row("long " * 100)) == one.length


@pytest.mark.slow
def test_with_a_real_tokenizer_too_demonstrations_stand_as_private_rows_do(random_model):
    texts = ["We regret that it ended so.", "No, 12 of them!", "it ends with a word"]
    written = GenerationPrompt(random_model, SET.template, "Note", 50, 1)
    shown = CompletionPrompt(random_model, SET.template, "Note", [Demonstration(each, "Note") for each in texts], 50)
    rows = [token for text in texts for token in written.row([text])[: -len(written.cue)]]
    assert shown.prefix == [*written.prefix, *rows]


def test_a_long_beginning_is_gone_on_with_from_its_end():
    prompt = CompletionPrompt(ToyModel(), SET.template, "Note", (), 8)
    assert bytes(prompt.row("far too long to be read")[len(prompt.head) :]) == b" be read"
    assert prompt.row("x" * 10_000 + " the  end")[-8:] == list(b" the end")


class Spaced(ToyModel):
    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        session._row = lambda row: np.eye(VOCABULARY)[ord("y" if bytes(row).endswith(b" ") else " ")] * 9
        return session


def test_the_space_that_comes_first_is_part_of_what_is_said():
    [rest] = completing(Spaced(), SET, [SHOWN]).answers(["dear"])
    assert rest == " y"  # in three tokens, of which the last one is a space


def test_a_text_goes_on_up_to_a_line_break_or_the_length_of_the_sets_own_texts():
    assert list(completing(Taught(busy=10_000), SET, [SHOWN]).answers(TEXTS)) == ["x"] * 3
    [rest] = completing(ToyModel(), SET, [SHOWN]).answers(["dear"])
    assert len(rest) <= longest_text(SET)


def test_all_tokens_alike_is_a_perplexity_of_as_many_without_an_error():
    [found] = completion_perplexities(Taught(), SET, [Arm("none", ())], TEXTS)
    assert found.perplexity == pytest.approx(VOCABULARY)
    assert found.interval == pytest.approx((VOCABULARY, VOCABULARY))
    assert found.texts == 3


def test_what_a_demonstration_teaches_is_less_of_a_surprise():
    none, one = completion_perplexities(Taught(), SET, [Arm("none", ()), Arm("one", (SHOWN,))], ["x", " x "])
    assert none.perplexity > one.perplexity
    # The texts are the tokens " x": all but " " is foretold.
    right, wrong = (math.exp(each) / (math.exp(9) + VOCABULARY - 1) for each in (9, 0))
    assert one.log_perplexity == pytest.approx(-(math.log(wrong) + math.log(right)) / 2)


def test_with_texts_of_one_length_the_error_is_that_of_a_mean():
    texts = [f"{i:02}" for i in range(20)]
    [found] = completion_perplexities(ToyModel(), SET, [Arm("one", (SHOWN,))], texts)
    prompt = CompletionPrompt(ToyModel(), SET.template, "Note", (SHOWN,), longest_text(SET))
    each = []
    for text in texts:
        session = ToySession([[*prompt.prefix, *prompt.head]], ToyModel().sharpness)
        each.append(-session.score(prompt.row(text)[len(prompt.head) :])[0] / len(" 00"))
    assert found.log_perplexity == pytest.approx(np.mean(each))
    assert found.error == pytest.approx(np.std(each, ddof=1) / math.sqrt(len(each)))


@pytest.mark.parametrize("texts", [[], ["one"], ["one", "", "  "]])
def test_one_text_has_no_interval(texts):
    with pytest.raises(UsageError, match="two texts"):
        list(completion_perplexities(ToyModel(), SET, [Arm("none", ())], texts))
