"""Options from a YAML file, whose keys are the flags' names; options on the command line override them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from mechanisms.errors import UsageError
from mechanisms.files import text_of

_FLAG = "--config"
_NOT_IN_A_FILE = {_FLAG, "--help"}


class ConfigurableParser(argparse.ArgumentParser):
    """A command's parser, which also reads options from a file if the command uses `add_config`.

    Args:
        add: adds the options on first use.
    """

    def __init__(self, *arguments: Any, add: Callable[[argparse.ArgumentParser], None] | None = None, **named: Any):
        super().__init__(*arguments, **named)
        self._add = add

    def parse_known_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        """Parse the options. Those of the file come first, so that those of the command line override them."""
        add, self._add = self._add, None
        if add is not None:
            add(self)
        if args is not None:
            args = list(args)
            try:
                _refuse_repeated(args, self._option_string_actions)
                if _FLAG in self._option_string_actions:
                    args = [*_from_file(args, self._option_string_actions), *args]
            except UsageError as error:
                self.error(str(error))
        return super().parse_known_args(args, namespace)


def _refuse_repeated(args: Sequence[str], flags: Mapping[str, argparse.Action]) -> None:
    """Refuse an option of pairs that is given twice, because argparse would silently keep only the last one."""
    pairs = {flag for flag, action in flags.items() if "=" in str(action.metavar)}
    said = [each.partition("=")[0] for each in args]
    for flag in sorted(each for each in pairs if said.count(each) > 1):
        raise UsageError(f"{flag} stands twice: give all pairs at once, as in {flag} A=...,B=...")


def add_config(parser: argparse.ArgumentParser) -> None:
    help_text = "YAML with options under their flags' names; the command line overrides it"
    parser.add_argument(_FLAG, metavar="FILE", help=help_text)


def _from_file(args: Sequence[str], flags: Mapping[str, argparse.Action]) -> Iterator[str]:
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    finder.add_argument(_FLAG)
    try:
        path = finder.parse_known_args(args)[0].config
    except argparse.ArgumentError as error:
        raise UsageError(f"{_FLAG} needs the path of a file.") from error
    for name, value in () if path is None else _read(path).items():
        flag = f"--{_text(name)}"
        if flag not in flags or flag in _NOT_IN_A_FILE:
            raise UsageError(f"'{path}': the command has no option '{flag[2:]}': correct or remove it.")
        yield from _as_argument(flag, value, flags)


def _read(path: str) -> dict[Any, Any]:
    text = text_of(path)
    try:
        # Aliases let a short file expand exponentially, or contain itself.
        if any(isinstance(each, yaml.AliasEvent) for each in yaml.parse(text, Loader=yaml.BaseLoader)):
            raise UsageError(f"'{path}' has YAML aliases (*): write out their values.")
        document = yaml.load(text, Loader=yaml.BaseLoader)  # it makes only texts, lists and mappings
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' is not YAML: write one 'option: value' per line.") from error
    if not isinstance(document, dict):
        raise UsageError(f"'{path}' has no options: write one 'option: value' per line.")
    return document


def _as_argument(flag: str, value: Any, flags: Mapping[str, argparse.Action]) -> Iterator[str]:
    if flags[flag].nargs == 0:  # a switch
        on, off = str(value).lower() == "true", f"--no-{flag[2:]}"
        if not on and str(value).lower() != "false":
            raise UsageError(f"The option '{flag[2:]}' must be true or false.")
        if on or off in flags:
            yield flag if on else off
    elif isinstance(value, dict):  # as JSON, since a label may have a comma
        pairs = {_text(name): _text(each) for name, each in value.items()}
        yield f"{flag}={json.dumps(pairs, ensure_ascii=False)}"
    elif isinstance(value, list):
        yield f"{flag}={json.dumps([_text(each) for each in value], ensure_ascii=False)}"
    else:
        yield f"{flag}={_text(value)}"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise UsageError("The file has a list or mapping inside another one: write texts and numbers there.")
    try:  # JSON may escape an emoji as two surrogates, which YAML does not join
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise UsageError("The file has half a character, written as \\ud800 or so: write the whole one.") from error
