"""Membership inference: prompts that hold private rows are found, prompts that do not are not."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from mechanisms.audit.mechanism import AuditProgress
from mechanisms.audit.membership import (
    PROBABILITY,
    REFERENCES,
    RELEASED,
    ROWS,
    WORDS,
    ZERO_SHOT,
    Effort,
    Membership,
    membership,
)
from mechanisms.errors import UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record
from mechanisms.runs.score import ScoredSet
from tests.audit.test_roc import finds_nothing
from tests.toy_model import VOCABULARY, ToyModel

pytestmark = pytest.mark.slow

LABELS = ("red", "blue")
TEMPLATE = PromptTemplate("Sort.", "Note", "Topic")


def data(name: str, rows: int) -> Dataset:
    """Notes that no letter of tells which file they are of."""
    notes = (hashlib.sha256(f"{name} note {i}".encode()).hexdigest()[:20] for i in range(rows))
    return Dataset(name, LABELS, tuple(Record(note, LABELS[i % 2]) for i, note in enumerate(notes)))


class Session:
    """Some texts are easy and some are hard; one that stands in the prompt is somewhat easier than it would be."""

    def __init__(self, prefix, rows, learned: float) -> None:
        self.prefix, self.learned, self.rows = bytes(prefix).decode(), learned, [bytes(row) for row in rows]
        self.texts = [bytes(row).decode().removeprefix("Note: ").removesuffix("\nTopic:") for row in rows]

    def logits(self):
        """What stood in the prompt behind the same letters is somewhat likelier than any other letter."""
        found = np.zeros((len(self.rows), VOCABULARY))
        for logits, row in zip(found, self.rows, strict=True):
            said = row.decode()
            for place in range(len(self.prefix)):
                if self.prefix.startswith(said, place) and place + len(said) < len(self.prefix):
                    logits[ord(self.prefix[place + len(said)])] = self.learned
        return found

    def advance(self, tokens):
        self.rows = [row + bytes([token]) for row, token in zip(self.rows, tokens, strict=True)]

    def keep(self, rows):
        self.rows = [self.rows[i] for i in rows]

    def score(self, continuation):
        label = bytes(continuation).decode()
        return np.array([self._hard(text, label) + self.learned * self._stands(text, label) for text in self.texts])

    def _stands(self, text, label):
        return f"Note: {text}\nTopic:{label}\n" in self.prefix

    def _hard(self, text, label):
        digest = hashlib.sha256(f"{text}{label}".encode()).digest()
        once = hashlib.sha256(f"{text}{label}{self.prefix}".encode()).digest()
        return digest[0] / 64 + once[0] / 640


class Learning(ToyModel):
    def __init__(self, learned: float = 2.0) -> None:
        super().__init__()
        self.learned = learned

    def open(self, prefix, rows, length, room):
        return Session(prefix, rows, self.learned)


PUBLIC = tuple(Demonstration(f"public {i}", LABELS[i % 2]) for i in range(4))
EFFORT = Effort(rows=40, prompts=30)


def attacked(demonstrations=PUBLIC, model=None, private=None, held_out=None, seed=1) -> dict[str, Membership]:
    task = ScoredSet(demonstrations, LABELS, TEMPLATE)
    private, held_out = private or data("private", 100), held_out or data("other", 100)
    told = membership(model or Learning(), task, private, held_out, EFFORT, SeededRandomness(seed))
    return {each.shown: each for each in told if not isinstance(each, AuditProgress)}


def test_real_rows_are_found_and_released_demonstrations_without_any_are_not():
    found = attacked()
    assert list(found) == [ROWS, RELEASED]
    planted, released = found[ROWS].attacks, found[RELEASED].attacks
    assert planted[ZERO_SHOT].area > 0.9
    assert planted[REFERENCES].area > 0.97
    assert planted[REFERENCES].found > 0.5
    assert planted[WORDS].area > 0.97
    assert all(each.interval[0] <= 0.5 for each in released.values())


def test_what_a_row_would_score_anyway_is_what_makes_an_attack_strong():
    planted = attacked()[ROWS].attacks
    assert planted[PROBABILITY].interval[1] < planted[REFERENCES].interval[0]
    assert not finds_nothing(planted[PROBABILITY])


def test_a_set_of_real_rows_is_found():
    private = data("private", 24)
    shown = tuple(Demonstration(row.text, row.label) for row in private.records)
    released = attacked(shown, private=private)[RELEASED].attacks
    assert released[REFERENCES].area > 0.97
    assert released[WORDS].area > 0.97


def test_a_model_that_learns_nothing_gives_nothing_away():
    """Its intervals miss a half about as often as they may."""
    found = [
        attacked(model=Learning(0.0), private=data(f"private {i}", 100), held_out=data(f"other {i}", 100))[ROWS].attacks
        for i in range(12)
    ]
    for name in (PROBABILITY, ZERO_SHOT, REFERENCES, WORDS):
        assert np.mean([each[name].area for each in found]) == pytest.approx(0.5, abs=0.06)
        assert sum(finds_nothing(each[name]) for each in found) >= 9


def test_rows_of_both_files_are_no_strangers():
    """Else what is behind the demonstrations would count as a stranger that was found."""
    private = data("private", 40)
    both = Dataset("other", LABELS, (*data("other", 40).records, *private.records))
    shown = tuple(Demonstration(row.text, row.label) for row in private.records)
    assert attacked(shown, private=private, held_out=both)[RELEASED].attacks[REFERENCES].area > 0.97


def test_labels_alone_tell_nothing():
    """As many of each label on both sides: else a model that likes one label would tell the files apart."""
    red = Dataset("private", LABELS, (*data("private", 60).records, *(Record(f"more {i}", "red") for i in range(60))))
    found = attacked(private=red)[RELEASED].attacks[PROBABILITY]
    assert found.members == found.others == 2 * 30


@pytest.mark.parametrize("rows", [1, 9])
def test_too_few_rows_and_empty_sets_are_refused(rows):
    with pytest.raises(UsageError):
        attacked(held_out=data("other", rows))
    with pytest.raises(UsageError):
        attacked(demonstrations=())
    with pytest.raises(UsageError):
        Effort(prompts=0)
