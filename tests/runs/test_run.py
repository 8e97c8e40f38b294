"""Runs in stages: charged, told and released in order, and nobody reads a row that is not of his role."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise, product

import pytest

from mechanisms.accounting import Cap, PrivacyLedger, fingerprint
from mechanisms.accounting.filter import Spend, usage
from mechanisms.data.disclosures import CLEAN_VALUES, SEEDED
from mechanisms.demos.demo_set import loads
from mechanisms.errors import BudgetRefused, DataError, UsageError
from mechanisms.noise import SecureRandomness
from mechanisms.records import Demonstration
from mechanisms.runs import state as run_state
from mechanisms.runs.events import (
    DemoCompleted,
    DemoRefused,
    DemoStarted,
    Drafting,
    PrivateDiagnostics,
    RunCompleted,
    RunStarted,
    SetsCompared,
    SetSoFar,
    StageProgress,
    StageStarted,
    TokenReleased,
)
from mechanisms.runs.plan import Plan
from mechanisms.runs.roles import divide
from mechanisms.runs.run import TEST_SEED
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, VOTE, WORDS, WRITE, Recipe, Split
from mechanisms.runs.stages.calibrate import PriorsReleased
from mechanisms.runs.stages.openings import OpeningsReleased
from mechanisms.runs.stages.score import ScoreReleased
from mechanisms.runs.stages.vote import VotesReleased
from mechanisms.runs.stages.words import WordsReleased
from mechanisms.runs.verification import verify
from tests.replay import price_list
from tests.runs.running import CAP, LABELS, Log, begun, data, ledger, planned, rows, secrets, spec

pytestmark = pytest.mark.slow

ALL = [pytest.param(*case, id="-".join(map(str, case))) for case in product(Recipe, Split, (False, True))]
WRITING = {DemoStarted, TokenReleased, DemoCompleted, DemoRefused}
RELEASED = {
    OPENINGS: [OpeningsReleased],
    WORDS: [WordsReleased],
    VOTE: [VotesReleased],
    CALIBRATE: [SetsCompared, PriorsReleased],
    SCORE: [ScoreReleased],
}


def by_stage(log: Log) -> dict[str, Log]:
    """What follows each `StageStarted`, up to the next stage's charges."""
    starts = [i for i, (kind, *rest) in enumerate(log) if kind == "event" and isinstance(rest[0], StageStarted)]
    parts = {log[i][1].stage: log[i + 1 : end] for i, end in pairwise([*starts, len(log)])}
    return {stage: Log(entry for entry in part if entry[0] != "charge") for stage, part in parts.items()}


def read(entries) -> set[int]:
    return set().union(*(rest[0] for kind, *rest in entries if kind == "read"))


def kinds(entries) -> list[type]:
    """What is told, but for what is told beside it."""
    told = (rest[0] for kind, *rest in entries if kind == "event")
    return [type(event) for event in told if not isinstance(event, StageProgress | SetSoFar)]


def charged(account: PrivacyLedger, unit: str = "record") -> dict:
    """The lists of the ledger's only run, as they count."""
    with account.transaction() as database:
        return dict(lists for spend in account._spends(database, "d", unit) for lists in spend.lists.items())


def run_of(recipe, split, by_user=False, count=180, **rest):
    dataset = data(rows(count, users=by_user), by_user)
    return dataset, planned(dataset, spec(recipe, split, **rest))


# What is charged, told and read.


@pytest.mark.parametrize(("recipe", "split", "by_user"), ALL)
def test_each_stage_is_charged_then_told_and_then_releases_in_order(recipe, split, by_user, monkeypatch):
    (dataset, plan), log, account = run_of(recipe, split, by_user), Log(), ledger(by_user)
    log.watch(monkeypatch)
    list(begun(dataset, plan, log, ledger=account))
    assert kinds(log)[:2] == [RunStarted, StageStarted]
    assert kinds(log)[-1] is RunCompleted
    assert list(by_stage(log)) == list(plan.stages)
    first = True
    for name, entries in by_stage(log).items():
        start = next(i for i, e in enumerate(log) if e[0] == "event" and is_start(e[1], name))
        if name == WRITE:
            check_charged_before_its_tokens(log, start)
        else:
            charges = [("charge", *each) for each in plan.stages[name].charges()]
            assert log[start - len(charges) : start] == charges
        assert not first or not read(log[:start]), "rows were read before anybody had paid"
        told = [each for each in kinds(entries) if each not in (RunCompleted, Drafting)]
        assert set(told) <= WRITING if name == WRITE else told == RELEASED[name]
        first = False
    price_list.compare(charged(account, dataset.unit).items(), price_list.of_run(plan), "what was charged")
    claimed = plan.claim()
    whole = usage([Spend(claimed.epsilon, claimed.delta, dict(plan.event))], CAP)
    assert account.snapshot("d", dataset.unit).epsilon == pytest.approx(whole.epsilon)
    assert whole.epsilon <= claimed.epsilon


