"""Children that work on a toy model until they are killed (SIGKILL), and what the ledger holds then.

A child writes down each release in the moment in which it is made, with what had to be charged for it. Whatever the
moment of its end, the ledger has to open, to hold every charge behind a release, to count for the run no less than
these charges cost, and to add the next run. Runs and votes are then gone on with, killed once more, and gone on with to
their end: all that was told has to stand in their file, and the ledger has to hold the charges of one run.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import sqlite3
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mechanisms.accounting import Cap, PrivacyLedger, claim
from mechanisms.answers.plan import plan_answers
from mechanisms.answers.session import open_session
from mechanisms.answers.spec import AnswerSpec
from mechanisms.errors import StudioError
from mechanisms.privacy_events import Composed, from_json
from mechanisms.records import Dataset
from mechanisms.runs.events import Release, StageStarted, TokenReleased
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.run import run
from mechanisms.runs.run_file import from_lines, line_of
from mechanisms.runs.spec import WRITE
from mechanisms.runs.text import Gate
from tests.runs.running import LABELS, Embedding, Reading, alone, planned, rows, spec
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

UNIT, DELTA, ROWS = "record", 1e-6, 40
ROOM = Cap(1e6, 0.5)
"""So much that no run is refused."""
IN_ONE_LEDGER = 8
"""Kills, before the next ledger begins: what many runs cost together takes long to work out."""
READY = "ready"
MOMENTS = ("before it was reserved", "before it released", "while it released", "after its last release")
ENDS = ("gone on with to its end", "ended where a release was lost", "had told nothing")
"""How runs and votes went on after their kills."""
LOST = ("nothing is drawn twice", "Nothing of this run is left")
"""In what is said where a kill fell between a part's mark and its line in the file."""


def data(kind: str) -> Dataset:
    return Dataset(kind, LABELS, tuple(rows(ROWS)))


def journal_in(folder: Path) -> RunJournal:
    """That of the run that a child works on, or worked on."""
    path = folder / "run.dpicl.jsonl"
    return (
        RunJournal.read(path, PrivacyLedger(folder))
        if path.exists() and b"\n" in path.read_bytes()
        else RunJournal.new(path)
    )


def runs(ledger: PrivacyLedger, journal: RunJournal | None = None):
    """Tokens, each with its demonstration and what that had to pay."""
    private = data("runs")
    plan = planned(private, alone(tokens=8, shots=3, written=3, max_record_tokens=8))
    plan.release_claim()  # seconds of arithmetic, in which a kill would say nothing
    yield READY, [], 0, ""
    for event in run(plan, private, Reading(), ledger, journal=journal):
        if isinstance(event, TokenReleased):
            charge = plan.stages[WRITE].charge_of(event.label, event.number)
            yield f"{event.label} {event.number}", [charge], 0, line_of(event)
    if journal:
        journal.end(event, ledger)


def answers(ledger: PrivacyLedger, journal: None = None):
    """Answers, each with the reservation's events and the number of rows that paid."""
    spec = AnswerSpec.of(
        epsilon=4.0,
        delta=1e-5,
        queries=200,
        shards=4,
        neighbours=2,
        max_record_tokens=12,
        max_query_tokens=12,
        threshold=-1.0,
    )
    asked = plan_answers(spec, LABELS)
    yield READY, [], 0, ""
    session = open_session(data("answers"), asked, ToyEmbedder(), ToyModel(), ledger)
    for number in range(12):
        session.ask(f"red secret {number}")
        yield "reservation", list(asked.event), ROWS, ""  # at this threshold every row is near, and none runs dry


def votes(ledger: PrivacyLedger, journal: RunJournal | None = None):
    """What the stages of a run release, each with what its stage had to pay."""
    private, stage = data("votes"), ""
    plan = planned(private, spec())
    plan.release_claim()
    yield READY, [], 0, ""
    for event in run(plan, private, Reading(), ledger, journal=journal, embedder=Embedding()):
        if isinstance(event, StageStarted):
            stage = event.stage
        elif isinstance(event, TokenReleased):
            charge = plan.stages[stage].charge_of(event.label, event.number)
            yield f"{stage} {event.label} {event.number}", [charge], 0, line_of(event)
        elif isinstance(event, Release):
            yield stage, list(plan.stages[stage].charges()), 0, line_of(event)
    if journal:
        journal.end(event, ledger)


