"""The ledger: charges before releases, caps that refuse, nothing private on disk."""

from __future__ import annotations

import sqlite3
import stat
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accounting import (
    Cap,
    Fingerprint,
    LedgerRun,
    PrivacyLedger,
    Reservation,
    ResumablePlan,
    claim,
    new_key,
    reserve,
    text_digests,
)
from mechanisms.accounting.database import _VERSION
from mechanisms.accounting.filter import Spend, usage
from mechanisms.accounting.rdp import largest_rho
from mechanisms.errors import BudgetRefused, StudioError, UsageError
from mechanisms.privacy_events import ZCDP, Approximate, Composed, Gaussian, Poisson, Pure, Repeat
from mechanisms.records import RECORD

DELTA = 1e-6


def run_event(multiplier: float = 4.0, shots: int = 1) -> Composed:
    return Composed("label", tuple((label, (Repeat(shots, Gaussian(multiplier)),)) for label in ("a", "b")))


def begin(ledger: PrivacyLedger, name="clinic", unit="record", digest="d1", event=None):
    event = event or run_event()
    return ledger.begin(Fingerprint(name, unit, digest), "gaussian", event, claim(event, DELTA))


def test_a_run_costs_its_claim_once_it_has_charged():
    ledger = PrivacyLedger()
    run = begin(ledger)
    run.charge("a", (Gaussian(4.0),))
    run.finish()
    spent = ledger.snapshot("clinic", "record")
    assert spent.epsilon == pytest.approx(claim(run_event(), DELTA).epsilon)
    assert spent.runs == 1


def test_a_run_that_released_nothing_costs_nothing():
    ledger = PrivacyLedger()
    begin(ledger).finish()
    assert ledger.snapshot("clinic", "record").epsilon == 0


def test_a_crash_before_the_end_leaves_everything_planned_spent():
    begin(PrivacyLedger(), event=run_event(shots=5))
    after_restart = PrivacyLedger().snapshot("clinic", "record")
    assert after_restart.epsilon == pytest.approx(claim(run_event(shots=5), DELTA).epsilon)


def test_charges_never_shrink_the_spend():
    ledger = PrivacyLedger()
    spends = []
    for _ in range(3):
        run = begin(ledger)
        for label in ("a", "b"):
            run.charge(label, (Gaussian(4.0),))
            spends.append(ledger.snapshot("clinic", "record").epsilon)
        run.finish()
        spends.append(ledger.snapshot("clinic", "record").epsilon)
    assert spends == sorted(spends)
    assert spends[-1] > spends[0]


def test_the_cap_refuses_before_anything_is_written():
    ledger = PrivacyLedger()
    ledger.set_cap("clinic", "record", Cap(1.5, 1e-4))
    run = begin(ledger)
    run.charge("a", (Gaussian(4.0),))
    run.finish()
    before = ledger.snapshot("clinic", "record")
    with pytest.raises(BudgetRefused, match="allows epsilon 1.5"):
        begin(ledger, event=run_event(1.0))
    assert ledger.snapshot("clinic", "record") == before


def test_two_tabs_cannot_overspend_together():
    ledger = PrivacyLedger()
    cost = claim(run_event(), DELTA).epsilon
    ledger.set_cap("clinic", "record", Cap(1.2 * cost, 1e-4))
    outcomes: list[str] = []

    def start() -> None:
        try:
            begin(PrivacyLedger())
            outcomes.append("reserved")
        except BudgetRefused:
            outcomes.append("refused")

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("reserved") == 1


@pytest.mark.parametrize("other", ["record", "user:doctor", "user:Patient"])
def test_one_data_set_has_one_unit(other):
    """Of two user columns each bounds its own people's rows: their runs say nothing of each other's."""
    ledger = PrivacyLedger()
    begin(ledger, unit="user:patient").charge("a", (Gaussian(4.0),))
    with pytest.raises(BudgetRefused, match="column 'patient'.*cannot be added"):
        begin(ledger, unit=other)
    assert ledger.snapshot("clinic", other).epsilon == 0
    begin(ledger, unit="user:patient")


