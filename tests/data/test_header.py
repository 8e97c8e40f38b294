"""The first line: names of columns, or a row. What is doubtful is asked, and a row is never a name by default."""

from __future__ import annotations

import io

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.csv_file import Rows
from mechanisms.data.sources import EXAMPLES, RawFile, read_table
from mechanisms.data.table import Reading, ReadingAsked
from mechanisms.errors import DataError, UsageError

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


def asked(tmp_path, first: str, below: str = BELOW, **said) -> ReadingAsked | None:
    path = tmp_path / "data.csv"
    path.write_text(f"{first}\n{below}", encoding="utf-8")
    try:
        read_table(path, Reading(**said))
    except ReadingAsked as question:
        return question
    return None


@pytest.mark.parametrize("first", LOOKS_LIKE_A_ROW.values(), ids=LOOKS_LIKE_A_ROW)
def test_a_first_line_that_looks_like_a_row_is_asked_about_in_one_line_that_quotes_nothing(tmp_path, first):
    question = asked(tmp_path, first)
    assert question is not None
    assert "--no-header" in str(question)
    assert "--header" in str(question)
    assert "\n" not in str(question)
    assert not any(word in str(question) for word in first.replace(",", " ").split() if len(word) > 3)
    rows = read_table(tmp_path / "data.csv", Reading(header=False))
    assert rows.columns == ["1", "2"]
    assert [cell for cell in rows.frame.iloc[0] if cell] == [cell for cell in first.split(",") if cell]
    assert len(rows.frame) == 4


def test_a_header_after_all_is_read_as_one(tmp_path):
    assert asked(tmp_path, "My card was stolen on the way home,theft", header=True) is None
    table = read_table(tmp_path / "data.csv", Reading(header=True))
    assert table.columns == ["My card was stolen on the way home", "theft"]


@pytest.mark.parametrize("first", HEADERS)
def test_names_of_columns_are_not_asked_about(tmp_path, first):
    below = "".join(f"{',' * (first.count(',') - 1)}{row}\n" for row in BELOW.splitlines())
    assert asked(tmp_path, first, below if first != "text,label," else BELOW) is None


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_the_examples_are_read_without_a_question(example):
    labels = tuple(set(read_table(example.path).frame[example.mapping.label]))
    assert read_table(example.path, Reading(labels=labels)).columns[0].islower()


def test_a_first_line_with_a_label_of_the_set_is_asked_about(tmp_path):
    assert asked(tmp_path, "stolen,theft") is None
    assert asked(tmp_path, "stolen,theft", labels=("card", "loan")) is None
    assert asked(tmp_path, "stolen,theft", labels=("Theft ", "loan")) is not None
    assert asked(tmp_path, "notes,theft", labels=("Theft",)) is None  # the one kind of all rows is no label


def test_texts_alone_are_asked_about_from_two_words_on(tmp_path):
    assert asked(tmp_path, "Great product", "Bad service\nToo slow\n") is not None
    assert asked(tmp_path, "review text", "Bad service\nToo slow\n") is None


def test_the_separator_of_a_file_without_a_header_is_said_by_its_owner(tmp_path):
    question = asked(tmp_path, "stolen on my way;1", "lost, I fear;2\nlost;1\n")
    assert "--no-header with --separator ';'" in str(question)
    assert question.proposed.separator == ";"
    table = read_table(tmp_path / "data.csv", Reading(header=False, separator=";"))
    assert list(table.frame["1"]) == ["stolen on my way", "lost, I fear", "lost"]
    with pytest.raises(DataError, match="Line 2 does not fit"):
        read_table(tmp_path / "data.csv", Reading(header=False))
    for wrong in ("ab", "x", '"', "\n", "é"):
        with pytest.raises(UsageError, match="one character"):
            read_table(tmp_path / "data.csv", Reading(header=False, separator=wrong))


@given(
    st.lists(st.sampled_from([b"plain,a", b'"quoted, and long",b', "é,a".encode(), b"short"]), min_size=1, max_size=5),
    st.sampled_from(HOSTILE),
    st.integers(0, 5),
)
def test_without_a_header_no_row_decides_how_another_is_divided_the_first_one_included(rows, hostile, place):
    def read(lines: list[bytes]) -> list[list[str]]:
        found = Rows(RawFile("x.csv", b"".join(line + b"\n" for line in lines)), Reading(header=False))
        return [found.first, *found]

    place %= len(rows) + 1
    rows = [b"first,row", *rows]  # the number of columns: rows with more are refused
    before, after = read(rows), read([rows[0], *rows[1 : place + 1], hostile, *rows[place + 1 :]])
    del after[place + 1]
    assert after == before
    if place == 0:
        first, *others = read([hostile + b",", *rows])
        assert [row[:2] for row in others] == before
        assert len(first) >= 2


def test_columns_without_a_header_are_numbered_in_every_format_that_has_none(tmp_path):
    book = openpyxl.Workbook()
    for row in (("stolen", None, 1), ("lost", "note", 2), ("found", None, 1, "far right")):
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    path = tmp_path / "data.xlsx"
    path.write_bytes(file.getvalue())
    with pytest.raises(ReadingAsked, match="--no-header"):
        read_table(path)
    table = read_table(path, Reading(header=False))
    assert table.frame.to_dict("list") == {
        "1": ["stolen", "lost", "found"],
        "2": ["", "note", ""],
        "3": ["1", "2", "1"],
        "4": ["", "", "far right"],
    }
    dataset = to_dataset(table, ColumnMapping("1", "3"), "d", ("1", "2"))
    assert [each.text for each in dataset.records] == ["stolen", "lost", "found"]


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_a_format_with_names_of_its_own_has_no_header_to_say(tmp_path, suffix):
    path = tmp_path / f"data.{suffix}"
    path.write_bytes(b"PAR1" if suffix == "parquet" else b'{"text": "x"}\n')
    with pytest.raises(UsageError, match="has no header to say: leave out --header"):
        read_table(path, Reading(header=False))


# A title above the header.

TABLE = ["text,label", "a text about a card,card", "another about a loan,loan"]


@pytest.mark.parametrize(
    "above",
    [["Complaints 2026,", ","], ["Complaints 2026", ""], ["Our export", "of May", "2026,"], ["", " ", "Complaints"]],
)
def test_a_title_above_the_header_is_asked_about_and_skipped_where_that_is_said(tmp_path, above):
    path = tmp_path / "data.csv"
    path.write_text("\n".join([*above, *TABLE]))
    with pytest.raises(ReadingAsked, match=f"--skip-lines {len(above)} ") as question:
        read_table(path)
    assert question.value.proposed.skip == len(above)
    table = read_table(path, question.value.proposed)
    assert table.columns == ["text", "label"]
    assert len(table.frame) == 2


def test_a_title_of_a_sheet_is_asked_about(tmp_path):
    book, path = openpyxl.Workbook(), tmp_path / "data.xlsx"
    for row in (["Complaints 2026"], [], *(line.split(",") for line in TABLE)):
        book.active.append(row)
    book.save(path)
    with pytest.raises(ReadingAsked, match="--skip-lines 2 "):
        read_table(path)
    assert read_table(path, Reading(skip=2)).frame.to_dict("list")["label"] == ["card", "loan"]


def test_one_column_is_no_title(tmp_path):
    path = tmp_path / "data.csv"
    for content in ('text\n"one, two"\nthree\n', "text\nb\n"):
        path.write_text(content)
        assert read_table(path).columns == ["text"]
    path.write_text("text\nhello, you\nhello, me\n")
    with pytest.raises(DataError, match="Line 2 does not fit the header"):
        read_table(path)
