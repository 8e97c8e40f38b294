"""What step 2's settings are called, and what they are at first, for each kind of row."""

from __future__ import annotations

from dataclasses import dataclass

from dpicl_ui.data.rows import Rows


@dataclass(frozen=True)
class RowSettings:
    """For one kind of row.

    Attributes:
        shots, tokens, label_name: titles of how many are written, how long they may be, and what a label or an answer
            is called.
        lengths: tokens that are written, and tokens of a row that are read, where nobody says otherwise.
    """

    shots: str = "Demonstrations"
    tokens: str = "Longest demonstration (tokens)"
    label_name: str = "Name of the label field"
    lengths: tuple[int, int] = (32, 64)


ROW_SETTINGS = {
    Rows.TEXTS: RowSettings("Demonstrations for each label", lengths=(24, 64)),
    Rows.RECORDS: RowSettings(
        "Records to write", "Tokens of a record that your rows decide, at most", lengths=(48, 128)
    ),
    Rows.ANSWERED: RowSettings(
        tokens="Longest demonstration, with its answer (tokens)", label_name="Name of the answer field"
    ),
    Rows.ALONE: RowSettings(),
}
