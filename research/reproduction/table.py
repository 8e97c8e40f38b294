"""A grid as a tidy table, and as a page with the papers' figures for comparison."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import product

from mechanisms import confidence
from mechanisms.evaluation.evaluate import Accuracy
from mechanisms.evaluation.reader import CONTEXTUAL, PRIOR
from mechanisms.runs.plan import solved_flag
from research.reproduction.cells import VOTE, Preset
from research.reproduction.published import Published, published
from research.reproduction.run import Result
from research.reproduction.tasks import TASKS

COLUMNS = ("model", "task", "method", "shots", "epsilon", "run", "reading", "rows", "right", "accuracy", "low", "high")
COLUMNS_OF_A_RUN = ("claimed_epsilon", "delta", "noise")


def tidy(results: Sequence[Result], model: str, preset: Preset) -> str:
    """CSV with one line per cell and reading, with the interval over test rows (Wilson 1927)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*COLUMNS, *COLUMNS_OF_A_RUN])
    for each in results:
        delta = preset.settings[each.cell.task].delta
        noise = "" if each.noise is None else f"{each.noise:.4g}"
        paid = ("", "", "") if each.claimed is None else (f"{each.claimed:.4f}", f"{delta:g}", noise)
        for reading, found in each.found.items():
            cell, rates = each.cell, (f"{rate:.4f}" for rate in (found.value, *found.interval))
            named = (model, cell.task, cell.method, cell.shots, f"{cell.epsilon:g}", cell.run, reading)
            writer.writerow([*named, found.total, found.correct, *rates, *paid])
    return out.getvalue()


def page(results: Sequence[Result], model: str, preset: Preset) -> str:
    """Markdown: for each data set the computed figures, below them the papers' figures for the same methods and number
    of shots with their models, and the noise of both."""
    tasks = [name for name in TASKS if any(each.cell.task == name for each in results)]
    lines = [*_head(model, preset), *(line for name in tasks for line in _task(name, results, model, preset))]
    return "\n".join(lines) + "\n"


_HEAD = """# {title}

Accuracies in percent on {rows}. Figures in bold were computed here with {model}: the mean over the runs
with its standard deviation, or one run with the {level} interval of its test rows (Wilson). The others are the
papers', as they print them. They are **not the same experiment**:

- **The model** is another one, and stands in each line.
- **The private rows** are those of your file. The papers had 120,000 (AG News), 560,000 (DBpedia; Gao et al. 49,999)
  and about 5,500 (TREC): with fewer of them one epsilon means more noise. The lines "noise" have both; where the runs
  of a cell differ, since their labels have not as many rows, the least and the most.
- **Epsilon** is what this program claims for Poisson samples ({settings}). The papers draw without replacement, or have
  disjoint batches, and account for it in their own ways (docs/pitfalls.md).
- **The prompt** shows demonstrations of different labels, drawn anew in every run, and answers are read with
  contextual calibration. `{vote}` shows one of every label with its own measured correction; no paper has it.
{remarks}"""


def _head(model: str, preset: Preset) -> Iterator[str]:
    settings = "; ".join(
        f"{TASKS[task].title}: {each.scheme}, M {each.subsets}, N {each.per_subset or 1}, "
        f"K {each.candidates or 'the whole vocabulary'}, delta {each.delta:.3g}"
        for task, each in preset.settings.items()
    )
    yield _HEAD.format(
        title=f"{preset.name}: {preset.source}",
        rows="all rows of the test file" if preset.rows is None else f"{preset.rows} rows of the test file",
        level=confidence.percent(),
        model=_plain(model),
        settings=settings,
        vote=VOTE,
        remarks="".join(f"- {each}\n" for each in preset.remarks),
    )


def _task(task: str, results: Sequence[Result], model: str, preset: Preset) -> Iterator[str]:
    own = [each for each in results if each.cell.task == task]
    kinds = {(each.method, each.shots) for each in preset.cells()} | set(product(preset.methods, preset.shots))
    others = [each for each in published() if each.task == task and (each.method, each.shots) in kinds]
    epsilons = sorted({each.cell.epsilon for each in own} | {each.epsilon for each in others})
    yield f"## {TASKS[task].title}"
    yield ""
    yield f"| method | model | {' | '.join(_head_of(each) for each in epsilons)} |"
    yield f"|---|---|{'---|' * len(epsilons)}"
    shown = [(each.cell.method, each.cell.shots) for each in own] + [(each.method, each.shots) for each in others]
    for method, shots in dict.fromkeys(shown):
        name = method if shots in (0, 4) else f"{method}, {shots}-shot"
        mine = {
            e: [r for r in own if (r.cell.method, r.cell.shots, r.cell.epsilon) == (method, shots, e)] for e in epsilons
        }
        if any(mine.values()):
            yield _row(name, f"**{_plain(model)}**", [_ours(mine[e]) for e in epsilons])
        series = [each for each in others if (each.method, each.shots) == (method, shots)]
        for where in dict.fromkeys((each.model, each.source, each.table) for each in series):
            at = {each.epsilon: each for each in series if (each.model, each.source, each.table) == where}
            yield _row(name, f"{where[0]}: {where[1]}, {where[2]}", [_theirs(at.get(e)) for e in epsilons])
        yield from _noise(name, method, task, model, preset, [mine[e] for e in epsilons], epsilons)
    yield ""


def _noise(
    name: str,
    method: str,
    task: str,
    model: str,
    preset: Preset,
    mine: Sequence[Sequence[Result]],
    epsilons: Sequence[float],
) -> Iterator[str]:
    """The noise of a method's runs, and that of the preset's paper if it states one."""
    own = [_range([each.noise for each in results if each.noise is not None]) for results in mine]
    if any(own):
        yield _row(f"{name}: noise", f"**{_plain(model)}**", own)
    known = preset.methods.get(method)
    solved = known and method != VOTE and solved_flag(known.mechanism)
    if known and solved:
        there = [known.parameters.get(task, {}).get(each, {}).get(solved) for each in epsilons]
        if any(there):
            yield _row(f"{name}: noise", preset.source, ["" if each is None else f"{each:g}" for each in there])


def _range(noise: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{each:.3g}" for each in (min(noise), max(noise)))) if noise else ""


def _row(method: str, who: str, figures: Sequence[str]) -> str:
    return f"| {method} | {who} | {' | '.join(figures)} |"


def _head_of(epsilon: float) -> str:
    return {0.0: "0 (public)", math.inf: "no privacy"}.get(epsilon, f"{epsilon:g}")


def as_read(result: Result) -> Accuracy:
    """The accuracy with the set's own correction, else as in the papers: calibrated, or raw for slots."""
    return next(result.found[each] for each in (PRIOR, CONTEXTUAL, *result.found) if each in result.found)


def _ours(results: Sequence[Result]) -> str:
    if not results:
        return ""
    found = [as_read(each) for each in results]
    if len(found) == 1:
        low, high = found[0].interval
        return f"**{100 * found[0].value:.1f}** [{100 * low:.0f}, {100 * high:.0f}]"
    values = [100 * each.value for each in found]
    return f"**{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}** ({len(values)})"


def _theirs(figure: Published | None) -> str:
    if figure is None:
        return ""
    spread = "" if figure.deviation is None else f" ± {100 * figure.deviation:.1f}"
    return f"{100 * figure.accuracy:.1f}{spread}"


def _plain(name: str) -> str:
    """A model's name inside a table of Markdown."""
    return name.replace("|", "/").replace("\n", " ").replace("<", "‹")
