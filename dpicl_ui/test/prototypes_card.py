"""What the card of class prototypes says: what they are, what they cost, and that they are paid for."""

from __future__ import annotations

from dpicl_ui.frame.cards import budget
from dpicl_ui.frame.tree import Tree, el, notice
from mechanisms.accounting import BudgetSnapshot, Claim, Usage
from mechanisms.evaluation.prototypes import ClassPrototypes
from mechanisms.records import RECORD, unit_in_words

_USERS = " One record of each user counts."
_NO_ROOM = "The cap does not allow it: choose a smaller epsilon."


def about() -> list[Tree]:
    """What it is."""
    return [
        el("h3", "Also try it without a language model"),
        el(
            "p.muted",
            "An embedding model places every text; a label's prototype is the mean place of your rows with that label, "
            "released once with noise, and a test row gets the label of the nearest one.",
        ),
    ]


def waiting() -> list[Tree]:
    """Without a data set."""
    return [el("p.muted", "This needs the private rows: confirm a data set in step 1 first.")]


def price(unit: str, claimed: Claim, after: Usage, now: BudgetSnapshot) -> list[Tree]:
    """What a release costs, and where the budget then stands."""
    cost = f"epsilon {claimed.epsilon:.3g} at delta {claimed.delta:g} for {unit_in_words(unit)}"
    then = f"The budget then stands at {after.epsilon:.3g} of {now.cap.epsilon:g}." if after.allowed else ""
    once = "charged once, before any row is read, and spent even if it is stopped."
    users = "" if unit == RECORD else _USERS
    return [
        el("p", el("strong", f"It costs {cost}"), f", {once} {then}{users}".rstrip()),
        *notice("" if after.allowed else _NO_ROOM, "bad"),
        *budget(now, claimed.epsilon),
    ]


def paid(released: ClassPrototypes, now: BudgetSnapshot) -> list[Tree]:
    """A release that is there."""
    claimed = released.claim
    cost = f"Released with epsilon {claimed.epsilon:.3g} at delta {claimed.delta:g}."
    kept = "Kept while this page is open, and not paid for again; it stands beside the other figures above."
    return [el("p", el("strong", cost), f" {kept}"), *budget(now)]
