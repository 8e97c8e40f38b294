"""Registration of new files, and the description of their public parameters."""

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
    """The values of `constant` in the modules of `package`, by their `name`."""
    path = importlib.import_module(package).__path__
    modules = (importlib.import_module(f"{package}.{module.name}") for module in pkgutil.iter_modules(path))
    found = [getattr(module, constant) for module in modules if hasattr(module, constant)]
    names = [str(each.name) for each in found]
    assert len(set(names)) == len(names), f"two files of {package} define a {constant} of the same name"
    return {each.name: each for each in found}


def pick(registered: Mapping[str, _Registered], name: str, kind: str, names: Iterable[str]) -> _Registered:
    """The value registered under a name.

    Raises:
        UsageError: there is none; the message lists `names`.
    """
    if name not in registered:
        raise UsageError(f"There is no {kind} '{name}': choose one of {', '.join(names)}.")
    return registered[name]


@dataclass(frozen=True)
class Parameter:
    """One public parameter: its name in code, its label and help, its range, its source, its default.

    The default's type is the parameter's type: float, int, or bool (whose range is not used).
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
        """Its name in a certificate; in code names reserved by Python end in an underscore."""
        return self.name.rstrip("_")

    @property
    def flag(self) -> str:
        """Its name on the command line, without the dashes."""
        return self.field.replace("_", "-")

    def typed(self, value: float | int | bool) -> float | int | bool:
        """A value converted to the parameter's type; a value that cannot be converted is unchanged, and `validate`
        refuses it."""
        made = type(self.default)(value)
        return made if made == value else value


def parameter(default: float, *, label: str, help: str, low: float, high: float, citation: str) -> Any:
    """A dataclass field with its own description; see `Parameter`."""
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
        UsageError: a value is out of range; the message names parameter, range and value.
    """
    for each in parameters(config):
        value = getattr(config, each.name)
        if not (math.isfinite(value) and each.low <= value <= each.high):
            raise UsageError(
                f"{each.label} (--{each.flag}) must lie between {each.low:g} and {each.high:g}, not {value:g}."
            )
        if isinstance(each.default, int) and value != int(value):
            raise UsageError(f"{each.label} (--{each.flag}) must be a whole number, not {value:g}.")
