"""Sessions of questions: every mechanism and retrieval, with more questions than a unit can pay for."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.answers import session
from mechanisms.answers.plan import AnswerPlan, plan_answers
from mechanisms.answers.session import SearchableUnits
from mechanisms.answers.spec import AnswerSpec
from mechanisms.evaluation.classifier import CONTENT_FREE
from mechanisms.queries import Retrieval, query_mechanism_class, query_mechanism_names
from mechanisms.records import Dataset, Record
from tests.replay.contract import EXTREMES, replayed
from tests.replay.tape import Extreme, Shape
from tests.replay.world import OTHER, UNIT
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

pytestmark = pytest.mark.usefixtures("one_key", "quick_claims")

LABELS, OTHERS, QUESTIONS = ("a", "b"), 8, 3
QUESTION, WORDS, OWN_WORDS = "asked", "kwyz", "bbbb"
SURE, NOTHING = 60.0, CONTENT_FREE[0]


class Swayed:
    """A shard that has the unit among its examples answers otherwise than all others do."""

    def __init__(self, rows) -> None:
        self.rows = [bytes(row).decode("ascii", "replace") for row in rows]
        self.steps = 0

    def score(self, continuation):
        label = bytes(continuation).decode().strip()
        wanted = ["b" if UNIT in row else "a" for row in self.rows]
        return np.array(
            [SURE * (own == label and NOTHING not in row) for own, row in zip(wanted, self.rows, strict=True)]
        )

    def logits(self, columns=None, rows=slice(None)):
        said = [OWN_WORDS if UNIT in row else WORDS for row in self.rows]
        return np.stack([9.0 * np.eye(128)[ord(words[self.steps % 4])] for words in said])

    def advance(self, tokens) -> None:
        self.steps += 1


class Model(ToyModel):
    def __init__(self, tape) -> None:
        super().__init__()
        self.tape = tape

    def open(self, prefix, rows, length, room):
        self.tape.add(Shape(len(rows), length, room, tuple(prefix)))
        return Swayed(rows)


def request_of(own, retrieval: Retrieval, shards: int, by_user: bool) -> AnswerPlan:
    spec = AnswerSpec.of(
        instruction="Classify.",
        text_field="T",
        label_field="L",
        **own,
        epsilon=4.0,
        delta=1e-5,
        queries=QUESTIONS,
        retrieval=retrieval,
        rate=0.5 if retrieval is Retrieval.POISSON else None,
        threshold=-1.0,
        shards=shards,
        neighbours=16 if retrieval is Retrieval.POISSON else 1,
        max_record_tokens=12,
        answer_tokens=4,
        max_query_tokens=12,
    )
    return plan_answers(spec, () if spec.made_mechanism.open_answers else LABELS, by_user)


def release(wanted: AnswerPlan, folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A session with two questions more than anybody pays for, or with all that there are."""
    folders, reserve = (folder / str(i) for i in itertools.count()), session.reserve

    def run(data, tape):
        def reserved(ledger, reservation, anew):
            for name, events in reservation.event:
                tape.charge(name, events)
            return reserve(ledger, reservation, anew)

        monkeypatch.setattr(session, "reserve", reserved)
        ledger = PrivacyLedger(next(folders))
        ledger.set_cap(data.name, data.unit, Cap(1e9, 0.1))
        asked = session.open_session(data, wanted, ToyEmbedder(), Model(tape), ledger, tape)
        for _ in range(QUESTIONS + 2 * (wanted.rate is None)):
            tape.tell(asked.ask(QUESTION))

    return run


def pair_of(wanted: AnswerPlan, by_user: bool):
    """Neighbours whose unit is nearest to the question, and the last in the order of digests, as of positions."""
    labels, column = wanted.labels or ("q",), "who" if by_user else None
    rows = [Record(f"{OTHER} {i}", labels[0], f"user {i}" if by_user else None) for i in range(OTHERS)]
    other = Dataset("d", labels, tuple(rows), column)
    for i in itertools.count():
        mine = [Record(f"{UNIT} {QUESTION} {i} {k}", labels[-1], f"me {i}" if by_user else None) for k in range(2)]
        one = Dataset("d", labels, (*rows, *mine[: 1 + by_user]), column)
        digests = [SearchableUnits(each, wanted, ToyEmbedder()).digests for each in (one, other)]
        if digests[0][: len(digests[1])] == digests[1]:
            return one, other
    raise AssertionError


ONE_SHARD = (None, Extreme(-1))
"""A test that passes where one shard stands alone, as with noise that is far out, is what delta pays for."""
MECHANISMS = {
    **{name: {"mechanism": name} for name in query_mechanism_names() if not query_mechanism_class(name).open_answers},
    "keywords": {"mechanism": "keywords", "parameters": {"fewest-keywords": 2, "most-keywords": 4}},
    "keywords of a fixed number": {"mechanism": "keywords", "parameters": {"fewest-keywords": 4, "most-keywords": 4}},
}


@pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
@pytest.mark.parametrize("shards", [1, 16])
@pytest.mark.parametrize("retrieval", list(Retrieval))
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_unit_costs_what_was_reserved_and_not_much_less(name, retrieval, shards, by_user, tmp_path, monkeypatch):
    own = MECHANISMS[name]
    open_answers = query_mechanism_class(own["mechanism"]).open_answers
    if open_answers and retrieval is Retrieval.LABELS_ONLY:
        return
    wanted = request_of(own, retrieval, shards, by_user)
    alone = open_answers and shards == 1
    found = replayed(
        release(wanted, tmp_path, monkeypatch),
        *pair_of(wanted, by_user),
        joins=frozenset({OTHERS}),
        sources=ONE_SHARD if alone else EXTREMES,
    )
    assert found.allowed
    assert found.noise > (-1 if alone else 0.3 if open_answers else 0.95)
    assert (found.rate == pytest.approx(1)) == (retrieval is Retrieval.POISSON)
