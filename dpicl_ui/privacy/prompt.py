"""The prompt that step 2 suggests: its fields are called as step 1 says, or as step 2 was changed to say since."""

from __future__ import annotations

from dpicl_ui.data.rows import Rows
from dpicl_ui.data.state import Confirmed
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.data.record_schema import RECORD_TEMPLATE
from mechanisms.records import PromptTemplate, default_template, open_template


def suggested(
    confirmed: Confirmed, state: PrivacyState, text_name: str, label_name: str
) -> tuple[PromptTemplate, tuple[str, str]]:
    """The task's prompt, and what its fields are called.

    Args:
        state: remembers what step 1 called them.
        text_name, label_name: what they are called in step 2 now.
    """
    own = usual(confirmed)
    names = own.text, own.output or own.label
    before, state.named = state.named, (confirmed.dataset.name, confirmed.columns.rows, names)
    if before != state.named or not (text_name.strip() and label_name.strip()):
        return own, names
    return usual(confirmed, (text_name.strip(), label_name.strip())), (text_name, label_name)


def usual(confirmed: Confirmed, names: tuple[str, str] | None = None) -> PromptTemplate:
    """A data set's prompt until somebody says otherwise.

    Args:
        names: of the text, and of the label or answer; step 1's where there are none.
    """
    text, label = names or confirmed.columns.file.field_names
    match confirmed.columns.rows:
        case Rows.RECORDS:
            return RECORD_TEMPLATE
        case Rows.ANSWERED:
            return open_template(text, output=label)
        case Rows.ALONE:
            return default_template(confirmed.dataset.labels, text, open_template().label)
    return default_template(confirmed.dataset.labels, text, label)
