"""A run that was cut off goes on from what it told: nothing is charged twice, and nothing is drawn twice."""

from __future__ import annotations

import itertools
import json
import shutil
import stat
from collections import Counter
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from mechanisms.accounting import Cap, PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.accounting import database as ledger_database
from mechanisms.data.sizes import measure_sizes
from mechanisms.errors import BudgetRefused, StudioError, TooLong, UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.records import Record
from mechanisms.runs import run_file
from mechanisms.runs.events import (
    DemoCompleted,
    DemoCutOff,
    DemoStarted,
    RunCompleted,
    RunEvent,
    StageProgress,
    StageStarted,
    TokenReleased,
    VotesReleased,
)
from mechanisms.runs.journal import RunJournal, _Seals
from mechanisms.runs.lines import line_of
from mechanisms.runs.recipe import Division, Kind
from mechanisms.runs.run import synthesize
from mechanisms.runs.run_file import from_lines
from mechanisms.runs.verification import verify
from mechanisms.sampling import SamplingPlan, Scheme
from tests.recipes.running import CAP, Embedding, Log, Reading, data, ledger, planned, recipe, rows
from tests.synthesis import test_outputs, test_structured
from tests.synthesis.test_synthesize import dataset, request
from tests.toy_model import ToyModel

KINDS = ("tokens", "vote", "both")
FILE = "run.dpicl.jsonl"


@cache
def calibrated(**plan):
    return request(plan=SamplingPlan(**{"subsets": 6, "tokens": 5, "shots": 2} | plan)).calibrated()


def asked(kind: str, **plan):
    """The data of a kind of run, and its request."""
    if kind == "tokens":
        return dataset(), replace(calibrated(**plan), content=fingerprint(dataset()).content)
    records = data(rows(30))
    return records, planned(records, recipe(Kind(kind), Division.ROLES, rounds=2 if kind == "vote" else 1))


def begun(kind: str, journal: RunJournal | None, ledger: PrivacyLedger | None = None, over=None, **plan):
    private, wanted = over or asked(kind, **plan)
    if kind == "tokens":
        return synthesize(private, wanted, ToyModel(), ledger or PrivacyLedger(), journal=journal)
    ledger = ledger or PrivacyLedger()
    ledger.set_cap("d", "record", CAP)
    return synthesize(private, wanted, Reading(Log()), ledger, journal=journal, embedder=Embedding(Log()))


def cut_off(kind: str, path: Path, wanted, **plan) -> list[RunEvent]:
    """A run's events until the first that is `wanted`, where it is cut off."""
    told = []
    journal = RunJournal.new(path)
    with closing(begun(kind, journal, **plan)) as run:
        for event in run:
            told.append(event)
            if wanted(event):
                break
    journal.close()
    return told


