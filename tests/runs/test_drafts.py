"""Public drafts: cleaned, distinct, from the public prompt and released openings alone."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mechanisms.asking import Hint, Wording
from mechanisms.demos.directions import Directions
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.runs import drafts
from mechanisms.runs.completion import MIN_TOKENS
from mechanisms.runs.drafts import (
    TEMPERATURE,
    TOP_P,
    DraftRequest,
    Margins,
    Nearness,
    preview_drafts,
    sample,
    write_drafts,
    write_samples,
)
from mechanisms.runs.text import Gate, cleaned
from tests.runs.running import Speaking
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import VOCABULARY

ASKED, LABELS = Wording(kind="note"), ("red", "blue")
PROMPT = "Write one note about red, in one or two sentences.\n\nNote:"


class Recording(Speaking):
    def __init__(self) -> None:
        super().__init__(sharpness=1.0, busy=10**6)
        self.prompts: list[str] = []

    def open(self, prefix, rows, length, room):
        self.prompts += [bytes([*prefix, *row]).decode() for row in rows]
        return super().open(prefix, rows, length, room)


class Stuck(Recording):
    """Writes the same word again and again."""

    def decode(self, tokens) -> str:
        return "red. " * len(tokens)


def wanted(count: int = 6, tokens: int = 20, openings=None) -> DraftRequest:
    return DraftRequest(ASKED, "red", LABELS, count, tokens, openings or {})


def gate(model=None):
    model = model or Speaking(sharpness=1.0, busy=10**6)
    return Gate(model, write_samples(model, ASKED, "red", 24, SeededRandomness(9)))


def written(model=None, count=6, tokens=20, taken=(), seed=1, openings=None):
    model = model or Speaking(sharpness=1.0, busy=10**6)
    return write_drafts(model, wanted(count, tokens, openings), gate(), SeededRandomness(seed), taken)


def test_what_stands_for_another_label_is_not_written_in_whatever_case_and_punctuation():
    first = written()
    others = [f" «{text.upper()}»!" for text in first[:3]]
    again = written(taken=others)
    assert not set(first[:3]) & set(again)
    assert len(again) == len(first)


@pytest.mark.parametrize("busy", [1, 4, 10**6])
def test_drafts_are_cleaned_and_distinct_and_as_many_as_asked_for(busy):
    found = written(Speaking(sharpness=1.0, busy=busy))
    assert len(found) == len(set(found)) == 6
    assert all(cleaned(each, ASKED, "red", LABELS, gate()) == each for each in found)
    assert all(len(each.split()) <= 20 for each in found)


def test_a_batch_is_one_session_and_there_is_an_end_to_trying():
    model, stuck = Recording(), Stuck()
    written(model)
    assert {rows for rows, _, _ in model.opened} == {6 * drafts.WRITTEN}
    with pytest.raises(UsageError, match="choose another model, or say"):
        written(stuck)
    assert sum(rows for rows, _, _ in stuck.opened) == 6 * drafts._TRIES


def test_nothing_but_the_public_prompt_is_asked():
    model = Recording()
    written(model)
    assert set(model.prompts) == {PROMPT}


def test_drafts_are_begun_as_openings_are_weighed():
    model = Recording()
    written(model, openings={"My": 0.75, "The": 0.25})
    begun = [each.removeprefix(PROMPT) for each in model.prompts]
    assert (begun.count(" My"), begun.count(" The")) == (9, 3)


class Distracted(Recording):
    """Writes the same word again and again where a sentence says released words."""

    def decode(self, tokens) -> str:
        return "red. " * len(tokens) if "words like" in self.prompts[-1] else super().decode(tokens)


def test_where_released_words_make_no_draft_of_use_public_words_ask():
    model = Distracted()
    found = write_drafts(model, replace(wanted(), words=("sun", "rain")), gate(), SeededRandomness(1))
    assert len(found) == 6
    assert "words like" in model.prompts[0]
    assert model.prompts[-1] == PROMPT


def answering(monkeypatch, texts, likelihoods) -> None:
    """Whatever is asked for, these texts are written, and again from the first where more are asked for."""

    def write(model, prompts, *_):
        answers = zip(itertools.cycle(texts), itertools.cycle(likelihoods), strict=False)
        return list(itertools.islice(answers, len(prompts)))

    monkeypatch.setattr(drafts, "_write", write)


def test_the_likelier_drafts_are_kept_likeliest_first(monkeypatch):
    texts = [f"The {word} one came." for word in ("first", "second", "third", "fourth", "fifth")]
    likelihoods = (-3.0, -1.0, -4.0, -2.0, -5.0)
    answering(monkeypatch, texts, likelihoods)
    assert written(count=2) == (texts[1], texts[3])
    assert written(count=5) == tuple(texts[i] for i in (1, 3, 0, 2, 4))


def test_drafts_nearer_to_another_label_stand_behind(monkeypatch):
    # Words are near to themselves: a text is near to the label that it names.
    texts = [f"There came {word} one today." for word in ("a blue", "a red", "another blue", "another red")]
    likelihoods = (-1.0, -3.0, -2.0, -4.0)
    answering(monkeypatch, texts, likelihoods)
    model = Speaking(sharpness=1.0, busy=10**6)
    for count, kept in ((2, [1, 3]), (3, [1, 3, 0])):
        found = write_drafts(
            model, wanted(count), gate(), SeededRandomness(1), ranking=Nearness(ToyEmbedder(64), ASKED, LABELS)
        )
        assert found == tuple(texts[i] for i in kept)


# With released words.

SAID = ("heart", "pulse", "chest", "blood", "valve")


def hints_of(count: int, words=SAID, named=True) -> list[Hint]:
    return DraftRequest(ASKED, "red", LABELS, 6, 20, words=words, named=named).hints(count, SeededRandomness(4))


def test_each_two_words_stand_in_as_many_sentences_as_any_other_two():
    pairs = Counter(frozenset(hint.words) for hint in hints_of(4000))
    assert {*pairs} == {frozenset(pair) for pair in itertools.combinations(SAID, 2)}
    assert all(abs(times - 400) < 5 * 400**0.5 for times in pairs.values())
    assert all(len(hint.words) == 2 and hint.named for hint in hints_of(9))


@pytest.mark.parametrize("words", [(), ("heart",), ("heart", "pulse")])
def test_where_fewer_words_were_released_all_of_them_are_said(words):
    assert all({*hint.words} == {*words} for hint in hints_of(5, words))
    assert len(hints_of(5, words)) == 5
    assert {hint.named for hint in hints_of(5, words, named=False)} == {not words}


def test_drafts_are_asked_for_with_released_words_and_are_public_without():
    model = Recording()
    asked_with = DraftRequest(ASKED, "red", LABELS, 6, 20, words=SAID, named=False)
    assert (asked_with.public, wanted().public, wanted(openings={"My": 1.0}).public) == (False, True, False)
    found = write_drafts(model, asked_with, gate(), SeededRandomness(1))
    assert len(found) == 6
    assert all(prompt.startswith("Write one note with words like ") for prompt in model.prompts)
    assert len({*model.prompts}) > 4, "they are drawn anew for each draft"
    assert {rows for rows, _, _ in model.opened} == {6 * drafts.WRITTEN}, "one session for all sentences"


def test_a_sentence_with_words_is_not_a_draft(monkeypatch):
    told = DraftRequest(ASKED, "red", LABELS, 6, 20, words=SAID[:2])
    [hint] = {Hint(pair) for pair in (SAID[:2],)}
    echo = ASKED.sentence_for("red", hint).removesuffix(".")
    texts = [f"{echo} of yours.", "They came late to us.", "People write the way they speak."]
    answering(monkeypatch, texts, [-1.0] * 3)
    monkeypatch.setattr(DraftRequest, "hints", lambda *arguments: [hint] * arguments[1])
    found = write_drafts(Speaking(sharpness=1.0, busy=10**6), told, gate(), SeededRandomness(1))
    assert {*found} == {*texts[1:]}


# By released directions.

FAR = ToyEmbedder(256)
"""Words are nearly at right angles in it."""


def by_margins(middle: str = "the") -> Margins:
    near = FAR.embed(["red", "blue"]).astype(np.float64)
    directions = Directions.of(FAR, LABELS, near - near.mean(axis=0))
    return Margins(FAR, directions, FAR.embed([middle])[0].astype(np.float64))


def test_texts_of_another_label_are_left_out_where_two_others_are_there():
    texts = ["blue blue sky", "red sun", "red red sun", "blue sky"]
    assert by_margins().best("red", texts) == ["red red sun", "red sun"]
    assert {*by_margins().best("blue", texts)} == {"blue blue sky", "blue sky"}
    assert by_margins().best("red", texts[:2]) == ["red sun", "blue blue sky"], "two stand in a ballot at least"
    for text in texts:
        assert by_margins().of_another_label("red", text) == ("blue" in text)
        assert by_margins().of_another_label("blue", text) == ("red" in text)


def test_of_texts_of_one_label_those_like_all_rows_stand_first():
    texts = ["red moon ice", "red moon the"]
    margin = by_margins()._directions.places(texts, FAR)
    assert margin[0] == pytest.approx(margin[1], abs=0.1)
    assert by_margins().best("red", texts) == texts[::-1]
    assert by_margins("ice").best("red", texts) == texts


def test_a_set_of_drafts_is_kept_by_margin(monkeypatch):
    texts = [f"There came {word} one today." for word in ("a blue", "a red", "another blue", "another red")]
    answering(monkeypatch, texts, [-1.0, -3.0, -2.0, -4.0])
    model = Speaking(sharpness=1.0, busy=10**6)
    found = write_drafts(model, wanted(4), gate(), SeededRandomness(1), ranking=by_margins())
    assert {*found} == {texts[1], texts[3]}, "however few are left"


def test_a_sentence_of_the_prompt_is_not_a_draft(monkeypatch):
    told = DraftRequest(Wording(sentence="You write as people write. Write of {label}."), "red", LABELS, 6, 20, {})
    texts = ["You write as people write! I came late.", "They came late to us.", "People write the way they speak."]
    answering(monkeypatch, texts, [-1.0] * 3)
    model = Speaking(sharpness=1.0, busy=10**6)
    assert set(write_drafts(model, told, gate(), SeededRandomness(1))) == set(texts[1:])
    assert set(preview_drafts(model, told, SeededRandomness(1))) == set(texts[1:])


class Prompt:
    """A prompt of bytes."""

    def __init__(self, shown: bytes, cue: bytes, sentence: bytes = b"") -> None:
        self.shown, self.sentence, self.cue = list(shown), list(sentence), list(cue)

    def opening(self, text: str) -> list[int]:
        return list(text.encode())


def test_no_draft_ends_before_the_least_length():
    class Ending(Recording):
        stop_tokens = frozenset(range(VOCABULARY // 2))

    model = Ending()
    rows = drafts._write(model, [Prompt(b"a", b"b")] * 20, [""] * 20, 30, SeededRandomness(2))
    lengths = [len(row.split()) for row, _ in rows]
    assert min(lengths) == MIN_TOKENS
    assert max(lengths) < 30, "rows that ended were written on"


def test_a_row_does_not_depend_on_rows_that_ended():
    class Ending(Recording):
        stop_tokens = frozenset(range(0, VOCABULARY, 3))

    class Likeliest(SeededRandomness):
        def uniform(self, count):
            return np.full(count, 1e-9)

    # Different openings of one length, so that the rows differ although every draw is the likeliest token.
    openings = [chr(97 + i) for i in range(12)]
    prompts = [Prompt(b"", b"", bytes([65 + i % 3] * (1 + i % 3))) for i in range(12)]  # sentences of any length
    together = drafts._write(Ending(), prompts, openings, 25, Likeliest(0))
    alone = [
        drafts._write(Ending(), [prompt], [each], 25, Likeliest(0))[0]
        for prompt, each in zip(prompts, openings, strict=True)
    ]
    assert [text for text, _ in together] == [text for text, _ in alone]
    assert [found for _, found in together] == pytest.approx([found for _, found in alone])
    assert len({len(each.split()) for each, _ in alone}) > 3, "all ended at once: the test shows nothing"


def test_rows_that_ended_are_dropped_in_few_numbers(monkeypatch):
    """Each number of rows is a shape that the engine has to look at first."""

    class Ending(Recording):
        stop_tokens = frozenset(range(0, VOCABULARY, 12))

        def open(self, prefix, rows, length, room):
            session = super().open(prefix, rows, length, room)
            keep = session.keep
            session.keep = lambda left: (kept.append(len(left)), keep(left))
            return session

    kept: list[int] = []
    drafts._write(Ending(), [Prompt(b"a", b"b")] * 60, [""] * 60, 40, SeededRandomness(2))
    assert len(kept) > 2
    assert all(rows % 8 == 0 for rows in kept)
    assert all(later <= drafts._LEFT * earlier for earlier, later in pairwise([60, *kept]))


def test_samples_follow_the_nucleus():
    logits = np.log(np.array([0.5, 0.02, 0.3, 0.08, 0.1]))
    drawn, found = sample(np.tile(logits, (40_000, 1)), SeededRandomness(3))
    tempered = logits / TEMPERATURE - np.logaddexp.reduce(logits / TEMPERATURE)
    assert found == pytest.approx(tempered[drawn])
    shares = np.bincount(drawn, minlength=5) / len(drawn)
    kept = np.exp(tempered) * np.array([1, 0, 1, 0, 1])
    assert kept.sum() > TOP_P > 0.8
    assert shares == pytest.approx(kept / kept.sum(), abs=0.015)


def test_what_is_not_finite_is_never_drawn():
    logits = np.array([[np.nan, 1.0, -np.inf, np.inf]])
    assert set(sample(np.repeat(logits, 50, axis=0), SeededRandomness(5))[0].tolist()) == {1}
    with pytest.raises(ModelUnavailable, match="choose another model"):
        sample(np.array([[0.0, 1.0], [np.nan, np.nan]]), SeededRandomness(5))


def test_a_preview_is_two_drafts_from_public_words_alone():
    model = Recording()
    found = preview_drafts(model, wanted(), SeededRandomness(1))
    assert len(found) == 2
    assert all(cleaned(text, ASKED, "red", LABELS, gate()) == text for text in found)
    assert set(model.prompts) == {PROMPT}


def test_a_preview_that_nobody_waits_for_ends_at_the_next_token():
    left = iter([True, True, False, False])
    preview_drafts(Speaking(sharpness=1.0, busy=10**6), wanted(), SeededRandomness(1), lambda: next(left))
    with pytest.raises(StopIteration):
        next(left)  # it was asked before two tokens, before the one that was not written, and before more drafts


@pytest.mark.parametrize(("of_use", "written"), [((True,), 1), ((False, True), 2), ((False, False), 2)])
def test_a_preview_without_two_drafts_of_use_writes_a_few_more_once(monkeypatch, of_use, written):
    answers = iter(of_use)
    monkeypatch.setattr("mechanisms.runs.drafts._write", lambda *_: rounds(next(answers)))
    found = preview_drafts(Recording(), wanted(), SeededRandomness(1))
    assert len(found) == (2 if any(of_use) else 0)
    assert len([*answers]) == len(of_use) - written


def rounds(of_use: bool) -> list[tuple[str, float]]:
    texts = (
        ("The first side won after extra time.", "The second side lost at home again.") if of_use else ("1. No",) * 2
    )
    return [*((text, -1.0) for text in texts), *[("", -2.0)] * 4]
