"""The same rows are the same table in every format; a broken or a hostile file gets one line that quotes no cell."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import random
import re
import zipfile
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms import api
from mechanisms.data import parquet_file
from mechanisms.data.columns import ColumnMapping, inspect, to_dataset
from mechanisms.data.sources import file_formats, read_table
from mechanisms.data.table import ReadingQuestion
from mechanisms.errors import DataError, UsageError
from tests.conftest import ROOT
from tests.data.files import as_parquet, as_workbook, read, refusal

NAMES = ("text", "label", "more")
# XML knows no other control characters, and Excel takes what begins with "=" as a formula.
CELLS = st.text(st.sampled_from("ab é“ÿ日🎉,;\t|\"'\n\x85\u2028<&0.5"), max_size=12)
ROWS = st.lists(st.tuples(CELLS, st.sampled_from(["a", "b c"]), CELLS), min_size=1, max_size=8)
SECRET = "Mr Quillfeather of 12 Orchard Lane"
PRIVATE = [(f"{SECRET} came in, visit {i}", "ab"[i % 2], SECRET) for i in range(30)]


def separated(rows, delimiter: str) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([NAMES, *rows])
    return text.getvalue().encode()


def one_sheet(rows) -> bytes:
    return as_workbook([NAMES, *rows])


def by_name(rows) -> dict[str, list[str]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(NAMES)}


def objects(rows) -> list[dict[str, str]]:
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


WRITERS = {
    "csv": lambda rows: separated(rows, ","),
    "tsv": lambda rows: separated(rows, "\t"),
    "xlsx": one_sheet,
    "parquet": lambda rows: as_parquet(by_name(rows)),
    "jsonl": lambda rows: "".join(json.dumps(each) + "\n" for each in objects(rows)).encode(),
    "json": lambda rows: json.dumps(objects(rows)).encode(),
}


@pytest.mark.parametrize("known", file_formats(), ids=lambda known: known.name)
def test_every_format_is_written_here_and_named_on_the_page(known):
    assert {suffix.removeprefix(".") for suffix in known.suffixes} & {*WRITERS}
    page = (ROOT / "docs/data.md").read_text(encoding="utf-8")
    assert all(title in page for title in known.title.split(", "))


@pytest.mark.slow
@settings(max_examples=30)
@given(ROWS)
def test_every_format_gives_the_same_table(rows):
    for suffix, writer in WRITERS.items():
        table = read(writer(rows), suffix)
        assert table.columns == list(NAMES), suffix
        assert [tuple(row) for row in table.frame.to_numpy(dtype=object)] == rows, suffix
        assert table.remarks == (), suffix


@pytest.mark.parametrize("suffix", ["xlsx", "parquet"])
def test_what_a_file_is_shows_in_its_bytes_and_not_in_its_name(suffix):
    assert read(WRITERS[suffix](PRIVATE), "csv").columns == list(NAMES)


def mutated(raw: bytes, generator: random.Random) -> bytes:
    content = bytearray(raw)
    for _ in range(generator.randint(1, 4)):
        at = generator.randrange(len(content))
        match generator.randrange(4):
            case 0:
                content[at] = generator.randrange(256)
            case 1:
                content[at:] = b""
            case 2:
                content[at : at + generator.randrange(40)] = b""
            case _:
                content[at:at] = generator.choice([b"\xff" * 9, b"<x>", b"9" * 30, b"\x00", b"-1"])
        content = content or bytearray(b"x")
    return bytes(content)


def parts_of(workbook: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def mutated_part(raw: bytes, generator: random.Random) -> bytes:
    """A workbook with one broken part, and sound checksums."""
    parts = parts_of(raw)
    broken = generator.choice(sorted(parts))
    return zipped({**parts, broken: mutated(parts[broken], generator)})


def zipped(parts: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize(("suffix", "break_it"), [*((suffix, mutated) for suffix in WRITERS), ("xlsx", mutated_part)])
def test_a_broken_file_is_read_or_refused_in_one_line_that_quotes_no_cell(suffix, break_it):
    raw, refused = WRITERS[suffix](PRIVATE), 0
    for seed in range(40):
        line = refusal(break_it(raw, random.Random(seed)), suffix)
        if line is not None:
            refused += 1
            assert "\n" not in line
            assert not any(word in line for word in SECRET.split() if len(word) > 2)
    assert refused


@pytest.mark.parametrize("known", file_formats(), ids=lambda known: known.name)
def test_any_content_under_the_mark_and_the_name_of_a_format_is_read_or_refused_in_one_line(known):
    for suffix in known.suffixes:
        for raw in (separated(PRIVATE, ","), WRITERS["jsonl"](PRIVATE), SECRET.encode("utf-16"), b"\xff\x00" * 99, b""):
            line = refusal(known.starts + raw, suffix.removeprefix("."))
            assert line is None or "\n" not in line
            assert line is None or not any(word in line for word in SECRET.split() if len(word) > 2)


def test_a_format_is_known_by_its_mark_or_by_its_name_and_no_two_share_one():
    marks = [each.starts for each in file_formats() if each.starts]
    assert not any(one is not other and one.startswith(other) for one in marks for other in marks)
    names = [suffix for each in file_formats() for suffix in each.suffixes]
    assert len(set(names)) == len(names)
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in names)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_part_that_does_not_unpack_is_damage_however_it_was_packed(method):
    parts = parts_of(one_sheet(PRIVATE))
    packed = zipped(parts, method)
    assert refusal(packed, "xlsx") is None
    first = packed.index(next(iter(parts)).encode()) + len(next(iter(parts)))
    broken = packed[: first + 4] + b"\xff" * 40 + packed[first + 44 :]
    assert "damaged" in (refusal(broken, "xlsx") or "")


def test_cells_of_a_type_become_text_one_by_one():
    day, moment = datetime.date(2024, 1, 31), datetime.datetime(2024, 1, 31, 9, 30)
    typed = [1, 1.0, 2.5, True, None, day, moment, datetime.time(9, 30)]
    texts = ["1", "1", "2.5", "true", "", "2024-01-31", "2024-01-31 09:30:00", "09:30:00"]
    assert list(read(one_sheet([("x", "a", cell) for cell in typed]), "xlsx").frame["more"]) == texts
    for cell, text in zip(typed, texts, strict=True):
        for beside in (cell, None):
            assert read(as_parquet({"x": [cell, beside]}), "parquet").frame["x"].iloc[0] == text
    lines = "".join(json.dumps({"x": cell}) + "\n" for cell in [1, 1.0, 2.5, True, None, {"y": [1]}])
    assert list(read(lines.encode(), "jsonl").frame["x"]) == ["1", "1", "2.5", "true", "", '{"y": [1]}']


def test_parquet_s_own_types_are_read_and_what_is_nested_is_left_out_with_a_remark():
    columns = {
        "many": pa.array(["a", None]).dictionary_encode(),
        "bytes": pa.array([b"caf\xc3\xa9", b"\xff"]),
        "sum": pa.array([Decimal("1.50"), None]),
        "missing": pa.nulls(2),
        "far": pa.array([0, 2**62], pa.timestamp("us")),
        "no number": pa.array([float("nan"), float("inf")]),
        "list": [[SECRET], []],
    }
    table = read(as_parquet(columns), "parquet")
    assert table.columns == [name for name in columns if name != "list"]
    assert table.frame.to_numpy(dtype=object).tolist() == [
        ["a", "café", "1.50", "", "1970-01-01", ""],
        ["", "\ufffd", "", "", "", "inf"],
    ]
    assert table.remarks == ("Columns left out, since they have lists or other values that are not cells: 1 ('list').",)


@pytest.mark.parametrize("name", ["tags", "content", "content.tags"])
def test_a_parquet_column_of_lists_that_is_named_is_called_so_after_the_remarks(name, tmp_path):
    rows = {"text": ["x", "y"], "label": ["a", "b"], "tags": [[SECRET], []], "content": [{"tags": [SECRET]}] * 2}
    path, told = tmp_path / "notes.parquet", list[str]()
    path.write_bytes(as_parquet(rows))
    with pytest.raises(DataError, match=f"'{re.escape(name)}' has lists.*another column, such as 'text', 'label'"):
        api.load(path, ["a", "b"], text=name, label="label", tell=told.append)
    assert [line for line in told if "have lists" in line] == [*read_table(path).remarks]
    with pytest.raises(DataError, match="save one value per cell"):
        read(as_parquet({"tags": rows["tags"]}), "parquet")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(CELLS, st.one_of(st.none(), CELLS), st.booleans()), min_size=1, max_size=6))
def test_nested_fields_are_the_same_columns_in_every_format_that_nests(rows):
    nested = [{"content": {"text": text, "more": {"note": note}}, "label": "ab"[kind]} for text, note, kind in rows]
    flat = read(json.dumps([{"content.text": t, "content.more.note": n, "label": "ab"[k]} for t, n, k in rows]), "json")
    for raw, suffix in (
        (json.dumps(nested), "json"),
        (json.dumps({"version": 1, "data": nested}), "json"),
        ("\n".join(map(json.dumps, nested)), "jsonl"),
        (as_parquet({name: [row[name] for row in nested] for name in ("content", "label")}), "parquet"),
    ):
        table = read(raw, suffix)
        assert table.columns == ["content.text", "content.more.note", "label"]
        datasets = [to_dataset(each, ColumnMapping("content.text", "label"), "d", ("a", "b")) for each in (table, flat)]
        assert list(datasets[0].content()) == list(datasets[1].content())
        assert table.frame.equals(flat.frame)


def test_a_column_with_a_dot_is_read_before_a_nested_field_of_its_name_and_that_is_said():
    raw = as_parquet({"text": [{"en": "inner"}, None], "text.en": ["literal", "other"], "tags": [["x"], []]})
    table = read(raw, "parquet")
    assert table.frame.to_dict("list") == {"text.en": ["literal", "other"]}
    assert any("nested, with the name of another column: 1 ('text.en')" in remark for remark in table.remarks)
    assert any("1 ('tags')" in remark for remark in table.remarks)
    missing = read(as_parquet({"text": [{"en": "a"}, None, {"en": "b"}], "label": ["a", "b", "a"]}), "parquet")
    assert list(missing.frame["text.en"]) == ["a", "", "b"]
    with pytest.raises(DataError, match=r"'text' is nested.*name its field instead"):
        inspect(missing, ColumnMapping("text", "label"))


@pytest.mark.parametrize(
    ("beside", "read_too", "left_out"),
    [
        (pa.array([{f"f{i}": "x" for i in range(1500)}] * 2), 998, 502),
        (pa.array([{"a b": "x", "a  b": "y", "c": "z"}] * 2), 2, 1),
        (pa.StructArray.from_arrays([pa.array(["x", "y"])] * 3, names=["a", "a", "c"]), 1, 2),
        (pa.array([{"a.b": "x", "a": {"b": "y"}}] * 2), 1, 1),
        (pa.array([{}] * 2, pa.struct([("a", pa.struct([("b", pa.string())]))])), 1, 0),
    ],
    ids=["many fields", "names alike but for spaces", "the same name", "the same dotted name", "no values"],
)
def test_nested_fields_take_no_plain_column_from_a_parquet_file(beside, read_too, left_out):
    columns = {"extra": beside, "text": ["x", "y"], "label": ["a", "b"]}
    table = read(as_parquet(columns), "parquet")
    assert table.frame[["text", "label"]].to_dict("list") == {name: columns[name] for name in ("text", "label")}
    assert len(table.columns) == 2 + read_too
    assert [remark.partition(": ")[2].split()[0] for remark in table.remarks] == [str(left_out)] * bool(left_out)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "xlsx", "parquet", "jsonl", "json"])
def test_white_space_in_a_column_s_name_is_one_space_wherever_it_is_named(suffix):
    odd = {"message.text\nbody": ["x", "y"], " label\t (final)": ["a", "b"]}
    lines = [*zip(*odd.values(), strict=True)]
    as_objects = [dict(zip(odd, line, strict=True)) for line in lines]

    def separated_by(delimiter: str) -> str:
        return "\n".join(delimiter.join(f'"{cell}"' for cell in line) for line in [tuple(odd), *lines])

    raw = {
        "csv": separated_by(","),
        "tsv": separated_by("\t"),
        "xlsx": as_workbook([tuple(odd), *lines]),
        "parquet": as_parquet(odd),
        "jsonl": "\n".join(map(json.dumps, as_objects)),
        "json": json.dumps(as_objects),
    }[suffix]
    table = read(raw, suffix)
    assert table.columns == ["message.text body", "label (final)"]
    for names in (tuple(odd), ("message.text  body", "label (final)\r\n")):
        dataset = to_dataset(table, ColumnMapping(*names), "d", ("a", "b"))
        assert [(each.text, each.label) for each in dataset.records] == lines


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
)
@pytest.mark.parametrize("dictionary", [True, False])
def test_text_is_text_however_arrow_keeps_it(kind, dictionary):
    texts = ["café", "", None, "café", "x" * 40]
    as_string, table = (
        read(as_parquet({"text": pa.array(texts, each)}, use_dictionary=dictionary), "parquet")
        for each in (pa.string(), kind)
    )
    assert list(table.frame["text"]) == list(as_string.frame["text"]) == [text or "" for text in texts]
    assert table.remarks == ()


def test_a_formula_is_the_value_that_was_saved_with_it_and_only_the_first_sheet_that_shows_is_read():
    raw = as_workbook([NAMES, ("=1+1", "a", "x")], [], [])
    parts = parts_of(raw)
    sheet = "xl/worksheets/sheet1.xml"
    assert list(read(raw, "xlsx").frame["text"]) == [""]
    for empty in (b"<v/>", b"<v></v>", b"<v />"):
        parts[sheet] = parts[sheet].replace(b"<f>1+1</f>" + empty, b"<f>1+1</f><v>2</v>")
    table = read(zipped(parts), "xlsx")
    assert list(table.frame["text"]) == ["2"]
    assert table.remarks == (
        "Read the sheet 'sheet 0', the first of 'sheet 0', 'sheet 1', 'sheet 2': --sheet names another.",
    )


def test_sheets_are_named_and_chosen():
    names = ("hidden", "one", "two")
    raw = as_workbook(*([NAMES, ("x", each, "m")] for each in names), names=names)
    table = read(raw, "xlsx")
    assert (list(table.frame["label"]), table.sheets) == (["one"], ("one", "two"))
    assert "'one', 'two'" in table.remarks[0]
    table = read(raw, "xlsx", sheet="two")
    assert (list(table.frame["label"]), table.remarks) == (["two"], ())
    for missing in ("three", "hidden"):
        with pytest.raises(DataError, match="choose one of 'one', 'two'"):
            read(raw, "xlsx", sheet=missing)
    with pytest.raises(UsageError, match="leave out --sheet"):
        read(WRITERS["csv"](PRIVATE), "csv", sheet="one")


@pytest.mark.parametrize("empty", [[], [("About this file",)]])
def test_a_first_sheet_without_rows_is_no_dead_end(empty):
    raw = as_workbook(empty, [NAMES, ("x", "a", "m")], names=("one", "two"))
    with pytest.raises(ReadingQuestion, match="--sheet NAME") as question:
        read(raw, "xlsx")
    assert (question.value.parts, question.value.proposed.sheet) == (("one", "two"), "two")
    assert len(read(raw, "xlsx", sheet="two").frame) == 1


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "json"])
def test_a_text_file_is_read_out_of_gzip_whatever_its_name_says(suffix):
    plain = read(WRITERS[suffix](PRIVATE), suffix)
    for name in (f"{suffix}.gz", *(() if suffix == "tsv" else (suffix,))):
        packed = read(gzip.compress(WRITERS[suffix](PRIVATE)), name)
        assert packed.frame.equals(plain.frame)
        assert type(packed) is type(plain)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (gzip.compress(WRITERS["csv"](PRIVATE))[:-20], "gzip file is damaged"),
        (b"\x1f\x8b" + SECRET.encode(), "gzip file is damaged"),
        (gzip.compress(WRITERS["csv"](PRIVATE)) + b"more", "gzip file is damaged"),
        (gzip.compress(one_sheet(PRIVATE)), "cannot be read inside gzip"),
        (gzip.compress(WRITERS["parquet"](PRIVATE)), "cannot be read inside gzip"),
    ],
)
def test_what_does_not_come_out_of_gzip_gets_one_line(raw, message):
    assert message in (refusal(raw, "csv.gz") or "")


def test_what_gzip_holds_is_bounded_before_it_is_read(monkeypatch):
    monkeypatch.setattr("mechanisms.data.sources.MAX_BYTES", 1000)
    assert "when it is unpacked" in (refusal(gzip.compress(b"text,label\n" + b"x,a\n" * 300), "csv.gz") or "")
    assert refusal(gzip.compress(b"text,label\n" + b"x,a\n" * 200), "csv.gz") is None


def sheet(content: str, head: str = "") -> bytes:
    """A workbook whose only sheet has this XML."""
    parts = parts_of(one_sheet([]))
    xmlns = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    parts["xl/worksheets/sheet1.xml"] = f'{head}<worksheet xmlns="{xmlns}">{content}</worksheet>'.encode()
    return zipped(parts)


HEADER = '<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c><c r="B1"><v>2</v></c></row>'


def test_row_groups_say_their_size_before_they_are_unpacked(monkeypatch):
    raw = as_parquet(by_name(PRIVATE))
    monkeypatch.setattr(parquet_file, "MAX_BYTES", 100)
    monkeypatch.setattr(parquet_file, "_rows", None)
    assert "unpacked" in (refusal(raw, "parquet") or "")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (zipped({"train.csv": b"text,label"}), "archive"),
        (b"PK\x03\x04rest of a spreadsheet", "damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "old or a protected Excel file"),
        (one_sheet([]), "no rows"),
        (sheet("<sheetData></sheetData>"), "empty"),
        (b"PAR1", "damaged"),
        (as_parquet({"name": ["x"]}).replace(b"name", b"na\xffe"), "damaged"),
        (as_parquet({"when": pa.array([0], pa.timestamp("s", "Nowhere/Land"))}), "damaged"),
        (as_parquet({"text": pa.array([], pa.string())}), "no rows"),
        (as_parquet({"list": [[1]]}), "have lists"),
        (as_parquet({"a b": ["x"], "a  b": ["y"]}), "name the columns"),
        (as_parquet({f"c{i}": ["x"] for i in range(1001)}), "1,000 columns"),
    ],
)
def test_a_file_that_is_no_table_gets_one_line(raw, message):
    assert message in (refusal(raw, "csv") or "")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(DataError, match="cannot be opened"):
        read_table(tmp_path)
