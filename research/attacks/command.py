"""`attack`: the attacks of the papers at several epsilons, with the papers' figures."""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mechanisms import api
from mechanisms.cli.options import progress
from mechanisms.errors import UsageError
from mechanisms.inference.models.listed import EMBEDDED
from research.attacks import extraction, membership
from research.lines import Line, done, interval, keep, lines, markdown
from research.reproduction.cells import Method, Preset, Setting
from research.reproduction.presets import PRESETS

ATTACKS = {"membership": membership, "extraction": extraction}
OWN, REAL = "own", "no privacy"
"""Stated instead of a preset, and of a mechanism at epsilon infinity."""


def add_commands(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("attack", help="membership inference and extraction on public data, as in the papers")
    parser.add_argument("attack", choices=ATTACKS)
    parser.add_argument("data", metavar="DATA", type=Path, help="a folder with dbpedia/ and enron_aeslc/: public data")
    parser.add_argument("--out", required=True, metavar="FILE", help="lines; what stands in it is not computed again")
    parser.add_argument("--model", default=EMBEDDED)
    parser.add_argument("--preset", choices=PRESETS, metavar="NAME", help="whose text it is: sample, noise and delta")
    parser.add_argument("--mechanism", help="in the settings of this program (default: that of the paper)")
    parser.add_argument("--epsilons", nargs="+", type=float, metavar="E", help="inf: no privacy")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--rows", type=int, help="members that are scored in a run (50), or texts that are written (20)"
    )
    parser.set_defaults(run=_attack)


def _attack(options: argparse.Namespace) -> None:
    chosen = ATTACKS[options.attack]
    model, rows, preset = api.load_model(options.model), options.rows or chosen.ROWS, written_by(options)
    [mechanism] = preset.methods
    for number in range(options.runs):
        for epsilon in options.epsilons or preset.epsilons:
            key = {"attack": options.attack, "model": model.name, "rows": rows, "epsilon": str(epsilon)}
            key |= {"preset": preset.name, "mechanism": mechanism if math.isfinite(epsilon) else REAL}
            if done(options.out, key) <= number:
                found = chosen.attack(model, options.data, preset, epsilon, rows)
                keep(options.out, key | found)
                progress(f"run {number + 1}, epsilon {epsilon:g}: {found}")
    print(table(options.attack, lines(options.out)))


def written_by(options: argparse.Namespace) -> Preset:
    """The settings for the texts: those of a paper's table, or this program's own.

    Raises:
        UsageError: the preset is of another attack.
    """
    chosen = ATTACKS[options.attack]
    if options.preset is None:
        mechanism = options.mechanism or chosen.MECHANISM
        methods = {mechanism: Method.of(mechanism)}
        return Preset(OWN, settings={"dbpedia": Setting()}, methods=methods, epsilons=chosen.EPSILONS)
    preset = PRESETS[options.preset]
    if preset.name not in _of(options.attack) or options.mechanism:
        raise UsageError(f"--preset takes {', '.join(_of(options.attack))}, without --mechanism.")
    return preset


def _of(attack: str) -> list[str]:
    return [name for name, each in PRESETS.items() if each.elsewhere and f"attack {attack}" in each.elsewhere.command]


def table(attack: str, found: Sequence[Line]) -> str:
    """A Markdown table of figures in percent, means over runs with half of their interval, and the papers' figures
    below."""
    chosen = ATTACKS[attack]
    figures: dict[tuple[str, str, str], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in (each for each in found if each["attack"] == attack):
        for name in chosen.FIGURES:
            figures[line["mechanism"], name, f"**{line['model']}**"][float(line["epsilon"])].append(100 * line[name])
    heads = ("mechanism", "figure", "model", *(f"{each:g}" for each in chosen.EPSILONS))
    own = [(*row, *(_percent(at.get(each, ())) for each in chosen.EPSILONS)) for row, at in figures.items()]
    theirs = [(*row, *(at.get(each, "") for each in chosen.EPSILONS)) for row, at in chosen.PUBLISHED.items()]
    return markdown(heads, [*own, *theirs])


def _percent(figures: Sequence[float]) -> str:
    mean, half = interval(figures) if figures else (math.nan, math.inf)
    return "" if math.isnan(mean) else f"{mean:.1f}" if math.isinf(half) else f"{mean:.1f} ± {half:.1f}"
