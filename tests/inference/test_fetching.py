"""Fetching from a hub: what is fetched, a connection that breaks off, digests, and refusals in one sentence."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from httpx2 import HTTPError
from huggingface_hub.utils._xet_progress_reporting import XetDownloadProgressReporter

from mechanisms.errors import ModelUnavailable
from mechanisms.inference import models
from mechanisms.inference.models import fetching, loading, weights
from mechanisms.inference.models import listed as listed_models
from tests.conftest import ROOT
from tests.inference.hub import Hub

NAME, WEIGHTS = "somebody/a-model", "model.safetensors"
SIZE = 25_000_000
"""Of the weights in bytes: some of the pieces that the client reads at once."""
FETCH = """
import os, sys
from huggingface_hub.utils import logging
from mechanisms.errors import ModelUnavailable
from mechanisms.inference.models.fetching import fetch
logging.set_verbosity_error()
def check(folder):
    assert (folder / "config.json").exists()
    if len(sys.argv) > 3:
        raise ModelUnavailable("of a kind that is refused")
def tell(share):
    print(f"{share:.6f}")
    if share > 0.5 and "STOP" in os.environ:
        raise ModelUnavailable("stopped")
try:
    fetch(sys.argv[1], sys.argv[2], tell, check)
except ModelUnavailable as error:
    sys.exit(str(error))
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "on the hub"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text('{"of": "words"}')
    (folder / WEIGHTS).write_bytes(os.urandom(SIZE))
    (folder / "consolidated.safetensors").write_bytes(b"the same weights again")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "model-q4.gguf").write_bytes(b"GGUF" + os.urandom(500_000))
    return folder


