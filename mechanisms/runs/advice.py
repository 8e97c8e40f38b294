"""The proposed recipe, from public numbers alone: many rows are limited by compute, few rows by noise."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mechanisms.errors import UsageError
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage, in_order
from mechanisms.runs.recipe_request import MOST_PROMPTED, MOST_SHOTS
from mechanisms.runs.stage import stage_class
from mechanisms.runs.stages.vote import CLEARANCE, EXCESS
from mechanisms.tallies import Weighing, usual_weighing

_FEWEST_FOR_ROLES, _FEWEST_OF_A_LABEL, _ENOUGH_FOR_ROLES = 1200, 160, 2000

VOTERS_A_LABEL, CALIBRATORS_A_LABEL = 40, 24
"""Units for each of many labels: only a label's own rows vote on its drafts, and noise is added to each label's sum."""
MOST_VOTERS = 0.5
"""The largest share of the units that votes."""

FEWEST_DRAFTS, MOST_DRAFTS = 8, 16
LAPLACE_DEVIATION = math.sqrt(2)
"""Deviation of one vote's noise, in units of 1 / epsilon."""

MOST_CORRECTED_LABELS = 24
"""Labels up to which a correction is measured. Every label's sum gets the same noise, so that more labels need more
rows, and a row takes longer to read with every label."""

USUAL_SETS = 2
MOST_DEMONSTRATIONS = 24
"""Demonstrations of all sets of winners together: choosers read every prompt."""
DRAFTS_A_WINNER = 2
"""Drafts for each demonstration that is asked for, at least: with fewer, the vote would leave nothing out."""


def fewest_for_roles(labels: int) -> int:
    """The number of units from which on roles are proposed: with fewer, some role says little through its noise.

    Args:
        labels: how many there are; each needs voters and calibrators.
    """
    return min(_ENOUGH_FOR_ROLES, max(_FEWEST_FOR_ROLES, _FEWEST_OF_A_LABEL * labels))


def proposed(
    kind: Kind,
    sizes: Mapping[str, int],
    epsilon: float,
    score: bool = True,
    division: Division | None = None,
    shots: int = 1,
) -> Recipe:
    """The recipe to start from.

    More than `MOST_PROMPTED` demonstrations of a label are for training and evaluation: no stage reads such sets. For
    more than `MOST_CORRECTED_LABELS` labels there is no correction, hence no choice among corrected sets: the rows vote
    and score.

    Args:
        kind: where demonstrations come from.
        sizes: declared units of each label, public.
        epsilon: what the whole run may cost.
        score: whether the last stage takes part.
        division: what the stages share; None leaves it to the number of units.
        shots: demonstrations of each label.

    Raises:
        UsageError: a size or epsilon is not positive.
    """
    if not sizes or min(sizes.values()) < 1:
        raise UsageError("Every label needs a declared size of at least 1.")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError("Epsilon must be a positive number.")
    units = sum(sizes.values())
    left_out = {Stage.VOTE} if kind is Kind.TOKENS else {Stage.WRITE} if kind is Kind.VOTE else set()
    left_out |= {stage for stage in Stage if not stage_class(stage).usual} | (set() if score else {Stage.SCORE})
    if shots > MOST_PROMPTED:
        left_out |= {stage for stage in Stage if stage_class(stage).reads_sets}
    if len(sizes) > MOST_CORRECTED_LABELS:
        left_out |= {Stage.CALIBRATE, Stage.CHOOSE}
    stages = [stage for stage in in_order() if stage not in left_out]
    if division is None:
        division = Division.ROLES if units >= fewest_for_roles(len(sizes)) and len(stages) > 1 else Division.EPSILON
    # With many labels, most have too few scoring rows for every label to count the same.
    weighing = Weighing.ROWS if len(sizes) > MOST_CORRECTED_LABELS else usual_weighing(sizes)
    shares = _roles(stages, units, len(sizes), weighing) if division is Division.ROLES else _epsilon_shares(stages)
    return Recipe(
        kind=kind,
        division=division,
        shares=shares,
        drafts=max(
            _drafts(shares.get(Stage.VOTE, 0.0), division, min(sizes.values()), epsilon),
            DRAFTS_A_WINNER * min(shots, MOST_SHOTS),
        ),
        sets=max(1, min(USUAL_SETS, MOST_DEMONSTRATIONS // (len(sizes) * shots))),
        weighing=weighing,
    )


def _roles(stages: list[Stage], units: int, labels: int, weighing: Weighing) -> dict[Stage, float]:
    """Shares that give each stage the units it wants; below `fewest_for_roles`, the shares for that many.

    What stages want is what two cores read in a good minute: 18 rows a second with the embedded model, and about 40
    with AMX. A calibrator is read twice (under one of the sets, and under the chosen one), a chooser once a set, a
    scorer once an arm of three: with six sets 320 + 720 + 390 rows. Voters are only embedded, which is cheap. All other
    units write: a sample out of more units costs the same time and needs less noise.
    """
    wanted = {stage: count for stage in stages if (count := stage_class(stage).wanted) is not None}
    if Stage.VOTE in wanted:
        wanted[Stage.VOTE] = max(wanted[Stage.VOTE], VOTERS_A_LABEL * labels)
    if Stage.CALIBRATE in wanted:
        wanted[Stage.CALIBRATE] = max(wanted[Stage.CALIBRATE], CALIBRATORS_A_LABEL * labels)
    if Stage.SCORE in wanted and weighing is Weighing.LABELS:
        wanted[Stage.SCORE] *= 2  # the few scorers of a small label count as much as the many of a large one
    elif Stage.SCORE in wanted and labels > MOST_CORRECTED_LABELS:
        wanted[Stage.SCORE] = 3 * wanted[Stage.SCORE] // 2  # in the time that calibrators and choosers do not take
    among = max(units, fewest_for_roles(labels))
    shares: dict[Stage, float] = {stage: count / among for stage, count in wanted.items()}
    if Stage.VOTE in shares:
        shares[Stage.VOTE] = min(shares[Stage.VOTE], MOST_VOTERS)
    shares = {stage: _two_digits(share) for stage, share in shares.items()}
    if Stage.WRITE in stages:
        shares[Stage.WRITE] = _two_digits(1 - sum(shares.values()))
    return shares


def _two_digits(share: float) -> float:
    """A share cut to two digits: short in certificates, and never more than 1 in sum."""
    unit = 10.0 ** (math.floor(math.log10(share)) - 1)
    # The quotient of two decimals may fall a hair short of the whole number that it is.
    return float(f"{math.floor(share / unit + 1e-6) * unit:.2g}")


def _epsilon_shares(stages: list[Stage]) -> dict[Stage, float]:
    """Shares of epsilon, by `parts`: writing releases every token, and calibrating measures three times."""
    whole = sum(stage_class(stage).parts for stage in stages)
    return {stage: stage_class(stage).parts / whole for stage in stages}


def _drafts(share: float, division: Division, smallest: int, epsilon: float) -> int:
    """J: as many as the smallest label's voters can judge.

    A draft of the field has v / J votes, a winner `EXCESS` times as many more, and that excess should be `CLEARANCE`
    deviations of the noise: J = EXCESS v / (CLEARANCE * 1.41 / epsilon).
    """
    by_roles = division is Division.ROLES
    voters, spent = (share * smallest, epsilon) if by_roles else (float(smallest), share * epsilon)
    judged = EXCESS * voters * spent / (CLEARANCE * LAPLACE_DEVIATION)
    return int(min(MOST_DRAFTS, max(FEWEST_DRAFTS, judged)))
