"""Runs side by side without a browser: what a column holds, which files are refused, and how many there may be."""

from __future__ import annotations

import asyncio
import functools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.budget.compare import LETTERS, SHOWN, CompareState, Comparison, Named, column, score_figure
from dpicl_ui.frame.sessions import Session, Sessions
from dpicl_ui.generate.replay import own_run
from dpicl_ui.generate.state import GenerateState, Run
from mechanisms.accounting import PrivacyLedger
from mechanisms.demos.findings import ArmScore, Score
from mechanisms.errors import UsageError
from mechanisms.records import Demonstration
from mechanisms.rounding import rounded_up
from mechanisms.runs.events import RunCompleted, RunStopped
from mechanisms.runs.run_file import Summary, from_lines, summarised
from tests.runs.runs import KINDS, SECRET, file_of, recorded
from tests.ui.generate.recording import HOSTILE, demo_set, recording
from tests.ui.privacy.test_form import DATASET
from tests.ui.tabs import services, write
from tests.ui.trees import text_of

SESSIONS = Sessions()
BROKEN = '{"format":"dpicl-run/1"}\n{"event":"completed"}\n'


@functools.cache
def built() -> Comparison:
    async def blocks() -> Comparison:
        with gr.Blocks():
            ledgers: Any = SimpleNamespace(of=lambda request: request.ledger)
            return Comparison(services(SESSIONS, ledgers))

    return asyncio.run(blocks())


class Fold:
    """A tab with the fold open."""

    def __init__(self, folder: Path) -> None:
        self.uploads, self.made = folder / "uploads", 0
        self.request: Any = SimpleNamespace(
            session_hash=str(folder), username="", ledger=PrivacyLedger(folder / "ledger")
        )
        self.session: Session = SESSIONS.of(self.request)

    def upload(self, text: str | bytes, name: str = "run.jsonl") -> str:
        self.made += 1
        path = self.uploads / str(self.made) / name
        path.parent.mkdir(parents=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def load(self, *uploads: str) -> dict[Any, Any]:
        return list(built()._load([*uploads], self.request))[-1]

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.session.of(CompareState).runs]


@pytest.fixture
def fold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fold:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    return Fold(tmp_path)


def open_places(shown: dict[Any, Any]) -> str:
    places = zip(LETTERS, built()._places, strict=True)
    return "".join(letter for letter, place in places if shown[place].visible is True)


def lines(shown: dict[Any, Any]) -> list[str]:
    return [text_of(each) for each in shown[built().notice]]


def of(kind: str) -> Summary:
    return summarised(from_lines(file_of(kind)))


