"""What step 2's settings are called, and what they are at first, for each kind of row."""

from __future__ import annotations

from dataclasses import dataclass

from dpicl_ui.data.rows import Rows
from mechanisms.runs.defaults import LABELLED, RECORDS, UNLABELLED, Lengths


@dataclass(frozen=True)
class RowSettings:
    """For one kind of row.

    Attributes:
        shots, tokens, label_name: titles of how many are written, how long they may be, and what a label or an answer
            is called.
        lengths: how long both may be where nobody says otherwise.
    """

    shots: str = "Demonstrations"
    tokens: str = "Longest demonstration (tokens)"
    label_name: str = "Name of the label field"
    lengths: Lengths = UNLABELLED


ROW_SETTINGS = {
    Rows.TEXTS: RowSettings("Demonstrations for each label", lengths=LABELLED),
    Rows.RECORDS: RowSettings("Records to write", "Tokens of a record that your rows decide, at most", lengths=RECORDS),
    Rows.ANSWERED: RowSettings(
        tokens="Longest demonstration, with its answer (tokens)", label_name="Name of the answer field"
    ),
    Rows.ALONE: RowSettings(),
}
