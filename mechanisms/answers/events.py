"""The events of a session of private questions; everything here is releasable."""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.accounting import BudgetSnapshot
from mechanisms.records import person
from mechanisms.rounding import rounded_up


@dataclass(frozen=True)
class AnswersOpened:
    """A session is open: the cost of all its questions is in the ledger.

    Attributes:
        name, unit: the data set's name in the ledger, and its privacy unit.
        epsilon, delta, rho: the most that the reservation costs a unit; rho is None for Poisson samples, whose epsilon
            is not computed from it.
        queries: answers that every unit can take part in (with Poisson samples: answers in all).
        asked: answers given under this reservation before.
        continued: whether an earlier reservation is used, without a new charge.
        noise: standard deviation of an answer's noise, in votes of shards.
        private: False with a test seed.
        public_inputs: see `AnswerRequest.public_inputs`.
        notes: warnings for the data owner, one line each.
        budget: the data set's spending, this reservation included.
        disclosures: why values of the data set without noise count as known, so that threshold, shards and the like may
            depend on it.
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
        return max(0, self.queries - self.asked)


@dataclass(frozen=True)
class AnswerReleased:
    """The answer to one question.

    Attributes:
        query: the question, public.
        answer: the label or the text that answers it.
        zero_shot: the model's answer without any data; empty without a model.
        labels: the public label set, in the order of `votes`; empty for open answers.
        votes: the noisy histogram, in votes of shards; None for open answers.
        keywords: released tokens as text, in order of token id; empty for labels, or if nothing was released.
        abstained: why `answer` is `zero_shot`, in one line; None for an answer from the data.
        threshold: the least similarity of units that took part and paid; None for Poisson samples.
        rho, delta: the answer's cost to each unit that took part; rho is None for Poisson samples.
        asked, queries: answers so far under this reservation, and the number that every unit can pay for.
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
        """The number of further answers that every unit can pay for; public.

        With a threshold more can be asked: units that have paid for all their answers take no further part, and their
        number is private.
        """
        return max(0, self.queries - self.asked)


# The cost of a session and the answers left, in words; public.


def reservation_in_words(opened: AnswersOpened) -> str:
    """The reservation, and whether it was charged now."""
    price = f"epsilon {rounded_up(opened.epsilon, 4)} at delta {opened.delta:g}"
    charged = (
        f"continues the reservation of {price}: nothing new is charged to the ledger of '{opened.name}'"
        if opened.continued
        else f"reserves {price} in the ledger of '{opened.name}', once for all questions under these terms"
    )
    return f"This session {charged}. {opened.asked} of {opened.queries} answers given so far."


def answer_in_words(opened: AnswersOpened, released: AnswerReleased) -> str:
    """The cost of an answer, and the number of answers left."""
    unit = person(opened.unit)
    if released.threshold is None:
        left = f"{released.sure_left} of {released.queries} answers are left; then a new reservation is needed."
        return f"Every {unit} paid for this answer, drawn or not. {left}"
    paid = f"Every {unit} at least {released.threshold:g} similar paid 1 of its {released.queries} answers."
    if released.sure_left:
        return f"{paid} Every {unit} can pay for {released.sure_left} more, or more if it was not always near."
    return f"{paid} From here on some {unit}s may have paid all they can, and be silent; how many is private."
