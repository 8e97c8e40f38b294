"""What a session of private questions tells the outside world: everything here is releasable."""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.accounting import BudgetSnapshot, rounded_up
from mechanisms.records import person


@dataclass(frozen=True)
class AnswersOpened:
    """A session may ask: its cost is in the ledger, once for all its questions.

    Attributes:
        name, unit: the data set's name in the ledger, and its privacy unit.
        epsilon, delta, rho: what the whole reservation costs each unit at most; rho is None for Poisson samples, whose
            epsilon is not computed from it.
        queries: answers that every unit can take part in (with Poisson samples: answers in all).
        asked: answers given under this reservation before.
        continued: an earlier reservation goes on, and nothing new was charged to the ledger.
        noise: standard deviation of an answer's noise, in votes of shards.
        private: False with a test seed.
        public_inputs: see `AnswerRequest.public_inputs`.
        notes: what the data owner should know, one line each.
        budget: the data set's ledger, this reservation included.
        disclosures: why clean values of the data set count as known: threshold, shards and the like are then no longer
            independent of it.
    """

    name: str
    unit: str
    epsilon: float
    delta: float
    rho: float | None
    queries: int
    asked: int
    continued: bool
    noise: float
    private: bool
    public_inputs: tuple[str, ...]
    notes: tuple[str, ...]
    budget: BudgetSnapshot
    disclosures: tuple[str, ...] = ()

    @property
    def sure_left(self) -> int:
        """See `AnswerReleased.sure_left`."""
        return max(0, self.queries - self.asked)


@dataclass(frozen=True)
class AnswerReleased:
    """One question has been answered.

    Attributes:
        query: the question, public.
        answer: the label or the text that answers it.
        zero_shot: what the model says without any data; empty where no model was asked.
        labels: the public label set, in the order of `votes`; empty for open answers.
        votes: the noisy histogram, in votes of shards; None for open answers.
        keywords: released tokens as text, in order of token id; empty for labels, and where nothing was released.
        abstained: why `answer` is `zero_shot`, in one line; None where the data answered.
        threshold: similarity from which on units paid; None for Poisson samples.
        rho, delta: what the answer cost each unit that took part; rho is None for Poisson samples.
        asked, queries: answers so far under this reservation, and how many every unit can pay for.
    """

    query: str
    answer: str
    zero_shot: str
    labels: tuple[str, ...]
    votes: tuple[float, ...] | None
    keywords: tuple[str, ...]
    abstained: str | None
    threshold: float | None
    rho: float | None
    delta: float
    asked: int
    queries: int

    @property
    def sure_left(self) -> int:
        """Further answers that every unit can pay for, whatever it has paid so far; public.

        With a threshold more may be asked: units that were near many questions fall silent one by one, and how many
        have is private.
        """
        return max(0, self.queries - self.asked)


# What a session of questions costs and what is left, in a data owner's words; all of it public.


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
