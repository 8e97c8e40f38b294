"""A ledger under faults: disks that are full, folders that are closed, clocks, processes, copies that are put back."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mechanisms.accounting import Cap, Fingerprint, PrivacyLedger, claim
from mechanisms.accounting import ledger as ledger_module
from mechanisms.errors import BudgetRefused, StudioError
from mechanisms.files import keyed_digest
from mechanisms.privacy_events import Composed, Gaussian
from mechanisms.runs.events import TokenReleased
from tests.conftest import ROOT
from tests.runs import running

EVENT = Composed("label", (("a", (Gaussian(4.0),)),))
CLAIM = claim(EVENT, 1e-6)
NOBODY = 65534


def run(ledger: PrivacyLedger) -> None:
    begun = ledger.begin(Fingerprint("clinic", "record", "d1"), "gaussian", EVENT, CLAIM)
    begun.charge("a", EVENT.lists[0][1])
    begun.finish()


def runs_until_refused(folder: Path) -> list[None]:
    ledger, done = PrivacyLedger(folder), []
    with contextlib.suppress(BudgetRefused):
        while True:
            done.append(run(ledger))
    return done


def spent(folder: Path | None = None) -> float:
    return PrivacyLedger(folder).snapshot("clinic", "record").epsilon


@contextmanager
def no_room(most: int = 0) -> Iterator[None]:
    """No file of this process may grow beyond so many bytes, as on a disk that is full."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def one_line(error: StudioError, place: str) -> bool:
    return place in str(error) and "\n" not in str(error) and str(error).endswith(".")


@pytest.mark.parametrize("most", [0, 1, 4096, 10_000, 40_000])
def test_on_a_full_disk_nothing_is_lost_and_nothing_begins(most):
    ledger = PrivacyLedger()
    run(ledger)
    before, refused = spent(), None
    with no_room(most):
        for _ in range(40):
            try:
                run(ledger)
            except StudioError as error:
                refused = error
                break
    assert refused is not None
    assert one_line(refused, "ledger")
    after = spent()
    assert after >= before
    run(ledger)
    assert spent() > after


@pytest.mark.parametrize("most", [0, 10_000, 20_000, 10**6])
def test_a_disk_that_fills_up_during_a_run_lets_no_token_out_that_is_not_charged(most, data_folder, any_text_passes):
    ledger, released, rows = PrivacyLedger(), set(), running.data(running.rows(60))
    plan = running.planned(rows, running.alone())
    with no_room(most), contextlib.nullcontext() if most == 10**6 else pytest.raises(StudioError) as refused:
        for event in running.begun(rows, plan, ledger=ledger):
            if isinstance(event, TokenReleased):
                released.add((event.label, event.number))
    assert refused is None or one_line(refused.value, str(data_folder))
    with PrivacyLedger().transaction() as database:
        charged = {name for (name,) in database.execute("SELECT list FROM charges")}
    assert {plan.stages["write"].charge_of(*each)[0] for each in released} <= charged
    assert released or most < 10**6


@pytest.mark.parametrize("make", [PrivacyLedger, lambda: keyed_digest(["x"])])
def test_what_cannot_be_made_on_a_full_disk_is_one_line_and_can_be_made_later(make, data_folder):
    with no_room(), pytest.raises(StudioError) as refused:
        make()
    assert one_line(refused.value, str(data_folder))
    make()
    assert [path for path in data_folder.iterdir() if path.name.startswith("tmp")] == []


