"""The private file of the cases, the same in every run: each word follows from the row's number."""

from __future__ import annotations

from pathlib import Path

_WORDS = (
    "card", "lost", "since", "monday", "please", "help", "my", "account", "was", "charged", "twice", "why", "need",
    "new", "pin", "today", "the", "shop", "sent", "wrong", "size", "return", "parcel", "late", "never", "came", "two",
    "weeks", "ago", "still", "waiting",
)  # fmt: skip
RED, BLUE = 250, 350


def _text(i: int) -> str:
    length = 3 + i * 7 % 5
    return " ".join(_WORDS[(i * i + 11 * j * (i + 3) + j) % len(_WORDS)] for j in range(length)) + f" {i}"


def write_data(folder: Path) -> None:
    """Write `rows.csv`: 600 labelled rows of 200 users."""
    labels = ["Red" if i * RED % (RED + BLUE) < RED else "Blue" for i in range(RED + BLUE)]
    rows = [f"{_text(i)},{label},u{i * i % 200}" for i, label in enumerate(labels)]
    (folder / "rows.csv").write_text("\n".join(["text,topic,user", *rows]) + "\n", encoding="utf-8")
