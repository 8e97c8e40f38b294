"""Reading a private Parquet file in batches, after checks of the footer's size and of its stated row sizes.

Arrow parses the whole footer at once, which can need 250 times its size in memory for a malicious file.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mechanisms.data.sources import FileFormat, RawFile
from mechanisms.data.table import (
    MAX_BYTES,
    MAX_CELLS,
    MAX_COLUMNS,
    UNPACKED,
    Table,
    cell_text,
    column_names,
    plain_name,
    table_of,
)  # fmt: skip
from mechanisms.errors import DataError

_BATCH_ROWS = 4096
_MAX_FOOTER = 8 * 2**20
"""The most bytes of a footer; enough for a thousand columns in fifty row groups."""
_MAX_LISTED = 2**16
"""The most entries of a list in the footer: columns with their parents, row groups, or columns of a row group."""
_TAIL = 8
"""Bytes after the footer: its length and the magic number."""
_LONG_FOOTER = (
    f"The footer of the Parquet file is larger than {_MAX_FOOTER // 2**20} MB: write it again with fewer columns or "
    "row groups, or save the table as CSV (UTF-8)."
)
_BROKEN = (
    "The Parquet file is damaged or uses an unsupported feature: write it again, or save the table as CSV (UTF-8)."
)
_NO_CELLS = "All columns of the Parquet file have lists or other values that are not cells: save one value per cell."
_FEATURES, _CLASSES = b"huggingface", "ClassLabel"
_SCALAR = (
    pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_temporal,
    pa.types.is_null,
)  # fmt: skip
_OPTIONS = {"pre_buffer": False, "arrow_extensions_enabled": False, "thrift_container_size_limit": _MAX_LISTED}
_TEXT = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
)  # fmt: skip


_MOST_SHOWN = 5


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of plain values: at the top level, or a field of nested values, with a dotted name."""

    path: tuple[str, ...]
    field: Any
    alone: bool = True
    """Whether the path identifies this field, because no sibling has the same name."""

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def is_plain(self) -> bool:
        return _holds(self.field, (*_SCALAR, *_TEXT))

    def of(self, batch: Any) -> Any:
        """The column's values; fields of a missing nested value are missing, too."""
        found = batch.column(self.path[0])
        for name in self.path[1:]:
            found = found.flatten()[found.type.get_field_index(name)]
        return found