def test_a_message_is_one_line_without_a_terminals_escapes():
    shown = str(BudgetRefused("'clinic\x1b]0;pwn\x07\n agrees: yes' is refused."))
    assert shown.isprintable()
    assert "agrees: yes" in shown


def test_a_run_that_released_nothing_fixes_no_unit():
    ledger = PrivacyLedger()
    begin(ledger, unit="user:patient").finish()
    begin(ledger, unit="record")
    with pytest.raises(BudgetRefused):
        begin(ledger, unit="user:patient")


def test_edited_and_renamed_files_are_recognised():
    ledger = PrivacyLedger()
    rows = text_digests(["my knee hurts", "a rash"])
    ledger.begin(
        Fingerprint("clinic", "record", "d1", rows), "gaussian", run_event(), claim(run_event(), DELTA)
    ).finish()
    recognise = ledger.rows.recognise
    assert recognise(Fingerprint("clinic", "record", "d1", rows)) == []
    assert "differ from" in recognise(Fingerprint("clinic", "record", "d2", rows))[0]
    assert "'clinic'" in recognise(Fingerprint("other", "record", "d1", rows))[0]
    cut = text_digests(["something else", "A  RASH "])
    assert "'clinic'" in recognise(Fingerprint("other", "record", "d3", cut))[0]
    assert recognise(Fingerprint("other", "record", "d3", text_digests(["something else"]))) == []


def test_what_became_known_is_remembered_by_name_and_by_rows():
    ledger = PrivacyLedger()
    rows, others = text_digests(["my knee hurts", "a rash"]), text_digests(["something else"])
    assert ledger.rows.disclosures(Fingerprint("clinic", "record", "d1", rows)) == ()
    ledger.rows.mark(Fingerprint("clinic", "record", "d1", rows), "seen")
    ledger.rows.mark(Fingerprint("clinic", "record", "d1", rows), "seen")
    again = PrivacyLedger()
    assert again.rows.disclosures(Fingerprint("another name", "record", "d2", text_digests(["A rash"]))) == ("seen",)
    assert again.rows.disclosures(Fingerprint("clinic", "record", "d3", others)) == ("seen",)
    assert again.rows.disclosures(Fingerprint("another name", "record", "d3", others)) == ()
    assert again.snapshot("clinic", "record").disclosures == ("seen",)
    ledger.rows.mark_rows(others, "scored")
    assert ledger.rows.disclosures(Fingerprint("another name", "record", "d3", others)) == ("scored",)


@pytest.mark.parametrize("version", [0, 1, _VERSION - 1])
def test_an_older_ledger_is_refused_and_never_taken_for_an_empty_one(version, data_folder):
    begin(PrivacyLedger()).finish()
    path, count = data_folder / "ledger.sqlite", data_folder / "ledger.count"
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {version}")
    for _ in range(2):
        with pytest.raises(UsageError, match="older version of this program, and this one cannot read it") as refused:
            PrivacyLedger()
        assert str(refused.value).isprintable()
        assert all(each.name in str(refused.value) for each in (path, count))
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT name FROM runs").fetchall() == [("clinic",)]
        assert database.execute("PRAGMA user_version").fetchone() == (version,)
    path.rename(data_folder / "moved")
    with pytest.raises(StudioError, match="older than the one"):  # moved without its count: it held something
        PrivacyLedger()
    path.unlink()
    count.rename(data_folder / "moved too")
    assert PrivacyLedger().names() == []


def test_a_file_of_another_program_is_no_empty_ledger(data_folder):
    data_folder.mkdir()
    with sqlite3.connect(data_folder / "ledger.sqlite") as database:
        database.execute("CREATE TABLE anything (value TEXT)")
    with pytest.raises(UsageError, match="cannot read it"):
        PrivacyLedger()


