"""Files made to be more than they look: each is refused in one line, or read, soon and within bounds of memory."""

from __future__ import annotations

import base64
import gzip
import io
import resource
import signal
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechanisms.data.excel_file import MAX_UNPACKED
from mechanisms.data.table import MAX_CELLS
from tests.data.files import as_parquet, as_workbook, read, refusal
from tests.data.test_formats import HEADER, parts_of, sheet, zipped

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
SECONDS = 20
"""Of this process's own time: a file as large as these takes one to three."""
ROOM = 2**30
"""Bytes of address space for reading one of them."""
MANY = 2**20


def rows(content: str) -> bytes:
    return sheet(f"<sheetData>{HEADER}{content}</sheetData>")


def understated() -> bytes:
    """A sheet that unpacks to 256 MiB, in an archive that says that it has a thousand bytes."""
    raw = rows(f'<row r="2"><c r="A2" t="inlineStr"><is><t>{"x" * 2**28}</t></is></c></row>')
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        part = archive.getinfo("xl/worksheets/sheet1.xml")
    packed, size = (each.to_bytes(4, "little") for each in (part.compress_size, part.file_size))
    return raw.replace(packed + size, packed + (1000).to_bytes(4, "little"))


def strings() -> bytes:
    namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    many = f'<sst xmlns="{namespace}">{"<si><t>a</t></si>" * (5 * MANY)}</sst>'
    return zipped({**parts_of(as_workbook([("a", "b", "c")])), "xl/sharedStrings.xml": many.encode()})


def with_metadata(size: int) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"x": ["a"]}).replace_schema_metadata({"key": "x" * size}), file)
    return file.getvalue()


def footer_of(length: int) -> bytes:
    return as_parquet({"x": ["a"]})[:-8] + length.to_bytes(4, "little") + b"PAR1"


def varint(number: int) -> bytes:
    low = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(each | 128 for each in low[:-1]), low[-1]])


def listed(items: list[bytes], claimed: int | None = None) -> bytes:
    """Structures as a list of Thrift's compact protocol, as which a footer is written."""
    return b"\xfc" + varint(len(items) if claimed is None else claimed) + b"".join(items)


def with_footer(schema: list[bytes], groups: list[bytes] = (), more: bytes = b"") -> bytes:
    """A file of nothing but a footer: its version, schema, number of rows, row groups, and more."""
    body = b"\x15\x04\x19" + listed(schema) + b"\x16\x00\x19" + listed(list(groups)) + more + b"\x00"
    return b"PAR1" + body + len(body).to_bytes(4, "little") + b"PAR1"


def root(children: int) -> bytes:
    return b"\x48\x01r\x15" + varint(2 * children) + b"\x00"


GROUP, LEAF = b"\x35\x02\x18\x01a\x15\x02\x00", b"\x15\x02\x25\x02\x18\x01b\x00"
"""Elements of a schema: one that holds the next one, and a column."""


def row_groups(number: int, columns: int) -> list[bytes]:
    return [b"\x19" + listed([b"\x26\x00\x00"] * columns) + b"\x16\x00\x16\x00\x00"] * number


def nested_in_arrow(depth: int) -> bytes:
    """A column that is text by Parquet's schema, and lists in lists by the one that Arrow keeps beside it."""
    kind = pa.int32()
    for _ in range(depth):
        kind = pa.list_(kind)
    value = base64.b64encode(pa.schema([("b", kind)]).serialize().to_pybytes())
    pair = b"\x18\x0cARROW:schema\x18" + varint(len(value)) + value + b"\x00"
    return with_footer([root(1), LEAF], more=b"\x19" + listed([pair]))


