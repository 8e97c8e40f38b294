"""Open answers and free completions: how they are asked for and scored."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from mechanisms.data.record_schema import RecordSchema
from mechanisms.errors import UsageError
from mechanisms.evaluation.completions import answering, completing, completion_perplexities, longest_text
from mechanisms.evaluation.evaluate import Accuracy, Progress
from mechanisms.evaluation.open_answers import OpenScorecard, evaluate_open, exact_match, token_f1
from mechanisms.evaluation.reader import Arm
from mechanisms.inference import CompletionPrompt, GenerationPrompt
from mechanisms.records import Demonstration, PromptTemplate, Record
from mechanisms.runs.reading_forecast import answering_work
from tests.toy_model import VOCABULARY, ToyModel, ToySession
from tests.ui.generate.recording import demo_set

# Answers that are text: what a responder says, how it is scored, and the interval of a figure.


TEMPLATE = PromptTemplate("Answer.", "Q", "Kind", "A")
WORDS = st.lists(st.sampled_from(["red", "blue", "The", "a", "green!", "x"]), max_size=5).map(" ".join)


@pytest.mark.parametrize(
    ("answer", "reference", "exact", "f1"),
    [
        ("The  Cestida.", "cestida", True, 1.0),
        ("science fiction", "soviet science fiction", False, 0.8),
        ("red red", "red", False, 2 / 3),
        ("red", "blue", False, 0.0),
        ("", "the", True, 1.0),
        ("", "red", False, 0.0),
    ],
)
def test_scores_are_squads(answer, reference, exact, f1):
    assert exact_match(answer, reference) is exact
    assert token_f1(answer, reference) == pytest.approx(f1)


@given(WORDS, WORDS)
def test_f1_is_symmetric_and_one_where_the_words_are_the_same(one, other):
    assert token_f1(one, other) == token_f1(other, one)
    assert 0 <= token_f1(one, other) <= 1
    assert not exact_match(one, other) or token_f1(one, other) == 1
    assert token_f1(one, one) == 1


@given(st.integers(1, 500).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_the_interval_is_wilsons(counts):
    expected = binomtest(*counts).proportion_ci(0.95, method="wilson")
    assert Accuracy(*counts).interval == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=200))
def test_what_is_correct_in_part_has_its_mean_in_its_interval(shares):
    found = Accuracy(sum(shares), len(shares))
    low, high = found.interval
    assert 0 <= low <= found.value + 1e-12
    assert found.value - 1e-12 <= high <= 1
    assert low < high


class Echo(ToyModel):
    """Answers a query with its text, where it is shown a demonstration, and with an x elsewhere."""

    def open(self, prefix, rows, length, room):
        session = super().open(prefix, rows, length, room)
        session._row = echoed
        return session


def echoed(row: list[int]) -> np.ndarray:
    said = bytes(row).decode()
    query, _, answer = said.rpartition("Q: ")[2].partition("\nA:")
    wanted = f" {query}\n" if "\n\nQ: shown" in said else "x\n"
    return np.eye(VOCABULARY)[ord(wanted[len(answer)] if len(answer) < len(wanted) else "\n")]


SHOWN = Demonstration("shown", "Asked", "said")


def test_a_responder_goes_on_behind_the_query_up_to_a_line_break_or_its_cap():
    texts = [f"text {i}" for i in range(35)]
    assert list(answering(Echo(busy=10_000), TEMPLATE, [SHOWN], 20).answers(texts)) == texts
    assert list(answering(Echo(), TEMPLATE, (), 20).answers(texts[:2])) == ["x", "x"]
    assert list(answering(Echo(), TEMPLATE, [SHOWN], 5).answers(["longer"])) == ["long"]
    assert list(answering(Echo(), TEMPLATE, [SHOWN], 5).answers([])) == []


def test_answers_are_written_side_by_side_and_a_forecast_counts_their_steps():
    model, texts = ToyModel(busy=128), [f"text {i}" for i in range(40)]  # busy with one row of a long text, as a CPU is
    list(answering(model, TEMPLATE, [SHOWN], 6).answers(texts))
    assert [rows for rows, _, _ in model.opened] == [16, 16, 8]
    foreseen = answering_work(20, len(texts), 6)
    assert foreseen.steps == 6 * len(model.opened)
    assert foreseen.rows == 6 * len(texts)


def test_an_answer_does_not_depend_on_the_other_texts():
    texts = [f"text {i}" for i in range(20)]
    together = list(answering(ToyModel(busy=10_000), TEMPLATE, [SHOWN], 6).answers(texts))
    assert together == [next(answering(ToyModel(), TEMPLATE, [SHOWN], 6).answers([text])) for text in texts]


def test_each_set_of_demonstrations_has_its_figures():
    rows = [Record("red", "", None, "red"), Record("deep red", "", None, "red"), Record("blue", "", None, "red")]
    told = list(evaluate_open(Echo(), TEMPLATE, [Arm("none", ()), Arm("one", (SHOWN,))], rows * 8, 12))
    assert [each.done for each in told if isinstance(each, Progress)] == [16, 32, 48]
    none, one = (each for each in told if isinstance(each, OpenScorecard))
    assert (none.name, none.exact.correct, none.f1.correct) == ("none", 0, 0)
    assert (one.name, one.exact.correct, one.exact.total) == ("one", 8, 24)
    assert one.f1.value == pytest.approx((1 + 2 / 3) / 3)


def test_labels_are_no_outputs():
    with pytest.raises(UsageError, match="no outputs"):
        answering(ToyModel(), PromptTemplate("i"), (), 5)
    with pytest.raises(UsageError, match="no outputs"):
        answering(ToyModel(), TEMPLATE, [Demonstration("t", "l")], 5)
    for rows in ([], [Record("t", "l")]):
        with pytest.raises(UsageError, match="needs an output"):
            list(evaluate_open(ToyModel(), TEMPLATE, (), rows, 5))


# Free completion: the prompt that is gone on with, and how surprised a model is by how real texts go on.

NOTE = Demonstration("dear team", "Note")
SET = replace(demo_set(), labels=("Note",)).with_demonstrations((NOTE,))
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
    one = CompletionPrompt(model, SET.template, "Note", (NOTE,), 50)
    assert (none.prefix, none.head) == (written.prefix, written.cue)
    # What a private row's prompt would have held stands before the row, which ends with the beginning.
    assert one.prefix == [*none.prefix, *written.row([NOTE.text])[: -len(written.cue)]]
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
    [rest] = completing(Spaced(), SET, [NOTE]).answers(["dear"])
    assert rest == " y"  # in three tokens, of which the last one is a space


def test_a_text_goes_on_up_to_a_line_break_or_the_length_of_the_sets_own_texts():
    assert list(completing(Taught(busy=10_000), SET, [NOTE]).answers(TEXTS)) == ["x"] * 3
    [rest] = completing(ToyModel(), SET, [NOTE]).answers(["dear"])
    assert len(rest) <= longest_text(SET)


def test_all_tokens_alike_is_a_perplexity_of_as_many_without_an_error():
    [found] = completion_perplexities(Taught(), SET, [Arm("none", ())], TEXTS)
    assert found.perplexity == pytest.approx(VOCABULARY)
    assert found.interval == pytest.approx((VOCABULARY, VOCABULARY))
    assert found.texts == 3


def test_what_a_demonstration_teaches_is_less_of_a_surprise():
    none, one = completion_perplexities(Taught(), SET, [Arm("none", ()), Arm("one", (NOTE,))], ["x", " x "])
    assert none.perplexity > one.perplexity
    # The texts are the tokens " x": all but " " is foretold.
    right, wrong = (math.exp(each) / (math.exp(9) + VOCABULARY - 1) for each in (9, 0))
    assert one.log_perplexity == pytest.approx(-(math.log(wrong) + math.log(right)) / 2)


def test_with_texts_of_one_length_the_error_is_that_of_a_mean():
    texts = [f"{i:02}" for i in range(20)]
    [found] = completion_perplexities(ToyModel(), SET, [Arm("one", (NOTE,))], texts)
    prompt = CompletionPrompt(ToyModel(), SET.template, "Note", (NOTE,), longest_text(SET))
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
