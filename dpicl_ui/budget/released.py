"""What a run releases, on its line: the names of its lists, labels among them, apart from the app's own words."""

from __future__ import annotations

from dpicl_ui.frame.tree import Tree, el
from mechanisms.accounting.event_words import parts
from mechanisms.privacy_events import Composed


def released(event: Composed) -> Tree:
    """A run's event in words."""
    said: list[Tree] = []
    for each in parts(event):
        who = [el("span.notranslate" if each.named else "span", each.who), ": "] if each.who else []
        said += [*(["; "] if said else []), *who, each.words]
    return el("p.remark", *said)