def read_parquet(raw: RawFile) -> Table:
    """The table of the columns of plain values, with cells as text by `cell_text`; a value that Python cannot represent
    is empty.

    The fields of nested values are columns with dotted names, as far as the limits allow; if a column and a field have
    the same name, the column is read, and of two such fields the first. The class names that the hub's library writes
    into a file are its labels' names.

    Raises:
        DataError: damaged, encrypted, without rows or without such columns, nested more than a hundred deep, or too
            large when it is unpacked.
    """
    try:
        schema, metadata = _described(raw)
        found = [*_columns([*schema])]
        plain = [each for each in found if each.is_plain]
        own = [each for each in plain if len(each.path) == 1]
        by_name = {plain_name(each.name): each for each in (*(each for each in plain[::-1] if each.alone), *own)}
        named = [each for each in plain if len(each.path) > 1 and by_name.get(plain_name(each.name)) is each]
        room = max(0, min(MAX_COLUMNS, MAX_CELLS // max(1, metadata.num_rows)) - len(own))
        taken, unique = {*own, *named[:room]}, {*own, *named}
        kept = [each for each in plain if each in taken]
        if found and not plain:
            raise DataError(_NO_CELLS)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        if sum(each.total_byte_size for each in groups) > MAX_BYTES or metadata.num_rows * len(kept) > MAX_CELLS:
            raise DataError(UNPACKED)
        names = column_names(each.name for each in kept)
        remarks = [
            f"Columns left out, since they {why}: {_listed(left_out)}."
            for why, left_out in (
                ("have lists or other values that are not cells", [each for each in found if not each.is_plain]),
                ("are nested, with the name of another column", [each for each in plain if each not in unique]),
                ("are nested, and the file has too many columns", named[room:]),
            )
            if left_out
        ]
        table = table_of(names, _rows(raw, kept), remarks)
        nested = tuple(plain_name(each.name) for each in found if not each.is_plain)
        return replace(table, class_names=_class_names(schema, names), nested=nested)
    except (pa.ArrowException, OSError, ValueError, ArithmeticError, MemoryError, LookupError, TypeError) as error:
        raise DataError(_BROKEN) from error


def _described(raw: RawFile) -> tuple[Any, Any]:
    with raw.opened() as opened:
        opened.seek(-_TAIL, os.SEEK_END)
        if int.from_bytes(opened.read(_TAIL)[:4], "little") > _MAX_FOOTER:
            raise DataError(_LONG_FOOTER)
        with pq.ParquetFile(opened, **_OPTIONS) as file:
            return file.schema_arrow, file.metadata


def _columns(fields: Sequence[Any], above: tuple[str, ...] = (), alone: bool = True) -> Iterator[_Column]:
    """The fields of the schema, or of a nested field; nested fields are replaced by their own fields."""
    counts = Counter(field.name for field in fields)
    for field in fields:
        path, by_itself = (*above, field.name), alone and counts[field.name] == 1
        if pa.types.is_struct(field.type):
            yield from _columns([*field.type], path, by_itself)
        else:
            yield _Column(path, field, by_itself)


def _listed(columns: Sequence[_Column]) -> str:
    names = ", ".join(f"'{plain_name(each.name)}'" for each in columns[:_MOST_SHOWN])
    return f"{len(columns)} ({names}{', ...' if len(columns) > _MOST_SHOWN else ''})"


def _class_names(schema: Any, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The class names in the metadata of the library "datasets"; none if they cannot be read."""
    try:
        features = json.loads(schema.metadata[_FEATURES])["info"]["features"]
        found = {name: features[name]["names"] for name in names if features.get(name, {}).get("_type") == _CLASSES}
    except (TypeError, KeyError, ValueError, AttributeError, RecursionError):
        return {}
    return {name: tuple(map(str, classes)) for name, classes in found.items() if isinstance(classes, list)}


def _holds(field: Any, kinds: Sequence[Any]) -> bool:
    """Whether a column's values are of one of the kinds, directly or as entries of a dictionary."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return any(is_kind(kind) for is_kind in kinds)


def _rows(raw: RawFile, columns: list[_Column]) -> Iterator[tuple[str, ...]]:
    """Rows as texts. A text that occurs in many cells of a column is decoded once, as a dictionary's entry."""
    texts = [each.name for each in columns if len(each.path) == 1 and _holds(each.field, _TEXT)]
    names = [each.name for each in columns]
    with raw.opened() as opened, pq.ParquetFile(opened, read_dictionary=texts, **_OPTIONS) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=names, use_threads=False):
            yield from zip(*(_cells(each.of(batch)) for each in columns), strict=True)


def _cells(array: Any) -> list[str]:
    if not pa.types.is_dictionary(array.type):
        return [_cell(scalar) for scalar in array]
    indices = array.indices.to_pylist()
    entries = {i: "" if i is None else _cell(array.dictionary[i]) for i in set(indices)}
    return [entries[i] for i in indices]


def _cell(scalar: Any) -> str:
    if not scalar.is_valid:
        return ""
    if any(holds(scalar.type) for holds in _TEXT):
        return cell_text(scalar.as_buffer().to_pybytes())
    try:
        return cell_text(scalar.as_py())
    except (ValueError, OverflowError):  # such as a year beyond 9999: one cell must not decide whether a file is read
        return ""


READER = FileFormat("parquet", "Parquet", (".parquet",), lambda raw, _: read_parquet(raw), starts=b"PAR1")
