"""Who reads a set: a model of this machine, or one behind an address."""

from __future__ import annotations

import argparse

from mechanisms.errors import UsageError
from mechanisms.evaluation.remote_reader import RemoteReader
from mechanisms.inference.models.listing import EMBEDDED
from mechanisms.inference.remote import KEY_VARIABLE, ChatServer, ServerAddress, key_from_environment

READER_URL, READER_MODEL = "--reader-url", "--reader-model"
REFUSED = "only query and evaluate read elsewhere: leave out {flag}. Private rows never leave this machine."


def add_reader_options(parser: argparse.ArgumentParser) -> None:
    """Either a model here, or an address and a model's name there."""
    group = parser.add_argument_group(
        "reader",
        "a model of this machine, or one behind an OpenAI-compatible address, to which the demonstrations and the "
        f"queries then leave. If that wants a key: {KEY_VARIABLE} in the environment, and nowhere else.",
    )
    group.add_argument("--model", metavar="NAME", help=f"of this machine (default: {EMBEDDED})")
    group.add_argument(
        READER_URL, metavar="URL", help="base of an API, such as https://HOST/v1; http:// for this machine alone"
    )
    group.add_argument(READER_MODEL, metavar="NAME", help="the model as that server calls it")


def remote_reader(options: argparse.Namespace) -> RemoteReader | None:
    """The reader elsewhere, if one is asked for; nothing is sent yet.

    Raises:
        UsageError: half of it is said, or another model as well, or the address or the key cannot be used.
    """
    if options.reader_url is None and options.reader_model is None:
        return None
    if options.reader_url is None or options.reader_model is None:
        raise UsageError(f"A reader elsewhere needs both {READER_URL} and {READER_MODEL}.")
    if options.model is not None:
        raise UsageError(f"One model reads: leave out --model, or {READER_URL} and {READER_MODEL}.")
    address = ServerAddress.of(options.reader_url)
    return RemoteReader(ChatServer(address, options.reader_model, key_from_environment()))
