"""A Modelfile of Ollama: the instruction as the system message, the demonstrations as earlier turns.

A value between three quotes ends at the first line that ends with three quotes, which cannot be escaped. Ollama first
drops characters that are not printable, so quotes with such characters between them count as a run.
"""

from __future__ import annotations

import re

from mechanisms.exports.chat import conversation
from mechanisms.exports.export_format import ExportFormat, ReleasedFile, in_a_line

_RUN = re.compile(r'("[^\w!-~]*"[^\w!-~]*)"')


def quoted(text: str) -> str:
    """Any text as one value: every third quote of a run becomes a single quote."""
    return '"""' + _RUN.sub(r"\1'", text) + '"""'


def _files(released: ReleasedFile) -> str:
    first, *turns = conversation(released.demo_set, released.demo_set.demonstrations)
    lines = [
        f"# {in_a_line(released)}",
        "# Put the name of your model behind FROM, then: ollama create NAME -f Modelfile",
        "FROM your-model",
        "PARAMETER temperature 0",
        f"SYSTEM {quoted(first['content'])}",
        *(f"MESSAGE {each['role']} {quoted(each['content'])}" for each in turns),
    ]
    return "".join(f"{line}\n" for line in lines)


FORMAT = ExportFormat(
    name="modelfile",
    title="Ollama Modelfile",
    purpose="For Ollama: a model of yours that knows the instruction and the demonstrations.",
    file_name="Modelfile",
    media_type="text/plain",
    files=_files,
    without_demonstrations=True,
)
