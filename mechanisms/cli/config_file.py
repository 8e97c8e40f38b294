"""Options from a YAML file, under their flags' names; options on the command line override them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from mechanisms.errors import UsageError
from mechanisms.files import text_of

READER_URL, READER_MODEL = "--reader-url", "--reader-model"
_REFUSED = "only query and evaluate read elsewhere: leave out {flag}. Private rows never leave this machine."
_FLAG = "--config"
_NOT_IN_A_FILE = {_FLAG, "--help"}


class ConfigurableParser(argparse.ArgumentParser):
    """A command's parser, which reads options from a file too if the command uses `add_config`.

    Args:
        add: adds the options on first use.
    """

    def __init__(self, *arguments: Any, add: Callable[[argparse.ArgumentParser], None] | None = None, **named: Any):
        super().__init__(*arguments, **named)
        self._add = add

    def parse_known_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        """The file's options come first, so that later ones override them."""
        add, self._add = self._add, None
        if add is not None:
            add(self)
        flags = self._option_string_actions
        args = None if args is None else list(args)
        for flag in (each.split("=")[0] for each in args or ()):
            if flag in (READER_URL, READER_MODEL) and flag not in flags:
                self.exit(2, f"{self.prog}: {_REFUSED.format(flag=flag)}\n")
        if args is not None and _FLAG in flags:
            try:
                args = [*_from_file(args, flags), *args]
            except UsageError as error:
                self.error(str(error))
        return super().parse_known_args(args, namespace)


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the file."""
    help_text = "YAML with options under their flags' names; the command line overrides it"
    parser.add_argument(_FLAG, metavar="FILE", help=help_text)


def _from_file(args: Sequence[str], flags: Mapping[str, argparse.Action]) -> Iterator[str]:
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    finder.add_argument(_FLAG)
    try:
        path = finder.parse_known_args(args)[0].config
    except argparse.ArgumentError as error:
        raise UsageError(f"{_FLAG} needs the path of a file.") from error
    if path is None:
        return
    for name, value in _read(path).items():
        flag = f"--{_printed(name)}"
        if flag not in flags or flag in _NOT_IN_A_FILE:
            raise UsageError(f"'{path}': the command has no option '{flag[2:]}': correct or remove it.")
        yield from _as_argument(flag, value, flags)


def _read(path: str) -> dict[Any, Any]:
    text = text_of(path)
    try:
        # Aliases let a short file expand exponentially, or contain itself.
        if any(isinstance(each, yaml.AliasEvent) for each in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise UsageError(f"'{path}' has YAML aliases (*): write out their values.")
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' is not YAML: write one 'option: value' per line.") from error
    if not isinstance(document, dict):
        raise UsageError(f"'{path}' has no options: write one 'option: value' per line.")
    return document


def _as_argument(flag: str, value: Any, flags: Mapping[str, argparse.Action]) -> Iterator[str]:
    if flags[flag].nargs == 0:  # a switch
        if not isinstance(value, bool):
            raise UsageError(f"The option '{flag[2:]}' must be true or false.")
        off = f"--no-{flag[2:]}"
        if value or off in flags:
            yield flag if value else off
        return
    yield f"{flag}={_text(flag, value)}"


def _text(flag: str, value: Any) -> str:
    """A value as text of the command line: lists and mappings as JSON, since a label may have a comma.

    They must not be nested.
    """
    if isinstance(value, dict):
        return json.dumps(
            {_single(flag, name): _single(flag, each) for name, each in value.items()}, ensure_ascii=False
        )
    if isinstance(value, list):
        return json.dumps([_single(flag, each) for each in value], ensure_ascii=False)
    return _single(flag, value)


def _single(flag: str, value: Any) -> str:
    # YAML reads a bare Yes, No, On or Off as a truth value, and a date as a date.
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"The option '{flag[2:]}' has a value that is neither text nor number: put it in quotes.")
    return _printed(value)


def _printed(value: object) -> str:
    try:
        text = str(value)
    except ValueError as error:  # of a number that YAML read from base 16, Python prints 4300 digits at most
        raise UsageError("The file has a whole number that is too long: write a smaller one.") from error
    try:  # JSON escapes an emoji as two halves, which YAML leaves as they are
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise UsageError("The file has half a character, written as \\ud800 or so: write the whole one.") from error
