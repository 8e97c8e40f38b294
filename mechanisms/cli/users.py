"""`users`: the people who may sign in to the app."""

from __future__ import annotations

import argparse
import getpass
import sys

from mechanisms.accounts import Accounts, normalised
from mechanisms.cli.output import add_json, progress, show
from mechanisms.errors import UsageError


def _add_options(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    add = verbs.add_parser("add", help="add a person; asks for a password")
    add.add_argument("name")
    add.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
    remove = verbs.add_parser("remove", help="remove a person; the ledger stays")
    remove.add_argument("name")
    for verb, run in ((add, _add), (remove, _remove), (verbs.add_parser("list", help="everybody"), _list)):
        add_json(verb)
        verb.set_defaults(run=run)


def _password(options: argparse.Namespace) -> str:
    try:
        if options.password_stdin:
            return sys.stdin.readline().rstrip("\r\n")
        password, again = getpass.getpass("Password: "), getpass.getpass("Once more: ")
    except UnicodeDecodeError:  # its message quotes the password
        raise UsageError("The password cannot be read as text: give it in UTF-8, with --password-stdin.") from None
    except EOFError as error:
        raise UsageError("There is no terminal to ask for a password: give --password-stdin.") from error
    if again != password:
        raise UsageError("The two passwords differ: nothing was changed.")
    return password


def _add(options: argparse.Namespace) -> None:
    accounts, name = Accounts(), normalised(options.name)
    first = not accounts.names()
    accounts.add(name, _password(options))
    if first:
        progress("The app asks for a name and a password from its next start.")
    else:
        progress("Whoever signed in with an earlier password of a name stays signed in until the app's next start.")
    show(options, {"added": name})


def _remove(options: argparse.Namespace) -> None:
    accounts, name = Accounts(), normalised(options.name)
    accounts.remove(name)
    if not accounts.names():
        progress("Nobody is left: from its next start the app asks for no password.")
    show(options, {"removed": name})


def _list(options: argparse.Namespace) -> None:
    show(options, {"users": Accounts().names()})


COMMANDS = {"users": _add_options}
