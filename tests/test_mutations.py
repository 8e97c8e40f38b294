"""Files of every kind that a user brings, mutated at random: each is a `StudioError` or a result.

The seeds are public: the bundled examples, demo sets of toy runs, and settings for the command line.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mechanisms.accounting import fingerprint
from mechanisms.cli.main import parser
from mechanisms.cli.options import labels_of, spec_of
from mechanisms.data import sources
from mechanisms.data.columns import ColumnMapping, inspect, to_dataset
from mechanisms.data.headers import guess_columns
from mechanisms.data.sources import RawFile
from mechanisms.data.table import ReadingQuestion
from mechanisms.demos.demo_set import loads, to_text
from mechanisms.demos.signature import check_signature, signed
from mechanisms.errors import StudioError, UsageError
from mechanisms.runs.run_file import from_lines
from mechanisms.runs.score import read_set
from mechanisms.runs.verification import verify
from tests.conftest import ROOT
from tests.runs.running import KINDS, alone, begun, data, file_of, planned, rows, spec

pytestmark = pytest.mark.slow
EXAMPLES = ROOT / "assets/examples"
MOST_SAID = 20_000
"""Characters of a refusal, the command's usage included."""
SECONDS = 20
"""Of this process's own time, for a file."""
HEAD = 6000
"""Bytes of an example that is mutated: what breaks a reader is short."""
SETTINGS = (
    "labels: [A, B]\nepsilon: 1.5\ndelta: 1e-5\nsizes: {A: 2000, B: 300}\nrecipe: both\ndrop-duplicates: true\n"
    "label-words: {A: 'a, b', B: c=d}\nkind: note\nscore: none\nmechanism: adadpsyn\ntransform: pta\nrefinements: 2\n"
    "shares:\n  vote: 0.5\n  write: .25\nbase: false\njson: false\ntest-seed: -1\nname: 7\n",
    "labels: &names\n  - Cards\n  - 'Fraud'\nepsilon: 4\ndelta: 1.0e-6\nsizes: counted\nname: \"bank \\u00e9\"\n",
)
FRAGMENTS = tuple(
    each.encode() if isinstance(each, str) else each
    for each in (
        '"', '""', "'", ",", ";", "\t", "|", "\n", "\r", "\r\n", "\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xff", b"\xc3",
        "\u202e", "\u2028", "\\ud800", '"' * 999, "[" * 3000, '{"a":' * 3000, "a: " * 2000, "- " * 2000, "\n" * 3000,
        "x" * 20_000, "9" * 5000, "0x" + "f" * 5000, "1e999", "-1", "NaN", "null", "true", "[]", "{}", "&a [*a]", "*a",
        "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
        ) + "labels: *i\n",
        "labels: &l [A, *l]\n", "!!python/object/apply:os.getcwd []", "!!binary x", "? [a]\n: b\n", "1:" * 500,
        "2001-99-99", "<<: *names\n", "%YAML 9.9\n---\n", "epsilon: 0x" + "f" * 5000 + "\n",
    )
)  # fmt: skip
VALUES = (
    None, True, False, 0, -1, 2, 1e308, 1e-320, 2**53, 10**30, 0.5, "", "x", "NaN", "x" * 10_000, "\ud800", "\0", [],
    {}, [[]], {"": None}, {"type": "composed", "lists": {}}, float("nan"), float("inf"), [0] * 3000,
)  # fmt: skip


def demo_sets() -> Iterator[bytes]:
    """Exports of toy runs; needs a data folder of its own."""
    private = data(rows(40))
    *_, told = begun(private, planned(private, alone()))
    yield to_text(signed(told.demo_set)).encode()
    *_, told = begun(private, planned(private, spec("both", "roles")))
    yield told.demo_set.dumps().encode()


def read_table(path: Path) -> None:
    try:
        table = sources.read_table(path)
    except ReadingQuestion as question:  # go on as its owner might
        takes = sources.format_in(RawFile.at(path)).takes
        said = {"header": False, "encoding": question.proposed.encoding or "utf-8"}
        answer = replace(question.proposed, **{name: value for name, value in said.items() if name in takes})
        table = sources.read_table(path, answer)
    text, label = guess_columns(table)
    for unit in (None, *[name for name in table.columns if name not in (text, label)][:1]):
        mapping = ColumnMapping(text, label, unit)
        found = inspect(table, mapping)
        made = to_dataset(table, mapping, "mutated", tuple(found.counts)[:2])
        made.counted_sizes()
        fingerprint(made)


def read_demo_set(path: Path) -> None:
    text = path.read_bytes().decode(errors="replace")
    with contextlib.suppress(StudioError):
        check_signature(text)
    with contextlib.suppress(StudioError):
        read_set(text)
    found = loads(text)
    verify(found)
    found.dumps()


