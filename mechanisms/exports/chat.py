"""A set as the messages of a chat, shared by the formats for chat models.

Prompt tools fill `{{text}}`. Some also run the rest as a template (Nunjucks, Jinja), or load a file that a text names.
Texts of a set are hostile: `inert` inserts a space into such marks.
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
    """A text that no tool runs or loads, with a space in every `{{`, `{%`, `{#`, `#}` and `file://`.

    No escape of a template language is undone by all other tools, so the model also reads the space.
    """
    return _MARK.sub(r"\g<0> ", text)


def system(made: DemoSet) -> str:
    """The set's own instruction, with the released words of its labels, and the labels to answer with."""
    if len(made.labels) < 2:
        return made.prompt.instruction
    return f"{made.prompt.instruction}\nAnswer with one label and nothing else: {', '.join(map(one_line, made.labels))}"


def conversation(made: DemoSet, shown: Sequence[Demonstration]) -> list[Message]:
    """The system message, and two turns per demonstration, with unchanged texts."""
    said = [("system", system(made))]
    for each in shown:
        said += [("user", each.text), ("assistant", each.label)]
    return [{"role": role, "content": content} for role, content in said]


def template(made: DemoSet) -> list[Message]:
    """The whole set with inert texts, and the placeholder as the last turn."""
    fixed = [each | {"content": inert(each["content"])} for each in conversation(made, made.demonstrations)]
    return [*fixed, {"role": "user", "content": BLANK}]


def response_format(made: DemoSet) -> dict[str, Any]:
    """The `response_format` that restricts a server's answer to one label: a JSON object of a schema without other
    answers.

    It is empty for a set of one label.
    """
    if len(made.labels) < 2:
        return {}
    answer = {"type": "string", "enum": list(made.labels)}
    schema = {"type": "object", "properties": {"label": answer}, "required": ["label"], "additionalProperties": False}
    form = {"name": "answer", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": form}}
