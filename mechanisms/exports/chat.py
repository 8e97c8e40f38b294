"""A set as the messages of a chat: what the formats for chat models share.

Tools that keep prompts fill `{{text}}`. Some run the rest as a template too (Nunjucks, Jinja), or load a file that a
text names. Texts of a set are hostile: `inert` puts a space into such marks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mechanisms.demos.demo_set import DemoSet
from mechanisms.inference.prompts import one_line
from mechanisms.records import Demonstration

BLANK = "{{text}}"
"""The place of the text to classify."""

Message = dict[str, str]
"""`role` and `content`."""

_MARK = re.compile(r"\{(?=[{%#])|#(?=\})|file:(?=//)", re.IGNORECASE)


def inert(text: str) -> str:
    """A text that no tool runs or loads: a space breaks every `{{`, `{%`, `{#`, `#}` and `file://`.

    No template language has an escape that all other tools undo, so the model reads the space too.
    """
    return _MARK.sub(r"\g<0> ", text)


def system(made: DemoSet) -> str:
    """The set's own instruction, with the released words of its labels, and the labels to answer with."""
    if len(made.labels) < 2:
        return made.prompt.instruction
    return f"{made.prompt.instruction}\nAnswer with one label and nothing else: {', '.join(map(one_line, made.labels))}"


def conversation(made: DemoSet, shown: Sequence[Demonstration]) -> list[Message]:
    """The system's message, and two turns a demonstration, with texts as they are."""
    said = [("system", system(made))]
    for each in shown:
        said += [("user", each.text), ("assistant", each.label)]
    return [{"role": role, "content": content} for role, content in said]


def template(made: DemoSet) -> list[Message]:
    """The whole set with its texts inert, and the blank as the last turn."""
    fixed = [each | {"content": inert(each["content"])} for each in conversation(made, made.demonstrations)]
    return [*fixed, {"role": "user", "content": BLANK}]


def response_format(made: DemoSet) -> dict[str, Any]:
    """The field that asks a server for one label: a JSON object of a schema that has no other answers.

    It is empty for a set of one label: there is nothing to choose.
    """
    if len(made.labels) < 2:
        return {}
    answer = {"type": "string", "enum": list(made.labels)}
    schema = {"type": "object", "properties": {"label": answer}, "required": ["label"], "additionalProperties": False}
    form = {"name": "answer", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": form}}
