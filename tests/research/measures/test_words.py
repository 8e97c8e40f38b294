"""What counts as a word."""

from __future__ import annotations

from research.measures.words import grams, words_of


def test_case_punctuation_and_width_do_not_count():
    assert words_of("The  cat-flap, Ｎｏ. 7!") == ["the", "cat", "flap", "no", "7"]
    assert words_of("STRASSE") == words_of("Straße")
    assert words_of(" .,!") == []


def test_scripts_without_spaces_are_read_by_character():
    """A sentence in Chinese would otherwise be one word, and what is copied of it no word at all."""
    assert words_of("日本経済 ok") == ["日", "本", "経", "済", "ok"]
    assert words_of("Привет мир") == ["привет", "мир"]
    assert len(words_of("สวัสดี")) > 1


def test_grams_are_all_runs():
    assert list(grams(["a", "b", "c"], 2)) == [("a", "b"), ("b", "c")]
    assert list(grams(["a"], 2)) == []
