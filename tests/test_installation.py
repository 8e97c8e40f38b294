"""`pip install .` takes along everything that the software reads."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.conftest import ROOT

FOLDERS = {"mechanisms": "mechanisms", "dpicl_ui": "dpicl_ui", "assets": "mechanisms/assets"}
"""Where a folder of the checkout lies in an installation."""
NEEDED = ("pyproject.toml", "setup.py", "requirements.txt", "README.md", "LICENSE")


def test_a_wheel_holds_every_file_of_the_packages_and_of_the_assets_and_no_research(tmp_path: Path):
    for folder in (*FOLDERS, "research"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    for name in NEEDED:
        shutil.copy(ROOT / name, tmp_path)
    expected = {
        f"{installed}/{path.relative_to(tmp_path / folder).as_posix()}"
        for folder, installed in FOLDERS.items()
        for path in (tmp_path / folder).rglob("*")
        if path.is_file()
    }
    build = "from setuptools import build_meta; build_meta.build_wheel('out')"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    assert expected <= held
    assert {name.split("/")[0] for name in held if ".dist-info/" not in name} == {"mechanisms", "dpicl_ui"}
