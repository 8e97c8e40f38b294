"""Units as tallies see them."""

from __future__ import annotations

from mechanisms.data.sizes import units_of
from mechanisms.records import Record
from tests.recipes.running import data, rows


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
