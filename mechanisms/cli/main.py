"""Parse options from the command line and from a file, run the command, and print errors as one line."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import yaml

from mechanisms import __version__
from mechanisms.errors import StudioError, UsageError, place_of
from mechanisms.files import text_of

COMMANDS = {
    "calibrate": ("account", "noise for a privacy target"),
    "account": ("account", "epsilon of given noise, or of a demo set"),
    "plan": ("account", "the most signal for a privacy target and a budget of compute"),
    "synthesize": ("synthesize", "write private demonstrations from a file"),
    "export": ("classify", "a demo set in the shape of another tool"),
    "query": ("classify", "classify one text with a demo set"),
    "evaluate": ("classify", "accuracy on a file, beside zero-shot and public-only"),
    "score": ("classify", "a private accuracy of a set of demonstrations, on rows of a file"),
    "answer": ("answer", "private answers to questions, charged before the first"),
    "audit": ("account", "many draws of one step on neighbours, against what it claims"),
    "ledger": ("ledger", "what data sets have spent, and their caps"),
    "models": ("ledger", "list the models that can be used here, or prepare one"),
}
"""Each command's module, which is imported when the command is used, and its line in the list of commands."""


def parser(prog: str = "dpicl") -> argparse.ArgumentParser:
    """The parser of the whole command line; `prog` is the program's name in usage lines."""
    top = argparse.ArgumentParser(prog=prog, description="Differentially private demonstrations.")
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=ConfigurableParser)
    for name, (_, words) in COMMANDS.items():
        commands.add_parser(name, help=words, add=partial(_add, name))
    return top


def _add(name: str, parser: argparse.ArgumentParser) -> None:
    """Add the options of a command from its module."""
    module, _ = COMMANDS[name]
    import_module(f"mechanisms.cli.{module}").COMMANDS[name](parser)


def main(arguments: Sequence[str] | None = None, prog: str = "dpicl") -> int:
    """The entry point of `dpicl` and `python -m mechanisms`; returns the exit code."""
    return run_command(parser(prog).parse_args(arguments))


def run_command(options: argparse.Namespace) -> int:
    """Run a command with its parsed options.

    Returns:
        The exit code: 0 for success, 1 for a defect, 2 for bad usage or bad input, 3 for a refusal by the ledger or the
        accountants, 4 for an unavailable model, 130 for an interrupt.
    """
    if device := getattr(options, "device", None):
        from mechanisms.inference.engine import DEVICE  # not at the top: the list of commands needs no packages

        os.environ[DEVICE] = device  # processes of --engine ray inherit it
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed it, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except StudioError as error:
        print(f"{options.command}: {error}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        print(f"{options.command}: a defect of this program ({place_of(error)}): please report it.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{options.command}: stopped; what was charged stays charged.", file=sys.stderr)
        return 130
    return 0


# Options from a YAML file, whose keys are the flags' names; options on the command line override them.

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
