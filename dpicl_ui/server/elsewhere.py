"""The reader elsewhere that step 4 may offer. Who starts the server chooses its address, and nobody on the page can."""

from __future__ import annotations

import os

from mechanisms.errors import UsageError
from mechanisms.evaluation.remote_reader import RemoteReader
from mechanisms.inference.remote import ChatServer, ServerAddress, key_from_environment

URL, MODEL = "DPICL_READER_URL", "DPICL_READER_MODEL"


def reader_elsewhere() -> RemoteReader | None:
    """By the variables DPICL_READER_URL and DPICL_READER_MODEL, with the key of the environment; None without them.

    Raises:
        UsageError: one of the two is missing, or the address or the key cannot be used.
    """
    url, model = (os.environ.get(name, "").strip() for name in (URL, MODEL))
    if not url and not model:
        return None
    if not url or not model:
        raise UsageError(f"A reader elsewhere needs both {URL} and {MODEL}.")
    return RemoteReader(ChatServer(ServerAddress.of(url), model, key_from_environment()))