WORK = {work.__name__: work for work in (runs, answers, votes)}


def child(kind: str, folder: str, told_in: str) -> None:
    """Work, and write down each release, without a buffer that a kill could take along."""
    os.environ["DPICL_HOME"] = folder
    Gate.reason = lambda gate, text: None  # what a toy writes is no text
    out = os.open(told_in, os.O_WRONLY | os.O_APPEND)
    journal = journal_in(Path(folder)) if kind != "answers" else None
    for part, charges, payers, line in WORK[kind](PrivacyLedger(), journal):
        told = {"part": part, "charges": [document(*each) for each in charges], "payers": payers, "line": line}
        os.write(out, f"{json.dumps(told)}\n".encode())


def document(name, events) -> dict:
    return Composed("dataset", ((name, events),)).to_json()


@dataclass(frozen=True)
class Folder:
    """A ledger that outlives its processes, and what was found there."""

    path: Path
    kind: str

    @property
    def ledger(self) -> PrivacyLedger:
        return PrivacyLedger(self.path)

    @property
    def journal(self) -> Path:
        return self.path / "run.dpicl.jsonl"

    def set_up(self) -> None:
        self.ledger.set_cap(self.kind, UNIT, ROOM)

    def begin(self, context, told: Path):
        """A child that is at work."""
        told.write_bytes(b"")
        process = context.Process(target=child, args=(self.kind, str(self.path), str(told)))
        process.start()
        while not told.stat().st_size and process.is_alive():
            time.sleep(0.001)
        return process

    def stored(self, query: str) -> list[tuple]:
        with sqlite3.connect(self.path / "ledger.sqlite") as database:
            found = database.execute(query).fetchall()
        database.close()
        return found

    def charged(self) -> list[dict]:
        """The last run's charges."""
        query = "SELECT event FROM charges WHERE run = (SELECT max(id) FROM runs) ORDER BY rowid"
        return [json.loads(each) for (each,) in self.stored(query)]

    def paid(self) -> int:
        """Answers that rows have paid for."""
        return self.stored("SELECT coalesce(sum(answers), 0) FROM paid")[0][0]


def kill_one(context, folder: Folder, after: float, told: Path) -> str:
    """Kill a child so many seconds after it began, and check what is left; which of `MOMENTS` it was."""
    folder.journal.unlink(missing_ok=True)
    before, runs_before, paid = folder.ledger.snapshot(folder.kind, UNIT), len(recorded(folder)), folder.paid()
    process = folder.begin(context, told)
    process.join(after)
    process.kill()
    process.join()
    left = recorded(folder)
    assert len(left) >= runs_before, "a run is gone"
    after_kill = folder.ledger.snapshot(folder.kind, UNIT)
    assert after_kill.epsilon >= before.epsilon, "the spend fell"
    released = told_in(told)
    if released:
        check_covered(folder, released, left, paid)
        assert folder.kind == "answers" or after_kill.epsilon > before.epsilon, "a release cost nothing"
    if process.exitcode == 0:
        return MOMENTS[3]
    reserved = len(left) > runs_before or (left and folder.kind == "answers")
    return MOMENTS[2] if released else MOMENTS[1] if reserved else MOMENTS[0]