WIDE = ",".join(f"c{i}" for i in range(1000)).encode() + b"\n"
LAUGHS = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
LAUGHING = '<row r="2"><c r="A2" t="str"><v>&b;</v></c></row>'
REFUSED: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a sheet that says it is small": ("xlsx", understated),
    "a row of eight million cells": ("xlsx", lambda: sheet("<sheetData><row>" + "<c><v>1</v></c>" * (8 * MANY))),
    "nine million rows": ("xlsx", lambda: rows("<row/>" * (9 * MANY))),
    "a million elements in each other": ("xlsx", lambda: rows("<row>" + "<c>" * MANY)),
    "five million strings": ("xlsx", strings),
    "twenty thousand parts": ("xlsx", lambda: zipped({"xl/workbook.xml": b"", **{f"{i}": b"" for i in range(20_000)}})),
    "a million columns": ("csv", lambda: ",".join(f"c{i}" for i in range(MANY)).encode() + b"\n1\n"),
    "a header of commas": ("csv", lambda: b"," * (32 * MANY) + b"\n1\n"),
    "a header of quoted cells": ("csv", lambda: b'"a",' * (8 * MANY) + b"\n1\n"),
    "a header and nothing else": ("csv", lambda: b"a" * (64 * MANY)),
    "lists in lists": ("jsonl", lambda: b"[" * (8 * MANY)),
    "objects in objects": ("jsonl", lambda: b'{"a":' * MANY + b"1" + b"}" * MANY),
    "a number of millions of digits": ("jsonl", lambda: b'{"a":' + b"9" * (8 * MANY) + b"}"),
    "twenty thousand columns": ("parquet", lambda: as_parquet({f"c{i}": pa.nulls(1) for i in range(20_000)})),
    "a footer of two gigabytes": ("parquet", lambda: footer_of(2**31 - 1)),
    "a footer of minus one": ("parquet", lambda: footer_of(2**32 - 1)),
    "a footer of nine megabytes": ("parquet", lambda: with_metadata(4 * MANY)),
    "columns nested ten thousand deep": ("parquet", lambda: with_footer([root(1), *[GROUP] * 10_000, LEAF])),
    "columns nested a million deep": ("parquet", lambda: with_footer([root(1), *[GROUP] * MANY, LEAF])),
    "lists nested four thousand deep": ("parquet", lambda: nested_in_arrow(4000)),
    "half a million columns": ("parquet", lambda: with_footer([root(MANY // 2), *[LEAF] * (MANY // 2)])),
    "row groups of millions of columns": ("parquet", lambda: with_footer([root(1), LEAF], row_groups(40, 60_000))),
    "half a million row groups": ("parquet", lambda: with_footer([root(1), LEAF], row_groups(MANY // 2, 1))),
    "a list of two billion": ("parquet", lambda: with_footer([root(1), LEAF], more=b"\x19" + listed([], 2**31 - 1))),
    "gzip of a gigabyte": ("csv.gz", lambda: gzip.compress(b"a,b\n" * (16 * MANY)) * 16),
    "a part that unpacks to more": ("xlsx", lambda: zipped({"xl/workbook.xml": b"0" * MAX_UNPACKED + b"0"})),
    "a row of a great number": ("xlsx", lambda: rows('<row r="99999999999"><c r="A99999999999"><v>1</v></c></row>')),
    "entities": ("xlsx", lambda: sheet(f"<sheetData>{HEADER}{LAUGHING}</sheetData>", LAUGHS)),
    "a shared string": ("xlsx", lambda: as_workbook([("text", "label"), *[("x" * 32_000, "a")] * 17_000])),
    "a dictionary": ("parquet", lambda: as_parquet({"text": ["x" * MANY] * 600})),
    "no bytes at all": ("parquet", lambda: as_parquet({f"c{i}": pa.nulls(MAX_CELLS // 8) for i in range(9)})),
    "nothing but a footer": ("parquet", lambda: b"PAR1\x15\x04\x19\xfc" + b"\xff" * 96 + b"\x64\0\0\0PAR1"),
}  # fmt: skip
READ: dict[str, tuple[str, Callable[[], bytes]]] = {
    "one cell": ("csv", lambda: b"a,b\n" + b"x" * (64 * MANY) + b",1\n"),
    "quotes alone": ("csv", lambda: b"a,b\n" + b'"' * (8 * MANY + 1) + b"\n"),
    "a quote that opens in every line": ("csv", lambda: WIDE + b'"x\n' * 2**12),
    "a quote that opens and closes in every cell": ("csv", lambda: WIDE + b'","\n' * 2**12),
    "a fraction of millions of digits": ("jsonl", lambda: b'{"a":1.' + b"9" * (8 * MANY) + b"}"),
    "a hundred thousand names": ("jsonl", lambda: b"{" + b",".join(b'"k%d":1' % i for i in range(99_999)) + b"}"),
    "megabytes of metadata": ("parquet", lambda: with_metadata(2 * MANY)),
}


class TooLong(BaseException):
    """A reader is at work for longer than it may be; no reader catches this."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises `TooLong` where this process computes for longer; in the main thread alone."""

    def late(*_: Any) -> None:
        raise TooLong

    usual = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, usual)


@contextmanager
def within_bounds() -> Iterator[None]:
    """Lets this process have so many bytes more than it has, and so many seconds of its own time."""
    usual = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + ROOM, usual[1]))
    try:
        with at_most(SECONDS):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, usual)


@pytest.mark.parametrize("bomb", REFUSED)
def test_a_bomb_is_refused_in_one_line_soon_and_within_bounds(bomb: str):
    suffix, made = REFUSED[bomb]
    raw = made()
    with within_bounds():
        line = refusal(raw, suffix)
    assert line is not None
    assert "\n" not in line
    assert len(line) < 200


@pytest.mark.parametrize("bomb", READ)
def test_what_is_only_large_is_read_soon_and_within_bounds(bomb: str):
    suffix, made = READ[bomb]
    raw = made()
    with within_bounds():
        table = read(raw, suffix)
    assert len(table.frame) > 0