def scored(kind: str, accuracy: float, interval: tuple[float, float]) -> Summary:
    run = of(kind)
    return replace(run, made=replace(run.made, score=Score({"demonstrations": ArmScore(accuracy, interval)}, True)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_says_what_the_file_holds(kind: str):
    run = of(kind)
    shown, claim = text_of(column("A", Named("a file", run))), run.made.certificate.claim
    assert rounded_up(claim.epsilon, 4) in shown
    assert f"at delta {rounded_up(claim.delta, 2)}" in shown
    assert run.made.model_id in shown
    assert "one row" in shown
    assert all(each.text in shown for each in run.made.demonstrations)
    assert SECRET not in shown
    assert ("Marked" in shown) == bool(run.made.certificate.disclosures)
    stopped = text_of(column("A", Named("a file", replace(run, stopped=True))))
    assert ["; stopped" in words and "charged at most" in words for words in (shown, stopped)] == [False, True]


def test_each_column_has_the_same_lines_in_the_same_order():
    def names(tree: Any) -> list[str]:
        found = [text_of(tree)] if isinstance(tree, dict) and tree["tag"] == "dt" else []
        inner = tree["children"] if isinstance(tree, dict) else []
        return found + [name for child in inner for name in names(child)]

    votes = "Noise on a draft's votes"
    said = {kind: [name for tree in column("A", Named("", of(kind))) for name in names(tree)] for kind in KINDS}
    assert said["vote"] == said["both"]
    assert [name for name in said["both"] if name != votes] == said["tokens"]


def test_an_interval_that_says_nothing_is_not_given_as_a_score():
    wide = text_of(column("A", Named("", scored("vote", 0.5, (0.0, 1.0)))))
    assert "too few rows" in wide
    assert "of 100" not in wide
    assert "71 to 78 of 100" in text_of(column("A", Named("", scored("vote", 0.75, (0.71, 0.78)))))
    assert "not measured" in text_of(column("A", Named("", of("tokens"))))


def test_a_long_set_is_cut_and_says_so():
    run = of("tokens")
    many = tuple(Demonstration(f"text {i}.", "a") for i in range(SHOWN + 7))
    shown = text_of(column("A", Named("", replace(run, made=replace(run.made, demonstrations=many)))))
    assert f"text {SHOWN - 1}." in shown
    assert f"text {SHOWN}." not in shown
    assert "7 more" in shown


def test_several_files_at_once_and_the_bad_ones_in_a_line_each(fold: Fold):
    good = [fold.upload(file_of(kind), f"{kind}.jsonl") for kind in ("tokens", "vote")]
    bad = [fold.upload(BROKEN, "broken.jsonl"), fold.upload(b"\xff\xfe", "bytes.jsonl"), str(fold.uploads / "gone")]
    shown = fold.load(bad[0], good[0], bad[1], good[1], bad[2])
    assert fold.names == ["tokens.jsonl", "vote.jsonl"]
    assert open_places(shown) == "AB"
    said = lines(shown)
    assert [line.split(":")[0] for line in said] == ["broken.jsonl", "bytes.jsonl", "gone"]
    assert not any("\n" in line for line in said)
    assert [path for path in fold.uploads.rglob("*") if path.is_file()] == []
    assert text_of(shown[built()._panels[1]]) == text_of(column("B", Named("vote.jsonl", of("vote"))))


def test_a_file_that_is_refused_leaves_the_others(fold: Fold):
    fold.load(fold.upload(file_of("tokens"), "first"))
    shown = fold.load(fold.upload(file_of("tokens").replace('"step":1', '"step":7', 1), "second"))
    assert fold.names == ["first"]
    assert open_places(shown) == "A"
    assert "out of its turn" in lines(shown)[0]


def test_no_run_stands_twice_and_no_fifth_one_is_read(fold: Fold, monkeypatch: pytest.MonkeyPatch):
    texts = [file_of("both"), *(other_time(file_of("vote"), minute) for minute in range(len(LETTERS)))]
    assert "already" in lines(fold.load(*map(fold.upload, (texts[0], texts[0]))))[0]
    shown = fold.load(*map(fold.upload, texts[1:]))
    assert open_places(shown) == LETTERS
    assert lines(shown) == [f"run.jsonl: {len(LETTERS)} runs stand here: remove one first."]
    monkeypatch.setattr("dpicl_ui.budget.compare.from_lines", lambda _: pytest.fail("read for nothing"))
    fold.load(fold.upload(BROKEN))
    assert [path for path in fold.uploads.rglob("*") if path.is_file()] == []


def other_time(text: str, minute: int) -> str:
    head, rest = text.split("\n", 1)
    document = json.loads(head)
    document["demo_set"]["created"] = f"2026-01-01T00:{minute:02}:00+00:00"
    return f"{json.dumps(document)}\n{rest}"


def test_a_removed_run_makes_room_and_the_others_move_up(fold: Fold):
    fold.load(*(fold.upload(file_of(kind), kind) for kind in KINDS))
    shown = built()._remover(1)(fold.request)
    assert fold.names == [KINDS[0], KINDS[2]]
    assert open_places(shown) == "AB"
    assert KINDS[2] in text_of(shown[built()._panels[1]])
    assert open_places(built()._remover(3)(fold.request)) == "AB"  # a click that came late
    fold.load(fold.upload(file_of(KINDS[1]), "again"))
    assert fold.names[-1] == "again"


def test_what_a_file_says_is_text(fold: Fold):
    """Every word of it is a text node: no tag, class or attribute has any."""

    def marks(tree: Any) -> list[str]:
        if isinstance(tree, str):
            return []
        inner = [mark for child in tree["children"] for mark in marks(child)]
        return [tree["tag"], tree.get("class", ""), *tree.get("attributes", {}).values(), *inner]

    run = summarised(recording())
    made = replace(run.made, model_id=HOSTILE, demonstrations=(Demonstration(HOSTILE, "News"),))
    trees = column("A", Named(HOSTILE, replace(run, made=made)))
    assert text_of(trees).count(HOSTILE) == 3
    assert not any("alert" in mark for tree in trees for mark in marks(tree))


def finish(fold: Fold, events: Any) -> None:
    state = fold.session.of(GenerateState)
    state.written = state.run = Run(recording=[*events])
    state.run.ended.set()
    write(fold.session, events[-1].demo_set, DATASET)


def test_the_tabs_own_run_stands_here_as_its_file_would(fold: Fold):
    finish(fold, recorded("tokens"))
    shown = built()._add_own(fold.request)
    assert open_places(shown) == "A"
    assert fold.session.of(CompareState).runs[0].run == of("tokens")
    fold.session.of(GenerateState).look()  # a saved run on the screen of step 3 is not this tab's
    with pytest.raises(UsageError, match="already"):
        built()._add_own(fold.request)


def test_a_run_that_left_nothing_is_not_taken_for_the_one_before(fold: Fold):
    with pytest.raises(UsageError, match="No run of this tab"):
        own_run(fold.session, fold.request.ledger)
    finish(fold, recording())
    state = fold.session.of(GenerateState)
    for events in ([], recording()[:3], [*recording()[:2], RunStopped(demo_set())]):
        state.written = Run(recording=events)
        with pytest.raises(UsageError, match="No run of this tab"):
            own_run(fold.session, fold.request.ledger)


def test_a_run_without_privacy_stays_out(fold: Fold):
    *events, end = recording()
    certificate = replace(end.demo_set.certificate, private=False, reason="no noise")
    made = replace(end.demo_set, certificate=certificate)
    finish(fold, [*events, RunCompleted(made, None)])
    with pytest.raises(UsageError, match="not private"):
        built()._add_own(fold.request)


def test_the_figure_has_each_score_with_its_interval():
    runs = {"A": scored("vote", 0.7, (0.6, 0.75)), "B": of("tokens"), "D": scored("both", 0.9, (0.8, 1.0))}
    traces = score_figure(runs).data
    assert [trace.text[0] for trace in traces] == ["A", "D"]
    for trace, run in zip(traces, (runs["A"], runs["D"]), strict=True):
        assert trace.x[0] == run.made.certificate.claim.epsilon
        low, high = trace.y[0] - trace.error_y.arrayminus[0], trace.y[0] + trace.error_y.array[0]
        assert (low, high) == pytest.approx(run.score.interval)
    assert len({(trace.marker.color, trace.error_y.width) for trace in traces}) == 2


@pytest.mark.parametrize("others", [(), ("not measured",), ("too few rows",)])
def test_one_score_alone_is_no_comparison(others: tuple[str, ...]):
    beside = {"not measured": of("tokens"), "too few rows": scored("both", 0.5, (0.0, 1.0))}
    runs = {"A": scored("vote", 0.7, (0.65, 0.75))} | {name: beside[name] for name in others}
    assert score_figure(runs) is None
    assert score_figure(runs | {"B": scored("both", 0.7, (0.65, 0.75))}) is not None


def test_a_figure_repeats_no_word_of_a_file():
    runs = {letter: scored("vote", 0.7, (0.65, 0.75)) for letter in "AB"}
    hostile = {letter: replace(run, made=replace(run.made, model_id=HOSTILE)) for letter, run in runs.items()}
    assert "alert" not in score_figure(hostile).to_json()
