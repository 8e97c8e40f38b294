"""Run a case, and put down what it showed and wrote; compare two of those."""

from __future__ import annotations

import hashlib
import io
import json
import math
import platform
import re
import shlex
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from tests.baselines.cases import Case, Cut
from tests.baselines.data import write_data
from tests.baselines.seams import VERSION, World, world

EXPECTED = Path(__file__).parent / "expected"

_LONG, _SHOWN = 8, 3
"""A longer list of numbers or short texts is kept as a digest beside its first entries."""
_WIDTH = 118
_SAME, _BITS, _NONE = "as before", "bits", "(nothing)"
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
_NEAR = 1e-8
"""On another kind of processor exponentials round otherwise, and what a solver finds differs by some 1e-10."""
_DIGEST = re.compile(r"\b(?:[0-9a-f]{4} ){7}[0-9a-f]{4}\b")
_PLACE = re.compile(r"(a defect of this program \().*(\))")
_HEX = re.compile(r"\b[0-9a-f]{64}\b")


def recorded(case: Case) -> dict[str, Any]:
    """Everything that a case's commands printed and wrote, and how often they drew what."""
    with tempfile.TemporaryDirectory(prefix="baseline-") as name:
        # The seed follows from the name: a further case changes no other one.
        with world(zlib.crc32(case.name.encode()), Path(name)) as one:
            write_data(Path.cwd())
            before, steps, priced = _files(), [], dict[str, Any]()
            for step in case.steps:
                found = _ran(one, step)
                after = _files()
                changed = {path for path, text in after.items() if before.get(path) != text}
                found["files"] = _once({path: _content(after[path], before.get(path, "")) for path in changed})
                before = after
                priced |= {path: each["privacy"]["event"] for path, each in _sets(found["files"]).items()}
                steps.append({**found, "out": _priced(found.get("out", []), priced)})
        draws = sorted(f"{times} times {what}" for what, times in one.draws.items())
        return _Plain(name)({"machine": machine(), "steps": steps, "draws": draws})


def machine() -> str:
    """What the last bits of a number depend on: the processor's instructions, as numpy uses them."""
    used = np.show_config(mode="dicts")["SIMD Extensions"]
    return " ".join([platform.machine(), *used["baseline"], *used.get("found", ())])


def _ran(one: World, step: str | Cut) -> dict[str, Any]:
    """One command; of a cut one the model breaks down on the way."""
    line, one.breaks_at = (step.line, step.session) if isinstance(step, Cut) else (step, None)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = one.main(shlex.split(line))
        except SystemExit as stop:  # argparse
            code = int(stop.code or 0)
    errors = err.getvalue().splitlines()
    if any(each.startswith("usage:") for each in errors):  # it lists all options there are
        errors = errors[-1:]
    command = line if not isinstance(step, Cut) else f"{line}  [breaks down at session {step.session}]"
    return {"command": command, "exit": code, "out": _content(out.getvalue()), "err": errors}


def _files() -> dict[str, str]:
    return {path.as_posix(): path.read_bytes().decode() for path in Path().rglob("*") if path.is_file()}


def _content(text: str, before: str = "") -> Any:
    """A text as JSON, or as lines that may be JSON; a line that stood in its place before is not put down again."""
    try:
        return json.loads(text)
    except ValueError:
        old = before.split("\n")
        lines = enumerate(text.split("\n") if text else ())
        return [_SAME if each and each in old[i : i + 1] else _line(each) for i, each in lines]


def _line(text: str) -> Any:
    try:
        return json.loads(text) if text.startswith("{") else text
    except ValueError:
        return text


def _once(files: dict[str, Any]) -> dict[str, Any]:
    """The set that stands in the first line of a run's file is put down once, with what only the set's own file has."""
    sets = _sets(files)
    for lines in files.values():
        head = lines[0] if isinstance(lines, list) and lines and isinstance(lines[0], dict) else {}
        same = [path for path, each in sets.items() if head.get("demo_set", {"": ""}).items() <= each.items()]
        if same:
            head["demo_set"] = f"as in {same[0]}"
    return files


def _sets(files: dict[str, Any]) -> dict[str, Any]:
    return {path: each for path, each in files.items() if isinstance(each, dict) and "privacy" in each}


