"""What a run comes to, to be held against others: no more than its file holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mechanisms.errors import UsageError
from mechanisms.studio.certificates.rebuild import Rebuilt, rebuilt
from mechanisms.studio.recipes.events import RecipeStopped
from mechanisms.studio.recipes.recipe import Stage
from mechanisms.studio.runs.lines import RunEvent
from mechanisms.studio.runs.run_file import ENDS
from mechanisms.studio.synthesis.demo_set import DemoSet
from mechanisms.studio.synthesis.events import RunStopped
from mechanisms.studio.synthesis.findings import ArmScore


@dataclass(frozen=True)
class Summary:
    """A run that has ended.

    Attributes:
        made: the set that it ended with, and its certificate.
        stopped: it was, before it was complete.
        signal_to_noise: of a token, from the certificate's parameters; None where no row speaks at a token.
        votes_noise: standard deviation of the noise on a draft's votes; None where there is no vote.
    """

    made: DemoSet
    stopped: bool
    signal_to_noise: float | None
    votes_noise: float | None

    @property
    def score(self) -> ArmScore | None:
        """The private score of what is exported; None where it was not measured."""
        score = self.made.score
        return score.arms.get(score.exported(not self.made.demonstrations)) if score is not None else None


def summarised(events: Sequence[RunEvent]) -> Summary:
    """The summary of a run, from its first event to its last one.

    Raises:
        UsageError: it has not ended, or its certificate describes no run.
    """
    ended = events[-1] if events else None
    if not isinstance(ended, ENDS):
        raise UsageError("Only a run that was completed or stopped can be compared.")
    run = rebuilt(ended.demo_set)
    return Summary(ended.demo_set, isinstance(ended, RunStopped | RecipeStopped), _signal(run), _votes(run))


def _signal(run: Rebuilt) -> float | None:
    written = run.written
    if written is None or not written.mechanism.uses_private_rows:
        return None
    return written.mechanism.signal_to_noise(written.plan)


def _votes(run: Rebuilt) -> float | None:
    recipe = run.recipe
    return recipe.votes.deviation if recipe is not None and Stage.VOTE in recipe.recipe.shares else None
