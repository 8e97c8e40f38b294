"""The figures of `measure`: copies, diversity, matching, perplexity, words."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.measures.copying import longest_copied
from research.measures.diversity import distinct
from research.measures.linear_classifier import LinearClassifier, held_out_accuracy
from research.measures.matching import matching
from research.measures.perplexity import perplexity
from research.measures.words import grams, words_of
from tests.toy_model import VOCABULARY, ToyModel

# A planted copy is found, with its length.


TEXTS = ["nothing like it", "she lives at 7 Elm Street, doctor", "red"]


def found(texts, rows):
    copied = longest_copied(texts, rows)
    return copied.words, copied.text


def test_a_planted_run_is_found_whatever_its_case_and_punctuation():
    rows = ["The weather is fine.", "LIVES AT 7 ELM street since May.", "at 7"]
    assert found(TEXTS, rows) == (5, 1)
    assert found(TEXTS, reversed(rows)) == (5, 1)


TEXT = st.lists(st.sampled_from("abc"), max_size=8).map(" ".join)


@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=4))
def test_it_is_the_longest_of_all(texts, rows):
    def runs(every, n):
        return {gram for each in every for gram in grams(words_of(each), n)}

    longest = max((n for n in range(1, 9) if runs(texts, n) & runs(rows, n)), default=0)
    words, text = found(texts, rows)
    assert words == longest
    if text is not None:
        assert runs([texts[text]], words) & runs(rows, words)


# Distinct-n by hand.


def test_by_hand():
    """a b a b, and b a: six words of two kinds, four pairs of two kinds, two triples of two kinds."""
    texts = ["A b a b", "b, a!"]
    assert [distinct(texts, n) for n in (1, 2, 3)] == [pytest.approx(2 / 6), pytest.approx(2 / 4), 1.0]


# Logistic regression on embeddings, on planted clusters.

LABELS = ["a", "b"] * 20


def clusters(spread):
    centres = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] * 20)
    found = centres + np.random.default_rng(0).normal(size=centres.shape) * spread
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def test_clusters_apart_are_told_apart_and_swapped_labels_are_all_wrong():
    vectors = clusters(0.1)
    swapped = ["b" if label == "a" else "a" for label in LABELS]
    classifier = LinearClassifier(vectors, LABELS)
    assert classifier.accuracy(vectors, LABELS).value == 1
    assert classifier.accuracy(vectors, swapped).value == 0
    assert LinearClassifier(vectors, swapped).accuracy(vectors, LABELS).value == 0


def test_rows_are_judged_by_others():
    """Labels without meaning are learned by heart and not recognised."""
    random = np.random.default_rng(1).normal(size=(40, 60)).astype(np.float32)
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    assert LinearClassifier(random, LABELS).accuracy(random, LABELS).value == 1
    low, high = held_out_accuracy(random, LABELS).interval
    assert low < 0.5 < high
    assert held_out_accuracy(clusters(0.1), LABELS).value == 1


# As many of each label.

LISTS = st.lists(st.sampled_from("abc"), max_size=30)


@given(LISTS, LISTS)
def test_as_many_of_each_label_or_all(labels, like):
    chosen = matching(labels, like)
    assert chosen == sorted(set(chosen))
    assert Counter(labels[place] for place in chosen) == Counter(labels) & Counter(like)


# Perplexity in closed form.

SAID = ["one red apple", "sky", "a longer text about nothing at all", "b"]


def test_a_model_that_knows_nothing_is_as_surprised_as_by_dice():
    assert perplexity(ToyModel(sharpness=0.0), SAID) == pytest.approx(VOCABULARY)


@pytest.mark.parametrize("busy", [1, 8, 1000])
def test_it_is_what_token_after_token_says(busy):
    """Side by side or alone: each token but the first of a text, after all that stands before it."""
    model = ToyModel(sharpness=1.5, busy=busy)
    total, count = 0.0, 0
    for text in SAID:
        tokens = model.encode(f" {text}")
        total += float(model.open(model.encode("\n"), [tokens[:1]], 1, len(tokens)).score(tokens[1:])[0])
        count += len(tokens) - 1
    assert perplexity(model, SAID) == pytest.approx(math.exp(-total / count))


# What counts as a word.


def test_case_punctuation_and_width_do_not_count():
    assert words_of("The  cat-flap, Ｎｏ. 7!") == ["the", "cat", "flap", "no", "7"]
    assert words_of("STRASSE") == words_of("Straße")
    assert words_of(" .,!") == []


def test_scripts_without_spaces_are_read_by_character():
    """A sentence in Chinese would otherwise be one word, and what is copied of it no word at all."""
    assert words_of("日本経済 ok") == ["日", "本", "経", "済", "ok"]
    assert words_of("Привет мир") == ["привет", "мир"]
    assert len(words_of("สวัสดี")) > 1
