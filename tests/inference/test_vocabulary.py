"""Public words and their places: embedded once, kept for the model that embedded them, and never taken from a ruin."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.inference import vocabulary as module
from mechanisms.inference.vocabulary import common_words, in_english, vocabulary
from tests.toy_embedder import ToyEmbedder

WORDS = ("sea", "hill", "sky")


class Counting(ToyEmbedder):
    def __init__(self, dimensions: int = 8, sha256: str = "a" * 64) -> None:
        super().__init__(dimensions)
        self.sha256, self.embedded = sha256, 0

    def embed_together(self, texts):
        self.embedded += len(texts)
        return super().embed_together(texts)


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    """Few words, a cache of their own, and a process that knows none."""
    monkeypatch.setenv("DPICL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "common_words", lambda: WORDS)
    forget(monkeypatch)
    return tmp_path / "cache"


def forget(monkeypatch) -> None:
    monkeypatch.setattr(module, "_known", {})


def test_the_list_is_of_distinct_words_without_names_and_pieces():
    words = common_words()
    assert len(words) == len({*words}) > 16_000
    assert all(word.isalpha() and word == word.lower() and word.isascii() for word in words)


ENGLISH = ["Where is it?", "I cant login to outlook", "My skin is red.", "Refund?", "VPN keeps disconnecting."]
OTHERS = [
    "Der Betrag wurde zweimal abgebucht.",
    "Hallo, ich bin ein Online-Shop und ich möchte gerne wissen, wie ich Ihnen helfen kann.",
    "Bonjour, je n'arrive pas à me connecter à mon compte depuis hier soir.",
    "Quiero devolver este artículo porque no es mi talla.",
    "Non riesco ad accedere al mio conto da ieri sera.",
    "Mijn bestelling is nog niet aangekomen, waar is het pakket?",
    "Jag vill lämna tillbaka den här varan.",
    "注文した品物がまだ届きません。",
]


@pytest.mark.parametrize(
    ("texts", "english"),
    [
        (ENGLISH, True),
        *(([other], False) for other in OTHERS),
        ([OTHERS[0], *ENGLISH], True),
        ([*OTHERS, *ENGLISH], False),
        (["503", "!", ""], True),  # no words: nothing tells against it
        ([], True),
    ],
)
def test_english_is_told_from_other_languages(monkeypatch, texts, english):
    monkeypatch.setattr(module, "common_words", common_words)
    assert in_english(texts) is english


def test_words_are_embedded_once_by_each_model(monkeypatch):
    first, told = Counting(), []
    found = vocabulary(first, told.append)
    assert found.words == WORDS
    assert found.places == pytest.approx(ToyEmbedder(8).embed(WORDS))
    assert told[0] == 0
    assert all(0 <= share < 1 for share in told)
    assert vocabulary(first) is found
    forget(monkeypatch)  # another process
    again = Counting()
    assert np.array_equal(vocabulary(again).places, found.places)
    assert (first.embedded, again.embedded) == (len(WORDS), 0)
    other = Counting(12, "b" * 64)
    assert vocabulary(other).places.shape == (len(WORDS), 12)
    assert other.embedded == len(WORDS)


def test_another_list_is_embedded_anew(monkeypatch):
    vocabulary(Counting())
    monkeypatch.setattr(module, "common_words", lambda: (*WORDS, "rain"))
    more = Counting()
    assert vocabulary(more).words == (*WORDS, "rain")
    assert more.embedded == len(WORDS) + 1


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY", b"PK\x03\x04", b"no array", None, "short", "wide", "not finite"]
)
def test_a_damaged_file_of_the_cache_is_made_anew(content, empty, monkeypatch):
    whole = vocabulary(Counting()).places
    [note] = empty.iterdir()
    if isinstance(content, bytes):
        note.write_bytes(content)
    elif content is None:
        note.write_bytes(note.read_bytes()[:-5])
    else:
        odd = {"short": whole[:-1], "wide": whole.astype(np.float64), "not finite": whole * np.float32(np.nan)}
        np.save(note, odd[content])
    forget(monkeypatch)
    again = Counting()
    assert np.array_equal(vocabulary(again).places, whole)
    assert again.embedded == len(WORDS)
    forget(monkeypatch)
    third = Counting()
    vocabulary(third)
    assert third.embedded == 0, "it is not whole again"


def test_a_cache_that_cannot_be_made_stops_nothing(tmp_path, monkeypatch):
    """A run has been charged by then."""
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("DPICL_CACHE", str(tmp_path / "file" / "cache"))
    assert vocabulary(Counting()).words == WORDS
