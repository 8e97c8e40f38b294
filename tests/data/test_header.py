"""The first line: names of columns, or a row. What is doubtful is asked, and a row is never a name by default."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.csv_file import Rows
from mechanisms.data.sources import EXAMPLES, RawFile, read_table
from mechanisms.data.table import Reading, ReadingQuestion
from mechanisms.errors import DataError, UsageError
from tests.data.files import as_workbook, read

LOOKS_LIKE_A_ROW = {
    "a long text": "My card was stolen on the way home,theft",
    "many letters": "Supercalifragilisticexpialidociousandmuchlongerthanthat,theft",
    "letters without spaces": "我的银行卡昨天在地铁里被人偷走了,盗窃",
    "a sentence": "Stolen again!,theft",
    "several words": "card got stolen,theft",
    "a label that occurs again": "stolen,card",
    "the same in another case": "stolen,CARD",
    "a number": "stolen,1",
    "a decimal number": "stolen,-3.5",
    "a date": "stolen,2026-05-03",
    "a time": "stolen,03/05/2026 12:30",
    "a money value": "stolen,€ 30",
    "no label": "stolen,",
    "the same twice": "stolen,stolen",
}
HEADERS = [
    "text,label", "Text,Label", "customer_message,department", "the text,the label", "comment,type,2026",
    "Satz,Kategorie",
    "文本,标签", "texte,étiquette", "Customer Message Text,Ticket Category", "review,rating", "question,topic",
    "userComment,userId", ",text", ",Kommentar", "text,label,",
]  # fmt: skip
BELOW = "a text about a card,card\nanother text about a loan,loan\nand one about a card again,card\n"
HOSTILE = [b'"open', b"a;b;c;d", b"a\tb", b"x|y|z", b"lone\rreturn", b"\xc3\xa9", b'5" wide', b",", b"sep", b'""']


def asked(raw: str, **said) -> ReadingQuestion | None:
    try:
        read(raw, **said)
    except ReadingQuestion as question:
        return question
    return None


@pytest.mark.parametrize("first", LOOKS_LIKE_A_ROW.values(), ids=LOOKS_LIKE_A_ROW)
def test_a_first_line_that_looks_like_a_row_is_asked_about_in_one_line_that_quotes_nothing(first):
    question = asked(f"{first}\n{BELOW}")
    assert question is not None
    assert "--no-header" in str(question)
    assert "--header" in str(question)
    assert "\n" not in str(question)
    assert not any(word in str(question) for word in first.replace(",", " ").split() if len(word) > 3)
    rows = read(f"{first}\n{BELOW}", header=False)
    assert rows.columns == ["1", "2"]
    assert [cell for cell in rows.frame.iloc[0] if cell] == [cell for cell in first.split(",") if cell]
    assert len(rows.frame) == 4


def test_a_header_after_all_is_read_as_one():
    table = read(f"My card was stolen on the way home,theft\n{BELOW}", header=True)
    assert table.columns == ["My card was stolen on the way home", "theft"]


@pytest.mark.parametrize("first", HEADERS)
def test_names_of_columns_are_not_asked_about(first):
    below = "".join(f"{',' * (first.count(',') - 1)}{row}\n" for row in BELOW.splitlines())
    assert asked(f"{first}\n{below if first != 'text,label,' else BELOW}") is None


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_the_examples_are_read_without_a_question(example):
    labels = tuple(set(read_table(example.path).frame[example.mapping.label]))
    assert read_table(example.path, Reading(labels=labels)).columns[0].islower()


def test_a_first_line_with_a_label_of_the_set_is_asked_about():
    raw = f"stolen,theft\n{BELOW}"
    assert asked(raw) is None
    assert asked(raw, labels=("card", "loan")) is None
    assert asked(raw, labels=("Theft ", "loan")) is not None
    assert asked(f"notes,theft\n{BELOW}", labels=("Theft",)) is None  # the one kind of all rows is no label


def test_texts_alone_are_asked_about_from_two_words_on():
    assert asked("Great product\nBad service\nToo slow\n") is not None
    assert asked("review text\nBad service\nToo slow\n") is None


def test_the_separator_of_a_file_without_a_header_is_said_by_its_owner():
    raw = "stolen on my way;1\nlost, I fear;2\nlost;1\n"
    question = asked(raw)
    assert "--no-header with --separator ';'" in str(question)
    assert question.proposed.separator == ";"
    assert list(read(raw, header=False, separator=";").frame["1"]) == ["stolen on my way", "lost, I fear", "lost"]
    with pytest.raises(DataError, match="Line 2 does not fit"):
        read(raw, header=False)
    for wrong in ("ab", "x", '"', "\n", "é"):
        with pytest.raises(UsageError, match="one character"):
            read(raw, header=False, separator=wrong)


@given(
    st.lists(st.sampled_from([b"plain,a", b'"quoted, and long",b', "é,a".encode(), b"short"]), min_size=1, max_size=5),
    st.sampled_from(HOSTILE),
    st.integers(0, 5),
)
def test_without_a_header_no_row_decides_how_another_is_divided_the_first_one_included(rows, hostile, place):
    def parsed(lines: list[bytes]) -> list[list[str]]:
        found = Rows(RawFile("x.csv", b"".join(line + b"\n" for line in lines)), Reading(header=False))
        return [found.first, *found]

    place %= len(rows) + 1
    rows = [b"first,row", *rows]  # the number of columns: rows with more are refused
    before, after = parsed(rows), parsed([rows[0], *rows[1 : place + 1], hostile, *rows[place + 1 :]])
    del after[place + 1]
    assert after == before
    if place == 0:
        first, *others = parsed([hostile + b",", *rows])
        assert [row[:2] for row in others] == before
        assert len(first) >= 2


def test_columns_without_a_header_are_numbered_in_every_format_that_has_none():
    raw = as_workbook([("stolen", None, 1), ("lost", "note", 2), ("found", None, 1, "far right")])
    with pytest.raises(ReadingQuestion, match="--no-header"):
        read(raw, "xlsx")
    table = read(raw, "xlsx", header=False)
    assert table.frame.to_dict("list") == {
        "1": ["stolen", "lost", "found"],
        "2": ["", "note", ""],
        "3": ["1", "2", "1"],
        "4": ["", "", "far right"],
    }
    dataset = to_dataset(table, ColumnMapping("1", "3"), "d", ("1", "2"))
    assert [each.text for each in dataset.records] == ["stolen", "lost", "found"]


@pytest.mark.parametrize(("suffix", "raw"), [("parquet", b"PAR1"), ("jsonl", b'{"text": "x"}\n')])
def test_a_format_with_names_of_its_own_has_no_header_to_say(suffix, raw):
    with pytest.raises(UsageError, match="has no header to set: leave out --header"):
        read(raw, suffix, header=False)


# A title above the header.

TABLE = ["text,label", "a text about a card,card", "another about a loan,loan"]


@pytest.mark.parametrize(
    "above",
    [["Complaints 2026,", ","], ["Complaints 2026", ""], ["Our export", "of May", "2026,"], ["", " ", "Complaints"]],
)
@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_title_above_the_header_is_asked_about_and_skipped_where_that_is_said(above, suffix):
    lines = [*above, *TABLE]
    raw = "\n".join(lines) if suffix == "csv" else as_workbook([line.split(",") for line in lines])
    with pytest.raises(ReadingQuestion, match=f"--skip-lines {len(above)} ") as question:
        read(raw, suffix)
    assert question.value.proposed.skip == len(above)
    table = read(raw, suffix, skip=len(above))
    assert table.columns == ["text", "label"]
    assert list(table.frame["label"]) == ["card", "loan"]


def test_one_column_is_no_title():
    for content in ('text\n"one, two"\nthree\n', "text\nb\n"):
        assert read(content).columns == ["text"]
    with pytest.raises(DataError, match="Line 2 does not fit the header"):
        read("text\nhello, you\nhello, me\n")
