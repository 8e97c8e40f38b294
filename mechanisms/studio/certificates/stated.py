"""What a certificate states, read value by value; one that cannot be right is refused under its field's name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mechanisms.errors import UsageError
from mechanisms.parameters import parameters
from mechanisms.privacy_events import Approximate, Pure
from mechanisms.studio.data.counts import SMALLEST_EPSILON, MeasuredSizes
from mechanisms.studio.data.mapping import MOST_LABELS
from mechanisms.studio.synthesis.request import NO_FILE

MOST_DEMONSTRATIONS = 100_000
"""What a file can ask to be accounted: every label can be a cost of its own, every demonstration a list of its own."""
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", dict: "an object"}


@contextmanager
def at(field: str) -> Iterator[None]:
    """Name the field of a refused value."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{field}: {error}") from error


@dataclass(frozen=True)
class Stated:
    """Values of a JSON object, each read as the kind that it has to be."""

    values: Mapping[str, Any]
    where: str = "privacy/parameters"

    def of(self, name: str, kind: type) -> Any:
        """The value of that name; JSON writes a whole number with or without a point."""
        value = self.values.get(name)
        if kind is float and type(value) is int:
            value = float(value)
        elif kind is int and type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not kind:
            raise UsageError(f"{self.where}/{name}: {_KINDS[kind]} must stand here.")
        return value

    def known(self, name: str, names: Collection[str]) -> str:
        """The text of that name, which has to be one of some names."""
        value: str = self.of(name, str)
        if value not in names:
            raise UsageError(f"{self.where}/{name}: this version knows no such {name}.")
        return value

    def within(self, name: str) -> Stated:
        """The object of that name."""
        return Stated(self.of(name, dict), f"{self.where}/{name}")

    def own(self, config: Any) -> dict[str, Any]:
        """The described parameters of a mechanism's or a transform's class."""
        return {each.name: self.of(each.flag.replace("-", "_"), type(each.default)) for each in parameters(config)}


def check_extent(labels: Collection[str], shots: int, stated: Stated) -> None:
    """Refuse, before anything is built of them, so many labels or demonstrations that nobody can check them."""
    if len(labels) > MOST_LABELS or len(labels) * shots > MOST_DEMONSTRATIONS:
        raise UsageError(f"{stated.where}/shots_per_label: so many labels or demonstrations cannot be checked.")


def sizes_of(labels: Collection[str], stated: Stated) -> dict[str, int]:
    """The sizes of the labels."""
    sizes = stated.within("sizes")
    if set(sizes.values) != set(labels):
        raise UsageError(f"{sizes.where}: every label must stand here, and nothing else.")
    return {label: sizes.of(label, int) for label in labels}


def measured_of(stated: Stated, sizes: dict[str, int]) -> MeasuredSizes | None:
    """The measurement that the sizes come from, where one is stated."""
    if "measured" not in stated.values:
        return None
    cost = stated.within("measured")
    measured = MeasuredSizes(sizes, cost.of("epsilon", float), cost.of("failure", float), NO_FILE)
    with at(cost.where):
        Pure(measured.epsilon)
        Approximate(measured.failure)
        if measured.epsilon < SMALLEST_EPSILON or measured.failure <= 0:
            raise UsageError("no measurement of sizes is made with so little epsilon, or never fails.")
    return measured
