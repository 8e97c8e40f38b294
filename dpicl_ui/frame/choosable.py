"""Which models a server's visitors may load."""

from __future__ import annotations

from enum import Enum


class Choosable(Enum):
    """Who may change the one model that everybody on a server uses.

    A path that is typed would tell what is on the operator's disk, and a hub id fetches files onto it: only where the
    curator is the operator may they be given.
    """

    ANY = "any folder, GGUF file or hub id"
    LISTED = "those with a name"
    NONE = "none: the operator has locked the model"