@pytest.mark.parametrize(("sampled", "tries"), [("They sent me the wrong box again.", False), (None, True)])
def test_drafts_are_tried_before_anybody_has_paid_where_samples_show_no_text(sampled, tries, monkeypatch):
    (dataset, plan), log, account = run_of("vote", "roles", count=60), Log(), PrivacyLedger()
    account.set_cap("d", "record", Cap(1.0, 0.01))
    monkeypatch.setattr(run_state, "cleaned", lambda *_: sampled)
    with pytest.raises(BudgetRefused):
        list(begun(dataset, plan, log, ledger=account))
    assert kinds(log) == [Drafting] * tries
    assert not read(log)


def check_charged_before_its_tokens(log: Log, start: int) -> None:
    """Each demonstration has a charge of its own before it begins, and rows are read behind all that have begun."""
    paid = begun_ones = 0
    for kind, *rest in log[start + 1 :]:
        if kind == "charge" and begun_ones == len(LABELS):
            break  # of the next stage
        paid += kind == "charge"
        if kind == "event" and isinstance(rest[0], DemoStarted):
            begun_ones += 1
        assert kind != "read" or begun_ones == paid > 0
        assert paid - begun_ones in (0, 1)
    assert paid == begun_ones == len(LABELS)


def is_start(event, stage: str) -> bool:
    return isinstance(event, StageStarted) and event.stage == stage


@pytest.mark.parametrize(("recipe", "split", "by_user"), ALL)
@pytest.mark.usefixtures("one_key")  # with some keys a small role has none of sixty users
def test_no_stage_reads_a_row_of_another_role(recipe, split, by_user):
    (dataset, plan), log = run_of(recipe, split, by_user, max_unit_records=8), Log()
    list(begun(dataset, plan, log))
    mine = {stage: secrets(record.text for record in part.records) for stage, part in divide(dataset, plan).items()}
    known: set[int] = set()
    for stage, entries in by_stage(log).items():
        assert read(entries) <= mine[stage]
        # Writing samples, no model reads openings, and all but a vote read one row of a user; nothing is read twice.
        if stage == VOTE or (stage not in (WRITE, OPENINGS) and not by_user):
            assert mine[stage] <= known | read(entries)
        known |= read(entries)
    if split is Split.ROLES:
        assert sum(map(len, mine.values())) == len(set().union(*mine.values()))
        assert all(mine.values())


@pytest.mark.parametrize("split", Split)
@pytest.mark.parametrize("recipe", [Recipe.VOTE, Recipe.BOTH])
def test_a_run_that_is_closed_at_any_event_has_charged_what_it_began_and_no_more(recipe, split, tmp_path):
    dataset, plan = run_of(recipe, split, count=40)
    count = sum(1 for _ in begun(dataset, plan))
    for last in range(0, count + 1, 2):
        account, log = PrivacyLedger(tmp_path / str(last)), Log()
        account.set_cap("d", "record", CAP)
        run = begun(dataset, plan, log, ledger=account)
        list(islice(run, last))
        run.close()
        wanted: dict = {}
        events = [rest[0] for kind, *rest in log if kind == "event"]
        for name in by_stage(log):
            charges = plan.stages[name].charges()
            if name == WRITE:
                begun_ones = (each for each in events if isinstance(each, DemoStarted))
                charges = [plan.stages[WRITE].charge_of(each.label, each.number) for each in begun_ones]
            for of, paid in charges:
                wanted[of] = wanted.get(of, ()) + paid
        assert charged(account) == wanted
        assert [each["status"] for each in account.history("d")] == (["finished"] if RunStarted in kinds(log) else [])


