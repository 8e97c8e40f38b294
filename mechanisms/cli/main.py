"""Parse the command line, run its command, and print errors as one line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module

from mechanisms import __version__
from mechanisms.cli.config import ConfigurableParser
from mechanisms.errors import StudioError, place_of

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
