"""A run that was cut off is resumed from what it told: nothing is charged twice, and nothing is drawn twice."""

from __future__ import annotations

import itertools
import json
import shutil
import stat
from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest

from mechanisms.accounting import Cap, PrivacyLedger, fingerprint
from mechanisms.accounting import ledger as ledger_module
from mechanisms.data.sizes import measure_sizes
from mechanisms.errors import BudgetRefused, StudioError, TooLong, UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.records import Record
from mechanisms.runs import run_file
from mechanisms.runs.events import (
    DemoCompleted,
    DemoCutOff,
    DemoRefused,
    DemoStarted,
    RunCompleted,
    RunEvent,
    StageProgress,
    StageStarted,
    TokenReleased,
)
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.plan import plan_for
from mechanisms.runs.roles import divide
from mechanisms.runs.run import run
from mechanisms.runs.run_file import from_lines, line_of
from mechanisms.runs.spec import CALIBRATE, SCORE
from mechanisms.runs.stages.vote import VotesReleased
from mechanisms.runs.stages.write import Writer
from mechanisms.runs.text import Gate
from mechanisms.runs.verification import verify
from tests.runs.running import CAP, KINDS, Embedding, Log, Reading, asked_for, data, ledger, rows, secrets, spec

FILE = "run.dpicl.jsonl"


def begun(kind: str, journal: RunJournal | None, ledger: PrivacyLedger | None = None, over=None):
    private, plan = over or asked_for(kind)
    ledger = ledger or PrivacyLedger()
    ledger.set_cap("d", "record", CAP)
    return run(plan, private, Reading(), ledger, journal=journal, embedder=Embedding())


def cut_off(kind: str, path: Path, wanted) -> list[RunEvent]:
    """A run's events until the first that is `wanted`, where it is cut off."""
    told = []
    journal = RunJournal.new(path)
    with closing(begun(kind, journal)) as events:
        for event in events:
            told.append(event)
            if wanted(event):
                break
    journal.close()
    return told


def resumed(kind: str, path: Path, **rest) -> list[RunEvent]:
    """All events of a run that goes on, after which its file is a run file."""
    with closing(journal_at(path)) as journal:
        told = list(begun(kind, journal, **rest))
        journal.end(told[-1], PrivacyLedger())
    return told


def journal_at(path: Path) -> RunJournal:
    return RunJournal.read(path, PrivacyLedger())


def charges() -> Counter:
    with PrivacyLedger().transaction() as database:
        return Counter(database.execute("SELECT list, event FROM charges"))


