"""Rows spread over two Ray workers on this machine: the numbers of a single process, and no row in Ray's files."""

from __future__ import annotations

import copy
import os
import pickle
import sys
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from mechanisms.cli.main import main
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.files import cache_folder
from mechanisms.inference import models
from mechanisms.inference.engine.memory import DeviceRoom
from mechanisms.inference.engine.threads import threads_here
from mechanisms.inference.engine.transformers_model import TransformersSession
from mechanisms.inference.models import loading
from tests.examples import BANK
from tests.small_model import small_model

ray = pytest.importorskip("ray", reason="RAY IS NOT INSTALLED: pip install -r requirements-ray.txt")

from mechanisms.inference.cluster import (  # noqa: E402
    RaySession,
    Share,
    Worker,
    WorkerFacts,
    answer,
    connected,
    hired,
    pack,
    spread,
)

pytestmark = pytest.mark.slow
CANARY = "quetzalcoatlus beside a zinfandel"


@dataclass(frozen=True)
class SmallChunks(DeviceRoom):
    """Chunks so small that a test's few rows fill several."""

    def chunk(self, computed: int, held: int) -> int:
        return 4


@pytest.fixture(scope="module")
def local(random_model):
    threads, small = torch.get_num_threads(), copy.copy(random_model)
    small.room = SmallChunks(**{field.name: getattr(small.room, field.name) for field in fields(DeviceRoom)})
    torch.set_num_threads(1)  # beside two workers on few cores, more threads only wait for each other
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads_here(), "number", 1)  # a test before this one may have had another chosen
        patch.setenv("DPICL_THREADS", "1")  # commands load the model anew
        yield small
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def model(local, home):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        patch.setenv("DPICL_RAY_WORKERS", "2")
        patch.setenv("DPICL_CACHE", str(cache_folder()))
        patch.setenv("HOME", str(home))
        with spread(small_model(), local) as model:
            folder = session_folder()
            yield model
        assert not folder.exists()


def session_folder() -> Path:
    return Path(ray.nodes()[0]["RayletSocketName"]).parents[1]


def walk(model) -> list[np.ndarray]:
    """Everything that can be asked of a session, on rows of every length."""
    generator = np.random.default_rng(7)
    rows = [generator.integers(200, 40_000, size).tolist() for size in (0, 1, 5, 12, 12, 3, 7, 9, 12, 0, 4, 6)]
    rows.append(model.encode(" " + CANARY))
    columns = generator.integers(0, 40_000, 30)
    session = model.open(model.encode("Write a message.\n\n"), rows, 12, 5)
    seen = [session.logits(columns)]
    session.advance(range(300, 313))
    seen += [session.logits(columns, slice(2, 9)), session.logits(columns[:2], slice(12, 13)), session.logits()]
    session.keep([11, 12, 0, 3, 4, 8])
    session.advance(range(400, 406))
    seen += [session.logits(columns), session.score([500, 501])]
    session.keep([5])
    session.advance([7])
    return [*seen, session.logits(columns)]


def test_a_session_is_the_single_process_to_the_bit(model, local):
    for here, there in zip(walk(local), walk(model), strict=True):
        assert np.array_equal(here, there)


def test_shares_of_any_size_are_computed_in_chunks_of_one_shape(random_model, monkeypatch):
    """Otherwise a row's bits would tell who computed it, on processors that round by the rows of a pass."""
    shapes = set()

    def recorded(chunk):
        shapes.add(chunk.rows)
        return random_model.forward(chunk)

    for rows, kept in ((4, 4), (12, 8)):
        session = TransformersSession(random_model, [7], [[5]] * rows, 3, 2, random_model.room, per_chunk=4)
        monkeypatch.setattr(session, "_forward", recorded)
        session.advance([8] * rows)
        session.keep(list(range(kept)), per_chunk=4)
        session.advance([8] * kept)
    assert shapes == {4}


def test_what_fills_one_chunk_is_computed_here(model):
    assert not isinstance(model.open([], [[5]] * 4, 2, 0), RaySession)
    assert isinstance(model.open([], [[5]] * 5, 2, 0), RaySession)


def test_a_worker_that_is_lost_ends_the_run_in_one_line(model, local):
    worker = ray.remote(Worker).options(num_cpus=0, max_restarts=0).remote("/no/such/folder", local.room, 1)
    share = Share(worker, 1)
    ray.kill(worker)
    with pytest.raises(ModelUnavailable, match="was lost.*resume") as told:
        answer(share.ask("score", pack([7]), size=8))
    assert "\n" not in str(told.value)
    assert told.value.__cause__ is None


def leaks(needles: list[bytes]) -> list[str]:
    """Ray's files, files in the home folder, and Ray's shared memory, that hold one of the needles."""
    # `os.walk` passes over folders that are gone meanwhile.
    tops = (session_folder(), Path.home())
    found = (Path(folder, name) for top in tops for folder, _, names in os.walk(top) for name in names)
    places = [path for path in found if path.is_file()]
    for process in psutil.Process().children(recursive=True):
        held = Path(f"/proc/{process.pid}/fd")
        if held.exists() and "raylet" in unless_gone(psutil.Process.name, process, ""):
            places += [file for file in held.iterdir() if "plasma" in unless_gone(os.readlink, file, "")]
    assert len(places) > 10
    return [
        str(place) for place in places if any(needle in unless_gone(Path.read_bytes, place, b"") for needle in needles)
    ]


