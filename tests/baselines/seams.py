"""What a baseline puts in the program's place: models, chance, clock and key. After a rebuild, adapt this file alone.

A function or a class is replaced wherever the program holds it, whatever the module that holds it is called.
"""

from __future__ import annotations

import os
import pkgutil
import secrets
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import numpy as np

from mechanisms import __version__, cli
from mechanisms.cli.main import main
from mechanisms.inference.models.embedder import load_embedder
from mechanisms.inference.models.loading import load_model
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.runs.text import Gate
from tests.baselines.toys import MODELS
from tests.toy_embedder import ToyEmbedder

for _, _name, _ in pkgutil.iter_modules(cli.__path__, f"{cli.__name__}."):
    import_module(_name)  # a command that is imported later would hold what is in the program's place by then
PACKAGE = "mechanisms"
VERSION = __version__
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KEY = bytes(range(32))
"""Roles, batches and signatures follow from it."""
_KINDS = (
    "gaussian", "laplace", "exponential_argmax", "gumbel_argmax", "uniform", "poisson_sample", "permutation",
)  # fmt: skip
"""What `Randomness` draws."""


class _Clock(datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW.astimezone(tz)


class World:
    """Where a case runs.

    Attributes:
        draws: how often each kind of draw was made, with its scale or rate; never what it was.
        breaks_at: the session at which models that are loaded from now on break down; None for never.
    """

    def __init__(self, seed: int) -> None:
        self.draws: Counter[str] = Counter()
        self.breaks_at: int | None = None
        # A stream for each kind: of two kinds of draws it does not matter which comes first.
        self._streams = {kind: SeededRandomness([seed, place]) for place, kind in enumerate(_KINDS)}
        self._tokens = 0

    def main(self, arguments: list[str]) -> int:
        """The program's command line."""
        return main(arguments, prog="dpicl")

    def method(self, kind: str):
        """A method of `Randomness` that draws from this world's stream, on a source that stays a private one."""

        def drawn(_, *arguments):
            self.draws[_described(kind, *arguments)] += 1
            return getattr(self._streams[kind], kind)(*arguments)

        return drawn

    def load_model(self, name: str = "toy", *_, **__):
        """The toy of that name."""
        model = MODELS[name]()
        model.breaks_at = self.breaks_at
        return model

    def token_bytes(self, count: int = 32) -> bytes:
        """Numbers in a row, for names that only have to differ."""
        self._tokens += 1
        return self._tokens.to_bytes(count, "big")

    def token_hex(self, count: int = 32) -> str:
        return self.token_bytes(count).hex()


def _described(kind: str, values, *scale) -> str:
    """The public facts of a draw: how many values, and the scale; of a sample, out of how many and at which rate."""
    many = len(values) if np.ndim(values) else int(values)
    return " ".join([kind, "of", str(many), *(f"at {float(each)!r}" for each in scale)])


@contextmanager
def world(seed: int, folder: Path) -> Iterator[World]:
    """The program in a folder of its own, with nothing left to chance."""
    one = World(seed)
    for name in ("home", "work"):
        (folder / name).mkdir()
    (folder / "home" / "key").write_bytes(KEY)
    before = Path.cwd()
    with ExitStack() as stack:
        environment = {"DPICL_HOME": str(folder / "home"), "DPICL_CACHE": str(folder / "cache"), "COLUMNS": "120"}
        stack.enter_context(patch.dict(os.environ, environment))
        for kind in _KINDS:
            stack.enter_context(patch.object(SecureRandomness, kind, one.method(kind)))
        for name in ("token_bytes", "token_hex"):
            stack.enter_context(patch.object(secrets, name, getattr(one, name)))
        _everywhere(stack, load_model, one.load_model)
        _everywhere(stack, load_embedder, ToyEmbedder)
        _everywhere(stack, datetime, _Clock)
        stack.enter_context(patch.object(Gate, "reason", lambda gate, text: None))  # a toy's words are none
        os.chdir(folder / "work")
        stack.callback(os.chdir, before)
        yield one


def _everywhere(stack: ExitStack, real, instead) -> None:
    """Replace an object under every name by which a module of the program holds it."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == PACKAGE:
            for held in [key for key, value in vars(module).items() if value is real]:
                stack.enter_context(patch.object(module, held, instead))
