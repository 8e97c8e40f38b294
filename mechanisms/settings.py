"""Settings from an owner: each is a field of a frozen pydantic model, with its default, bounds, title and help.

The options of the command line, the keys of a settings file, the bounds, labels and help of the app's controls, and the
messages about invalid values are generated from the fields of a `Spec`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import NoneType
from typing import Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from mechanisms.data.label_names import read_pairs
from mechanisms.errors import UsageError, refusal


def setting(
    default: Any,
    title: str,
    help: str,
    *,
    group: StrEnum,
    flag: str = "",
    unit: str = "",
    words: Sequence[str] = (),
    otherwise: str = "",
    **bounds: Any,
) -> Any:
    """A field with its title and help.

    Args:
        default: `...` for a required setting; None if it follows from public values, or as `otherwise` explains.
        group: its value is the heading of a group of settings.
        flag: the flag, if it is not the field's name.
        words: the allowed values; for a bool the word for False and the one for True.
        bounds: arguments of `pydantic.Field`.
    """
    more: dict[str, Any] = {"group": group, "flag": flag, "unit": unit, "words": [*words], "otherwise": otherwise}
    return Field(default, title=title, description=help, json_schema_extra=more, **bounds)


_PLACEHOLDERS = {int: "N", float: "X", str: "TEXT"}
_LIMITS = (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than"))


PARAMETERS = "parameters"
"""The setting without a flag of its own, because each parameter of a mechanism has a flag."""


class Setting:
    """A field of a spec on the command line and in files.

    Attributes:
        flag: its name on the command line and in a file, without dashes.
        kinds: the allowed types, without None, which leaves the setting open.
    """

    def __init__(self, name: str, field: FieldInfo) -> None:
        assert isinstance(field.json_schema_extra, dict)
        more: dict[str, Any] = dict(field.json_schema_extra)
        self.name, self.field = name, field
        self.group: StrEnum = more["group"]
        self.unit = str(more["unit"])
        self.flag = str(more["flag"] or name.replace("_", "-"))
        kind = field.annotation
        united = get_args(kind) if get_origin(kind) not in (None, dict, Literal) else (kind,)
        self.kinds = [each for each in united if each is not NoneType]
        self._words = list(more["words"]) or (["no", "yes"] if self.kinds == [bool] else [])
        self._otherwise = more["otherwise"]

    @property
    def required(self) -> bool:
        return self.field.is_required()

    @property
    def choices(self) -> list[str] | None:
        """All allowed values; None if they cannot be listed."""
        [kind, *others] = self.kinds
        named = isinstance(kind, type) and issubclass(kind, StrEnum) and not others
        return self._words or ([str(each) for each in kind] if named else None)

    @property
    def placeholder(self) -> str | None:
        """The placeholder of a value in a usage line; None if the choices are listed there."""
        if self.choices:
            return None
        said = []
        for kind in self.kinds:
            inner = get_args(kind)
            if get_origin(kind) is dict:
                value = _PLACEHOLDERS[inner[1]]
                said.append(f"A={value},B={value}")
            else:
                said += inner or [_PLACEHOLDERS[kind]]
        return "|".join(said)

    def help(self, usual: Any = None) -> str:
        """Title, help, bounds and default in one text; `usual` replaces the field's own default."""
        limits = " and ".join(
            f"{words} {getattr(each, limit):g}"
            for limit, words in _LIMITS
            for each in self.field.metadata
            if hasattr(each, limit)
        )
        unit = f" {self.unit}" if self.unit and limits else ""
        default = None if self.required else self.plain_value(self.field.default)
        if default is None:
            default = self._otherwise or "follows from the labels and from public sizes"
        stated = f"default: {usual or default}" if not self.required and (usual or default not in ("", {})) else ""
        note = "; ".join(each for each in (f"{limits}{unit}", stated) if each)
        title = str(self.field.title)
        return f"{title}{'' if title.endswith('?') else ':'} {self.field.description}{f' ({note})' if note else ''}"

    def plain_value(self, value: Any) -> Any:
        if isinstance(value, bool):
            return self._words[value]
        return str(value) if isinstance(value, StrEnum) else value

    def parse(self, text: str) -> Any:
        """A typed value for `Spec.of`, which converts numbers; `UsageError` if pairs are malformed or repeated."""
        if bool in self.kinds:
            return bool(self._words.index(text))
        literals = [each for kind in self.kinds if get_origin(kind) is Literal for each in get_args(kind)]
        if text in literals or not any(get_origin(kind) is dict for kind in self.kinds):
            return text
        try:
            pairs = [(name.strip(), value.strip()) for name, value in read_pairs(text)]
        except UsageError as error:
            raise UsageError(f"--{self.flag} takes {self.placeholder}.") from error
        if twice := [name for name, _ in pairs if [each for each, _ in pairs].count(name) > 1]:
            raise UsageError(f"--{self.flag} names '{twice[0]}' twice.")
        return dict(pairs)


class Spec(BaseModel):
    """A model of settings, each made by `setting`, with only public values."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    @functools.cache
    def settings(cls) -> dict[str, Setting]:
        """The fields by name, in order."""
        return {name: Setting(name, field) for name, field in cls.model_fields.items()}

    @classmethod
    def flagged(cls) -> list[Setting]:
        """The settings that have a flag of their own, in order."""
        return [each for each in cls.settings().values() if each.name != PARAMETERS]

    @classmethod
    def of(cls, **values: Any) -> Self:
        """A spec of some values; a `UsageError` names all values that are unknown, of the wrong type or out of range,
        or else all that are incompatible."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise refusal(_in_words(error, cls.settings())) from None

    def with_(self, **values: Any) -> Self:
        """The same spec with other values, checked as by `of`."""
        return self.of(**{name: getattr(self, name) for name in self.model_fields_set} | values)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if found := [*self._contradictions()]:
            raise ValueError("\n".join(found))
        return self

    def _contradictions(self) -> Iterator[str]:
        """Incompatible values, one line each."""
        return iter(())


def refused(made: Callable[[], object]) -> Iterator[str]:
    """The message of the error if something cannot be made."""
    try:
        made()
    except UsageError as error:
        yield str(error)


def _in_words(error: ValidationError, settings: Mapping[str, Setting]) -> list[str]:
    """The errors, one line for each setting, with its name."""
    errors = error.errors()
    lines: list[str] = []
    for place in dict.fromkeys(each["loc"][:1] for each in errors):
        # A setting of two possible types has an error for each: the longest location is that of the intended type.
        found = max((each for each in errors if each["loc"][:1] == place), key=lambda each: len(each["loc"]))
        message = str(found["msg"]).removeprefix("Value error, ")
        setting = settings.get(str(place[0])) if place else None
        if found["type"] == "extra_forbidden":
            lines.append(f"There is no setting '{found['loc'][0]}'.")
        elif setting is None or found["type"] == "value_error":
            lines += message.splitlines()
        else:
            lines.append(f"{setting.field.title} ({setting.flag}): {message[:1].lower()}{message[1:]}.")
    return lines
