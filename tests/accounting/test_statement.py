"""A ledger's account read run by run, and written as a file."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.accounting import Cap, Fingerprint, PrivacyLedger, claim
from mechanisms.accounting.account import COLUMNS, as_csv, in_words, lines, state
from mechanisms.accounting.filter import Spend, usage, usages
from mechanisms.errors import BudgetRefused
from mechanisms.privacy_events import Approximate, Composed, Gaussian, Poisson, Pure, Repeat
from mechanisms.rounding import percent_down, percent_up, rounded_down, rounded_up

DELTA = 1e-6
HOSTILE = ["=1+1", "+cmd|' /C calc'!A0", "-2", "@SUM(1)", "\tx", "\r=1", "＝1", 'a";=1+1', "a,b\n=2", "clinic"]


def run_event(multiplier: float = 4.0, labels: str = "ab") -> Composed:
    return Composed("label", tuple((label, (Gaussian(multiplier),)) for label in labels))


def spend(*events, delta: float = DELTA) -> Spend:
    whole = Composed("dataset", (("all", events),))
    return Spend(claim(whole, delta).epsilon, delta, dict(whole))


def write(ledger: PrivacyLedger, event: Composed, name: str = "clinic", unit: str = "record", what: str = "gaussian"):
    run = ledger.begin(Fingerprint(name, unit, "d1"), what, event, claim(event, DELTA))
    for part, events in event:
        run.charge(part, events)
    run.finish()


SPENDS = [
    spend(Gaussian(4.0)),
    spend(Repeat(3, Poisson(0.1, Gaussian(1.5))), Approximate(1e-9)),
    *[spend(Pure(0.1))] * 20,
]


def test_the_runs_up_to_each_one_are_counted_as_the_ledger_counts_them():
    cap = Cap(20.0, 1e-4)
    found = usages(SPENDS, cap)
    assert found == [usage(SPENDS[: count + 1], cap) for count in range(len(SPENDS))]
    assert usages([], cap) == []


def test_the_ledger_never_counts_less_than_an_accountant_that_knew_all_runs_beforehand():
    events = (Gaussian(4.0), Gaussian(5.0), Pure(0.2))
    together = Composed("dataset", (("all", events),))
    for delta in (1e-4, 1e-5):
        used = usage(map(spend, events), Cap(20.0, delta))
        assert used.allowed
        assert claim(together, delta).epsilon <= used.epsilon


def test_a_statement_ends_where_the_ledger_stands():
    ledger = PrivacyLedger()
    write(ledger, run_event())
    ledger.begin(Fingerprint("clinic", "record", "d1"), "nothing", run_event(), claim(run_event(), DELTA)).finish()
    ledger.begin(Fingerprint("clinic", "record", "d1"), "cut off", run_event(5.0), claim(run_event(5.0), DELTA))
    write(ledger, run_event(9.0), name="school")
    account = ledger.account("clinic", "record")
    first, nothing, cut_off = lines(account)
    assert [each.run.mechanism for each in (first, nothing, cut_off)] == ["gaussian", "nothing", "cut off"]
    assert first.after == nothing.after
    assert state(nothing.run).startswith("nothing was released")
    assert state(cut_off.run).startswith("active or interrupted")
    assert cut_off.after.epsilon == account.snapshot.epsilon == ledger.snapshot("clinic", "record").epsilon
    assert first.after.epsilon < cut_off.after.epsilon


def test_a_refused_run_leaves_no_line():
    ledger = PrivacyLedger()
    ledger.set_cap("clinic", "record", Cap(1.5, 1e-4))
    write(ledger, run_event())
    before = ledger.account("clinic", "record")
    with pytest.raises(BudgetRefused):
        write(ledger, run_event(1.0))
    assert ledger.account("clinic", "record") == before
    assert len(ledger.caps("clinic")) == 1


def test_a_forecast_refuses_what_the_ledger_would_refuse():
    ledger, event = PrivacyLedger(), run_event()
    write(ledger, event, unit="user:patient")
    with pytest.raises(BudgetRefused, match="cannot be added"):
        ledger.forecast("clinic", "record", event, claim(event, DELTA))
    assert ledger.forecast("clinic", "user:patient", event, claim(event, DELTA)).allowed


@given(st.lists(st.tuples(st.floats(0.05, 8.0), st.floats(1e-9, 1e-4)), min_size=1, max_size=4))
def test_what_is_counted_over_a_cap_is_a_bound_of_its_own(costs: list[tuple[float, float]]):
    spends = [Spend(epsilon, delta, {"all": (Gaussian(0.5),)}) for epsilon, delta in costs]
    over = usage(spends, Cap(0.01, 1e-12))
    assert not over.allowed
    assert over.epsilon == pytest.approx(sum(epsilon for epsilon, _ in costs))
    assert over.delta == pytest.approx(sum(delta for _, delta in costs))


def test_a_table_of_marked_data_says_so():
    ledger = PrivacyLedger()
    write(ledger, run_event())
    ledger.rows.mark(Fingerprint("clinic", "record", "d1"), "figures of attacks")
    [row] = csv.DictReader(io.StringIO(as_csv(ledger.account("clinic", "record"))))
    assert row["known_besides"] == "figures of attacks"


@pytest.mark.parametrize("name", HOSTILE)
def test_no_cell_is_a_formula_and_every_name_is_still_there(name: str):
    ledger = PrivacyLedger()
    event = Composed("label", ((name, (Gaussian(4.0),)), ("b", (Gaussian(5.0),))))
    write(ledger, event, name=name, unit=f"user:{name}", what=name)
    text = as_csv(ledger.account(name, f"user:{name}"))
    header, row = csv.reader(io.StringIO(text, newline=""))
    assert tuple(header) == COLUMNS
    cells = dict(zip(header, row, strict=True))
    assert cells["data_set"].removeprefix("'") == cells["run"].removeprefix("'") == name
    assert not any(cell[:1] in "=+-@\t\r\n＝＋－＠" for cell in row if cell)
    assert text.startswith('"started"')
    assert float(cells["joint_epsilon"]) == ledger.snapshot(name, f"user:{name}").epsilon


def test_events_are_told_in_words():
    plain = in_words(Composed("dataset", (("all", (Repeat(4, Poisson(0.05, Gaussian(1.5))), Approximate(1e-8))),)))
    assert plain == (
        "4 times (Gaussian noise of 1.5 times the sensitivity on a sample that each unit joins with probability 0.05), "
        "then a failure of probability 1e-08"
    )
    assert in_words(run_event()).startswith("a, b: Gaussian")
    assert in_words(run_event(labels="abcdefg")).startswith("each of 7 labels: Gaussian")


@pytest.mark.parametrize("multiplier", [2.0, 8.0])
def test_so_many_runs_are_allowed_as_were_said_and_no_more(multiplier):
    event, ledger, data = run_event(multiplier), PrivacyLedger(), Fingerprint("clinic", "record", "d1")
    ledger.set_cap("clinic", "record", Cap(4.0, 1e-4))
    said = ledger.repeats("clinic", "record", event, claim(event, DELTA))
    assert said > 0
    for left in range(said, 0, -1):
        assert ledger.repeats("clinic", "record", event, claim(event, DELTA)) == left
        run = ledger.begin(data, "gaussian", event, claim(event, DELTA))
        for label, events in event:
            run.charge(label, events)
        run.finish()
    assert ledger.repeats("clinic", "record", event, claim(event, DELTA)) == 0
    with pytest.raises(BudgetRefused):
        ledger.begin(data, "gaussian", event, claim(event, DELTA))


# What is said of a bound is still a bound, and no longer than it has to be.

BOUNDS = st.floats(min_value=1e-12, max_value=1e12)


@given(BOUNDS, st.integers(1, 6))
def test_it_is_never_below_and_at_most_one_digit_above(bound, digits):
    said = float(rounded_up(bound, digits))
    assert bound <= said <= bound * (1 + 10.0 ** (1 - digits))


@given(BOUNDS, st.integers(1, 6))
def test_what_is_left_is_never_above_and_at_most_one_digit_below(left, digits):
    said = float(rounded_down(left, digits))
    assert left * (1 - 10.0 ** (1 - digits)) <= said <= left


SHARES = st.floats(min_value=0, max_value=1)


@given(SHARES, st.integers(0, 2))
def test_a_share_in_percent_is_rounded_towards_the_worse(share, decimals):
    up, down = (float(each(share, decimals).removesuffix("%")) / 100 for each in (percent_up, percent_down))
    dust = 1e-12
    assert down - dust <= share <= up + dust
    assert up - down <= 10.0 ** (-2 - decimals) + dust
    assert (up > 0) == (share > 0) or share < dust


@pytest.mark.parametrize(
    ("bound", "said"), [(1.00049, "1.001"), (0.0, "0"), (math.inf, "inf"), (np.float64(0.1), "0.1"), (9.9999, "10")]
)
def test_bounds_that_are_met(bound, said):
    assert rounded_up(bound, 4) == said