def test_a_ledger_of_a_later_version_is_left_alone(data_folder):
    PrivacyLedger()
    with sqlite3.connect(data_folder / "ledger.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(UsageError, match="newer version"):
        PrivacyLedger()


def test_the_spend_does_not_depend_on_whether_two_files_are_equal():
    spent = []
    for name, second in (("edited", "d2"), ("same", "d1")):
        ledger = PrivacyLedger()
        for digest, label in (("d1", "a"), (second, "b")):
            run = begin(ledger, name=name, digest=digest)
            run.charge(label, (Gaussian(4.0),))
            run.finish()
        spent.append(ledger.snapshot(name, "record").epsilon)
    assert spent[0] == spent[1]


def test_lists_of_one_run_are_parallel_and_runs_add_up():
    cap = Cap(100.0, 1e-3)
    both = Spend(9.0, DELTA, {"a": (Gaussian(4.0),), "b": (Gaussian(4.0),)})
    one = Spend(9.0, DELTA, {"a": (Gaussian(4.0),)})
    assert usage([both], cap).epsilon == pytest.approx(usage([one], cap).epsilon)
    assert usage([one, one], cap).epsilon > usage([both], cap).epsilon


def test_failures_of_finished_runs_count_against_the_cap():
    cap = Cap(100.0, 1e-6)
    failing = Spend(1.0, 1e-6, {"a": (Gaussian(40.0), Approximate(4e-8))})
    assert usage([failing] * 2, cap).allowed
    assert not usage([failing] * 4, cap).allowed


def test_a_cap_cannot_be_set_below_what_is_spent():
    ledger = PrivacyLedger()
    begin(ledger).charge("a", (Gaussian(4.0),))
    with pytest.raises(UsageError, match="already spent"):
        ledger.set_cap("clinic", "record", Cap(0.01, 1e-4))


def test_files_are_the_users_alone(data_folder):
    PrivacyLedger().snapshot("clinic", "record")
    from mechanisms.files import keyed_digest

    keyed_digest(["x"])
    for path in data_folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_runs_of_any_kind_compose_and_lists_stay_apart():
    ledger = PrivacyLedger()
    ledger.set_cap("clinic", "record", Cap(40.0, 1e-3))
    kinds = [
        (Repeat(2, Poisson(0.1, Gaussian(2.0))),),
        (Pure(0.3, 4),),
        (ZCDP(0.02),),
        (Poisson(0.2, Pure(0.2, 10)), Approximate(1e-9)),
    ]
    claims = []
    for events in kinds:
        event = Composed("label", (("a", events), ("b", events[:1])))
        claims.append(claim(event, DELTA).epsilon)
        run = begin(ledger, event=event)
        for name, charged in event:
            run.charge(name, charged)
        run.finish()
    spent = ledger.snapshot("clinic", "record")
    assert max(claims) < spent.epsilon <= sum(claims) * (1 + 1e-9)
    assert spent.runs == len(kinds)


def test_many_small_runs_of_different_kinds_are_bounded_by_the_renyi_filter():
    cap = Cap(50.0, 1e-3)
    kinds = [(ZCDP(0.005),), (Gaussian(10.0),), (Pure(0.1),)]
    spends = []
    for events in kinds * 15:
        event = Composed("label", (("a", events),))
        spends.append(Spend(claim(event, DELTA).epsilon, DELTA, dict(event)))
    used = usage(spends, cap)
    assert used.bound == "renyi filter"
    assert used.epsilon < 0.6 * sum(spend.epsilon for spend in spends)


# Runs that can be gone on with, as the ledger knows them.

EVENT = Composed("label", (("a", (Gaussian(4.0),)),))
PLANNED = ("gaussian", EVENT, claim(EVENT, 1e-6))
ROWS, USERS = (Fingerprint("clinic", unit, "d1") for unit in ("record", "user:patient"))


def planned(key: str) -> ResumablePlan:
    return ResumablePlan(key, "the run's head", "a digest")


def begun(ledger: PrivacyLedger, key: str) -> LedgerRun:
    return ledger.begin(ROWS, *PLANNED, planned(key))


def test_a_run_that_charged_nothing_goes_on_only_at_the_unit_that_was_fixed_since():
    ledger, key = PrivacyLedger(), new_key()
    begun(ledger, key).finish()
    ledger.begin(USERS, *PLANNED)
    with pytest.raises(BudgetRefused, match="column 'patient'.*cannot be added"):
        ledger.resume(ROWS, *PLANNED, planned(key))
    assert ledger.snapshot("clinic", ROWS.unit).runs == 0
    assert ledger.snapshot("clinic", USERS.unit).runs == 1


def test_a_run_that_was_stopped_goes_on_at_its_own_unit():
    ledger, key = PrivacyLedger(), new_key()
    begun(ledger, key).finish()
    ledger.begin(ROWS, *PLANNED)
    assert ledger.resume(ROWS, *PLANNED, planned(key)).released == frozenset()


def test_a_run_that_was_stopped_goes_on_only_where_the_cap_still_allows_the_rest():
    """What it charged stays; what it left over may have been spent by another run since."""
    ledger, plan = PrivacyLedger(), ResumablePlan(new_key(), "document", "fixed")
    data, event = Fingerprint("clinic", "record", "d1"), run_event(shots=4)
    whole = claim(event, DELTA)
    ledger.set_cap("clinic", "record", Cap(1.1 * whole.epsilon, 1e-3))
    run = ledger.begin(data, "gaussian", event, whole, plan)
    run.charge("a", (Gaussian(4.0),))
    run.finish()
    again = ledger.resume(data, "gaussian", event, whole, plan)
    again.finish()
    other = begin(ledger, event=run_event(shots=3))
    other.charge("a", (Repeat(3, Gaussian(4.0)),))
    other.finish()
    with pytest.raises(BudgetRefused):
        ledger.resume(data, "gaussian", event, whole, plan)


def test_what_is_told_is_kept_for_who_goes_on_and_forgotten_with_the_run(data_folder):
    ledger, keys = PrivacyLedger(), (new_key(), new_key())
    for key in keys:
        run = begun(ledger, key)
        run.mark("write a 1", f"a text of {key}")
        run.finish()  # one that was stopped by a failure goes on
    ledger.forget(keys[0])
    assert [ledger.newest(key) for key in keys] == ["", f"a text of {keys[1]}"]
    resumed = ledger.resume(ROWS, *PLANNED, planned(keys[0]))
    assert resumed.released == {"write a 1"}, "nothing is drawn twice all the same"
    assert not any(f"a text of {keys[0]}".encode() in path.read_bytes() for path in data_folder.rglob("ledger*"))


# The individual filter: nobody pays beyond the cap, whatever is asked, whoever asks, and across restarts.

UNIT_DELTA = 1e-5


def wanted(queries=3, rho=0.05, digest="file", terms="terms", name="clinic", failure=0.0) -> Reservation:
    events = (ZCDP(rho), *((Approximate(failure),) if failure else ()))
    event = Composed("dataset", (("all", events),))
    return Reservation(Fingerprint(name, RECORD, digest), "answers", event, claim(event, UNIT_DELTA), terms, queries)


STREAM = st.lists(st.sets(st.sampled_from("abcdefgh"), max_size=8), max_size=25)


@given(stream=STREAM, queries=st.integers(1, 6), restarts=st.sets(st.integers(0, 24)))
@settings(max_examples=60)
def test_no_stream_of_questions_spends_a_unit_past_its_cap(stream, queries, restarts):
    with TemporaryDirectory() as folder:
        paid = reserve(PrivacyLedger(Path(folder)), wanted(queries))
        spent = dict.fromkeys("abcdefgh", 0)
        for step, near in enumerate(stream):
            if step in restarts:
                paid = reserve(PrivacyLedger(Path(folder)), wanted(queries))
                assert paid.continued
            units = sorted(near)
            for unit, took_part in zip(units, paid.charge(units), strict=True):
                assert took_part == (spent[unit] < queries)
                spent[unit] += int(took_part)
        assert max(spent.values()) <= queries
        assert paid.answered == len(stream)
        asked = {unit: sum(unit in near for near in stream) for unit in spent}
        assert spent == {unit: min(queries, times) for unit, times in asked.items()}


@given(stream=STREAM, others=STREAM, unit=st.sampled_from("abcdefgh"))
@settings(max_examples=40)
def test_what_a_unit_pays_does_not_depend_on_other_units(stream, others, unit):
    histories = []
    for crowd in (others, []):
        with TemporaryDirectory() as folder:
            paid = reserve(PrivacyLedger(Path(folder)), wanted(2))
            history = []
            for step, near in enumerate(stream):
                company = crowd[step] - {unit} if step < len(crowd) else set()
                units = sorted(company | ({unit} & near))
                history += [took for each, took in zip(units, paid.charge(units), strict=True) if each == unit]
            histories.append(history)
    assert histories[0] == histories[1]


def test_two_sessions_at_once_cannot_overspend_together():
    reserve(PrivacyLedger(), wanted(queries=5))
    took_part: list[bool] = []

    def ask() -> None:
        for _ in range(4):
            took_part.extend(reserve(PrivacyLedger(), wanted(queries=5)).charge(["a"]).tolist())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(took_part) == 5
    assert len(took_part) == 16


def test_a_reservation_is_charged_once_and_goes_on():
    ledger = PrivacyLedger()
    assert not reserve(ledger, wanted(failure=1e-6)).continued
    once = ledger.snapshot("clinic", "record")
    assert once.epsilon == pytest.approx(wanted(failure=1e-6).claim.epsilon)
    again = reserve(ledger, wanted(failure=1e-6))
    assert again.continued
    again.charge(["a", "b"])
    assert ledger.snapshot("clinic", "record") == once


@pytest.mark.parametrize(("change", "word"), [({"digest": "edited"}, "edited row"), ({"terms": "else"}, "terms")])
def test_another_file_or_other_terms_are_paid_for_anew(change, word):
    ledger = PrivacyLedger()
    first = reserve(ledger, wanted(queries=1))
    assert first.charge(["a"]).all()
    with pytest.raises(UsageError, match=word):
        reserve(ledger, wanted(queries=1, **change))
    before = ledger.snapshot("clinic", "record").epsilon
    second = reserve(ledger, wanted(queries=1, **change), anew=True)
    assert second.charge(["a"]).all()
    assert not first.charge(["a"]).any()
    assert ledger.snapshot("clinic", "record").epsilon > before


def test_reservations_and_runs_share_one_cap():
    ledger = PrivacyLedger()
    ledger.set_cap("clinic", "record", Cap(1.5 * wanted().claim.epsilon, 1e-4))
    reserve(ledger, wanted())
    with pytest.raises(BudgetRefused, match="allows epsilon"):
        reserve(ledger, wanted(), anew=True)
    assert reserve(ledger, wanted()).continued


def test_what_everybody_pays_for_ends_with_the_last_answer():
    paid = reserve(PrivacyLedger(), wanted(queries=2))
    paid.charge_everybody()
    paid.charge_everybody()
    for _ in range(2):
        with pytest.raises(BudgetRefused, match="2 answers"):
            reserve(PrivacyLedger(), wanted(queries=2)).charge_everybody()
    assert paid.answered == 2


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_largest_rho_uses_the_target_up(epsilon):
    rho = largest_rho(epsilon, UNIT_DELTA)
    assert wanted(rho=rho).claim.epsilon <= epsilon
    assert wanted(rho=rho * (1 + 1e-6)).claim.epsilon > epsilon
