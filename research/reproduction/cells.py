"""A paper's table as a value, and its cells: each has a data set, a method, an epsilon, a number of shots and a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mechanisms.errors import UsageError
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class, transform_class
from research.reproduction.tasks import TASKS

ZERO_SHOT, PUBLIC, REAL, WITHOUT_NOISE, VOTE = "zero-shot", "public", "real rows", "non-private", "vote"
EPSILONS = (0.0, 1.0, 2.0, 4.0, 8.0, math.inf)
LEAST_NOISE = 100.0
"""The epsilon of mechanisms that draw their tokens, and so cannot be without noise, for cells at infinity in a paper.
"""

Values = Mapping[str, float | int | bool]


@dataclass(frozen=True)
class Cell:
    """One set of demonstrations, made and evaluated on the test rows.

    Attributes:
        method: one of the preset's, or a baseline.
        epsilon: 0 without private rows, infinite without privacy.
        run: the number of the run, from 1.
        shots: the number of demonstrations in the prompt.
    """

    task: str
    method: str
    epsilon: float
    run: int
    shots: int = 4

    @property
    def words(self) -> str:
        return f"{self.task}, {self.method}, {self.shots} shots, epsilon {self.epsilon:g}, run {self.run}"


@dataclass(frozen=True)
class Setting:
    """The public settings for writing demonstrations of a data set.

    Attributes:
        tokens: T, the tokens of a demonstration; None: those of Tang et al.
        subsets: M, the expected rows of a step with unit rows, else the exact number of subsets.
        per_subset: N, the expected records of a subset; None: each sampled record is a row.
        candidates: K; None: the whole vocabulary ("RVP off").
        scheme: a new sample for every token, or for every demonstration.
        delta: the delta of every private cell.
        units: the rows of the label with which the paper accounts, or all rows if labels are phrases of their texts.
        tests: the number of test rows; None: all.
    """

    tokens: int | None = None
    subsets: int = 100
    per_subset: int | None = None
    candidates: int | None = 100
    scheme: Scheme = Scheme.PER_DEMONSTRATION
    delta: float = 1e-5
    units: int | None = None
    tests: int | None = None

    def sampling(self, task: str, written: int) -> SamplingPlan:
        """The sampling plan for `written` demonstrations for which one record pays."""
        tokens = self.tokens or TASKS[task].tokens
        return SamplingPlan(self.scheme, self.subsets, self.per_subset or 1, self.per_subset is None, tokens, written)


@dataclass(frozen=True)
class Method:
    """The settings of a method.

    Attributes:
        parameters: the paper's, of mechanism and transform, by data set and epsilon; at infinity only those of the
            transform. They may include the paper's noise; a run solves for its own.
        nucleus: for each data set, the candidates' total share of the public distribution; all of it by default.
    """

    mechanism: str
    transform: str = "none"
    parameters: Mapping[str, Mapping[float, Values]] = field(default_factory=dict)
    nucleus: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str) -> Method:
        """The method of a name: a private mechanism, optionally with "+TRANSFORM", or the recipe "vote".

        Raises:
            UsageError: it is none of these.
        """
        mechanism, _, transform = name.partition("+")
        if name != VOTE:
            chosen = mechanism_class(mechanism)
            if chosen.not_private or not chosen.uses_private_rows:
                raise UsageError(f"'{mechanism}' is a baseline: --epsilons 0 and inf have it.")
            if transform and transform_class(transform) and not chosen.takes_transform:
                raise UsageError(f"'{mechanism}' takes no transform: leave out '+{transform}'.")
        return cls(mechanism, transform or "none")

    def asked(self, task: str, epsilon: float, noise: bool = True) -> dict[str, Any]:
        """Fields of `RunSpec`; without `noise` those for the noiseless mean of the rows."""
        return {
            "mechanism": self.mechanism if noise else WITHOUT_NOISE,
            "transform": self.transform,
            "parameters": self.parameters.get(task, {}).get(epsilon, {}),
            "candidate_top_p": self.nucleus.get(task, 1.0),
        }


METHODS = {
    name: Method.of(name)
    for name in (
        "gaussian",
        "gaussian+pta",
        "noisy-max",
        "adadpsyn",
        "blended-logits",
        "difference-clipping",
        "svt-public",
        VOTE,
    )
}


class Writing(NamedTuple):
    """A number of texts of `tokens` tokens, from rows with at most `record_tokens` in a prompt."""

    texts: int
    tokens: int
    setting: Setting
    record_tokens: int


@dataclass(frozen=True)
class Elsewhere:
    """Another command for a table, and the model's work in one call of it.

    Attributes:
        command: arguments of `python -m`, with {data}, {out} and {model}.
        terms: its settings in addition to the preset's, or instead of them; by name.
        writes: the written texts.
        reads: the number of further prompts, of `length` tokens.
        measured: the measured cost, if the model is too small for the estimate.
    """

    command: str
    terms: Mapping[str, str] = field(default_factory=dict)
    writes: tuple[Writing, ...] = ()
    reads: int = 0
    length: int = 0
    measured: str = ""


@dataclass(frozen=True)
class Preset:
    """A table of a paper, or another grid.

    Attributes:
        name: its name on the command line.
        source: the paper and its tables.
        model: the paper's model.
        settings: the setting of each data set.
        methods: the methods, by their names in tables.
        least_noise: the methods that have a cell at infinity with the least possible noise.
        shots: demonstrations in a prompt.
        runs: the number of runs of each cell.
        rows: the number of test rows of each data set, drawn by the public seed; None: that of the setting.
        seed: the seed of public choices: the test rows, the labels in the prompt, and the real rows.
        remarks: what the paper does not state, and which of its claims do not hold.
        elsewhere: another command that runs it; None if `reproduce` does.
    """

    name: str
    source: str = ""
    model: str = ""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    methods: Mapping[str, Method] = field(default_factory=lambda: METHODS)
    least_noise: tuple[str, ...] = ()
    epsilons: tuple[float, ...] = EPSILONS
    shots: tuple[int, ...] = (4,)
    runs: int = 5
    rows: int | None = None
    seed: int = 0
    remarks: tuple[str, ...] = ()
    elsewhere: Elsewhere | None = None

    def __post_init__(self) -> None:
        if unknown := [task for task in self.settings if task not in TASKS]:
            raise UsageError(f"'{unknown[0]}' is none of the papers' data sets: choose among {', '.join(TASKS)}.")
        if any(math.isnan(each) or each < 0 for each in self.epsilons):
            raise UsageError("--epsilons takes 0 (public), positive numbers and inf (no privacy).")
        if self.runs < 1 or (self.rows is not None and self.rows < 1):
            raise UsageError("--runs and --rows must be at least 1.")
        if min(self.shots) < 1:
            raise UsageError("--shots must be at least 1.")
        if self.seed < 0:
            raise UsageError("--seed must not be negative.")

    def cells(self) -> Iterator[Cell]:
        """The distinct cells, run by run, so that an interruption leaves complete runs."""
        seen = (
            Cell(task, method, epsilon, run, shots)
            for run in range(1, self.runs + 1)
            for task in self.settings
            for shots in self.shots
            for epsilon in self.epsilons
            for method in self._methods(epsilon, run)
            if not (method == VOTE and TASKS[task].slots)  # its correction needs a fixed set of labels
        )
        without = (Cell(each.task, ZERO_SHOT, 0, 1, 0) if each.method == ZERO_SHOT else each for each in seen)
        yield from dict.fromkeys(without)

    def _methods(self, epsilon: float, run: int) -> Iterator[str]:
        if epsilon == 0:
            if run == 1:  # one prompt for all draws
                yield ZERO_SHOT
            yield PUBLIC
        elif math.isinf(epsilon):
            yield REAL
            yield from (name for name in map(self.without_noise, self.methods) if name)
            yield from self.least_noise
        else:
            yield from self.methods

    def tests(self, task: str) -> int | None:
        """The number of test rows of a data set; None: all."""
        return self.rows or self.settings[task].tests

    def without_noise(self, name: str) -> str | None:
        """The name of a method's baseline that writes from the noiseless mean of the rows; None for methods that draw
        tokens."""
        method = self.methods[name]
        if name == VOTE or not mechanism_class(method.mechanism).takes_transform:
            return None
        return WITHOUT_NOISE + name.removeprefix(method.mechanism)

    def asked(self, cell: Cell) -> dict[str, Any]:
        """Fields of `RunSpec` for a cell that is written token by token."""
        if cell.method == PUBLIC:
            return {"mechanism": PUBLIC}
        if cell.method in self.methods:
            return self.methods[cell.method].asked(cell.task, cell.epsilon)
        [method, *_] = (each for name, each in self.methods.items() if self.without_noise(name) == cell.method)
        return method.asked(cell.task, cell.epsilon, noise=False)
