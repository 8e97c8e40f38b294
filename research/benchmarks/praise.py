"""How often the outcome card praises what is no better, by simulation: rows, noise and the sentence, without a model.

    python -m research.benchmarks.praise --trials 4000

A row is right or wrong under every arm by chance, half of the time by a difficulty that all arms share. What the score
releases of the rows, and what is said of it, is made by the program. "Level": all arms find as many labels, which are
as many as the largest label has, so that every praise is wrong: no setting is worse. Elsewhere what is exported is
ahead by so many points, and no praise is wrong. Where stages share epsilon, what is exported was chosen by the same
rows, out of some that are level among themselves: the worst case for a winner.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.demos.findings import DEMONSTRATIONS, PUBLIC_ONLY, ZERO_SHOT, Score
from mechanisms.evaluation.evaluate import verdict_of_score
from mechanisms.noise import Floats, SecureRandomness
from mechanisms.tallies import Choice, Weighing
from mechanisms.tallies import Score as ScoreTally
from mechanisms.tallies.tally import weights

ARMS = (ZERO_SHOT, PUBLIC_ONLY, DEMONSTRATIONS)
COMPARED = {"the model alone": "model alone", "public text": "public text", "naming the largest": "largest label"}
BASE = 0.6
"""What the arms find that are level, of all rows."""
SHARED = 0.5
"""How often a row is as hard for every arm."""


@dataclass(frozen=True)
class Setting:
    """A score: its rows, its epsilon, and how what is exported was chosen.

    Attributes:
        name: in the table.
        rows: that are scored.
        epsilon: of the score.
        among: candidates that are level; 1: nothing was chosen.
        choosing: epsilon of the choice, by the same rows.
        sizes: public, of each label, where all labels count the same; else all rows do.
    """

    name: str
    rows: int
    epsilon: float
    among: int = 1
    choosing: float = 1.0
    sizes: tuple[int, ...] = ()


SETTINGS = (
    Setting("4,000 rows, roles: 128 untouched rows", 128, 1.0),
    Setting("the same, largest of 12 labels 60%, labels count the same", 128, 1.0, sizes=(2400, *[145] * 11)),
    *(
        Setting(f"{rows:,} rows, epsilon shared, {kind}, chosen among {among}", rows, score, among, choice)
        for rows in (408, 1999)
        for kind, score, choice in (("vote", 0.2, 0.25), ("both", 0.125, 0.15625))
        for among in (3, 20)
    ),
)


def sentence(setting: Setting, ahead: float, chance: np.random.Generator) -> str:
    """What is said after one run."""
    candidates = 2 + setting.among
    rates = np.full(candidates, BASE)
    rates[2:] += ahead
    easy = chance.random((setting.rows, 1))
    own = chance.random((setting.rows, candidates))
    right = np.where(chance.random(own.shape) < SHARED, easy, own) < rates
    each = _weights(setting, chance)
    if setting.among > 1:
        won = Choice(setting.choosing).release(right[:, 2:] * each[:, None], SecureRandomness())
        right = right[:, [0, 1, 2 + won]]
    return said(setting, right, each)


def said(setting: Setting, right: NDArray[np.bool_], each: Floats) -> str:
    """The sentence on rows, shape (rows, 3), whose weights are of shape (rows,)."""
    weighing = Weighing.LABELS if setting.sizes else Weighing.ROWS
    tally = ScoreTally(setting.epsilon, False, weighted=bool(setting.sizes))
    cells = tally.release(ScoreTally.cells(right) * each[:, None], SecureRandomness())
    score = Score.of_table(tally, cells, ARMS, False, setting.among == 1, weighing)
    return verdict_of_score(score, False, BASE)


def _weights(setting: Setting, chance: np.random.Generator) -> Floats:
    """Of the rows that happen to be scored."""
    if not setting.sizes:
        return np.ones(setting.rows)
    sizes = {str(place): size for place, size in enumerate(setting.sizes)}
    by_label = np.array(list(weights(sizes, Weighing.LABELS).values()))
    shares = np.array(setting.sizes) / sum(setting.sizes)
    return np.asarray(by_label[chance.choice(len(shares), setting.rows, p=shares)])


def praised(sentence_: str) -> list[str]:
    """What the exported set is said to be better than."""
    praise = next((clause for clause in sentence_.split(";") if "better than" in clause), "")
    return [short for words, short in COMPARED.items() if words in praise]


def rates(setting: Setting, ahead: float, trials: int) -> Counter[str]:
    """How many of so many runs praise over each comparison, over any, and say nothing."""
    chance, found = np.random.default_rng(), Counter[str]()
    for _ in range(trials):
        words = sentence(setting, ahead, chance)
        over = praised(words)
        found.update([*over, *(["any"] if over else []), *([] if words else ["silent"])])
    return found


def main() -> None:
    """Print the table of research/docs/worth.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--ahead", type=float, nargs="+", default=[0.0, 0.05, 0.1])
    options = parser.parse_args()
    columns = (*COMPARED.values(), "any", "silent")
    print("| score | ahead by |", " | ".join(columns), "|")
    print("|---" * (2 + len(columns)) + "|")
    for setting in SETTINGS:
        for ahead in options.ahead:
            found = rates(setting, ahead, options.trials)
            cells = [f"{100 * found[column] / options.trials:.1f}%" for column in columns]
            print(f"| {setting.name} | {100 * ahead:.0f} points |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
