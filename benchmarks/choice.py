"""Does the choice find the better arm? Regret on tables whose truth is known.

    python -m benchmarks.choice

An arm is a set of demonstrations and a correction. A row is right under an arm where a normal variable is below the
arm's quantile; a row's variables are correlated, since a hard row is hard under every set. Choosers are new rows in
each of many draws. Printed: how often "none" is chosen, and how many points the chosen arm is below the best one. No
model and no private data take part: 5 sets by 3 corrections, accuracies as of small models.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from mechanisms.noise import Floats, SecureRandomness
from mechanisms.tallies import Choice

SETS, CORRECTIONS, NONE = 5, 3, 0
ALIKE = 0.8
"""Correlation of a row's variables under two arms: they then disagree on about every fifth row."""
DRAWS = 1000
GAP = 0.05
Arms = Floats
"""Accuracies, shape (sets, corrections)."""


def planted(random: np.random.Generator, advantage: float) -> Arms:
    """Arms of which the best without demonstrations is `advantage` above the best, or below the worst, of the others.

    The other sets have one best accuracy each, up to ten points apart; a correction that does not suit costs up to ten.
    """
    best = 0.7 - random.uniform(0.0, 0.1, SETS)
    if advantage:
        others = best[NONE + 1 :]
        best[NONE] = (others.max() if advantage > 0 else others.min()) + advantage
    worse = random.uniform(0.0, 0.1, (SETS, CORRECTIONS))
    worse[np.arange(SETS), random.integers(CORRECTIONS, size=SETS)] = 0.0
    return np.asarray(best[:, None] - worse)


def right(random: np.random.Generator, arms: Arms, rows: int) -> Floats:
    """Which rows are right under which arms, shape (rows, arms)."""
    shared, own = random.normal(size=(rows, 1)), random.normal(size=(rows, arms.size))
    variable = np.sqrt(ALIKE) * shared + np.sqrt(1 - ALIKE) * own
    return np.asarray(variable < norm.ppf(arms.ravel()), dtype=np.float64)


def measured(advantage: float, choosers: int, epsilon: float | None) -> tuple[float, float, float]:
    """Share of draws that choose "none"; mean regret and its 95% quantile, in accuracy. Without epsilon: no noise."""
    random, source = np.random.default_rng(11), SecureRandomness()
    none, regrets = [], []
    for _ in range(DRAWS):
        arms = planted(random, advantage)
        found = right(random, arms, choosers)
        chosen = int(found.sum(axis=0).argmax()) if epsilon is None else Choice(epsilon).release(found, source)
        none.append(chosen // CORRECTIONS == NONE)
        regrets.append(arms.max() - arms.ravel()[chosen])
    return float(np.mean(none)), float(np.mean(regrets)), float(np.quantile(regrets, 0.95))


def main() -> None:
    print('"none" is           choosers  epsilon   chosen   regret   95% of regrets below')
    for title, advantage in (("best by 5", GAP), ("worst by 5", -GAP), ("one of five", 0.0)):
        for choosers in (160, 400):
            for epsilon in (0.25, 1.0, None):
                none, regret, most = measured(advantage, choosers, epsilon)
                shown = "no noise" if epsilon is None else f"{epsilon:8}"
                print(f"{title:18} {choosers:9} {shown:>8} {none:8.1%} {100 * regret:8.1f} {100 * most:8.1f} points")


if __name__ == "__main__":
    main()