def fetch(address: str, home: Path, name: str = NAME, file: str = "", *more: str, **environment: str):
    variables = {"HF_ENDPOINT": address, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
    return subprocess.run(
        [sys.executable, "-c", FETCH, name, file, *more],
        env={**os.environ, **variables, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def fetched(home: Path, file: str) -> Path:
    [found] = home.glob(f"hub/models--somebody--a-model/snapshots/*/{file}")
    return found


def test_a_fetch_goes_on_where_the_connection_broke_off(folder, tmp_path):
    hub = Hub(NAME, folder)
    with hub.open() as address:
        done = fetch(address, tmp_path / "home")
        again = fetch(address, tmp_path / "home")
    assert (done.returncode, again.returncode) == (0, 0), done.stderr
    first, second = hub.ranges
    assert first == ""
    assert 0 < int(second.removeprefix("bytes=").rstrip("-").partition("-")[0]) < SIZE
    assert fetched(tmp_path / "home", WEIGHTS).read_bytes() == (folder / WEIGHTS).read_bytes()
    shares = [float(line) for line in done.stdout.split()]
    assert len(shares) > 2
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert set(hub.asked) == {"config.json", "tokenizer.json", WEIGHTS}, "weights come once, and no pickle"


def test_a_fetch_that_was_stopped_keeps_whole_files_and_can_be_asked_for_again(folder, tmp_path):
    hub = Hub(NAME, folder)
    hub.breaks = 0
    with hub.open() as address:
        stopped = fetch(address, tmp_path / "home", STOP="1")
        assert not list((tmp_path / "home").rglob(WEIGHTS))
        done = fetch(address, tmp_path / "home")
    assert stopped.stderr.strip() == "stopped"
    assert done.returncode == 0, done.stderr
    assert hub.asked.count("tokenizer.json") == 1
    assert fetched(tmp_path / "home", WEIGHTS).read_bytes() == (folder / WEIGHTS).read_bytes()


def test_a_connection_that_is_gone_in_the_middle_is_told_with_what_is_kept(on_the_hub):
    def gone(name, file, tqdm_class):
        tqdm_class(total=100).update(60)
        raise HTTPError("reset")

    on_the_hub(gone)
    with pytest.raises(ModelUnavailable, match="broke off: connect to the hub and try again.*fetched again"):
        fetching.fetch(NAME, "model.safetensors")


def test_a_fetch_by_xet_is_stopped_although_it_swallows_errors_of_its_bars(on_the_hub):
    def by_xet(name, file, tqdm_class=None):
        if tqdm_class is None:
            return file
        with suppress(ModelUnavailable):
            tqdm_class(total=100).update(60)
        raise KeyboardInterrupt

    def stop(share):
        raise ModelUnavailable("stopped")

    on_the_hub(by_xet)
    with pytest.raises(ModelUnavailable, match="stopped"):
        fetching.fetch(NAME, tell=stop)


def test_a_model_that_is_one_file_is_that_file(folder, tmp_path):
    hub = Hub(NAME, folder)
    with hub.open() as address:
        done = fetch(address, tmp_path / "home", NAME, "model-q4.gguf")
    assert done.returncode == 0, done.stderr
    assert set(hub.asked) == {"model-q4.gguf"}


def test_weights_of_another_digest_are_refused_and_fetched_anew(folder, tmp_path):
    hub = Hub(NAME, folder, {WEIGHTS: hashlib.sha256(b"others").hexdigest()})
    with hub.open() as address:
        done = fetch(address, tmp_path / "home")
        assert "not have the digest that the hub states" in done.stderr
        assert not list((tmp_path / "home").rglob(WEIGHTS))
        assert fetch(address, tmp_path / "home").returncode
    assert hub.asked.count(WEIGHTS) >= 3


def test_a_model_is_refused_by_its_configuration_before_its_weights_are_fetched(folder, tmp_path):
    hub = Hub(NAME, folder)
    with hub.open() as address:
        done = fetch(address, tmp_path / "home", NAME, "", "refuse")
    assert done.stderr.strip() == "of a kind that is refused"
    assert WEIGHTS not in hub.asked


def test_what_cannot_be_fetched_is_told_in_one_sentence(folder, tmp_path):
    with Hub(NAME, folder).open() as address:
        nobody = fetch(address, tmp_path, "nobody/nothing")
    away = fetch("http://127.0.0.1:9", tmp_path)
    offline = fetch("http://127.0.0.1:9", tmp_path, HF_HUB_OFFLINE="1")
    assert "give a local folder" in nobody.stderr
    for said in (away, offline):
        assert "fetching it failed: connect to the hub" in said.stderr
    for said in (nobody, away, offline):
        assert said.returncode
        assert len(said.stderr.strip().splitlines()) == 1


def test_pickles_alone_are_no_model_that_is_read(folder, tmp_path):
    (folder / WEIGHTS).unlink()
    (folder / "consolidated.safetensors").unlink()
    hub = Hub(NAME, folder)
    with hub.open() as address:
        said = fetch(address, tmp_path / "home")
    assert "no model*.safetensors on the hub, and other weights are not read" in said.stderr
    assert len(said.stderr.strip().splitlines()) == 1
    assert hub.asked == []


@pytest.fixture
def on_the_hub(monkeypatch):
    """A hub with one model of a hundred bytes, whose files come as the test says."""
    file = SimpleNamespace(rfilename=WEIGHTS, size=100, lfs=None)
    monkeypatch.setattr(
        fetching, "HfApi", lambda: SimpleNamespace(model_info=lambda *_, **__: SimpleNamespace(siblings=[file]))
    )

    def come(by) -> None:
        monkeypatch.setattr(fetching, "hf_hub_download", by)

    return come


@pytest.mark.parametrize(
    ("defect", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "The disk is full"),
        (RuntimeError("I/O error: No space left on device (os error 28)"), "The disk is full"),
        (RuntimeError("Data processing error: CAS service error"), "connect to the hub and try again"),
    ],
)
def test_what_breaks_off_a_fetch_is_told_with_what_to_do(on_the_hub, defect, said):
    def broken(*_, **__):
        raise defect

    on_the_hub(broken)
    with pytest.raises(ModelUnavailable, match=said):
        fetching.fetch(NAME)


def test_bytes_that_xet_moves_and_writes_are_counted_once(on_the_hub, tmp_path):
    """The client draws two bars for a file, one of them for what comes over the network."""

    def by_xet(name, file, tqdm_class=None):
        if tqdm_class is not None:
            with XetDownloadProgressReporter(
                reconstruction_desc=file, transfer_desc=file, total=100, log_level=0, name="xet", tqdm_class=tqdm_class
            ) as bars:
                for done in (20, 40, 80):
                    bars.update_progress(
                        SimpleNamespace(
                            total_bytes=100,
                            total_bytes_completed=done,
                            total_bytes_completion_rate=1.0,
                            total_transfer_bytes_completed=done,
                            total_transfer_bytes_completion_rate=1.0,
                        )
                    )
        return str(tmp_path / file)

    shares: list[float] = []
    on_the_hub(by_xet)
    fetching.fetch(NAME, tell=shares.append)
    assert sorted(set(shares)) == [0.2, 0.4, 0.8, 1.0]


def test_a_model_of_which_a_part_is_missing_is_not_here(tmp_path):
    """A fetch may have been stopped between two files of weights."""
    assert not weights.has_weights(tmp_path)
    (tmp_path / "a.safetensors").touch()
    assert weights.has_weights(tmp_path)
    parts = {"one": "a.safetensors", "two": "b.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}))
    assert not weights.has_weights(tmp_path)
    (tmp_path / "b.safetensors").touch()
    assert weights.has_weights(tmp_path)


@pytest.mark.parametrize("index", ["{", "[]", '{"weight_map": 3}', "\x00"])
def test_a_damaged_model_is_listed_as_such_and_refused_by_its_name_alone(index, tmp_path, monkeypatch):
    damaged = "Qwen/Qwen3-0.6B"
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors.index.json").write_text(index)
    monkeypatch.setattr(
        listed_models, "try_to_load_from_cache", lambda name, file: str(tmp_path / file) if name == damaged else None
    )
    [found] = [each for each in listed_models.available_models() if each.damaged]
    assert found.name == damaged
    assert not found.available
    assert not found.offered
    assert "damaged" in str(found)
    monkeypatch.setattr(loading, "snapshot_download", lambda *_, **__: str(tmp_path))
    assert models.memory_of(damaged) == 0
    with pytest.raises(ModelUnavailable, match="damaged: remove that folder"):
        loading.needs(damaged)


def test_what_the_hub_does_not_give_to_everybody_is_listed_and_never_offered():
    listed = {each.name: each for each in listed_models.available_models()}
    assert not any(each.offered for each in listed.values() if "accepted on the hub" in each.licence)
    assert not listed["mistralai/Mistral-7B-Instruct-v0.3"].offered
    assert not listed[listed_models.EMBEDDED].offered
    assert listed["Qwen/Qwen3-0.6B"].offered
    assert all(each.licence for each in listed.values())
