"""Imports every module of the program: `make space` does it with what a Space installs.

It needs no package of the tests.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import dpicl_ui
import mechanisms

BESIDE = ("mechanisms.__main__", "mechanisms.inference.cluster")
"""The command line itself, and what needs the extra package ray."""


def main() -> None:
    importlib.import_module("app")
    found = [
        each.name
        for room in (dpicl_ui, mechanisms)
        for each in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
        if each.name not in BESIDE
    ]
    for name in found:
        importlib.import_module(name)
    sys.stdout.write(f"Python {sys.version.split()[0]}: {len(found)} modules\n")


if __name__ == "__main__":
    main()
