"""Parse, dispatch, and turn errors into one line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from mechanisms import __version__
from mechanisms.cli import (
    account,
    answer,
    audit,
    bench,
    classify,
    export,
    ledger,
    mcp,
    models,
    plan,
    replay,
    score,
    synthesize,
    users,
)
from mechanisms.cli.config_file import ConfigurableParser
from mechanisms.errors import StudioError, place_of


def parser(prog: str = "dpicl") -> argparse.ArgumentParser:
    """The whole command line; `prog` is how usage lines call it."""
    top = argparse.ArgumentParser(prog=prog, description="Differentially private demonstrations.")
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=ConfigurableParser)
    modules = (
        account, plan, synthesize, replay, export, classify, score, answer, audit, bench, ledger, models,
        users, mcp,
    )  # fmt: skip
    for module in modules:
        module.add_commands(commands)
    return top


def main(arguments: Sequence[str] | None = None, prog: str = "dpicl") -> int:
    """Run a command: what `dpicl` and `python -m mechanisms` start; its exit code."""
    return run_command(parser(prog).parse_args(arguments))


def run_command(options: argparse.Namespace) -> int:
    """Run the command that options were parsed for.

    Returns:
        0 done, 1 a defect, 2 bad usage or bad input, 3 refused by ledger or accountants, 4 model not available,
        130 interrupted.
    """
    try:
        options.run(options)
        if not sys.stdout.closed:  # the server of `mcp` closes it at its end
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has gone, as `| head` does
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