def unless_gone(read, path, otherwise):
    """Ray closes and removes files, and its processes end, while they are looked at: what is gone holds nothing."""
    try:
        return read(path)
    except (FileNotFoundError, psutil.NoSuchProcess):
        return otherwise


def forms(tokens: list[int], text: str) -> list[bytes]:
    """How tokens or their text could look in a file."""
    numbers = [np.array(tokens, dtype=kind).tobytes() for kind in ("int32", "int64", "uint16")]
    opcodes = pickle.dumps(tokens, protocol=4)[13:-2]
    return [*numbers, opcodes, str(tokens)[1:-1].encode(), text.encode(), text.encode("utf-16-le")]


@pytest.mark.nightly
def test_no_private_prompt_is_left_in_rays_files_or_shared_memory(model, home, monkeypatch):
    monkeypatch.setenv("HOME", str(home))
    tokens = model.encode(" " + CANARY)
    needles = forms(tokens, CANARY)
    walk(model)
    # Larger than Ray's inline limit, and left behind by a worker that fails.
    share = Share(model.workers[0], 1)
    for _ in range(3):
        share.tell("receive", *[pack(tokens * 3000)[: 64 * 1024]] * 20)
    share.tell("advance", pack(tokens))
    with pytest.raises(ModelUnavailable, match="AssertionError") as failure:
        answer(share.ask("score", pack(tokens), size=8))
    assert not any(needle.decode("latin-1") in repr(failure.value) for needle in needles)
    assert leaks(needles) == []
    assert session_folder().parents[1].stat().st_mode & 0o077 == 0


@pytest.mark.nightly
def test_the_search_for_leaks_finds_them(model, home, monkeypatch):
    monkeypatch.setenv("HOME", str(home))
    printed, stored = "canary that was printed", "canary that was stored"

    @ray.remote(num_cpus=0)
    def leak(text):
        sys.stdout.write(text)
        sys.stdout.flush()

    ray.get(leak.remote(printed))
    assert any("worker" in path for path in leaks([printed.encode()]))
    kept = ray.put(stored * 10_000)
    if Path("/proc/self/fd").exists():
        assert any("/fd/" in path for path in leaks([stored.encode()]))
    del kept
    tokens = [300, 40_000, 7, 20_000]
    for dumped in (
        pickle.dumps({"x": tokens}),
        np.array(tokens, dtype=np.int64).tobytes(),
        b"rows: [300, 40000, 7, 20000]",
    ):
        assert any(form in dumped for form in forms(tokens, "nothing"))


class Candidate:
    """A worker's handle, for all that is asked of it before it is hired: `facts.remote()`."""

    def __init__(self, said) -> None:
        self.facts = self
        self.remote = lambda: ray.put(said)


def test_workers_that_cannot_serve_are_refused(model, local):
    expected = WorkerFacts.of(local)
    for said, message in (
        (replace(expected, sha256="0" * 64), "another model"),
        (replace(expected, number_format="float16"), "precision"),
        (UsageError("no such thing"), "no such thing"),
    ):
        with pytest.raises((ModelUnavailable, UsageError), match=message):
            hired(lambda said=said: Candidate(said), 1, expected)
    assert len(hired(lambda: Candidate(expected), 2, expected)) == 2


def test_a_worker_answers_errors_without_what_it_was_sent(local):
    assert isinstance(Worker("/no/such/folder", local.room, 1).facts(), ModelUnavailable)
    worker = Worker.__new__(Worker)
    worker._model, worker._held = local, {}
    worker.receive(1, np.array([[5, 6]], dtype=np.int32).tobytes())
    worker.open(1, b"", 2, local.context, 1)
    [error, *padding] = worker.score(1, 2, 3, pack([7]))
    assert isinstance(error, UsageError)
    assert error.__traceback__ is error.__cause__ is None
    assert padding == [b""] * 3
    assert isinstance(worker.score(1, 1, 1, pack([7]))[0], ModelUnavailable), "a call is missing"
    worker.close(1)
    assert isinstance(worker.score(1, 2, 1, pack([7]))[0], ModelUnavailable)


@pytest.mark.parametrize(
    ("variable", "value", "kind"),
    [
        ("DPICL_RAY_WORKERS", "none", UsageError),
        ("DPICL_RAY_WORKERS", "0", UsageError),
        ("RAY_ADDRESS", "ray://somewhere:10001", UsageError),
        ("RAY_ADDRESS", "127.0.0.1:1", ModelUnavailable),
    ],
)
def test_settings_that_cannot_be_used_get_one_line(monkeypatch, variable, value, kind):
    monkeypatch.setenv(variable, value)
    with pytest.raises(kind, match=variable), connected(False):
        pass


@pytest.mark.nightly
def test_the_command_line_takes_the_engine(model, monkeypatch, capsys):
    monkeypatch.setattr(loading, "load_model", lambda name, *_: name)
    monkeypatch.setattr("mechanisms.inference.cluster.spread", lambda name, local: nullcontext(model))
    columns = "--text-column text --label-column topic --labels Cards,Fraud --sizes counted --delta 1e-5 --epsilon 2"
    small = "--recipe tokens --per-subset 1 --subsets 6 --tokens 2 --candidates 10 --test-seed 1 --json --engine"
    line = f"synthesize {BANK} {columns} {small}".split()
    assert main([*line, "ray"]) == 0
    assert '"demonstrations"' in capsys.readouterr().out
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    assert main([*line, "ray"]) == 2
    assert "requirements-ray.txt" in capsys.readouterr().err