def read_settings(path: Path) -> None:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            options = parser().parse_args(["synthesize", "data.csv", "--config", str(path)])
        except SystemExit as ended:
            if ended.code != 2 or len(said.getvalue()) > MOST_SAID:
                raise
            raise UsageError("refused as a command line is") from ended
    spec_of(options).template(labels_of(options))


def read_run(path: Path) -> None:
    from_lines(path.read_bytes().decode(errors="replace"))


@dataclass(frozen=True)
class Target:
    """Files of one kind: seeds, their ending, and what reads them."""

    read: Callable[[Path], None]
    ending: str
    seeds: Callable[[], Sequence[bytes]]


def _tables() -> list[bytes]:
    heads = [path.read_bytes()[:HEAD] for path in sorted(EXAMPLES.glob("*.csv"))]
    return [*heads, heads[0].decode(errors="replace").encode("utf-16")]


def _json_lines() -> bytes:
    return "".join(f"{json.dumps({'text': each.text, 'label': each.label})}\n" for each in rows(60)).encode()


TARGETS = {
    "csv": Target(read_table, ".csv", _tables),
    "json lines": Target(read_table, ".jsonl", lambda: [_json_lines()]),
    "demo set": Target(read_demo_set, ".json", lambda: list(demo_sets())),
    "run": Target(read_run, ".jsonl", lambda: [file_of(kind).encode() for kind in KINDS]),
    "settings": Target(read_settings, ".yaml", lambda: [each.encode() for each in SETTINGS]),
}


def mutated(draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    """A seed with one to four random changes, of its bytes or of its structure."""
    content = draw.choice(seeds)
    if draw.random() < 0.5:
        before, part, after = _part(draw, content)
        if (document := _document(part)) is not None:
            for _ in range(draw.randint(1, 3)):
                _change(draw, document)
            changed = json.dumps(document, ensure_ascii=draw.random() < 0.8).encode(errors="surrogatepass")
            return before + changed + after
    for _ in range(draw.randint(1, 4)):
        start, other = draw.randint(0, len(content)), draw.choice(seeds)
        if draw.random() < 0.3:  # a whole line
            start = content.rfind(b"\n", 0, start) + 1
        end = min(len(content), start + draw.choice((0, 0, 1, 1, 4, 40, 4000)))
        piece = draw.randint(0, len(other))
        inserted = draw.choice(
            (b"", draw.choice(FRAGMENTS), draw.randbytes(draw.randint(1, 4)), other[piece : piece + 400])
        )
        content = content[:start] + inserted + content[end:]
    return content


def _part(draw: random.Random, content: bytes) -> tuple[bytes, bytes, bytes]:
    """What is one JSON document, with what stands before and behind it: the file, or a line of it."""
    if _document(content) is not None:
        return b"", content, b""
    lines = content.splitlines(keepends=True)
    place = draw.randrange(len(lines))
    return b"".join(lines[:place]), lines[place].rstrip(), b"\n" + b"".join(lines[place + 1 :])


def _document(content: bytes) -> Any:
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


def _change(draw: random.Random, document: Any) -> None:
    """Replace, remove or add a value at a random place."""
    at = document
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = draw.choice(keys)
        if not (isinstance(at[key], dict | list) and draw.random() < 0.8):
            break
        at = at[key]
    match draw.choice(("replace", "replace", "remove", "add", "scale")):
        case "remove":
            del at[key]
        case "add" if isinstance(at, dict):
            at[draw.choice(("", "x", "epsilon", "count", "\ud800"))] = deepcopy(draw.choice(VALUES))
        case "scale" if isinstance(at[key], int | float):
            at[key] = at[key] * draw.choice((-1, 0, 10, 1e6, 1e-6, 1e300))
        case _:
            at[key] = deepcopy(draw.choice(VALUES))


READ, REFUSED = "read", "refused"


def answer(read: Callable[[Path], None], path: Path) -> str:
    """How a file was answered."""
    began = time.process_time()
    try:
        read(path)
    except StudioError:
        return REFUSED
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:80]}"
    return READ if time.process_time() - began < SECONDS else "too long"


@pytest.mark.parametrize("kind", TARGETS)
def test_a_mutated_file_is_read_or_refused_in_one_line(kind, tmp_path):
    target, draw, found = TARGETS[kind], random.Random(kind), Counter[str]()
    seeds, path = target.seeds(), tmp_path / f"mutated{target.ending}"
    for _ in range(60):
        path.write_bytes(mutated(draw, seeds))
        found[answer(target.read, path)] += 1
    assert set(found) <= {READ, REFUSED}, found
    if kind != "json lines":  # of which each line is read by itself, so that hardly a mutation spoils the file
        assert found[REFUSED] > 5  # the mutations reach what readers look at
