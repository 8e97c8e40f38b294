"""The number of openings that exceed the noise, and the share of rows that begin with them: a table of
research/docs/texts.md.

    python -m research.benchmarks.openings DATA [--draws 20]

The histogram is that of the stage "openings", with 240 rows (its role in a file of 2,400) and with 2,000, at several
epsilons and without noise, pooled over labels and by label.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mechanisms import api
from mechanisms.inference import LanguageModel, WritingPrompt
from mechanisms.kinds import openings_of
from mechanisms.noise import Floats, Integers, SecureRandomness
from mechanisms.records import Dataset
from mechanisms.runs.plan import plan_for
from mechanisms.runs.spec import Recipe, RunSpec, Split
from mechanisms.runs.stages.openings import OpeningsStage, likely_openings
from mechanisms.tallies import OpeningFinder, distinct
from research.benchmarks.worth import TASKS, rows_of
from research.lines import markdown

_VOTERS = (240, 2000)
_EPSILONS = (0.1, 0.25, 1.0, math.inf)


class Rows:
    """A task's rows as votes among public openings."""

    def __init__(self, data: Path, name: str, model: LanguageModel) -> None:
        self._asked = TASKS[name].asked
        self.labels, rows = rows_of(data, name)
        self._dataset = Dataset(name, self.labels, rows)
        spec = RunSpec(**self._asked)
        prompts = [WritingPrompt(model, spec.wording, label) for label in self.labels]
        self.openings = distinct(
            [*openings_of(spec.kind), *(each for prompt in prompts for each in likely_openings(model, prompt))]
        )
        beginnings = OpeningFinder(self.openings)
        self._votes = np.stack([beginnings.vote(row.text, len(self.openings)) for row in rows])
        self._labels = np.array([self.labels.index(row.label) for row in rows])

    def stage(self, epsilon: float) -> OpeningsStage:
        """The stage of a run in which it has all of epsilon, as with roles."""
        sizes = {label: int((self._labels == i).sum()) for i, label in enumerate(self.labels)}
        spec = RunSpec(recipe=Recipe.VOTE, split=Split.ROLES, epsilon=epsilon, sizes=sizes, **self._asked)
        return OpeningsStage(plan_for(spec, self._dataset))

    def draw(self, voters: int, stage: OpeningsStage | None, by_label: bool) -> tuple[float, float]:
        """Openings that are used for a label, and the share of its other rows that begin with one of them."""
        order = np.random.default_rng().permutation(len(self._labels))
        used, held = [], []
        for label in range(len(self.labels)) if by_label else (None,):
            asked, others = (self._of(label, part) for part in (order[:voters], order[voters:]))
            clear = self._clear(self._votes[asked], stage)
            used.append(len(clear))
            held.append(self._votes[others][:, clear].sum() / len(others))
        return float(np.mean(used)), float(np.mean(held))

    def _of(self, label: int | None, rows: Integers) -> Integers:
        return rows if label is None else rows[self._labels[rows] == label]

    def _clear(self, votes: Floats, stage: OpeningsStage | None) -> Integers:
        if stage is None:
            return np.flatnonzero(votes.sum(axis=0))
        noisy = stage.tally.release(votes, SecureRandomness())
        return np.flatnonzero(noisy > stage.clear_of_noise(len(self.openings)))


def table(data: Path, draws: int) -> Iterator[list[object]]:
    """One line for each task and number of voters: openings used / share of rows, for each epsilon, pooled and by
    label."""
    model = api.load_model("embedded")
    for name in TASKS:
        rows = Rows(data, name, model)
        stages = {epsilon: None if math.isinf(epsilon) else rows.stage(epsilon) for epsilon in _EPSILONS}
        for voters in _VOTERS:
            cells = []
            for by_label in (False, True):
                for stage in stages.values():
                    found = np.mean([rows.draw(voters, stage, by_label) for _ in range(draws)], axis=0)
                    cells.append(f"{found[0]:.1f} / {found[1]:.2f}")
            yield [name, f"{voters:,}", len(rows.openings), *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=20)
    options = parser.parse_args()
    arms = [
        f"{'by label' if by_label else 'pooled'}, {'no noise' if math.isinf(epsilon) else epsilon}"
        for by_label in (False, True)
        for epsilon in _EPSILONS
    ]
    print(markdown(["set", "rows", "openings", *arms], table(options.data, options.draws)))


if __name__ == "__main__":
    main()
