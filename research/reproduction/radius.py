"""The radius of the ball that contains 80% of the rows' distributions at a token (Gao et al. 2025, table 1).

    python -m research.reproduction.radius DATA --out radius.jsonl

It measures how much rows agree on the next token, which AdaDPSyn relies on. Demonstrations are written by the Gaussian
mechanism with the settings of the paper's table 12. A line of the file is a run on a data set. Public data only, since
the radius has no noise. An interrupted run continues after its lines.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.spatial.distance import cdist

from mechanisms.inference.models.embedder import load_embedder
from mechanisms.inference.models.listed import EMBEDDED
from mechanisms.inference.models.loading import load_model
from mechanisms.noise import Floats, Randomness
from mechanisms.steps.distributions import TokenDistributions, TokenRelease
from mechanisms.steps.gaussian import GaussianMechanism
from research.lines import cell, done, keep, lines, markdown
from research.reproduction.cells import Cell
from research.reproduction.making import Maker
from research.reproduction.presets import PRESETS
from research.reproduction.tasks import TASKS, training_rows

SHARE = 0.8
"""rho of Gao et al., section 4.1."""
EPSILON = 8.0
"""The epsilon of the noise that chooses the tokens, which the paper does not state."""
_APPROACHES = 1000


def radius(points: Floats, share: float = SHARE) -> float:
    """The radius of a small ball that contains a share of the points; at most twice the smallest radius.

    Nissim et al. 2016 also find it within a constant factor. The ball around the best point (hence the factor of two)
    is improved by the smallest ball around its points (Badoiu, Clarkson 2003).

    Args:
        points: shape (M, K), at least one.
    """
    held = math.ceil(share * len(points))
    distances = np.sort(cdist(points, points), axis=1)[:, held - 1]
    around = points[distances.argmin()]
    kept = points[np.argsort(np.linalg.norm(points - around, axis=1), kind="stable")[:held]]
    centre = kept.mean(axis=0)
    for step in range(1, _APPROACHES):
        farthest = kept[np.linalg.norm(kept - centre, axis=1).argmax()]
        centre = centre + (farthest - centre) / (step + 1)
    return float(min(distances.min(), np.linalg.norm(kept - centre, axis=1).max()))


@contextmanager
def measured() -> Iterator[list[float]]:
    """The radius at every token that the Gaussian mechanism releases in the `with` block."""
    found, release = list[float](), GaussianMechanism.step

    def step(self: GaussianMechanism, distributions: TokenDistributions, randomness: Randomness) -> TokenRelease:
        found.append(radius(distributions.probabilities()))
        return release(self, distributions, randomness)

    with mock.patch.object(GaussianMechanism, "step", step):
        yield found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the missing lines of the file, and print the table."""
    preset = PRESETS["gao-2"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", required=True, help="lines; what stands there is not measured again")
    parser.add_argument("--model", default=EMBEDDED)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=[*preset.settings])
    parser.add_argument("--runs", type=int, default=preset.runs)
    parser.add_argument("--tokens", type=int, help="of a demonstration (default: the paper's)")
    options = parser.parse_args(arguments)
    settings = {task: replace(each, tokens=options.tokens or each.tokens) for task, each in preset.settings.items()}
    maker = Maker(load_model(options.model), load_embedder, replace(preset, settings=settings))
    rows = {task: training_rows(options.data, task) for task in options.tasks}
    for run in range(1, options.runs + 1):
        for task in options.tasks:
            key = {"task": task, "model": options.model, "tokens": settings[task].tokens, "run": run}
            if not done(options.out, key):
                with measured() as found:
                    maker.make(Cell(task, "gaussian", EPSILON, run, 4), rows[task])
                keep(options.out, key | {"radius": float(np.mean(found)), "steps": len(found)})
    print(_table(options.out))


def _table(out: str) -> str:
    """Means over runs."""
    found = lines(out)
    groups = {task: [line for line in found if line["task"] == task] for task in TASKS}
    rows = [
        [TASKS[task].title, len(group), sum(line["steps"] for line in group), cell(line["radius"] for line in group)]
        for task, group in groups.items()
        if group
    ]
    return markdown(["data set", "runs", "tokens", "radius"], rows)


if __name__ == "__main__":
    main()
