"""A preset's settings and costs before a run: our epsilon of the paper's noise, hours and memory.

If a label has fewer rows than the one with which the paper accounts, the noise costs more, as is also stated.

Hours and memory are estimates for a 7B model on one H200, from measurements (research/docs/gpu.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import NamedTuple

from mechanisms.accounting import claim
from mechanisms.runs.plan import solved_flag
from mechanisms.runs.spec import RunSpec
from mechanisms.sampling import Scheme
from research.lines import markdown
from research.reproduction.cells import PUBLIC, REAL, VOTE, ZERO_SHOT, Cell, Elsewhere, Method, Preset, Setting, Writing
from research.reproduction.tasks import TASKS

TEST_ROWS = {"agnews": 7_600, "dbpedia": 70_000, "trec": 500, "mit_g": 780, "mit_d": 415}
"""The rows of the whole files (Gao et al. 2025, appendix C.2)."""
PREFILL = 41_000
"""Tokens per second of the bare model."""
OVER_PREFILL = 0.081 / 0.036
"""The time of a token with a new sample over that of a dense prefill of as many positions."""
STEP = 0.0312 / 100
"""Seconds of a later token per 100 rows with a cache."""
WEIGHTS, PEAK = 12.6, 33.0
"""GiB of the model alone, and with 100 rows of 228 positions."""
SENTENCE = 48
"""Tokens of the prompt for a text, or around a text that is classified."""


@dataclass(frozen=True)
class Cost:
    """The estimated cost of a cell: written tokens, prompts, seconds, GiB."""

    tokens: int
    prompts: int
    seconds: float
    memory: float


def demonstrations(cell: Cell) -> tuple[int, int]:
    """The number of demonstrations written for a cell, and the number for which one record pays."""
    task = TASKS[cell.task]
    a_label = math.ceil(cell.shots / len(task.labels))
    return min(cell.shots, len(task.labels)) * a_label, cell.shots if task.slots else a_label


def tests_read(preset: Preset, task: str) -> int:
    """The number of test rows, at most that of the file."""
    return min(preset.tests(task) or TEST_ROWS[task], TEST_ROWS[task])


def cost(cell: Cell, preset: Preset) -> Cost:
    """The cost of a cell, without the passes by which `vote` picks its drafts, which no paper has."""
    task, setting = TASKS[cell.task], preset.settings[cell.task]
    tests = tests_read(preset, cell.task)
    reading = tests * (task.max_record_tokens + SENTENCE) / PREFILL
    if cell.method in (ZERO_SHOT, REAL, VOTE):
        return Cost(0, tests, reading, WEIGHTS)
    count, tokens = demonstrations(cell)[0], setting.tokens or task.tokens
    record = 0 if cell.method == PUBLIC else task.max_record_tokens
    found = _writing(Writing(count, tokens, setting, record))
    return replace(found, prompts=int(found.prompts + tests), seconds=found.seconds + reading)


def _writing(asked: Writing) -> Cost:
    """The cost of writing; from public text if rows have no tokens in a prompt."""
    count, tokens, setting, record = asked
    rows = setting.subsets if record else 1
    length = SENTENCE + (setting.per_subset or 1) * record + tokens
    memory = WEIGHTS + (PEAK - WEIGHTS) * rows * length / (100 * 228)
    if setting.scheme is Scheme.PER_TOKEN and rows > 1:
        prompts = count * tokens * rows
        seconds = prompts * (length - tokens / 2) / PREFILL * OVER_PREFILL
    else:
        prompts = count * rows
        seconds = prompts * (length - tokens) / PREFILL + STEP * 100 * count * tokens * max(1, rows / 100)
    return Cost(count * tokens, prompts, seconds, memory)


def cost_elsewhere(command: Elsewhere) -> Cost:
    """The cost of a whole call."""
    found = [Cost(0, command.reads, command.reads * command.length / PREFILL, WEIGHTS), *map(_writing, command.writes)]
    tokens, prompts, seconds, memory = zip(*map(astuple, found), strict=True)
    return Cost(sum(tokens), sum(prompts), sum(seconds), max(memory))


class Noise(NamedTuple):
    """The cost of a paper's noise by our accountants, with Poisson sampling and all texts for which one record pays.

    Attributes:
        claimed: the paper's epsilon.
        here: our epsilon, at the paper's number of rows.
        smallest: our epsilon for the smallest label; None if the paper's number of rows is not larger.
    """

    task: str
    method: str
    claimed: float
    noise: float
    here: float
    smallest: float | None


def noise_of(preset: Preset, counts: Mapping[str, int]) -> Iterator[Noise]:
    """The cost for each data set and method with noise in the paper.

    Args:
        counts: the rows of each data set's smallest label.
    """
    for task, setting in preset.settings.items():
        for name, method in preset.methods.items():
            for epsilon, own in method.parameters.get(task, {}).items():
                if epsilon in preset.epsilons and (solved := solved_flag(method.mechanism) or "") in own:
                    cell = Cell(task, name, epsilon, 1, max(preset.shots))
                    assert setting.units is not None
                    here = _epsilon(cell, method, setting, setting.units)
                    fewer = counts[task] < setting.units
                    smallest = _epsilon(cell, method, setting, counts[task]) if fewer else None
                    yield Noise(task, name, epsilon, own[solved], here, smallest)


def _epsilon(cell: Cell, method: Method, setting: Setting, units: int) -> float:
    asked = method.asked(cell.task, cell.epsilon)
    spec = RunSpec.of(**{name: asked[name] for name in ("mechanism", "transform", "parameters")})
    sampling = setting.sampling(cell.task, demonstrations(cell)[1])
    mechanism = spec.made_mechanism.for_plan(sampling)
    return claim(sampling.compose(mechanism.event, {"all": units}, setting.delta), setting.delta).epsilon


def told(preset: Preset, counts: Mapping[str, int]) -> str:
    """The whole description in Markdown; `counts` as in `noise_of`."""
    lines = [f"# {preset.name}: {preset.source}", ""]
    if preset.model:
        lines += [f"Model there: {preset.model}.", ""]
    if preset.elsewhere:
        lines += [f"    python -m {preset.elsewhere.command.format(data='DATA', out='FILE', model='MODEL')}", ""]
    if preset.settings:
        lines += [*_settings(preset, counts), "", *_noise(preset, counts)]
    lines += [*_elsewhere(preset, preset.elsewhere)] if preset.elsewhere else [*_grid(preset), *_costs(preset)]
    return "\n".join([*lines, "", *(f"- {each}" for each in preset.remarks)])


def _settings(preset: Preset, counts: Mapping[str, int]) -> Iterator[str]:
    heads = ("data set", "sample", "M", "N", "K", "T", "delta", "n there", "smallest label")
    rows = (
        (
            TASKS[task].title,
            each.scheme,
            each.subsets,
            each.per_subset or "unit rows",
            each.candidates or "whole vocabulary",
            each.tokens or TASKS[task].tokens,
            f"{each.delta:.3g}",
            each.units or "",
            counts[task],
        )
        for task, each in preset.settings.items()
    )
    yield markdown(heads, rows)


def _epsilons(preset: Preset) -> str:
    return f"Epsilon: {' '.join(f'{each:g}' for each in preset.epsilons)}"


def _grid(preset: Preset) -> Iterator[str]:
    tests = ", ".join(f"{tests_read(preset, task):,} of {TASKS[task].title}" for task in preset.settings)
    shots = " ".join(map(str, preset.shots))
    yield f"Methods: {'; '.join(preset.methods)}. {_epsilons(preset)}. Shots: {shots}. Runs: {preset.runs}."
    yield f"Test rows: {tests}."
    yield ""


def _noise(preset: Preset, counts: Mapping[str, int]) -> Iterator[str]:
    heads = (
        "data set",
        "method",
        "epsilon, claimed",
        "noise of the paper",
        "epsilon of it, here",
        "of the smallest label",
    )
    found = [
        (
            TASKS[each.task].title,
            each.method,
            f"{each.claimed:g}",
            f"{each.noise:g}",
            f"{each.here:.3g}",
            "" if each.smallest is None else f"{each.smallest:.3g}",
        )
        for each in noise_of(preset, counts)
    ]
    if found:
        yield markdown(heads, found)
        yield ""


def _elsewhere(preset: Preset, command: Elsewhere) -> Iterator[str]:
    if command.terms:
        yield markdown(("what", "is"), command.terms.items())
        yield ""
    found = cost_elsewhere(command)
    yield f"{_epsilons(preset)}. Runs: {preset.runs}."
    yield ""
    yield _summary("A call", [found]) if not command.measured else f"A call: {command.measured}"


def _costs(preset: Preset) -> Iterator[str]:
    found = [cost(each, preset) for each in preset.cells()]
    yield _summary(f"{len(found)} cells", found)


def _summary(what: str, found: Sequence[Cost]) -> str:
    tokens, prompts, seconds = (sum(getattr(each, name) for each in found) for name in ("tokens", "prompts", "seconds"))
    return (
        f"{what}: {tokens:,} tokens written, {prompts:,} prompts. Estimated for 7B on one H200: "
        f"{seconds / 3600:.2g} hours, {max(each.memory for each in found):.0f} GiB."
    )