@pytest.mark.parametrize(("recipe", "split"), [*product(Recipe, Split)])
def test_wherever_a_run_is_stopped_what_it_has_told_stands(recipe, split):
    dataset, plan = run_of(recipe, split, count=60)
    told = [event for event in begun(dataset, plan) if not isinstance(event, StageProgress)]
    kept, checked, found = None, set(), set()
    for event in told:
        match event:
            case SetSoFar(demo_set):
                kept = demo_set
                lost = found - (found := {name for name in ("prior", "score", "baselines") if getattr(kept, name)})
                assert not lost
                stage = len(kept.demonstrations), *sorted(found)
                assert stage in checked or verify(loads(kept.dumps())).problems == ()
                checked.add(stage)
            case DemoCompleted(demonstration, number):
                refused = DemoRefused in map(type, told) and any(
                    isinstance(each, DemoRefused) and (each.label, each.number) == (demonstration.label, number)
                    for each in told
                )
                assert refused or demonstration in kept.demonstrations
            case VotesReleased(ballots):
                for label, each in ballots.items():
                    assert Demonstration(each.drafts[each.winners[0]], label) in kept.demonstrations
            case SetsCompared():
                assert event.own == kept.demonstrations or recipe is Recipe.TOKENS
            case PriorsReleased():
                assert set(kept.prior) == set(LABELS)
            case ScoreReleased(score):
                assert kept.score == score
            case RunCompleted(demo_set):
                assert demo_set == kept
    assert found == {"prior", "score", "baselines"}


@pytest.mark.parametrize(("recipe", "split", "by_user"), ALL)
def test_stages_that_nobody_takes_part_in_finish(recipe, split, by_user):
    dataset = data([], by_user)
    *_, last = begun(dataset, planned(dataset, spec(recipe, split)))
    assert isinstance(last, RunCompleted)
    assert set(last.demo_set.score.arms) == {"zero-shot", "public-only", "demonstrations", "directions"}
    assert verify(loads(last.demo_set.dumps())).problems == ()


@pytest.mark.parametrize("recipe", Recipe)
@pytest.mark.parametrize(
    "without", [(SCORE,), (CALIBRATE,), (OPENINGS,), (CALIBRATE, SCORE), (OPENINGS, CALIBRATE, SCORE)], ids=str
)
def test_stages_may_be_left_out(recipe, without):
    dataset = data(rows(60))
    plan, log = planned(dataset, spec(recipe, "roles", without)), Log()
    *_, last = begun(dataset, plan, log)
    made = last.demo_set
    assert kinds(log).count(SetsCompared) == (not {CALIBRATE, SCORE} <= set(without))
    assert (made.prior is None, made.baselines is None, made.score is None) == (
        CALIBRATE in without, CALIBRATE in without, SCORE in without,
    )  # fmt: skip
    assert {each.label for each in made.demonstrations} == set(LABELS)
    assert verify(loads(made.dumps())).problems == ()


# What is refused, and what is marked.


def refused(dataset, plan: Plan, error, message: str, **rest) -> None:
    log, account = Log(), ledger(dataset.by_user)
    with pytest.raises(error, match=message):
        list(begun(dataset, plan, log, ledger=account, **rest))
    assert log == []
    assert account.history("d") == []


def test_another_file_another_task_and_more_units_than_declared_are_refused():
    dataset, plan = run_of("both", "roles", count=60)
    refused(data(rows(61)), plan, UsageError, "planned for another file")
    refused(data(rows(60, users=True), by_user=True), plan, UsageError, "agree on the labels and on the")
    refused(replace(dataset, labels=LABELS[::-1]), plan, UsageError, "agree on the labels")
    fewer = {label: size - 1 for label, size in plan.sizes.items()}
    refused(dataset, replace(plan, sizes=fewer), DataError, "more rows labelled 'red' than declared")
    refused(dataset, plan, UsageError, "embeds texts", embedder=None)


def test_a_test_seed_marks_the_set_and_the_data_set_and_nothing_else_does():
    (dataset, plan), account = run_of("both", "roles", count=60), ledger()
    *_, last = begun(dataset, plan, ledger=account, randomness=SecureRandomness())
    assert last.demo_set.certificate.private
    assert account.rows.disclosures(fingerprint(dataset)) == ()
    *_, last = begun(dataset, plan, ledger=account)
    certificate = last.demo_set.certificate
    assert (certificate.private, certificate.reason) == (False, TEST_SEED)
    assert account.rows.disclosures(fingerprint(dataset)) == certificate.disclosures == (SEEDED,)
    assert [each["mechanism"] for each in account.history("d")] == ["recipe both", "recipe both with a test seed"]


@pytest.mark.parametrize(("recipe", "shown"), [("vote", False), ("tokens", True)])
def test_a_curator_sees_clean_values_of_writing_alone_and_is_marked_for_them(recipe, shown):
    (dataset, plan), log, account = run_of(recipe, "roles", count=60), Log(), ledger()
    *_, last = begun(dataset, plan, log, ledger=account, curator=True, randomness=SecureRandomness())
    assert (PrivateDiagnostics in kinds(log)) == shown
    assert last.demo_set.certificate.disclosures == ((CLEAN_VALUES,) if shown else ())