def gone_on(kind: str, path: Path, **rest) -> list[RunEvent]:
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
    counted = PrivacyLedger().snapshot(asked(kind)[0].name, "record").epsilon
    places = sorted({*range(2, len(whole), max(1, len(whole) // 6)), len(whole) - 2})
    for place in places:
        home = data_folder / str(place)
        monkeypatch.setenv("DPICL_HOME", str(home))
        left = itertools.count()
        before = cut_off(kind, data_folder / FILE, lambda event: next(left) >= place)  # noqa: B023
        lines = [line for event in before if (line := line_of(event))]
        after = gone_on(kind, data_folder / FILE)
        assert charges() == once, "charged twice, or not at all"
        assert PrivacyLedger().snapshot(asked(kind)[0].name, "record").epsilon == pytest.approx(counted)
        written = (data_folder / FILE).read_text().splitlines()
        assert written[1 : 1 + len(lines)] == lines, "what was told is told otherwise"
        told = from_lines((data_folder / FILE).read_text())
        assert isinstance(after[-1], RunCompleted)
        assert told[-1].demo_set.demonstrations == after[-1].demo_set.demonstrations
        assert verify(after[-1].demo_set).problems == ()
        assert "secret" not in "".join(written), "private text"
        assert kept() == [], "a text that its file holds by now"
        (data_folder / FILE).unlink()


def tokens_of(events) -> Counter:
    return Counter((event.label, event.number, event.step) for event in events if isinstance(event, TokenReleased))


@pytest.mark.slow
def test_no_demonstration_gets_private_tokens_of_two_samples(tmp_path):
    """What was begun is finished from public text; what was charged and seen by nobody is written as planned."""
    before = cut_off("tokens", tmp_path / FILE, lambda event: isinstance(event, TokenReleased))
    seen = {(event.label, event.number) for event in before if isinstance(event, TokenReleased)}
    after = gone_on("tokens", tmp_path / FILE)
    ended = {(each.label, each.number): each.finished for each in after if isinstance(each, DemoCutOff)}
    assert ended == dict.fromkeys(seen, True)
    assert all(number <= 1 for number in tokens_of(after).values())
    private = Counter((event.label, event.number) for event in after if isinstance(event, TokenReleased))
    assert all(private[whose] == 1 for whose in seen)
    assert sum(private.values()) > len(seen)  # the others are written
    assert len(after[-1].demo_set.demonstrations) == 4


@pytest.mark.slow
def test_what_was_charged_and_shown_to_nobody_is_drawn_again_for_nothing(tmp_path):
    cut_off("tokens", tmp_path / FILE, lambda event: isinstance(event, DemoStarted))
    paid = charges()
    after = gone_on("tokens", tmp_path / FILE)
    assert not any(isinstance(event, DemoCutOff) for event in after)
    assert Counter(charges().keys()) >= Counter(paid.keys())
    assert sum(charges().values()) == 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_that_is_gone_on_with_once_more_lets_nothing_out_again(kind, tmp_path):
    standing = DemoCompleted if kind == "tokens" else VotesReleased
    cut_off(kind, tmp_path / FILE, lambda event: isinstance(event, standing))
    shutil.copy(tmp_path / FILE, tmp_path / "copy")
    older = [sealed.partition(" ")[2] for sealed in (tmp_path / "copy").read_text().splitlines()[1:]]
    gone_on(kind, tmp_path / FILE)
    paid = charges()
    private = ("token", "votes", "priors", "choice", "score")
    with closing(journal_at(tmp_path / "copy")) as journal:
        run = begun(kind, journal)
        if kind == "tokens":
            again = list(run)
            assert any(isinstance(event, DemoCutOff) and not event.finished for event in again)
        else:
            with pytest.raises(StudioError, match="nothing is drawn twice"):
                again = list(run)
    now = [sealed.partition(" ")[2] for sealed in (tmp_path / "copy").read_text().splitlines()[1:]]
    first = (tmp_path / FILE).read_text().splitlines()[1:]
    assert [each for each in now if json.loads(each)["event"] in private and each not in first] == []
    assert now[: len(older)] == older
    assert charges() == paid


@pytest.mark.slow
def test_disjoint_batches_get_no_second_division(tmp_path):
    """With another secret a unit that stood in the first batch could stand in the second as well."""
    plan = {"scheme": Scheme.DISJOINT, "shots": 2, "subsets": 2}
    before = cut_off("tokens", tmp_path / FILE, lambda event: isinstance(event, DemoCompleted), **plan)
    paid = charges()
    after = gone_on("tokens", tmp_path / FILE, **plan)
    assert tokens_of(after) == tokens_of(before)
    assert charges() == paid
    assert from_lines((tmp_path / FILE).read_text())[-1].demo_set.demonstrations == after[-1].demo_set.demonstrations


@pytest.mark.slow
def test_a_run_that_is_too_long_for_a_run_file_is_gone_on_with_all_the_same(tmp_path, monkeypatch):
    for name, most in (("LARGEST", 100), ("MOST_LINES", 3), ("MOST_DEMONSTRATIONS", 1)):
        monkeypatch.setattr(run_file, name, most)
    cut_off("tokens", tmp_path / FILE, lambda event: isinstance(event, DemoStarted) and event.number == 2)
    with pytest.raises(TooLong, match="too long for a run file"):
        gone_on("tokens", tmp_path / FILE)
    paid, whole = charges(), (tmp_path / FILE).read_bytes()
    assert PrivacyLedger().newest(run_file.key_of(whole.decode().split("\n")[0])) == ""  # it is in the file
    with closing(journal_at(tmp_path / FILE)) as journal:  # nothing is lost: it tells the same once more
        again = list(begun("tokens", journal))
    assert len(again[-1].demo_set.demonstrations) == 4
    assert (charges(), (tmp_path / FILE).read_bytes()) == (paid, whole)


@pytest.mark.slow
def test_other_data_settings_models_and_ledgers_are_refused(tmp_path, monkeypatch):
    cut_off("tokens", tmp_path / FILE, lambda event: isinstance(event, TokenReleased))
    private, wanted = asked("tokens")
    content = (tmp_path / FILE).read_bytes()

    def refused(match: str, over=None, kind: str = "tokens") -> None:
        with (
            pytest.raises(UsageError, match=match) as error,
            closing(journal_at(tmp_path / FILE)) as journal,
            closing(begun(kind, journal, over=over)) as run,
        ):
            list(run)
        assert str(error.value).isprintable()
        assert (tmp_path / FILE).read_bytes() == content

    refused("not the settings", (private, replace(wanted, plan=replace(wanted.plan, shots=1))))
    refused("not the settings", (private, replace(wanted, candidates=wanted.candidates - 1)))
    other = replace(private, records=(*private.records[1:], Record("something new", private.records[0].label)))
    refused("planned for another|other data", (other, wanted))
    renamed = replace(private, name="another")
    refused("other data", (renamed, replace(wanted, content=fingerprint(renamed).content)))
    monkeypatch.setattr(ToyModel, "sha256", "1" * 64)
    refused("not the model")
    monkeypatch.undo()
    monkeypatch.setenv("DPICL_HOME", str(tmp_path / "elsewhere"))
    refused("no such run", (private, replace(wanted, content=fingerprint(private).content)))


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
    wanted = replace(planned(records, recipe(Kind.VOTE, Division.ROLES)), target=PrivacyTarget(4.0, 1e-5))
    return records, wanted.with_measured_sizes(sizes).calibrated()


@pytest.mark.parametrize("edits", [{"measured": {"epsilon": 0.001}}, {"shares": {"vote": 0.01}}], ids=str)
@pytest.mark.parametrize("where", ["file", "ledger"])
def test_an_edited_plan_is_refused_wherever_it_was_edited(where, edits, tmp_path, monkeypatch):
    """With another measurement, or other roles, a run would claim less than it cost."""
    records, wanted = measured_and_voted()
    path = tmp_path / FILE
    with closing(RunJournal.new(path)) as journal, closing(begun("vote", journal, over=(records, wanted))) as run:
        while not isinstance(next(run), StageStarted):
            pass
    whole = path.read_text()
    edited(path, **edits)
    head = path.read_text().split("\n")[0]
    with monkeypatch.context() as patched:
        if where == "ledger":
            patched.setattr(PrivacyLedger, "reserved_document", lambda *_: head)
        with (
            pytest.raises(UsageError, match="edited" if where == "file" else "not the settings|certificate is wrong"),
            closing(journal_at(path)) as journal,
            closing(begun("vote", journal, over=(records, journal.request(wanted.content)))) as run,
        ):
            list(run)
    path.write_text(whole)
    with closing(journal_at(path)) as journal:
        request = journal.request(wanted.content)
        *_, ended = begun("vote", journal, over=(records, request))
    assert (request.measured, request.recipe) == (wanted.measured, wanted.recipe)
    assert verify(ended.demo_set).problems == ()


def test_a_run_of_an_older_version_is_refused_in_one_line(tmp_path):
    cut_off("vote", tmp_path / FILE, lambda event: isinstance(event, VotesReleased))
    with PrivacyLedger().transaction() as database:
        database.execute("UPDATE resumable SET plan = '', fixed = ''")
    with pytest.raises(UsageError, match="older version") as error:
        journal_at(tmp_path / FILE)
    assert str(error.value).isprintable()


@pytest.mark.slow
def test_a_run_at_work_is_not_taken_over_and_one_that_was_lets_nothing_more_out(tmp_path, monkeypatch):
    first = RunJournal.new(tmp_path / FILE)
    run = begun("tokens", first)
    while not isinstance(next(run), DemoStarted):
        pass
    with (
        closing(journal_at(tmp_path / FILE)) as second,
        pytest.raises(UsageError, match="still at work"),
    ):
        list(begun("tokens", second))
    monkeypatch.setattr(ledger_database, "_is_alive", lambda holder: False)
    with closing(journal_at(tmp_path / FILE)) as second:
        assert isinstance(list(begun("tokens", second))[-1], RunCompleted)
    with pytest.raises(StudioError, match="nothing is drawn twice"):
        list(run)
    first.close()


@pytest.mark.slow
def test_a_torn_line_is_left_out_and_a_wrong_one_is_named(tmp_path):
    cut_off("tokens", tmp_path / FILE, lambda event: isinstance(event, DemoCompleted))
    whole = (tmp_path / FILE).read_bytes()
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    lines = whole.splitlines(keepends=True)
    for wrong, match in (
        (b"".join([*lines[:2], b"{}\n", *lines[2:]]), "Line 3"),
        (b"".join([*lines[:2], *lines[3:]]), "Line 3"),
        (b"".join([*lines[:2], lines[3], lines[2], *lines[4:]]), "Line 3"),
        (whole.replace(b'"chosen":', b'"chosen": '), "Line 3"),
        (b"".join(lines[1:]), "line 1"),
        (b"", "line 1"),
        (whole.replace(b'"unfinished"', b'"finished"'), "has ended"),
        (b"\xff\n", "not text"),
    ):
        (tmp_path / FILE).write_bytes(wrong)
        with pytest.raises(UsageError, match=match):
            journal_at(tmp_path / FILE)
    (tmp_path / FILE).write_bytes(whole[:-9])
    assert isinstance(gone_on("tokens", tmp_path / FILE)[-1], RunCompleted)
    with pytest.raises(UsageError, match="has ended"):
        journal_at(tmp_path / FILE)
    with pytest.raises(UsageError, match="there already"):
        RunJournal.new(tmp_path / FILE)


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["\u2028", "\x85", "\x0b"])
def test_what_the_ledger_noted_last_is_taken_up_whatever_its_text_holds(odd, tmp_path, monkeypatch):
    *_, last = cut_off("tokens", tmp_path / FILE, lambda event: isinstance(event, DemoCompleted))
    last = replace(last, demonstration=replace(last.demonstration, text=f"one{odd}two"))
    whole = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    (tmp_path / FILE).write_bytes(b"".join(whole[:-1]))  # the disk lost the last line
    monkeypatch.setattr(PrivacyLedger, "newest", lambda *_: f"{line_of(last)}\n")
    assert journal_at(tmp_path / FILE).replayed[-1] == last


@pytest.mark.slow
def test_a_file_that_tells_more_than_the_ledger_let_out_is_refused(tmp_path):
    """Else what somebody wrote by hand would be signed as this installation's."""
    cut_off("tokens", tmp_path / FILE, lambda event: isinstance(event, DemoStarted))
    [label, number] = asked("tokens")[1].labels[0], 1
    made = {"event": "demonstration", "demonstration": {"text": "mine", "label": label, "output": None}}
    line = json.dumps(made | {"number": number, "tokens": None})
    whole = (tmp_path / FILE).read_text()
    (tmp_path / FILE).write_text(f"{whole}{line}\n")
    with pytest.raises(UsageError, match="not the one that was written"):
        journal_at(tmp_path / FILE)
    lines = whole.split("\n")[:-1]
    sealed = _Seals(run_file.key_of(lines[0])).sealed(len(lines), line)
    (tmp_path / FILE).write_text(whole + sealed)  # even by somebody who has the installation's key
    with (
        closing(journal_at(tmp_path / FILE)) as journal,
        pytest.raises(UsageError, match="does not know"),
    ):
        list(begun("tokens", journal))


@pytest.mark.slow
def test_what_was_left_over_when_a_run_was_stopped_may_be_spent_since(tmp_path):
    """A run that was stopped costs what it charged; to go on it needs the rest again."""
    private, wanted = asked("tokens")
    ledger = PrivacyLedger()
    ledger.set_cap(private.name, private.unit, Cap(wanted.claim().epsilon * 1.5, 1e-3))
    cut_off("tokens", tmp_path / FILE, lambda event: True)
    with closing(begun("tokens", None)) as another:
        while not isinstance(next(another), DemoStarted):
            pass
    with closing(journal_at(tmp_path / FILE)) as journal, pytest.raises(BudgetRefused):
        list(begun("tokens", journal))


def test_only_what_is_private_and_charged_has_a_journal(tmp_path):
    private, wanted = asked("tokens")
    seeded = synthesize(
        private, wanted, ToyModel(), PrivacyLedger(), SeededRandomness(1), journal=RunJournal.new(tmp_path / FILE)
    )
    with pytest.raises(UsageError, match="Only private runs"):
        next(seeded)
    assert not (tmp_path / FILE).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of", "changes"),
    [
        (test_structured, {}),
        (test_outputs, {}),
        (test_outputs, {"outputs": test_outputs.BY_MODEL}),
        (test_outputs, {"plan": replace(test_outputs.PLAN, scheme=Scheme.PER_TOKEN)}),
    ],
)
@pytest.mark.parametrize("tokens", [1, 7, 15])
def test_records_and_answers_are_finished_from_where_they_were(of, changes, tokens, tmp_path):
    """Every form of a demonstration takes up the tokens that it had, and ends as it would have to."""
    over, left = (of.dataset(), of.request(**changes)), itertools.count()
    with closing(RunJournal.new(tmp_path / FILE)) as journal, closing(begun("tokens", journal, over=over)) as run:
        for event in run:
            if isinstance(event, TokenReleased) and next(left) == tokens:
                break
    before = {(event.label, event.number): event.text for event in told_before(tmp_path / FILE)}
    after = gone_on("tokens", tmp_path / FILE, over=over)
    whole = {(each.demonstration.label, each.number): each for each in after if isinstance(each, DemoCompleted)}
    assert len(whole) == 2
    for whose, text in before.items():
        made = whole[whose].demonstration
        if of is test_structured:
            assert test_structured.SCHEMA.holds(made.text)
        else:
            released = text.strip()
            both = min(len(made.text), len(released))
            assert made.text[:both] == released[:both]
    assert sum(tokens_of(after).values()) >= len(before)


def told_before(path: Path) -> list[TokenReleased]:
    return [event for event in journal_at(path).replayed or () if isinstance(event, TokenReleased)]
