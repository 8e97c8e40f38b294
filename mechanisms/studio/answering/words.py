"""What a session of questions costs and what is left, in a data owner's words; all of it public."""

from __future__ import annotations

from mechanisms.accounting import rounded_up
from mechanisms.records import person
from mechanisms.studio.answering.events import AnswerReleased, AnswersOpened


def reservation_in_words(opened: AnswersOpened) -> str:
    """What is reserved, and whether that was charged just now."""
    price = f"epsilon {rounded_up(opened.epsilon, 4)} at delta {opened.delta:g}"
    charged = (
        f"continues the reservation of {price}: nothing new is charged to the ledger of '{opened.name}'"
        if opened.continued
        else f"reserves {price} in the ledger of '{opened.name}', once for all questions under these terms"
    )
    return f"This session {charged}. {opened.asked} of {opened.queries} answers given so far."


def answer_in_words(opened: AnswersOpened, released: AnswerReleased) -> str:
    """What an answer cost, and how many more the reservation buys."""
    unit = person(opened.unit)
    if released.threshold is None:
        left = f"{released.sure_left} of {released.queries} answers are left; then a new reservation is needed."
        return f"Every {unit} paid for this answer, drawn or not. {left}"
    paid = f"Every {unit} at least {released.threshold:g} similar paid 1 of its {released.queries} answers."
    if released.sure_left:
        return f"{paid} Every {unit} can pay for {released.sure_left} more, or more if it was not always near."
    return f"{paid} From here on some {unit}s may have paid all they can, and be silent; how many is private."
