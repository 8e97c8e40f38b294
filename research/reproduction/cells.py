"""The cells of the grid: a data set, a method, an epsilon and a run each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from mechanisms.errors import UsageError
from mechanisms.steps import mechanism_class, transform_class
from research.reproduction.tasks import TASKS

ZERO_SHOT, PUBLIC, REAL, WITHOUT_NOISE, VOTE = "zero-shot", "public", "real rows", "non-private", "vote"
EPSILONS = (0.0, 1.0, 2.0, 4.0, 8.0, math.inf)
METHODS = (
    "gaussian",
    "gaussian+pta",
    "noisy-max",
    "adadpsyn",
    "blended-logits",
    "difference-clipping",
    "svt-public",
    VOTE,
)


@dataclass(frozen=True)
class Cell:
    """One set of demonstrations: made, and read on the test rows.

    Attributes:
        method: a mechanism, with "+TRANSFORM" behind it or not, the recipe "vote", or a baseline.
        epsilon: 0 where no private row is read, infinite where nothing is private.
        run: from 1 on.
    """

    task: str
    method: str
    epsilon: float
    run: int

    @property
    def words(self) -> str:
        return f"{self.task}, {self.method}, epsilon {self.epsilon:g}, run {self.run}"


@dataclass(frozen=True)
class Setting:
    """How cells are computed; public. Cells of different settings stand in different folders.

    Attributes:
        rows: test rows, drawn by the public seed; None: all.
        tokens: T of a demonstration; None: as many as the papers have.
        subsets: M, expected rows of a step, each of one record.
        candidates: K.
        delta: of every private cell.
        seed: of what is public: the test rows, which labels the prompt shows, and which real rows.
    """

    rows: int | None = None
    tokens: int | None = None
    subsets: int = 100
    candidates: int = 100
    delta: float = 1e-5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rows is not None and self.rows < 1:
            raise UsageError("--rows must be at least 1.")
        if self.seed < 0:
            raise UsageError("--seed must not be negative.")


@dataclass(frozen=True)
class Grid:
    """What is asked for."""

    tasks: tuple[str, ...] = tuple(TASKS)
    methods: tuple[str, ...] = METHODS
    epsilons: tuple[float, ...] = EPSILONS
    runs: int = 5
    setting: Setting = field(default_factory=Setting)

    def __post_init__(self) -> None:
        if unknown := [task for task in self.tasks if task not in TASKS]:
            raise UsageError(f"'{unknown[0]}' is none of the papers' data sets: choose among {', '.join(TASKS)}.")
        for method in self.methods:
            check_method(method)
        if any(math.isnan(each) or each < 0 for each in self.epsilons):
            raise UsageError("--epsilons takes 0 (public), positive numbers and inf (no privacy).")
        if self.runs < 1:
            raise UsageError("--runs must be at least 1.")

    def cells(self) -> Iterator[Cell]:
        """Run by run, so that a grid that is cut off has all of its first run; a cell stands in it once."""
        seen = (
            Cell(task, method, epsilon, run)
            for run in range(1, self.runs + 1)
            for task in self.tasks
            for epsilon in self.epsilons
            for method in self._methods(epsilon, run)
            if not (method == VOTE and TASKS[task].slots)  # its correction is of a set of labels
        )
        yield from dict.fromkeys(seen)

    def _methods(self, epsilon: float, run: int) -> Iterator[str]:
        if epsilon == 0:
            if run == 1:  # one prompt, whatever is drawn
                yield ZERO_SHOT
            yield PUBLIC
        elif math.isinf(epsilon):
            yield REAL
            yield WITHOUT_NOISE
            yield from (f"{WITHOUT_NOISE}+{each.split('+')[1]}" for each in self.methods if "+" in each)
        else:
            yield from self.methods


def check_method(method: str) -> None:
    """Refuse what is no private mechanism, with a transform that it takes or without, nor "vote".

    Raises:
        UsageError: see there.
    """
    if method == VOTE:
        return
    name, _, transform = method.partition("+")
    chosen = mechanism_class(name)
    if chosen.not_private or not chosen.uses_private_rows:
        raise UsageError(f"'{name}' is a baseline: --epsilons 0 and inf have it.")
    if transform:
        transform_class(transform)
        if not chosen.takes_transform:
            raise UsageError(f"'{name}' takes no transform: leave out '+{transform}'.")
