"""AdaDPSyn's noise of the means at equal epsilon, beside the paper's (Gao et al. 2025, tables 13 to 17).

    python -m research.benchmarks.adadpsyn_noise

Columns: the epsilon that the paper claims, what its noise costs here (PLD), sigma1 in the paper and calibrated to the
claimed epsilon, and the signal-to-noise of the first mean: the paper's, with subsets, and with every one of the M N
sampled units a row. sigma0, sigma2 and the refinements are the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.accounting import PrivacyTarget, claim
from mechanisms.privacy_events import Composed
from mechanisms.sampling import EventOfSteps, SamplingPlan, Scheme
from mechanisms.steps.adadpsyn import AdaDPSyn


@dataclass(frozen=True)
class Task:
    """A data set of the paper: its smallest label (the whole file where labels are private), plan and settings."""

    name: str
    size: int
    subsets: int
    per_subset: int
    tokens: int
    shots: int
    settings: tuple[tuple[float, AdaDPSyn], ...]

    def plan(self, unit_rows: bool) -> SamplingPlan:
        """Per token, as in the paper."""
        rows = self.subsets * self.per_subset if unit_rows else self.subsets
        return SamplingPlan(
            Scheme.PER_TOKEN, rows, 1 if unit_rows else self.per_subset, unit_rows, self.tokens, self.shots
        )


def _settings(*rows: tuple[int, float, float, float, float]) -> tuple[tuple[float, AdaDPSyn], ...]:
    """Rows of a table: refinements, lambda, sigma0, sigma2, sigma1; for epsilon 1, 2, 4, 8."""
    return tuple(
        (2.0**power, AdaDPSyn(refinements=t, lambda_=margin, sigma0=s0, sigma2=s2, sigma1=s1))
        for power, (t, margin, s0, s2, s1) in enumerate(rows)
    )


TASKS = (
    Task(
        "AGNews", 30000, 10, 2, 100, 1,
        _settings((1, 0.1, 10, 3, 1.23), (1, 0.15, 10, 3, 0.92), (1, 0.2, 10, 3, 0.71), (1, 0.2, 10, 3, 0.58)),
    ),
    Task(
        "DBPedia", 40000, 10, 2, 100, 1,
        _settings((1, 0.1, 10, 3, 1.54), (1, 0.1, 10, 3, 1.14), (1, 0.2, 10, 3, 0.89), (1, 0.2, 10, 3, 0.73)),
    ),
    Task(
        "TREC", 835, 20, 2, 15, 1,
        _settings((1, 0.1, 17.5, 6, 2.52), (1, 0.2, 15, 5, 1.95), (1, 0.15, 10, 5, 1.15), (2, 0.25, 15, 5, 1.09)),
    ),
    Task(
        "MIT-G", 2953, 40, 1, 20, 4,
        _settings((1, 0.3, 15, 6, 1.59), (1, 0.35, 10, 6, 1.17), (2, 0.25, 10, 6, 1.12), (2, 0.2, 10, 5, 0.90)),
    ),
    Task(
        "MIT-D", 1561, 40, 1, 20, 4,
        _settings((1, 0.15, 17.5, 6, 2.57), (1, 0.15, 17.5, 6, 1.49), (1, 0.3, 15, 6, 1.07), (1, 0.15, 15, 5, 0.83)),
    ),
)  # fmt: skip


def row(task: Task, epsilon: float, paper: AdaDPSyn) -> str:
    """One line of the table."""
    delta = 1 / task.size
    subsets, units = task.plan(unit_rows=False), task.plan(unit_rows=True)

    def compose(event: EventOfSteps) -> Composed:
        rate = subsets.rate(task.size)
        return Composed("label", (("each label", subsets.label_events(event, rate)),))

    cost = claim(compose(paper.event), delta).check
    calibrated = paper.calibrate(compose, PrivacyTarget(epsilon, delta))
    compared = ((paper, subsets), (calibrated, subsets), (calibrated, units))
    signals = [used.signal_to_noise(plan) for used, plan in compared]
    shown = " | ".join(f"{signal:.1f}" for signal in signals)
    return f"| {task.name} | {epsilon:g} | {cost:.3g} | {paper.sigma1:.2f} | {calibrated.sigma1:.2f} | {shown} |"


def main() -> None:
    """Print the table in Markdown."""
    columns = ("data", "epsilon", "the paper's noise costs", "sigma1, paper", "sigma1, here")
    print("| " + " | ".join((*columns, "SNR, paper", "subsets", "unit rows")) + " |")
    print("|---|---|---|---|---|---|---|---|")
    for task in TASKS:
        for epsilon, paper in task.settings:
            print(row(task, epsilon, paper), flush=True)


if __name__ == "__main__":
    main()
