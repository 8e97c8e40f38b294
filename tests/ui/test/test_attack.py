"""The attack of step 4 without a browser: who may see it, what it marks, and what it says."""

from __future__ import annotations

import asyncio
import functools
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
import numpy as np
import pytest

from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Sessions
from dpicl_ui.test.attack import AttackOffer, effort, findings, roc_figure
from dpicl_ui.test.state import TestState
from mechanisms.accounting import Claim, PrivacyLedger, fingerprint
from mechanisms.audit.membership import PROBABILITY, REFERENCES, WORDS, ZERO_SHOT, Roc, roc
from mechanisms.data.sizes import ATTACKED
from mechanisms.data.sources import read_table
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.records import RECORD, Dataset, Demonstration, Record
from tests.audit.test_membership import Learning
from tests.audit.test_membership import Session as Reading
from tests.ui.generate.recording import HOSTILE, LABELS, demo_set
from tests.ui.tabs import confirm, services, write
from tests.ui.trees import text_of

SET = demo_set(Demonstration("written", LABELS[0]), Demonstration("another", LABELS[1]))
SESSIONS = Sessions()


def dataset(name: str, count: int = 80) -> Dataset:
    return Dataset(name, LABELS, tuple(Record(f"{name} {i}", LABELS[i % 2]) for i in range(count)))


LETTERS = dataset("letters")


class Reader(Learning):
    """Finds a text that stands in the prompt, in the words of this task."""

    def open(self, prefix, rows, length, room):
        words = bytes(prefix).replace(b"Text:", b"Note:")
        return Reading(words, [bytes(row).replace(b"Text:", b"Note:") for row in rows], self.learned)


@functools.cache
def built() -> AttackOffer:
    """The card with a toy model; each request brings its ledger along."""

    async def blocks() -> AttackOffer:
        with gr.Blocks():
            ledgers: Any = SimpleNamespace(of=lambda request: request.ledger)
            measurement: Any = SimpleNamespace(text=gr.Dropdown(), label=gr.Dropdown())
            loader = cast(ModelLoader, SimpleNamespace(model=Reader))
            return AttackOffer(services(SESSIONS, ledgers, loader), measurement)

    return asyncio.run(blocks())


class Place:
    """The handlers of the card in a tab of its own: a set is written, and a test file is there."""

    def __init__(self, folder: Path, demo_set: DemoSet = SET) -> None:
        self.ledger, self.offer = PrivacyLedger(folder), built()
        self.request: Any = SimpleNamespace(session_hash=str(folder), username=None, ledger=self.ledger)
        self.session = SESSIONS.of(self.request)
        confirm(self.session, LETTERS)
        write(self.session, demo_set, LETTERS)
        # As long as the letters, so that nothing tells them apart, not even how a sum over their tokens is rounded.
        lines = [f"strange {i},{LABELS[i % 2]}" for i in range(80)]
        (folder / "test.csv").write_text("\n".join(["text,label", *lines]), encoding="utf-8")
        self.state.table = read_table(folder / "test.csv")

    @property
    def state(self) -> TestState:
        return self.session.of(TestState)

    @property
    def disclosures(self) -> tuple[str, ...]:
        return self.ledger.rows.disclosures(fingerprint(LETTERS))

    def press(self, agreed: bool = True) -> Iterator[dict[Any, Any]]:
        return self.offer._attack("text", "label", agreed, self.request)

    def result(self) -> str:
        shown = [each[self.offer.result] for each in self.press() if each.get(self.offer.result)]
        return " ".join(text_of(shown[-1]).split())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_nothing_is_read_marked_or_shown_unasked(place: Place):
    with pytest.raises(UsageError, match="Tick the box"):
        list(place.press(agreed=False))
    assert place.disclosures == ()


def test_the_rows_are_marked_before_anything_is_shown(place: Place):
    for shown in place.press():
        if place.disclosures == ():
            assert not shown.get(place.offer.result)
            assert shown.get(place.offer.plot) is None
    assert place.disclosures == (ATTACKED,)
    assert SET.with_disclosures(place.disclosures).certificate.disclosures == (ATTACKED,)


def test_rows_that_others_are_compared_with_are_marked_too(place: Place):
    elsewhere = fingerprint(Dataset("elsewhere", LABELS, (Record("strange 3", LABELS[1]),)))
    list(place.press())
    assert place.ledger.rows.disclosures(elsewhere) == (ATTACKED,)
    assert place.ledger.rows.names_that_share(elsewhere.rows) == []  # a test file is no data set of the ledger


def test_real_rows_are_found_and_a_set_without_any_is_not(place: Place, tmp_path: Path):
    words = place.result()
    assert "not distinguishable from guessing" in words
    assert "does not find even your real rows" not in words
    leaky = demo_set(*(Demonstration(row.text, row.label) for row in LETTERS.records))
    (tmp_path / "leaky").mkdir()
    assert "better than the claim allows" in Place(tmp_path / "leaky", leaky).result()


