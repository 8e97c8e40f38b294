"""A data set of the hub is the table that its files are, or one line that says what to do; and it leaves no file."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from huggingface_hub import constants

from mechanisms import api
from mechanisms.data import parquet_file, sources
from mechanisms.data.raw_file import RawFile
from mechanisms.data.sources import SCHEME, name_of, read_hub, read_source
from mechanisms.errors import DataError
from tests.conftest import ROOT
from tests.data.test_formats import as_parquet
from tests.hub import ELSEWHERE, Hub, Repository, commit_of, lead_to, serving

SECRET = "Mr Quillfeather of 12 Orchard Lane"
CSV = f"text,label\n{SECRET},a\nsecond,b\n".encode()
LINES = b'{"text": "lines", "label": "a"}\n'
TOKEN = "hf_of_the_curator"


def rows(*texts: str, **more: list[str]) -> bytes:
    return as_parquet({"text": list(texts), "label": ["a"] * len(texts)} | more)


REPOSITORIES = {
    "ada/one": Repository(conversion={"default/train/0000.parquet": rows("one"), "README.md": b"#"}),
    "ada/several": Repository(
        main={"train.csv": CSV},
        conversion={
            "default/test/0000.parquet": rows("test"),
            "default/train/0000.parquet": rows("one", "two"),
            "default/train/0001.parquet": rows("three"),
            "short/train/0000.parquet": rows("short"),
        },
    ),
    "ada/files": Repository(
        main={
            "load.py": b"raise SystemExit",
            "dataset_infos.json": b"{}",
            "rows.json": LINES,
            "train.csv": CSV,
            "test.jsonl": LINES,
            "both.csv": CSV,
            "both.tsv": CSV,
            "deep/er/dev-00000-of-00002.parquet": rows("one"),
            "deep/er/dev-00001-of-00002.parquet": rows("two"),
        }
    ),
    "ada/private": Repository(main={"train.csv": CSV}, token=TOKEN),
    "ada/elsewhere": Repository(main={"train.csv": CSV}, token=TOKEN, elsewhere=True),
    "ada/gated": Repository(main={"train.csv": CSV}, gated=True),
    "ada/pictures": Repository(main={"cat.png": b"meow"}),
    "ada/unlike": Repository(
        conversion={
            "default/train/0000.parquet": rows("one"),
            "default/train/0001.parquet": rows("two", more=["x"]),
        }
    ),
    "ada/large": Repository(main={"train.csv": CSV}, sizes={"train.csv": sources.MAX_BYTES + 1}),
    "ada/liar": Repository(main={"train.csv": CSV}, sizes={"train.csv": 1}),
    "ada/empty": Repository(conversion={"default/train/0000.parquet": rows()}),
    "ada/broken": Repository(conversion={"default/train/0000.parquet": b"PAR1" + bytes(20)}),
}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving(REPOSITORIES) as found:
        lead_to(found.url, monkeypatch)
        yield found


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temporary folder; it is empty at the end of every test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def texts(said: str, own: bool = True) -> list[str]:
    return list(read_hub(said, own).frame["text"])


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("ada/one", ["one"]),
        ("ada/one/train", ["one"]),
        ("ada/one/default", ["one"]),
        (" hf://datasets/ada/one/default/train/ ", ["one"]),
        ("ada/several/test", ["test"]),
        ("ada/several/short", ["short"]),
        ("ada/several/short/train", ["short"]),
        ("ada/several/default/train", ["one", "two", "three"]),
        ("ada/several/train.csv", [SECRET, "second"]),
        ("ada/files/train", [SECRET, "second"]),
        ("ada/files/test", ["lines"]),
        ("ada/files/rows.json", ["lines"]),
        ("ada/files/both.csv", [SECRET, "second"]),
        ("ada/files/dev", ["one", "two"]),
        ("ada/files/deep/er/dev", ["one", "two"]),
        ("ada/files/deep/er/dev-00001-of-00002.parquet", ["two"]),
    ],
)
def test_a_name_finds_its_rows(served: Hub, said: str, found: list[str]):
    assert texts(said) == found


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("one", "Name a data set of the hub as owner/name"),
        ("https://example.org/x", "Name a data set of the hub as owner/name"),
        ("ada/../../etc/passwd", "The hub shows no data set 'ada/..'"),
        ("ada/nowhere", "The hub shows no data set 'ada/nowhere': check the name"),
        ("ada/private", "put a token that may read it into HF_TOKEN"),
        ("ada/gated", "The data set 'ada/gated' is gated: ask for access"),
        ("ada/several", "has more than one split: .*: default/test, default/train, short/train"),
        ("ada/several/train", "has more than one 'train': .*: default/train, short/train"),
        ("ada/several/dev", "has no 'dev': .*: default/test, default/train, short/train"),
        ("ada/several/dev.csv", "has no 'dev.csv': .*: train.csv"),
        ("ada/files/both", "Several files have that name: ask for one of both.csv, both.tsv"),
        ("ada/pictures", "has no file that can be read here"),
        ("ada/unlike", "have different columns"),
        ("ada/large", "The split is larger than 512 MB"),
        ("ada/empty", "no rows"),
        ("ada/broken", "damaged"),
    ],
)
def test_a_fault_is_one_line_that_says_what_to_do(served: Hub, said: str, told: str):
    with pytest.raises(DataError, match=told) as refused:
        read_hub(said)
    assert SECRET not in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_what_is_too_large_is_not_fetched_whatever_is_said_of_it(
    served: Hub, temporary: Path, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(DataError, match="larger than 512 MB"):
        read_hub("ada/large")
    assert not any("/resolve/" in each.path for each in served.asked)
    monkeypatch.setattr(sources, "MAX_BYTES", len(CSV) - 1)
    with pytest.raises(DataError, match="The split is larger than"):
        read_hub("ada/liar")
    assert any("/resolve/" in each.path for each in served.asked)


def test_the_limits_of_a_file_are_those_of_all_its_parts(served: Hub, monkeypatch: pytest.MonkeyPatch):
    cells = 2 * len(texts("ada/several/default/train"))
    monkeypatch.setattr(parquet_file, "MAX_CELLS", cells)
    read_hub("ada/several/default/train")
    monkeypatch.setattr(parquet_file, "MAX_CELLS", cells - 1)
    with pytest.raises(DataError, match="when it is unpacked"):
        read_hub("ada/several/default/train")


def test_files_are_those_of_the_version_that_was_listed(served: Hub):
    read_hub("ada/several/default/train")
    fetched = [each.path for each in served.asked if "/resolve/" in each.path]
    commit = commit_of("refs/convert/parquet")
    assert fetched == [f"/datasets/ada/several/resolve/{commit}/default/train/000{i}.parquet" for i in (0, 1)]


def test_the_token_of_this_account_is_for_whoever_may_use_it(served: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert texts("ada/private") == [SECRET, "second"]
    assert {each.token for each in served.asked} == {TOKEN}
    served.asked.clear()
    assert texts("ada/one", own=False) == ["one"]
    with pytest.raises(DataError, match="this server reads public data sets alone"):
        read_hub("ada/private", own=False)
    assert {each.token for each in served.asked} == {None}


def test_the_token_does_not_follow_a_file_to_another_host(served: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert texts("ada/elsewhere") == [SECRET, "second"]
    assert [each.token for each in served.asked if each.host == ELSEWHERE] == [None]


def test_without_a_network_it_is_one_line(monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        lead_to(f"http://127.0.0.1:{closed.getsockname()[1]}", monkeypatch)
        with pytest.raises(DataError, match="cannot be reached"):
            read_hub("ada/one")


def test_who_wants_no_network_gets_none(served: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match="HF_HUB_OFFLINE"):
        read_hub("ada/one")
    assert served.asked == []


def test_a_place_is_a_file_unless_it_says_otherwise(served: Hub, tmp_path: Path):
    path = tmp_path / "letters.csv"
    path.write_bytes(CSV)
    for said in (path, str(path)):
        assert list(read_source(said).frame["text"]) == [SECRET, "second"]
        assert name_of(said) == "letters"
    assert served.asked == []
    assert list(read_source(f"{SCHEME}ada/one").frame["text"]) == ["one"]
    splits = ("ada/several/default/train", "ada/several/test", "Ada/Several/train.csv")
    assert {name_of(SCHEME + said) for said in splits} == {"ada/several"}


def test_a_path_that_names_the_hub_is_no_file_although_it_lost_a_slash(served: Hub):
    said = f"{SCHEME}ada/several/default/train"
    assert str(Path(said)) != said
    assert list(read_source(Path(said)).frame["text"]) == list(read_source(said).frame["text"])
    assert name_of(Path(said)) == "ada/several"
    assert api.load(Path(said), ["a"]).name == "ada/several"


READING = """
import json, sys
from mechanisms.data.sources import read_source
print(json.dumps([list(read_source(said).frame["text"]) for said in sys.argv[1:]]))
"""


@pytest.mark.slow
def test_the_environment_says_where_the_hub_is_and_nothing_stays_on_the_disk(tmp_path: Path):
    folders = {name: tmp_path / name for name in ("HOME", "HF_HOME", "TMPDIR", "DPICL_HOME", "DPICL_CACHE")}
    for folder in folders.values():
        folder.mkdir()
    with serving(REPOSITORIES) as served:
        settings = {"HF_ENDPOINT": served.url, "HF_TOKEN": TOKEN, "PYTHONPATH": str(ROOT)}
        environment = os.environ | settings | {name: str(folder) for name, folder in folders.items()}
        asked = [sys.executable, "-c", READING, f"{SCHEME}ada/private/train", f"{SCHEME}ada/several/default/train"]
        done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[SECRET, "second"], ["one", "two", "three"]]
    left = [path for folder in folders.values() for path in folder.rglob("*") if path.is_file()]
    assert [path for path in left if SECRET.encode() in path.read_bytes() or path.suffix in (".csv", ".parquet")] == []
    assert list(folders["TMPDIR"].iterdir()) == []


def test_a_part_that_has_other_types_and_the_same_names_is_one_of_them(tmp_path: Path):
    for name, values in (("0.parquet", ["x", "y"]), ("1.parquet", pa.array(["x", "x"]).dictionary_encode())):
        (tmp_path / name).write_bytes(as_parquet({"text": values}))
    table = parquet_file.read_parquet(*(RawFile.at(tmp_path / name) for name in ("0.parquet", "1.parquet")))
    assert list(table.frame["text"]) == ["x", "y", "x", "x"]
