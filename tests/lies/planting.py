"""A lie, and a process of its own in which it is planted before the program is imported.

Nothing of the program is imported here: the process that runs a lie imports this module first.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import io
import multiprocessing
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS_FAILED = 1
"""How pytest ends where tests ran, and some failed; errors in collecting them end otherwise."""
_HEAVY = [
    "numpy", "scipy.stats", "scipy.optimize", "opendp.measurements", "hypothesis.extra.numpy", "pandas", "pytest",
    "psutil", "dp_accounting", "prv_accountant", "jsonschema", "pydantic",
]  # fmt: skip
"""What the program and its tests import of others: once for all lies."""
_HOW = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"]


@dataclass(frozen=True)
class Change:
    """Source that stands once in a module, and what stands there instead."""

    module: str
    old: str
    new: str

    @property
    def path(self) -> Path:
        return ROOT / f"{self.module.replace('.', '/')}.py"


@dataclass(frozen=True)
class Lie:
    """An error, and the test that has to find it.

    Attributes:
        says: what the program pretends.
        changes: where.
        killer: the node id of a test, which passes where nothing is planted.
        worst: the killer has to be one of `make quick`.
        added: a file that joins a package of the program: the package, and the source.
    """

    says: str
    changes: tuple[Change, ...]
    killer: str
    worst: bool = False
    added: tuple[str, str] | None = None


def planted(table: str) -> list[Lie]:
    """The lies of a table: `## what it says`, its killer behind `found` or `worst`, and what it changes.

    `in MODULE` begins a change: lines with a minus are what stands there, those with a plus what stands there instead,
    and those with a space are in both. `new PACKAGE` begins a file. `$NAME = ...` shortens the ids of tests.
    """
    names = dict(re.findall(r"^\$(\w+) = (.+)$", table, re.MULTILINE))
    lies = []
    for says, found, killer, rest in re.findall(r"^## (.+)\n(found|worst) (.+)\n((?:.+\n)+)", table, re.MULTILINE):
        changes, added = [], None
        for kind, where, lines in re.findall(r"^(in|new) (.+)\n((?:[-+ ].*\n)+)", rest, re.MULTILINE):
            old, new = ("\n".join(line[1:] for line in lines.splitlines() if line[0] in side) for side in ("- ", "+ "))
            if kind == "in":
                changes.append(Change(where, old, new))
            else:
                added = where, new
        killer = re.sub(r"^\$(\w+)", lambda name: names[name[1]], killer)
        lies.append(Lie(says, tuple(changes), killer, found == "worst", added))
    return lies


class _Lying(importlib.machinery.SourceFileLoader):
    """Loads a module's source with changes, and never its bytecode."""

    def __init__(self, name: str, path: str, changes: Sequence[Change]) -> None:
        super().__init__(name, path)
        self._changes = changes

    def get_code(self, fullname):
        source = Path(self.path).read_text(encoding="utf-8")
        for change in self._changes:
            source = source.replace(change.old, change.new)
        return compile(source, self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, lie: Lie) -> None:
        self._lie, self._folder = lie, tempfile.mkdtemp()
        if lie.added:
            (Path(self._folder) / "added.py").write_text(lie.added[1], encoding="utf-8")

    def find_spec(self, fullname, path=None, target=None):
        changes = [change for change in self._lie.changes if change.module == fullname]
        adds = self._lie.added is not None and self._lie.added[0] == fullname
        if not changes and not adds:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        if changes:
            spec.loader = _Lying(fullname, spec.origin, changes)
        if adds and spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(self._folder)
        return spec


def _pytest(lie: Lie | None, tests: Sequence[str]) -> tuple[int, str]:
    """In a process of its own: how pytest ends, and what it says."""
    import pytest

    if any(name.partition(".")[0] == "mechanisms" for name in sys.modules):
        raise AssertionError("the program was imported before the lie was planted")
    if lie is not None:
        sys.meta_path.insert(0, _Finder(lie))
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp()
    quick = ["-m", "not slow and not nightly"] if lie is not None and lie.worst else []
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        ended = pytest.main([*_HOW, *quick, *tests])
    return int(ended), said.getvalue()


class Processes:
    """A process for each question, forked from one that has imported what is heavy and nothing of the program."""

    def __enter__(self) -> Processes:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_HEAVY)
        self._pool = ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def pytest(self, lie: Lie | None, *tests: str) -> tuple[int, str]:
        return self._pool.submit(_pytest, lie, tests).result()
