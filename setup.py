"""Which folders are installed as which packages; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

# `assets` is no Python and has no place of its own among installed packages: it goes inside the core's.
ASSETS = {"mechanisms.assets": "assets", "mechanisms.assets.examples": "assets/examples"}

setup(packages=[*find_packages(include=["mechanisms*", "dpicl_ui*"]), *ASSETS], package_dir=ASSETS)
