"""Runs of a ledger composed numerically, as if all of them had been fixed before the first.

That is no bound for runs that were chosen in view of earlier ones, which is why the ledger counts otherwise
(`filter.py`): it says how much of what the ledger counts is the price of having chosen as one went along.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from mechanisms.accounting.claims import undominated
from mechanisms.accounting.filter import Spend
from mechanisms.accounting.normal_form import normal_form
from mechanisms.errors import AccountingError
from mechanisms.privacy_events import Composed, PrivacyEvent

_MOST = 12
"""Kinds of releases, over all combinations of lists: each wants up to a second of both accountants."""
_TOO_MANY = "These are too many different runs to compose numerically: what the ledger counts is all there is to say."


def joint(spends: Iterable[Spend]) -> Composed:
    """One event for all runs; `claim` accounts it at any delta.

    A unit stands in one list of each run, and in which of them may differ from run to run: every combination is a list
    of the joint event.

    Raises:
        AccountingError: there are too many combinations, or an event that no accountant bounds.
    """
    choices = [_largest(spend) for spend in spends if spend.lists]
    if math.prod(len(each) for each in choices) <= _MOST:
        together = [tuple(itertools.chain(*each)) for each in itertools.product(*choices)]
        if sum(len(normal_form(events).primitives) for events in together) <= _MOST:
            return _numbered(together)
    raise AccountingError(_TOO_MANY)


def _largest(spend: Spend) -> list[tuple[PrivacyEvent, ...]]:
    """The lists of a run that can cost most; those that others dominate cost no more together with other runs."""
    lists = {normal_form(events): events for events in spend.lists.values()}
    return [lists[form] for form in undominated(_numbered(lists.values()))]


def _numbered(lists: Iterable[tuple[PrivacyEvent, ...]]) -> Composed:
    return Composed("dataset", tuple((str(number), events) for number, events in enumerate(lists)))
