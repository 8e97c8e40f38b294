"""What a run may show: what its certificate has paid for, whatever else its file says."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mechanisms.errors import UsageError
from mechanisms.steps.mechanism import Norm
from mechanisms.studio.certificates.findings import names_of_sets
from mechanisms.studio.certificates.rebuild import Rebuilt
from mechanisms.studio.recipes.corrections import FITTED, fitted
from mechanisms.studio.recipes.events import ChoiceReleased, DraftsWritten, RecipeStarted, VotesReleased
from mechanisms.studio.recipes.recipe import Stage
from mechanisms.studio.recipes.request import RecipeRequest
from mechanisms.studio.synthesis.demo_set import DemoSet
from mechanisms.studio.synthesis.events import RunStarted, TokenReleased
from mechanisms.tallies import masses

_LEAST_BALLOT = 3
"""Drafts in a later ballot, however few a recipe asks for: one that won, and two to compare it with."""
_SAME_NOISE = 1e-9


def holds(true: bool, otherwise: str) -> None:
    """Refuse what does not hold.

    Raises:
        UsageError: it does not.
    """
    if not true:
        raise UsageError(otherwise)


@dataclass(frozen=True)
class Paid:
    """What the run of a certificate may release, of each kind.

    Attributes:
        run: the certificate's, built anew.
    """

    run: Rebuilt

    def begun(self, made: DemoSet) -> RunStarted | RecipeStarted:
        """The first event of the run that ended with a set."""
        nothing = replace(made, demonstrations=(), prior=None, score=None, choice=None)
        if isinstance(self.run.request, RecipeRequest):
            recipe = self.run.request
            return RecipeStarted(nothing, recipe.recipe.stages, recipe.shots, recipe.tokens, None)
        written = self.run.request
        plan = written.plan
        return RunStarted(nothing, plan.shots, plan.tokens, plan.subsets, None, written.kept)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Those of a recipe, in their order."""
        return self.run.recipe.recipe.stages if self.run.recipe else ()

    @property
    def shots(self) -> int:
        """Demonstrations of a label that are written token by token."""
        return self.run.written.plan.shots if self.run.written else 0

    @property
    def ballots(self) -> int:
        """Ballots of a label."""
        return self.run.recipe.recipe.rounds if self.run.recipe and Stage.VOTE in self.stages else 0

    def check_token(self, event: TokenReleased) -> None:
        """A token is one of those that are paid for, and nothing is told of it beyond what its mechanism releases.

        Raises:
            UsageError: it is not; the message says why.
        """
        written, count = self.run.written, len(event.candidates)
        holds(written is not None and event.step <= written.plan.tokens, "a token out of its turn")
        assert written is not None
        holds(event.chosen < count == len(event.public), "a token that is no candidate")
        holds(count <= written.candidates, "more candidates than the certificate's")
        longest = written.mechanism.longest_trail
        holds(len(event.trail) <= longest, "more on a token's trail than its mechanism releases")
        if event.scores is not None:
            holds(len(event.scores) == count, "values that are not those of the candidates")
            norm = written.mechanism.sensitivity(written.plan.unit_rows).norm  # a selection pays for its winner alone
            holds(norm is not Norm.RANGE, "values beside a token that its mechanism releases alone")

    def check_ballot(self, event: DraftsWritten, written: int) -> None:
        """A ballot is of a round that is paid for, with no more drafts than are asked for and those `written` before.

        Raises:
            UsageError: it is not.
        """
        holds(event.round <= self.ballots, "a ballot that was not planned")
        recipe = self.run.recipe
        most = max(_LEAST_BALLOT, recipe.recipe.drafts if recipe else 0) + written
        holds(len(event.drafts) <= most, "more drafts than the recipe has")

    def check_noise(self, event: VotesReleased) -> None:
        """Votes have the noise that was accounted.

        Raises:
            UsageError: they state another one.
        """
        recipe = self.run.recipe
        same = recipe is not None and math.isclose(event.noise, recipe.votes.deviation, rel_tol=_SAME_NOISE)
        holds(same, "noise that is not the certificate's")

    def check_sets(self, names: tuple[str, ...], written: bool) -> None:
        """The sets are those of the recipe, in their order; those of what was written only where something was.

        Raises:
            UsageError: they are not.
        """
        recipe = self.run.recipe
        known = [names_of_sets(recipe.recipe, words) for words in (1, 2)] if recipe else []
        if not written:
            known = [[name for name in of if not name.startswith("written ")] for of in known]
        holds(list(names) in known, "sets that are not those of the recipe")

    def correction(self, choice: ChoiceReleased, refined: bool) -> str:
        """The correction that the set of a choice is read with, before it is fitted or after."""
        told = choice.chosen[1]
        request = self.run.recipe
        counted = masses(request.sizes, request.recipe.weighing) if request else {}
        return told if told in FITTED or not refined else str(fitted([*counted.values()]))