def told_in(told: Path) -> list[dict]:
    """What a child has released."""
    return [json.loads(line) for line in told.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")][1:]


def go_on(context, folder: Folder, after: float, told: Path, once: Counter) -> str:
    """Go on with the run of the last kill, kill that too, and go on to the end; which of `ENDS` it came to.

    Args:
        context: of processes.
        folder: where the run is.
        after: seconds to the second kill.
        told: where the child of the first kill has written.
        once: the charges of one run.
    """
    if not folder.journal.exists() or b"\n" not in folder.journal.read_bytes():
        assert not told_in(told), "released and not written down"
        return ENDS[2]
    if b'"unfinished"' not in folder.journal.read_bytes():
        return ENDS[0]
    runs_before, seen = len(recorded(folder)), told_in(told)
    process = folder.begin(context, told)
    process.join(after)
    process.kill()
    process.join()
    seen += told_in(told)
    os.environ["DPICL_HOME"] = str(folder.path)
    lost = False
    if b'"unfinished"' in folder.journal.read_bytes():
        try:
            for _ in WORK[folder.kind](folder.ledger, journal_in(folder.path)):
                pass
        except StudioError as error:
            if not any(why in str(error) for why in LOST):
                raise
            lost = True
    written = folder.journal.read_text().splitlines()
    assert {each["line"] for each in seen} <= set(written), "what was told is gone"
    assert len(recorded(folder)) == runs_before, "a second run was charged"
    charged = Counter(json.dumps(each) for each in folder.charged())
    assert charged == once or (lost and charged <= once), "not the charges of one run"
    assert lost or from_lines("\n".join(written) + "\n")
    return ENDS[lost]


def recorded(folder: Folder):
    return folder.ledger.account(folder.kind, UNIT).runs


def check_covered(folder: Folder, released: list[dict], left, paid: int) -> None:
    """Every charge behind a release is there, and what the run counts costs no less than these charges do."""
    needed = {each["part"]: each["charges"] for each in released}
    behind = list(itertools.chain.from_iterable(needed.values()))
    written = Counter(json.dumps(each) for each in folder.charged())
    assert not Counter(json.dumps(each) for each in behind) - written, "released and not charged"
    assert folder.paid() - paid >= sum(each["payers"] for each in released), "answered and not paid for"
    lists: dict[str, tuple] = {}
    for each in behind:
        [(name, events)] = from_json(each)
        lists[name] = lists.get(name, ()) + events
    run = left[-1]
    cost = [claim(Composed(run.event.per, tuple(each.items())), DELTA).epsilon for each in (lists, run.counted.lists)]
    assert cost[0] <= cost[1] * (1 + 1e-9), "the run counts less than it released"


def check_next(folder: Folder) -> None:
    """What comes next is charged in addition: a run's epsilon, a question's answer."""
    before, paid = folder.ledger.snapshot(folder.kind, UNIT).epsilon, folder.paid()
    os.environ["DPICL_HOME"] = str(folder.path)
    for part, *_ in WORK[folder.kind](folder.ledger):
        if part == "reservation":
            break
    if folder.kind == "answers":
        assert folder.paid() == paid + ROWS, "the next answer was not paid for"
    else:
        assert folder.ledger.snapshot(folder.kind, UNIT).epsilon > before, "the next run cost nothing"


def longest(context, folder: Folder, told: Path) -> float:
    """Seconds that the work takes when nobody ends it."""
    process = folder.begin(context, told)
    begun = time.perf_counter()
    process.join()
    assert process.exitcode == 0, "the work fails by itself"
    return time.perf_counter() - begun


def kill(kills: int, seed: int) -> Counter:
    """Kill so many children, of each kind in turn; how many of each kind ended at which of `MOMENTS`."""
    context, draw = multiprocessing.get_context("forkserver"), random.Random(seed)
    context.set_forkserver_preload([__name__])
    found: Counter = Counter()
    seconds: dict[str, float] = {}
    once: dict[str, Counter] = {}
    with tempfile.TemporaryDirectory() as home:
        told = Path(home) / "told"
        for number, kind in enumerate(itertools.islice(itertools.cycle(WORK), kills)):
            folder = Folder(Path(home) / f"{kind} {number // len(WORK) // IN_ONE_LEDGER}", kind)
            if not folder.path.exists():
                folder.set_up()
                seconds[kind] = longest(context, folder, told)
                once[kind] = Counter(json.dumps(each) for each in folder.charged())
            found[kind, kill_one(context, folder, draw.uniform(0, seconds[kind]), told)] += 1
            if kind != "answers":
                found[kind, go_on(context, folder, draw.uniform(0, seconds[kind]), told, once[kind])] += 1
            check_next(folder)
    return found
