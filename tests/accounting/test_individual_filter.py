"""The individual filter: nobody pays beyond the cap, whatever is asked, whoever asks, and across restarts."""

from __future__ import annotations

import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accounting import Cap, Fingerprint, PrivacyLedger, Reservation, claim, reserve
from mechanisms.accounting.rdp import largest_rho
from mechanisms.errors import BudgetRefused, UsageError
from mechanisms.privacy_events import ZCDP, Approximate, Composed
from mechanisms.records import RECORD

DELTA = 1e-5


def wanted(queries=3, rho=0.05, digest="file", terms="terms", name="clinic", failure=0.0) -> Reservation:
    events = (ZCDP(rho), *((Approximate(failure),) if failure else ()))
    event = Composed("dataset", (("all", events),))
    return Reservation(Fingerprint(name, RECORD, digest), "answers", event, claim(event, DELTA), terms, queries)


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
        assert paid.asked == len(stream)
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
    assert paid.asked == 2


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_largest_rho_uses_the_target_up(epsilon):
    rho = largest_rho(epsilon, DELTA)
    assert wanted(rho=rho).claim.epsilon <= epsilon
    assert wanted(rho=rho * (1 + 1e-6)).claim.epsilon > epsilon
