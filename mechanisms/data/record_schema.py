"""The public JSON schema of structured records: the supported schemas, and the canonical text of a record."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema

from mechanisms.errors import UsageError
from mechanisms.files import bundled
from mechanisms.records import PromptTemplate

Json = dict[str, Any]

MAX_LENGTH, MAX_ITEMS = 100, 5
"""The most characters of a string and items of a list, where the schema sets no limit."""
RECORD_TEMPLATE = PromptTemplate("Write one JSON record of the given kind.", "JSON record", "Kind")
"""The default prompt template of records."""
_LARGEST_NUMBER = 2**53 - 1
"""JSON readers disagree on whole numbers beyond it (RFC 8259)."""
_LONGEST = 100_000
_NO_SCHEMA = "This is not a JSON schema of records: "


@functools.cache
def _dialect() -> Any:
    document = json.loads(bundled("record-dialect.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(document)


@dataclass(frozen=True)
class RecordSchema:
    """A schema with default bounds filled in: its records are also valid against the original schema.

    Attributes:
        document: the schema; records have their properties in its order.
    """

    document: Any

    def __post_init__(self) -> None:
        try:
            problem = jsonschema.exceptions.best_match(_dialect().iter_errors(self.document))
            if problem is None:
                object.__setattr__(self, "document", _bounded(self.document))
                return
        except RecursionError as error:
            raise UsageError(f"{_NO_SCHEMA}it is nested too deeply.") from error
        where = "/".join(str(part) for part in problem.absolute_path) or "the top level"
        raise UsageError(f"{_NO_SCHEMA}{problem.validator} fails at {where}; docs/data.md lists what is supported.")

    @classmethod
    def read(cls, text: str) -> RecordSchema:
        """Read a schema.

        Raises:
            UsageError: not JSON, or not supported; the message names the first such place.
        """
        try:
            document = json.loads(text) if len(text) <= _LONGEST else None
            json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{_NO_SCHEMA}it is not JSON.") from error
        return cls(document)

    @property
    def text(self) -> str:
        """The schema as text, on one line."""
        return json.dumps(self.document, ensure_ascii=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal digits; it depends on the order of properties."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def fixed_bytes(self) -> int:
        """The most bytes of a record with empty strings: the part of its text that the schema determines."""
        return _fixed(self.document)

    def canonical(self, record: Mapping[str, Any]) -> str:
        """A record's text for the model: the schema's properties alone, in the schema's order; "" if it has none.

        Values are not validated: whether a run starts must not depend on one record.
        """
        arranged = _arranged(record, self.document)
        return dumps(arranged) if arranged else ""

    def holds(self, text: str) -> bool:
        """Whether a text is a valid record."""
        try:
            return bool(jsonschema.Draft202012Validator(self.document).is_valid(json.loads(text)))
        except (ValueError, RecursionError):
            return False


def dumps(record: Any) -> str:
    """A record's canonical text: one line, a space after each colon and comma, no escapes for letters."""
    return json.dumps(record, ensure_ascii=False)


def rewritten(text: str) -> str:
    """The canonical form of a JSON text."""
    return dumps(json.loads(text))


def _bounded(schema: Json) -> Json:
    if "enum" in schema:
        return schema
    match schema["type"]:
        case "object":
            properties = {name: _bounded(each) for name, each in schema["properties"].items()}
            return {**schema, "properties": properties, "additionalProperties": False}
        case "array":
            usual = max(MAX_ITEMS, schema.get("minItems", 0))
            return {**schema, "items": _bounded(schema["items"]), "maxItems": schema.get("maxItems", usual)}
        case "string":
            return {**schema, "maxLength": schema.get("maxLength", max(MAX_LENGTH, schema.get("minLength", 0)))}
        case "integer":
            return {"minimum": -_LARGEST_NUMBER, "maximum": _LARGEST_NUMBER, **schema}
        case _:
            return schema


def _fixed(schema: Json) -> int:
    if "enum" in schema:
        return max(len(dumps(each).encode()) for each in schema["enum"])
    match schema["type"]:
        case "object":
            values = schema["properties"].items()
            return 2 + sum(len(dumps(name).encode()) + len(": , ") + _fixed(each) for name, each in values)
        case "array":
            return 2 + int(schema["maxItems"]) * (len(", ") + _fixed(schema["items"]))
        case "integer":
            return max(len(str(schema[end])) for end in ("minimum", "maximum"))
        case kind:
            return {"string": len('""'), "boolean": len("false"), "null": len("null")}[kind]


def _arranged(value: Any, schema: Json) -> Any:
    if isinstance(value, Mapping) and "properties" in schema:
        known = ((name, each) for name, each in schema["properties"].items() if name in value)
        return {name: _arranged(value[name], each) for name, each in known}
    if isinstance(value, list) and "items" in schema:
        return [_arranged(each, schema["items"]) for each in value]
    return value
