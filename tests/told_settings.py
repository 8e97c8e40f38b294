"""What editors are told of a spec's settings: a class that repeats their names and types."""

from __future__ import annotations

from enum import EnumMeta
from typing import Any, Literal, get_type_hints

from mechanisms.settings import Spec


def check_told(told: type, spec: type[Spec]) -> None:
    """Names and types are the spec's, what must be given too; a choice may be said as text, which the spec reads."""

    def as_told(setting) -> Any:
        said = setting.field.annotation
        for kind in setting.kinds:
            if isinstance(kind, EnumMeta):
                said = said | Literal[tuple(map(str, kind))]
        return said

    settings, named = spec.settings(), get_type_hints(told)
    assert [*named] == [*settings]
    assert {name: kind for name, kind in named.items() if kind != as_told(settings[name])} == {}
    assert told.__required_keys__ == {name for name, each in settings.items() if each.required}