def kept() -> list[str]:
    with PrivacyLedger().transaction() as database:
        return [told for (told,) in database.execute("SELECT told FROM released WHERE told <> ''")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_wherever_a_run_is_cut_off_it_ends_well_and_costs_what_one_run_costs(kind, data_folder, monkeypatch):
    whole = [event for event in begun(kind, None) if not isinstance(event, StageProgress)]
    once = charges()
    assert once
    counted = PrivacyLedger().snapshot(asked_for(kind)[0].name, "record").epsilon
    places = sorted({*range(2, len(whole), max(1, len(whole) // 8)), len(whole) - 2})
    for place in places:
        home = data_folder / str(place)
        monkeypatch.setenv("DPICL_HOME", str(home))
        left = itertools.count()
        before = cut_off(kind, data_folder / FILE, lambda event: next(left) >= place)  # noqa: B023
        lines = [line for event in before if (line := line_of(event))]
        after = resumed(kind, data_folder / FILE)
        assert charges() == once, "charged twice, or not at all"
        assert PrivacyLedger().snapshot(asked_for(kind)[0].name, "record").epsilon == pytest.approx(counted)
        written = (data_folder / FILE).read_text().splitlines()
        assert written[1 : 1 + len(lines)] == lines, "what was told is told otherwise"
        told = from_lines((data_folder / FILE).read_text())
        assert isinstance(after[-1], RunCompleted)
        assert told[-1].demo_set.demonstrations == after[-1].demo_set.demonstrations
        assert verify(after[-1].demo_set).problems == ()
        assert not secrets(written), "private text"
        assert kept() == [], "a text that its file holds by now"
        (data_folder / FILE).unlink()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_that_is_gone_on_with_once_more_lets_nothing_out_again(kind, tmp_path):
    standing = DemoCompleted if "vote" not in asked_for(kind)[1].stages else VotesReleased
    cut_off(kind, tmp_path / FILE, lambda event: isinstance(event, standing))
    shutil.copy(tmp_path / FILE, tmp_path / "copy")
    older = [sealed.partition(" ")[2] for sealed in (tmp_path / "copy").read_text().splitlines()[1:]]
    resumed(kind, tmp_path / FILE)
    paid = charges()
    private = ("token", "openings", "votes", "priors", "score")
    with closing(journal_at(tmp_path / "copy")) as journal:
        events = begun(kind, journal)
        if kind == "alone":
            again = list(events)
            assert any(isinstance(event, DemoCutOff) and not event.finished for event in again)
        else:
            with pytest.raises(StudioError, match="not drawn twice"):
                again = list(events)
    now = [sealed.partition(" ")[2] for sealed in (tmp_path / "copy").read_text().splitlines()[1:]]
    first = (tmp_path / FILE).read_text().splitlines()[1:]
    assert [each for each in now if json.loads(each)["event"] in private and each not in first] == []
    assert now[: len(older)] == older
    assert charges() == paid


@pytest.mark.slow
def test_a_run_that_is_too_long_for_a_run_file_is_gone_on_with_all_the_same(tmp_path, monkeypatch):
    for name, most in (("LARGEST", 100), ("MOST_LINES", 3)):
        monkeypatch.setattr(run_file, name, most)
    cut_off("alone", tmp_path / FILE, lambda event: isinstance(event, DemoStarted) and event.number == 2)
    with pytest.raises(TooLong, match="too long for a run file"):
        resumed("alone", tmp_path / FILE)
    paid, whole = charges(), (tmp_path / FILE).read_bytes()
    assert PrivacyLedger().newest(run_file.key_in(whole.decode().split("\n")[0])) == ""  # it is in the file
    with closing(journal_at(tmp_path / FILE)) as journal:  # nothing is lost: it tells the same once more
        again = list(begun("alone", journal))
    assert len(again[-1].demo_set.demonstrations) == 4
    assert (charges(), (tmp_path / FILE).read_bytes()) == (paid, whole)


@pytest.mark.slow
def test_other_data_settings_models_and_ledgers_are_refused(tmp_path, monkeypatch):
    cut_off("alone", tmp_path / FILE, lambda event: isinstance(event, TokenReleased))
    private, wanted = asked_for("alone")
    content = (tmp_path / FILE).read_bytes()

    def refused(match: str, over=None) -> None:
        with (
            pytest.raises(UsageError, match=match) as error,
            closing(journal_at(tmp_path / FILE)) as journal,
            closing(begun("alone", journal, over=over)) as events,
        ):
            list(events)
        assert str(error.value).isprintable()
        assert (tmp_path / FILE).read_bytes() == content

    for setting, value in (("written", 1), ("candidates", 7), ("relation", "on")):
        refused("not those for which", (private, replace(wanted, spec=wanted.spec.with_(**{setting: value}))))
    other = replace(private, records=(*private.records[1:], Record("something new", private.records[0].label)))
    refused("planned for another|other data", (other, wanted))
    renamed = replace(private, name="another")
    refused("other data", (renamed, wanted.for_content(fingerprint(renamed).content)))
    monkeypatch.setattr(Reading, "sha256", "1" * 64)
    refused("not those for which")
    monkeypatch.undo()
    monkeypatch.setenv("DPICL_HOME", str(tmp_path / "elsewhere"))
    refused("no such run", (private, wanted.for_content(fingerprint(private).content)))


def edited(path: Path, **edits) -> None:
    """Edit parameters in the first line of a run's file, and what its certificate derives from them."""
    head, *lines = path.read_text().split("\n")
    document = json.loads(head)
    privacy = document["demo_set"]["privacy"]
    for name, value in edits.items():
        privacy["parameters"][name] = {**privacy["parameters"][name], **value}
    if shares := edits.get("shares"):
        for stage in document["demo_set"]["stages"]:
            stage["role"] = shares.get(stage["name"], stage["role"])
    if measured := edits.get("measured"):
        for events in privacy["event"]["lists"].values():
            events[0]["epsilon"] = measured["epsilon"]
    path.write_text("\n".join([json.dumps(document, ensure_ascii=False), *lines]))


def measured_and_voted():
    """A vote by roles on measured sizes: its certificate states an epsilon and shares that its charges do not show."""
    records = data(rows(60))
    sizes = measure_sizes(records, 1.5, 1e-5, ledger())
    return records, plan_for(spec("vote", "roles", epsilon=4.0), records, sizes)


@pytest.mark.parametrize("edits", [{"measured": {"epsilon": 0.001}}, {"shares": {"vote": 0.01}}], ids=str)
@pytest.mark.parametrize("where", ["file", "ledger"])
def test_an_edited_plan_is_refused_wherever_it_was_edited(where, edits, tmp_path, monkeypatch):
    """With another measurement, or other roles, a run would claim less than it cost."""
    records, wanted = measured_and_voted()
    path = tmp_path / FILE
    with closing(RunJournal.new(path)) as journal, closing(begun("vote", journal, over=(records, wanted))) as events:
        while not isinstance(next(events), StageStarted):
            pass
    whole = path.read_text()
    edited(path, **edits)
    head = path.read_text().split("\n")[0]
    with monkeypatch.context() as patched:
        if where == "ledger":
            patched.setattr(PrivacyLedger, "reserved_document", lambda *_: head)
        with (
            pytest.raises(UsageError, match="edited" if where == "file" else "not those for|certificate is wrong"),
            closing(journal_at(path)) as journal,
            closing(begun("vote", journal, over=(records, journal.plan(wanted.content)))) as events,
        ):
            list(events)
    path.write_text(whole)
    with closing(journal_at(path)) as journal:
        plan = journal.plan(wanted.content)
        *_, ended = begun("vote", journal, over=(records, plan))
    assert (plan.measured, plan.parameters()) == (wanted.measured, wanted.parameters())
    assert verify(ended.demo_set).problems == ()


@pytest.mark.slow
def test_a_run_at_work_is_not_taken_over_and_one_that_was_lets_nothing_more_out(tmp_path, monkeypatch):
    first = RunJournal.new(tmp_path / FILE)
    events = begun("alone", first)
    while not isinstance(next(events), DemoStarted):
        pass
    with closing(journal_at(tmp_path / FILE)) as second, pytest.raises(UsageError, match="still active"):
        list(begun("alone", second))
    monkeypatch.setattr(ledger_module, "_is_alive", lambda holder: False)
    with closing(journal_at(tmp_path / FILE)) as second:
        assert isinstance(list(begun("alone", second))[-1], RunCompleted)
    with pytest.raises(StudioError, match="not drawn twice"):
        list(events)
    first.close()


@pytest.mark.slow
def test_a_torn_line_is_left_out_and_a_wrong_one_is_named(tmp_path):
    cut_off("alone", tmp_path / FILE, lambda event: isinstance(event, DemoCompleted))
    whole = (tmp_path / FILE).read_bytes()
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    lines = whole.splitlines(keepends=True)
    for wrong, match in (
        (b"".join([*lines[:2], b"{}\n", *lines[2:]]), "Line 3"),
        (b"".join([*lines[:2], *lines[3:]]), "Line 3"),
        (b"".join([*lines[:2], lines[3], lines[2], *lines[4:]]), "Line 3"),
        (whole.replace(b'"chosen":', b'"chosen": '), "Line 5"),
        (b"".join(lines[1:]), "line 1"),
        (b"", "line 1"),
        (whole.replace(b'"unfinished"', b'"finished"'), "has ended"),
        (b"\xff\n", "not text"),
    ):
        (tmp_path / FILE).write_bytes(wrong)
        with pytest.raises(UsageError, match=match):
            journal_at(tmp_path / FILE)
    (tmp_path / FILE).write_bytes(whole[:-9])
    assert isinstance(resumed("alone", tmp_path / FILE)[-1], RunCompleted)
    with pytest.raises(UsageError, match="has ended"):
        journal_at(tmp_path / FILE)
    with pytest.raises(UsageError, match="there already"):
        RunJournal.new(tmp_path / FILE)


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["\u2028", "\x85", "\x0b"])
def test_what_the_ledger_noted_last_is_taken_up_whatever_its_text_holds(odd, tmp_path, monkeypatch):
    *_, last = cut_off("alone", tmp_path / FILE, lambda event: isinstance(event, DemoCompleted))
    last = replace(last, demonstration=replace(last.demonstration, text=f"one{odd}two"))
    whole = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    before = takewhile(lambda line: b'"event": "demonstration"' not in line, whole)
    (tmp_path / FILE).write_bytes(b"".join(before))  # the disk lost the last line, and what the gate said of it
    monkeypatch.setattr(PrivacyLedger, "newest", lambda *_: f"{line_of(last)}\n")
    assert journal_at(tmp_path / FILE).replayed[-1] == last


@pytest.mark.slow
def test_a_file_that_tells_more_than_the_ledger_let_out_is_refused(tmp_path):
    """Else what somebody wrote by hand would be signed as this installation's."""
    cut_off("alone", tmp_path / FILE, lambda event: isinstance(event, DemoStarted))
    [label, number] = asked_for("alone")[1].labels[0], 1
    made = {"event": "demonstration", "demonstration": {"text": "mine", "label": label}}
    line = json.dumps(made | {"number": number})
    whole = (tmp_path / FILE).read_text()
    (tmp_path / FILE).write_text(f"{whole}{line}\n")
    with pytest.raises(UsageError, match="not the one that was written"):
        journal_at(tmp_path / FILE)
    lines = whole.split("\n")[:-1]
    sealed = RunJournal(tmp_path / FILE, run_file.key_in(lines[0]))._sealed(len(lines), line)
    (tmp_path / FILE).write_text(whole + sealed)  # even by somebody who has the installation's key
    with closing(journal_at(tmp_path / FILE)) as journal, pytest.raises(UsageError, match="does not know"):
        list(begun("alone", journal))


@pytest.mark.slow
def test_what_was_left_over_when_a_run_was_stopped_may_be_spent_since(tmp_path, monkeypatch):
    """A run that was stopped costs what it charged; to go on it needs the rest again."""
    _, wanted = asked_for("alone")
    monkeypatch.setitem(globals(), "CAP", Cap(wanted.claim().epsilon * 1.1, 1e-3))
    cut_off("alone", tmp_path / FILE, lambda event: True)
    with closing(begun("alone", None)) as another:
        while not isinstance(next(another), DemoStarted):
            pass
    with closing(journal_at(tmp_path / FILE)) as journal, pytest.raises(BudgetRefused):
        list(begun("alone", journal))


def test_a_resumed_run_reads_the_rows_of_the_roles_that_it_began_with(tmp_path):
    """The key of the roles is the installation's: a run that goes on divides the rows as before."""
    private, plan = asked_for("vote")
    parts = divide(private, plan)
    cut_off("vote", tmp_path / FILE, lambda event: isinstance(event, StageStarted) and event.stage == CALIBRATE)
    log = Log()
    with closing(journal_at(tmp_path / FILE)) as journal:
        list(run(plan, private, Reading(log), PrivacyLedger(), journal=journal, embedder=Embedding(log)))
    read = set().union(*(found for kind, found in log if kind == "read"))
    assert read == secrets(each.text for stage in (CALIBRATE, SCORE) for each in parts[stage].records)


def test_only_what_is_private_and_charged_has_a_journal(tmp_path):
    private, wanted = asked_for("alone")
    seeded = run(
        wanted, private, Reading(), PrivacyLedger(), SeededRandomness(1), journal=RunJournal.new(tmp_path / FILE)
    )
    with pytest.raises(UsageError, match="Only private runs"):
        next(seeded)
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("told", [DemoCompleted, DemoRefused])
def test_what_the_gate_refuses_is_refused_wherever_the_run_was_cut_off(told, tmp_path, monkeypatch):
    """Between a finished text and its refusal too: no such text stands in the set."""
    refused = []

    def reason(gate, text):
        refused.append(text)
        return "no words"

    monkeypatch.setattr(Gate, "reason", reason)
    monkeypatch.setattr("mechanisms.runs.writing.TextState.finished", "words")  # a drawn one may have no sentence
    cut_off("alone", tmp_path / FILE, lambda event: isinstance(event, told))
    monkeypatch.setattr(Writer, "_written", lambda *arguments: iter(()))  # nothing but what was told stands
    monkeypatch.setattr("mechanisms.runs.run._filled", lambda state: iter(()))
    again: list[RunEvent] = []
    with closing(journal_at(tmp_path / FILE)) as journal, pytest.raises(UsageError, match="Nothing of this run"):
        again.extend(begun("alone", journal))
    assert refused
