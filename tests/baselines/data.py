"""Private and public files of the cases, the same in every run: each word follows from the row's number."""

from __future__ import annotations

import json
from pathlib import Path

_WORDS = (
    "card", "lost", "since", "monday", "please", "help", "my", "account", "was", "charged", "twice", "why", "need",
    "new", "pin", "today", "the", "shop", "sent", "wrong", "size", "return", "parcel", "late", "never", "came", "two",
    "weeks", "ago", "still", "waiting",
)  # fmt: skip
ITEMS = ("shoe", "coat", "lamp", "desk")
SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["ab", "cd"]}, "count": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["kind", "count"],
    "additionalProperties": False,
}
RED, BLUE = 250, 350


def _text(i: int) -> str:
    length = 3 + i * 7 % 5
    return " ".join(_WORDS[(i * i + 11 * j * (i + 3) + j) % len(_WORDS)] for j in range(length)) + f" {i}"


def _csv(path: Path, head: str, lines) -> None:
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


def write_data(folder: Path) -> None:
    """Write all files into a folder: 600 labelled rows of 200 users, test rows, records, texts alone, answers."""
    labels = ["Red" if i * RED % (RED + BLUE) < RED else "Blue" for i in range(RED + BLUE)]
    rows = [f"{_text(i)},{label},u{i * i % 200}" for i, label in enumerate(labels)]
    _csv(folder / "rows.csv", "text,topic,user", rows)
    _csv(folder / "test.csv", "text,topic", [f"{_text(i)},{'Red' if i % 3 else 'Blue'}" for i in range(1000, 1012)])
    _csv(folder / "texts.csv", "text", [_text(i) for i in range(2000, 2300)])
    answered = [f"{_text(i)},{ITEMS[i % 4]},u{i % 100}" for i in range(3000, 3300)]
    _csv(folder / "answered.csv", "text,item,user", answered)
    _csv(folder / "answered_test.csv", "text,item", [f"{_text(i)},{ITEMS[i % 4]}" for i in range(4000, 4006)])
    _csv(folder / "records.csv", "kind,count", [f"{('ab', 'cd')[i % 2]},{i % 10}" for i in range(200)])
    (folder / "schema.json").write_text(json.dumps(SCHEMA))