@pytest.mark.parametrize("missing", ["data", "file", "set", "other data"])
def test_what_is_missing_is_said_in_one_line(tmp_path: Path, missing: str):
    place = Place(tmp_path, demo_set() if missing == "set" else SET)
    if missing == "file":
        place.state.table = None
    if missing == "other data":
        confirm(place.session, dataset("others"))
    if missing == "data":
        place.session = SESSIONS.of(request := SimpleNamespace(session_hash="bare", username=None, ledger=place.ledger))
        place.request = request
        place.state.load(SET)
    expected = {"data": "step 1", "file": "test file", "set": "nothing to attack", "other data": "not written from"}
    with pytest.raises(UsageError, match=expected[missing]) as refused:
        list(place.press())
    assert "\n" not in str(refused.value)
    assert place.disclosures == ()


def test_a_stop_before_it_begins_marks_nothing_and_later_ends_it(place: Place):
    attack = place.press()
    next(attack)
    place.offer.job.halt(place.request)
    with pytest.raises(UsageError, match="nothing was marked"):
        list(attack)
    assert place.disclosures == ()
    attack = place.press()
    next(attack), next(attack)
    place.offer.job.halt(place.request)
    with pytest.raises(UsageError, match="mark on these rows stays"):
        list(attack)
    assert place.disclosures == (ATTACKED,)


def test_a_closed_tab_ends_it(place: Place):
    attack = place.press()
    next(attack), next(attack)
    SESSIONS.drop(place.request)
    with pytest.raises(UsageError, match="Stopped"):
        list(attack)


def test_figures_of_a_set_that_is_under_test_no_more_are_not_shown(place: Place):
    attack = place.press()
    next(attack), next(attack)
    place.state.load(demo_set(Demonstration("loaded", LABELS[0])))
    with pytest.raises(UsageError, match="Another set"):
        list(attack)


def test_a_loaded_set_is_attacked_on_trust_and_says_so(place: Place):
    assert "on trust" not in place.result()
    place.state.load(replace(SET))
    assert "on trust" in place.result()


def test_about_as_many_rows_are_asked_about_whatever_the_labels():
    for labels in (2, 3, 4, 14):
        tried = effort(labels)
        assert 40 <= tried.rows * labels <= 48
        assert tried.prompts == tried.rows
    assert effort(500).rows == 1


def found(shift: float, rows: int = 400) -> dict[str, Roc]:
    places = np.arange(rows) / rows
    return dict.fromkeys((PROBABILITY, ZERO_SHOT, REFERENCES, WORDS), roc(places + shift, places))


def claim(epsilon: float) -> Claim:
    return Claim(epsilon, 1e-5, "pld", epsilon, "prv")


@pytest.mark.parametrize(
    ("shift", "epsilon", "said"),
    [(0.0, 1.0, "not distinguishable from guessing"), (-0.5, 1.0, "worse than guessing"), (0.15, 2.0, "is not above"),
     (0.9, 1.0, "better than the claim allows"), (0.9, math.inf, "better than guessing")],
)  # fmt: skip
def test_the_verdict_follows_the_interval_and_the_claim(shift: float, epsilon: float, said: str):
    held = claim(epsilon) if math.isfinite(epsilon) else None
    words = text_of(findings(found(shift), found(0.9), held, RECORD))
    assert said in words
    assert ("promises at most" in words) == ("allows" in words) == (held is not None)


def test_what_guessing_and_the_claim_would_reach_stands_beside_the_figure():
    words = " ".join(text_of(findings(found(0.0), found(0.9), claim(1.0), RECORD)).split())
    assert "picks yours in 50 of 100 cases" in words
    assert "promises at most 73." in words  # e / (1 + e)
    assert "Only on your screen" in words


def test_an_attack_that_finds_not_even_the_leak_says_little():
    assert "does not find even" in text_of(findings(found(0.0), found(0.0), claim(1.0), RECORD))
    assert "does not find even" not in text_of(findings(found(0.0), found(0.9), claim(1.0), RECORD))


def test_a_columns_name_stays_text():
    """Names of columns are the only words of the owner's; the browser gets them as text of a tree, never as HTML."""
    tree = findings(found(0.0), found(0.9), claim(1.0), f"user:{HOSTILE}")
    assert HOSTILE in text_of(tree)
    assert HOSTILE not in json.dumps(roc_figure(found(0.0)[WORDS], found(0.9)[WORDS], None).to_dict(), default=str)


def test_the_drawn_curves_are_the_measured_ones_under_the_bound():
    own, planted = found(0.1)[WORDS], found(0.9)[WORDS]
    traces = {trace.name: (trace.x, trace.y) for trace in roc_figure(own, planted, claim(1.0)).data}
    areas = {name: np.trapezoid(y, x) for name, (x, y) in traces.items()}
    assert areas["your demonstrations"] == pytest.approx(own.area)
    assert areas["your real rows instead"] == pytest.approx(planted.area)
    assert areas["the most that the claim allows"] == pytest.approx(math.e / (1 + math.e), abs=1e-4)
    assert areas["guessing blindly"] == 0.5
    assert "the most that the claim allows" not in {trace.name for trace in roc_figure(own, planted, None).data}