def _priced(value: Any, known: dict[str, Any]) -> Any:
    """The price of a set, which the accountants and the ledger tell again, is put down once."""
    if same := [path for path, each in known.items() if each == value]:
        return f"as in {same[-1]}"
    if isinstance(value, dict):
        return {key: _priced(each, known) for key, each in value.items()}
    return [_priced(each, known) for each in value] if isinstance(value, list) else value


class _Plain:
    """Without what is another one each time: the folder, the version, and digests that cover the version."""

    def __init__(self, folder: str) -> None:
        self._folder, self._digests = folder, dict[str, str]()

    def __call__(self, value: Any, field: str = "") -> Any:
        if isinstance(value, dict):
            return {self._text(key): self(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return self._list([self(each) for each in value], field)
        if isinstance(value, str):
            return "SIGNED" if field == "value" and _HEX.fullmatch(value) else self._text(value)
        return value

    def _text(self, text: str) -> str:
        text = text.replace(self._folder, "FOLDER").replace(VERSION, "VERSION")
        text = _PLACE.sub(r"\1PLACE\2", text)
        return _DIGEST.sub(lambda found: self._numbered(found[0]), text)

    def _numbered(self, digest: str) -> str:
        return self._digests.setdefault(digest, f"DIGEST {len(self._digests) + 1}")

    def _list(self, values: list[Any], field: str) -> Any:
        numbers = all(isinstance(each, int | float) for each in values)
        tokens = field == "candidates" and all(isinstance(each, str) for each in values)
        if len(values) <= _LONG or not (numbers or tokens):
            return values
        whole = hashlib.sha256(repr(values).encode()).hexdigest()[:16]
        return {"first": values[:_SHOWN], "length": len(values), _BITS if numbers else "sha256": whole}


def written(document: dict[str, Any]) -> str:
    """The text of a file of `expected/`: fields sorted, as many of them on a line as fit."""
    return "\n".join(_laid_out(document, 0)) + "\n"


def _laid_out(value: Any, depth: int) -> list[str]:
    whole = json.dumps(value, sort_keys=True)
    if len(whole) + depth <= _WIDTH or not (value and isinstance(value, dict | list)):
        return [whole]
    fields = isinstance(value, dict)
    inner = [""]
    for key, each in sorted(value.items()) if fields else enumerate(value):
        first, *rest = _laid_out(each, depth + 1)
        lines = [f"{json.dumps(key)}: {first}" if fields else first, *rest]
        lines[-1] += ","
        fits = fields and not rest and inner[-1][1:2] == '"' and len(inner[-1] + lines[0]) + depth < _WIDTH
        inner[-1:] = [f"{inner[-1]} {lines[0]}"] if fits else [inner[-1], *(f" {line}" for line in lines)]
    opens, closes = "{}" if fields else "[]"
    return [opens, *inner[1:-1], inner[-1].removesuffix(","), closes]


def compared(case: Case) -> Iterator[str]:
    """Where a case is not what it was, a line each: to the bit where the baseline is of a machine of this kind."""
    expected = json.loads((EXPECTED / f"{case.name}.json").read_text(encoding="utf-8"))
    found = recorded(case)
    exact = expected.pop("machine") == found.pop("machine")
    return differences(expected, found, exact)


def differences(expected: Any, found: Any, exact: bool, where: str = "") -> Iterator[str]:
    """Where two documents differ; the order of fields does not count.

    Args:
        exact: else numbers may differ a little, and the digests of their bits do not count.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(expected.keys() | found.keys()):
            yield from differences(expected.get(key, _NONE), found.get(key, _NONE), exact, f"{where}/{key}")
    elif isinstance(expected, list) and isinstance(found, list):
        for place, (one, other) in enumerate(zip_longest(expected, found, fillvalue=_NONE)):
            yield from differences(one, other, exact, f"{where}/{place}")
    elif (type(expected), expected) != (type(found), found) and (exact or not _near(expected, found, where)):
        yield f"{where}: is {_short(found)}; it was {_short(expected)}"


def _near(one: Any, other: Any, where: str) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_NEAR)
    if not (isinstance(one, str) and isinstance(other, str)):
        return False
    numbers = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=False)
    alike = _NUMBER.sub("#", one) == _NUMBER.sub("#", other)
    return where.endswith(f"/{_BITS}") or (
        alike and all(math.isclose(float(a), float(b), rel_tol=_NEAR) for a, b in numbers)
    )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