@contextmanager
def closed_folder() -> Iterator[Path]:
    """A folder with a ledger that this process may read and not write; root may, and is somebody else meanwhile."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        run(PrivacyLedger(folder))
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        if root:
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o700)


def test_a_folder_that_is_closed_is_one_line(monkeypatch):
    with closed_folder() as folder:
        monkeypatch.setenv("DPICL_HOME", str(folder))
        for make in (PrivacyLedger, lambda: keyed_digest(["x"])):
            with pytest.raises(StudioError) as refused:
                make()
            assert one_line(refused.value, str(folder))


def test_a_ledger_whose_folder_is_closed_while_it_is_open_begins_nothing():
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "ledger"
        ledger = PrivacyLedger(folder)
        run(ledger)
        before = spent(folder)
        shutil.move(folder, Path(made) / "elsewhere")
        with pytest.raises(StudioError) as refused:
            run(ledger)
        assert one_line(refused.value, str(folder))
        shutil.move(Path(made) / "elsewhere", folder)
        assert spent(folder) == before


def test_a_clock_that_is_set_back_changes_no_spend_no_order_and_no_cap(monkeypatch):
    ledger, spends = PrivacyLedger(), []
    for days in range(4):
        moment = (datetime.now(UTC) - timedelta(days=400 * days)).isoformat(timespec="seconds")
        monkeypatch.setattr(ledger_module, "now", lambda moment=moment: moment)
        ledger.set_cap("clinic", "record", Cap(20.0 + days, 1e-4))
        run(ledger)
        spends.append(spent())
    assert spends == sorted(set(spends))
    account = ledger.account("clinic", "record")
    assert account.snapshot.cap.epsilon == 23.0
    assert [cap["epsilon"] for cap in ledger.caps("clinic")] == [20.0, 21.0, 22.0, 23.0]
    started = [each.started for each in account.runs]
    assert started == sorted(started, reverse=True)  # the order of the runs, whatever the clock said


@pytest.mark.slow
def test_several_processes_together_stay_under_one_cap_and_lose_no_charge(tmp_path):
    cap, alone, together = Cap(3 * CLAIM.epsilon, 1e-4), tmp_path / "alone", tmp_path / "together"
    for folder in (alone, together):
        PrivacyLedger(folder).set_cap("clinic", "record", cap)
    most = len(runs_until_refused(alone))
    call = "from tests.accounting.test_faults import *; print(len(runs_until_refused(Path(sys.argv[1]))))"
    line = [sys.executable, "-c", call, str(together)]
    started = [subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    done = [int(each.communicate(timeout=300)[0]) for each in started]
    assert sum(done) == most > 2
    account = PrivacyLedger(together).account("clinic", "record")
    assert len(account.runs) == most
    assert all(each.finished and each.counted for each in account.runs)


def put_back(data_folder: Path, copy: Path) -> None:
    shutil.copy(copy, data_folder / "ledger.sqlite")


def test_an_older_copy_is_noticed_and_the_newest_one_goes_on(data_folder, tmp_path):
    ledger = PrivacyLedger()
    run(ledger)
    shutil.copy(data_folder / "ledger.sqlite", tmp_path / "old")
    run(ledger)
    before = spent()
    shutil.copy(data_folder / "ledger.sqlite", tmp_path / "new")
    put_back(data_folder, tmp_path / "old")
    for use in (PrivacyLedger, lambda: run(ledger), lambda: ledger.snapshot("clinic", "record")):
        with pytest.raises(StudioError, match="older than the one that was used here last") as refused:
            use()
        assert one_line(refused.value, str(data_folder / "ledger.count"))
    put_back(data_folder, tmp_path / "new")
    assert spent() == before


def test_a_ledger_that_was_removed_is_noticed(data_folder):
    run(PrivacyLedger())
    spent()
    (data_folder / "ledger.sqlite").unlink()
    with pytest.raises(StudioError, match="older"):
        PrivacyLedger()
    with pytest.raises(StudioError, match="older"):
        PrivacyLedger()


def test_what_the_count_cannot_notice(data_folder, tmp_path):
    """As `docs/accounting.md` says: this test fails where the page would have to say less."""
    run(PrivacyLedger())
    first = spent()
    shutil.copytree(data_folder, tmp_path / "both")
    shutil.copy(data_folder / "ledger.sqlite", tmp_path / "old")
    run(PrivacyLedger())
    assert spent() > first
    put_back(data_folder, tmp_path / "old")
    (data_folder / "ledger.count").unlink()
    assert spent() == first
    run(PrivacyLedger())
    shutil.rmtree(data_folder)
    shutil.copytree(tmp_path / "both", data_folder)
    assert spent() == first


def test_reading_counts_as_no_write_and_every_write_is_counted(data_folder):
    ledger = PrivacyLedger()

    def counted() -> int:
        ledger.names()
        return int((data_folder / "ledger.count").read_text())

    run(ledger)
    for _ in range(2):
        before = counted()
        assert counted() == before
        run(ledger)
        assert counted() == before + 3


@pytest.mark.parametrize("content", ["twelve", "-", "\x00\x00"])
def test_a_damaged_count_is_one_line(data_folder, content):
    run(PrivacyLedger())
    (data_folder / "ledger.count").write_text(content)
    with pytest.raises(StudioError) as refused:
        PrivacyLedger()
    assert one_line(refused.value, "ledger.count")
