"""What a preset sets and costs, before it is run: its settings, our epsilon of the paper's noise, hours and memory.

Hours and memory are estimates for a model of 7B on one H200, from what was measured there (research/docs/gpu.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mechanisms.accounting import claim
from mechanisms.runs.plan import solved_flag
from mechanisms.runs.spec import RunSpec
from mechanisms.sampling import Scheme
from research.lines import markdown
from research.reproduction.cells import PUBLIC, REAL, VOTE, ZERO_SHOT, Cell, Method, Preset, Setting
from research.reproduction.tasks import TASKS, Task

TEST_ROWS = {"agnews": 7_600, "dbpedia": 70_000, "trec": 500, "mit_g": 780, "mit_d": 415}
"""Of the whole files (Gao et al. 2025, appendix C.2)."""
PREFILL = 41_000
"""Tokens a second of the bare model."""
OVER_PREFILL = 0.081 / 0.036
"""A token by a new sample, over a dense prefill of as many positions."""
STEP = 0.0312 / 100
"""Seconds of a later token, for each of 100 rows that keep their cache."""
WEIGHTS, PEAK = 12.6, 33.0
"""GiB of the model, and with 100 rows of 228 positions."""
SENTENCE = 48
"""Tokens that ask for a text, or that surround one that is read."""


@dataclass(frozen=True)
class Cost:
    """Of a cell, estimated: tokens that are written, prompts that the model reads, seconds, GiB."""

    tokens: int
    prompts: int
    seconds: float
    memory: float


def demonstrations(cell: Cell) -> tuple[int, int]:
    """How many are written for a cell, and for how many of them one record pays."""
    task = TASKS[cell.task]
    a_label = math.ceil(cell.shots / len(task.labels))
    return min(cell.shots, len(task.labels)) * a_label, cell.shots if task.slots else a_label


def cost(cell: Cell, preset: Preset) -> Cost:
    """Without the passes by which `vote` picks its drafts: no paper has it."""
    task, setting = TASKS[cell.task], preset.settings[cell.task]
    tests = min(preset.rows or math.inf, TEST_ROWS[cell.task])
    reading = tests * (task.max_record_tokens + SENTENCE) / PREFILL
    if cell.method in (ZERO_SHOT, REAL, VOTE):
        return Cost(0, int(tests), reading, WEIGHTS)
    count, tokens = demonstrations(cell)[0], setting.tokens or task.tokens
    rows = 1 if cell.method == PUBLIC else setting.subsets
    length = _length(task, setting) if rows > 1 else SENTENCE + tokens
    memory = WEIGHTS + (PEAK - WEIGHTS) * rows * length / (100 * 228)
    if setting.scheme is Scheme.PER_TOKEN and rows > 1:
        prompts = count * tokens * rows
        writing = prompts * (length - tokens / 2) / PREFILL * OVER_PREFILL
    else:
        prompts = count * rows
        writing = prompts * (length - tokens) / PREFILL + STEP * 100 * count * tokens * max(1, rows / 100)
    return Cost(count * tokens, int(prompts + tests), reading + writing, memory)


def _length(task: Task, setting: Setting) -> int:
    """Positions of a private row at its last token."""
    return SENTENCE + (setting.per_subset or 1) * task.max_record_tokens + (setting.tokens or task.tokens)


def noise_of(preset: Preset) -> Iterator[tuple[str, str, float, float, float]]:
    """Data set, method, epsilon that the paper claims, its noise, and what that costs by our accountants.

    The accountants are given Poisson sampling, and as many demonstrations as one record pays for.
    """
    for task, setting in preset.settings.items():
        for name, method in preset.methods.items():
            for epsilon, own in method.parameters.get(task, {}).items():
                if epsilon in preset.epsilons and (solved := solved_flag(method.mechanism) or "") in own:
                    cell = Cell(task, name, epsilon, 1, max(preset.shots))
                    yield task, name, epsilon, own[solved], _epsilon(cell, method, setting)


def _epsilon(cell: Cell, method: Method, setting: Setting) -> float:
    assert setting.units is not None
    asked = method.asked(cell.task, cell.epsilon)
    spec = RunSpec.of(**{name: asked[name] for name in ("mechanism", "transform", "parameters")})
    sampling = setting.sampling(cell.task, demonstrations(cell)[1])
    mechanism = spec.made_mechanism.for_plan(sampling)
    return claim(sampling.compose(mechanism.event, {"all": setting.units}, setting.delta), setting.delta).epsilon


def told(preset: Preset) -> str:
    """All of it, in Markdown."""
    lines = [f"# {preset.name}: {preset.source}", ""]
    if preset.model:
        lines += [f"Model there: {preset.model}.", ""]
    if preset.elsewhere:
        lines.append(f"    python -m {preset.elsewhere.format(data='DATA', out='FILE', model='MODEL')}")
    else:
        lines += [*_settings(preset), "", *_noise(preset), *_costs(preset)]
    return "\n".join([*lines, "", *(f"- {each}" for each in preset.remarks)])


def _settings(preset: Preset) -> Iterator[str]:
    heads = ("data set", "sample", "M", "N", "K", "T", "delta", "n there")
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
        )
        for task, each in preset.settings.items()
    )
    yield markdown(heads, rows)
    yield ""
    epsilons = " ".join(f"{each:g}" for each in preset.epsilons)
    tests = "all test rows" if preset.rows is None else f"{preset.rows} test rows"
    shots = " ".join(map(str, preset.shots))
    yield f"Methods: {'; '.join(preset.methods)}. Epsilon: {epsilons}. Shots: {shots}. Runs: {preset.runs}. {tests}."


def _noise(preset: Preset) -> Iterator[str]:
    found = [
        (TASKS[task].title, name, f"{e:g}", f"{noise:g}", f"{here:.3g}")
        for task, name, e, noise, here in noise_of(preset)
    ]
    if found:
        yield markdown(("data set", "method", "epsilon, claimed", "noise of the paper", "epsilon of it, here"), found)
        yield ""


def _costs(preset: Preset) -> Iterator[str]:
    found = [cost(each, preset) for each in preset.cells()]
    tokens, prompts, seconds = (sum(getattr(each, name) for each in found) for name in ("tokens", "prompts", "seconds"))
    yield (
        f"{len(found)} cells: {tokens:,} tokens written, {prompts:,} prompts. Estimated for 7B on one H200: "
        f"{seconds / 3600:.1f} hours, {max(each.memory for each in found):.0f} GiB."
    )
