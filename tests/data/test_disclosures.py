"""What became known of a data set without noise stays known: across names, files, runs and exports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mechanisms.accounting import PrivacyLedger, fingerprint, share_any, text_digests
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.disclosures import CLEAN_VALUES, NO_NOISE, SCORED, SEEDED, mark_scored, owners_of
from mechanisms.data.sizes import measure_sizes
from mechanisms.data.sources import read_table
from mechanisms.data.units import units_of
from mechanisms.demos.demo_set import loads
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.public_inputs import WHETHER_SHOWN
from mechanisms.records import Dataset, Record
from tests.runs import running
from tests.runs.running import data, rows

pytestmark = pytest.mark.usefixtures("any_text_passes")
LABELS = ("a", "b")
SILENT = {"mechanism": "non-private", "parameters": {}}
PUBLIC = {"mechanism": "public", "parameters": {}}


def dataset() -> Dataset:
    return Dataset("d", LABELS, tuple(Record(f"text {i}", label) for i in range(30) for label in LABELS))


def written(private: Dataset, ledger: PrivacyLedger, randomness=None, curator=False, **said):
    """The demo set of a run on a data set."""
    plan = running.planned(private, running.alone(**said))
    rest = {"ledger": ledger, "randomness": randomness or SecureRandomness(), "curator": curator}
    return list(running.begun(private, plan, **rest))[-1].demo_set


def scored(*rows: Record) -> Dataset:
    return Dataset("test file", (), rows)


def renamed(private: Dataset) -> Dataset:
    return replace(private, name="another name")


def cut(private: Dataset) -> Dataset:
    """One old row among new ones, in other letters."""
    old = private.records[0]
    new = tuple(Record(f"new {i}", label) for i in range(12) for label in LABELS)
    return Dataset("yet another", LABELS, (Record(f"  {old.text.upper()} ", old.label), *new))


DISCLOSURES = {
    CLEAN_VALUES: lambda private, ledger: written(private, ledger, curator=True),
    NO_NOISE: lambda private, ledger: written(private, ledger, **SILENT),
    SEEDED: lambda private, ledger: written(private, ledger, SeededRandomness(1)),
    f"{SEEDED} ": lambda private, ledger: measure_sizes(private, 0.1, 1e-5, ledger, SeededRandomness(1)),
    SCORED: lambda private, ledger: mark_scored(fingerprint(scored(private.records[3])), ledger),
}


@pytest.mark.parametrize("mark", DISCLOSURES)
@pytest.mark.parametrize("other", [lambda private: private, renamed], ids=["same name", "renamed"])
def test_a_disclosure_marks_every_later_certificate_of_these_rows(mark, other):
    ledger = PrivacyLedger()
    assert written(dataset(), ledger).certificate.disclosures == ()
    DISCLOSURES[mark](dataset(), ledger)
    later = written(other(dataset()), ledger)
    assert later.certificate.disclosures == (mark.strip(),)
    assert later.to_json()["privacy"]["curator_diagnostics_shown"]
    assert any("with a test seed" in str(run["mechanism"]) for run in ledger.history("d")) == mark.startswith(SEEDED)
    assert loads(later.dumps()).certificate.disclosures == later.certificate.disclosures


def test_one_row_in_another_file_is_enough_and_none_is_not():
    ledger = PrivacyLedger()
    written(dataset(), ledger, curator=True)
    sizes = dict.fromkeys(LABELS, 30)
    assert written(cut(dataset()), ledger, sizes=sizes).certificate.disclosures == (CLEAN_VALUES,)
    stranger = Dataset("stranger", LABELS, cut(dataset()).records[1:])
    assert written(stranger, ledger, sizes=sizes).certificate.disclosures == ()


def test_a_user_is_known_again_under_other_texts():
    old = Dataset("old", LABELS, (Record("one", "a", "u1"), Record("two", "b", "u2")), "who")
    new = Dataset("new", LABELS, (Record("three", "a", "u2"), Record("four", "b", "u9")), "who")
    other = Dataset("other", LABELS, (Record("three", "a", "u3"),), "who")
    assert share_any(fingerprint(old).rows, fingerprint(new).rows)
    assert not share_any(fingerprint(old).rows, fingerprint(other).rows)


def test_an_export_after_the_fact_is_marked_where_rows_were_read():
    ledger = PrivacyLedger()
    made, public = written(dataset(), ledger), written(dataset(), ledger, **PUBLIC)
    written(renamed(dataset()), ledger, curator=True)
    assert made.certificate.disclosures == ()
    marks = ledger.rows.disclosures(fingerprint(dataset()))
    assert made.with_disclosures(marks).certificate.disclosures == (CLEAN_VALUES,)
    assert public.with_disclosures(marks) == public


def test_the_mark_is_named_among_the_public_inputs_of_what_was_read_from_rows():
    ledger = PrivacyLedger()
    assert WHETHER_SHOWN in written(dataset(), ledger).certificate.public_inputs
    written(dataset(), ledger, curator=True)
    # A set for which no row was read says nothing that follows from rows, the mark of another name included.
    public = written(renamed(dataset()), ledger, **PUBLIC)
    assert public.certificate.disclosures == ()
    assert WHETHER_SHOWN not in public.certificate.public_inputs


def test_rows_of_private_data_sets_are_found_in_a_test_file():
    ledger = PrivacyLedger()
    test = fingerprint(scored(Record("TEXT 3.", "b"), Record("unheard of", "a")))
    assert owners_of(test, ledger) == []
    written(dataset(), ledger, **SILENT)
    assert owners_of(test, ledger) == ["d"]
    assert owners_of(fingerprint(scored(Record("unheard of", "a"))), ledger) == []
    mark_scored(test, ledger)
    assert SCORED in ledger.rows.disclosures(fingerprint(dataset()))
    assert SCORED not in ledger.snapshot("d", "record").disclosures  # whose rows those are is told to the curator alone


def test_a_file_that_was_edited_since_keeps_the_marks_of_the_one_before():
    ledger = PrivacyLedger()
    written(dataset(), ledger)
    mark_scored(fingerprint(scored(dataset().records[0])), ledger)
    edited = replace(dataset(), records=dataset().records[1:])
    assert ledger.rows.disclosures(fingerprint(edited)) == (SCORED,)


def test_a_file_is_known_again_by_another_of_its_columns(tmp_path):
    path = tmp_path / "file.csv"
    rows = [f"title number {i} of the letter,body {i} speaks of something else,{'ab'[i % 2]},general" for i in range(9)]
    path.write_text("\n".join(["title,body,label,kind", *rows]))
    table = read_table(path)
    by_body = fingerprint(to_dataset(table, ColumnMapping("body", "label"), "bodies", LABELS))
    by_title = fingerprint(to_dataset(table, ColumnMapping("title", "label"), "titles", LABELS))
    assert share_any(by_body.rows, by_title.rows)
    path.write_text("text,label,kind\nnothing of the kind,a,general\n")
    stranger = fingerprint(to_dataset(read_table(path), ColumnMapping("text", "label"), "stranger", LABELS))
    assert not share_any(by_body.rows, stranger.rows)


SPELT = ["Ein Café, natürlich!", "ein cafe\u0301 natu\u0308rlich", "EIN\tCAFÉ\nNATÜRLICH."]


@pytest.mark.parametrize(
    ("text", "spelt"),
    [*(("ein Café natürlich", each) for each in SPELT), ("👍👍", " 👍👍 "), ("İstanbul", "İSTANBUL".lower())],
)
def test_spelling_does_not_make_a_stranger(text, spelt):
    assert share_any(text_digests([text]), text_digests([spelt]))
    assert not share_any(text_digests([text]), text_digests(["!!!"]))


def test_digests_mean_nothing_under_another_key_and_a_fingerprint_shows_nothing(tmp_path, monkeypatch):
    assert "text 1" not in repr(fingerprint(dataset()))
    here = text_digests(["a text"])
    assert share_any(here, text_digests([" A  Text"]))
    monkeypatch.setenv("DPICL_HOME", str(tmp_path / "another"))
    assert not share_any(here, text_digests(["a text"]))


# Units as tallies see them.


def taken(records, most: int) -> dict[str, set[tuple[str, str]]]:
    dataset = data(records, by_user=True)
    return {unit[0].unit: {(each.text, each.label) for each in unit} for unit in units_of(dataset, most)}


def own(user: str, count: int) -> list[Record]:
    return [Record(f"{user} wrote {i}", ("red", "blue")[i % 2], user) for i in range(count)]


def test_a_row_is_its_own_unit_whatever_the_cap():
    units = units_of(data(rows(9)), 1)
    assert [[each.text for each in unit] for unit in units] == [[row.text] for row in rows(9)]


def test_a_users_records_are_capped_and_the_cap_is_all_that_leaves_any_out():
    records = own("ann", 7) + own("bo", 2)
    for most in (1, 3, 7):
        found = taken(records, most)
        assert {user: len(texts) for user, texts in found.items()} == {"ann": min(7, most), "bo": min(2, most)}
        assert all(text.startswith(user) for user, texts in found.items() for text, _ in texts)


def test_what_is_taken_of_a_user_follows_from_the_user_alone():
    ann, others = own("ann", 40), own("bo", 4) + own("cy", 5)
    alone = taken(ann, 10)["ann"]
    for records in (ann[::-1], others + ann, [*ann[4:], *others, *ann[:4]]):
        assert taken(records, 10)["ann"] == alone
    assert alone != {(each.text, each.label) for each in ann[:10]}, "it is the order of the file"


def test_records_without_a_public_label_are_not_among_them():
    [unit] = units_of(data([*own("ann", 2), Record("x", "green", "ann"), Record("y", "green", "bo")], by_user=True), 9)
    assert {each.label for each in unit} == {"red", "blue"}
