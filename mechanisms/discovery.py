"""How a new file registers itself, and how it describes its public parameters."""

from __future__ import annotations

import functools
import importlib
import math
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from mechanisms.errors import UsageError

_Registered = TypeVar("_Registered")


@functools.cache
def defined(package: str, constant: str) -> dict[str, Any]:
    """What the modules of `package` define under the name `constant`, by its own `name`."""
    path = importlib.import_module(package).__path__
    modules = (importlib.import_module(f"{package}.{module.name}") for module in pkgutil.iter_modules(path))
    found = [getattr(module, constant) for module in modules if hasattr(module, constant)]
    names = [str(each.name) for each in found]
    assert len(set(names)) == len(names), f"two files of {package} define a {constant} of the same name"
    return {each.name: each for each in found}


def pick(registered: Mapping[str, _Registered], name: str, kind: str, names: Iterable[str]) -> _Registered:
    """What is registered under a name.

    Raises:
        UsageError: nothing is; the message lists `names`.
    """
    if name not in registered:
        raise UsageError(f"There is no {kind} '{name}': choose one of {', '.join(names)}.")
    return registered[name]


# Public parameters of mechanisms and transforms: one description serves checks, form, command line and docs.


@dataclass(frozen=True)
class Parameter:
    """One public parameter: its name in code, its words for people, its range, its source, its default.

    The default's type says what kind it is: float, int, or bool (which has no range to speak of).
    """

    name: str
    label: str
    help: str
    low: float
    high: float
    citation: str
    default: float | int | bool

    @property
    def field(self) -> str:
        """Its name in a certificate; in code a name that Python reserves ends in an underscore."""
        return self.name.rstrip("_")

    @property
    def flag(self) -> str:
        """Its name on the command line, without the dashes."""
        return self.field.replace("_", "-")

    def typed(self, value: float | int | bool) -> float | int | bool:
        """A value as the parameter's own kind; one that has no such kind stays as it is, for `validate` to refuse."""
        made = type(self.default)(value)
        return made if made == value else value


def parameter(default: float, *, label: str, help: str, low: float, high: float, citation: str) -> Any:
    """A dataclass field that carries its own description; see `Parameter`."""
    described = {"label": label, "help": help, "low": low, "high": high, "citation": citation, "default": default}
    return field(default=default, metadata=described)


def parameters(config: Any) -> Iterator[Parameter]:
    """The described parameters of a mechanism or a transform (class or instance)."""
    for each in fields(config):
        if each.metadata:
            yield Parameter(each.name, **each.metadata)


def validate(config: Any) -> None:
    """Check every described parameter against its range.

    Raises:
        UsageError: names the parameter, its range and the value given.
    """
    for each in parameters(config):
        value = getattr(config, each.name)
        if not (math.isfinite(value) and each.low <= value <= each.high):
            raise UsageError(f"--{each.flag} must lie between {each.low:g} and {each.high:g}, not {value:g}.")
        if isinstance(each.default, int) and value != int(value):
            raise UsageError(f"--{each.flag} must be a whole number, not {value:g}.")
