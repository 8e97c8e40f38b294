"""What a row of the private file may be, and what step 1 calls its parts."""

from __future__ import annotations

from enum import StrEnum


class Rows(StrEnum):
    """What rows are."""

    TEXTS = "texts"
    RECORDS = "records"
    ANSWERED = "answered"
    ALONE = "alone"


TITLES = {
    Rows.TEXTS: "A text with a label",
    Rows.RECORDS: "A record of several columns",
    Rows.ANSWERED: "A text with an answer",
    Rows.ALONE: "A text alone",
}
