"""Whole runs: what is charged when, who is read by whom, and what is left where a run ends early."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise, product

import pytest
from mechanisms.runs.recipe import Division, Kind, Stage, divide
from mechanisms.runs.sets import PLAIN

from mechanisms.accounting import Cap, PrivacyLedger, fingerprint
from mechanisms.accounting.filter import Spend, usage
from mechanisms.data.sizes import CLEAN_VALUES, SEEDED, measure_sizes
from mechanisms.demos.demo_set import loads
from mechanisms.errors import BudgetRefused, DataError, UsageError
from mechanisms.noise import SecureRandomness
from mechanisms.records import Demonstration
from mechanisms.runs import stage as recipe_stages
from mechanisms.runs.events import (
    ChoiceReleased,
    DemoCompleted,
    DemoStarted,
    Drafting,
    DraftsWritten,
    PriorsReleased,
    PrivateDiagnostics,
    RunCompleted,
    RunStarted,
    ScoreReleased,
    SetKept,
    SetsMade,
    StageProgress,
    StageStarted,
    TokenReleased,
    VotesReleased,
)
from mechanisms.runs.run import TEST_SEED
from mechanisms.runs.verification import verify
from mechanisms.tallies import Choice
from tests.recipes.running import CAP, LABELS, Log, begun, data, ledger, planned, recipe, rows, secrets

pytestmark = pytest.mark.slow

ALL = [pytest.param(*case, id="-".join(map(str, case))) for case in product(Kind, Division, (False, True))]
WRITING = {DemoStarted, TokenReleased, DemoCompleted}
STANDING = (DemoCompleted, VotesReleased, PriorsReleased, ChoiceReleased, ScoreReleased)
FOUND = ("prior", "choice", "score")
RELEASED = {
    Stage.VOTE: [DraftsWritten] * len(LABELS) + [VotesReleased] * len(LABELS),
    Stage.CALIBRATE: [SetsMade, PriorsReleased],
    Stage.CHOOSE: [ChoiceReleased, PriorsReleased],
    Stage.SCORE: [ScoreReleased],
}


def by_stage(log: Log) -> dict[Stage, Log]:
    """What follows each `StageStarted`, up to the next stage's charges."""
    starts = [i for i, (kind, *rest) in enumerate(log) if kind == "event" and isinstance(rest[0], StageStarted)]
    parts = {log[i][1].stage: log[i + 1 : end] for i, end in pairwise([*starts, len(log)])}
    return {stage: Log(entry for entry in part if entry[0] != "charge") for stage, part in parts.items()}


def read(entries) -> set[int]:
    return set().union(*(rest[0] for kind, *rest in entries if kind == "read"))


def kinds(entries) -> list[type]:
    """What is told, but for what is told beside it."""
    told = (rest[0] for kind, *rest in entries if kind == "event")
    return [type(event) for event in told if not isinstance(event, StageProgress | SetKept)]


def charged(account: PrivacyLedger, unit: str = "record") -> dict:
    """The lists of the ledger's only run, as they count."""
    with account.transaction() as database:
        return dict(lists for spend in account._spends(database, "d", unit) for lists in spend.lists.items())


@pytest.mark.parametrize(("kind", "division", "by_user"), ALL)
def test_each_stage_is_charged_then_told_and_then_releases_in_order(kind, division, by_user, monkeypatch):
    dataset, log, account = data(rows(180, users=by_user), by_user), Log(), ledger(by_user)
    request = planned(dataset, recipe(kind, division))
    log.watch(monkeypatch)
    list(begun(dataset, request, log, ledger=account))
    drafting = [Drafting] * len(LABELS)
    if kind is Kind.VOTE:
        assert kinds(log)[: len(LABELS) + 1] == [*drafting, RunStarted]
    else:  # tokens come at once, and public drafts where the next stage wants them
        assert kinds(log)[:3] == [RunStarted, StageStarted, DemoStarted]
        begins = next(i for i, e in enumerate(log) if e[0] == "event" and is_start(e[1], request.recipe.stages[1]))
        assert [each for each in kinds(log[:begins]) if each is Drafting] == drafting
    assert kinds(log)[-1] is RunCompleted
    assert list(by_stage(log)) == list(request.recipe.stages)
    before = 0
    for stage, entries in by_stage(log).items():
        charges = [("charge", *each) for each in request.charges(stage)]
        start = next(i for i, e in enumerate(log) if e[0] == "event" and e[1:] and is_start(e[1], stage))
        assert log[start - len(charges) : start] == charges
        assert before or not read(log[:start]), "rows were read before anybody had paid"
        told = [each for each in kinds(entries) if each not in (RunCompleted, Drafting)]
        assert set(told) == WRITING if stage is Stage.WRITE else told == RELEASED[stage]
        before = start
    assert charged(account, dataset.unit) == dict(request.event)
    claimed = request.claim()
    whole = usage([Spend(claimed.epsilon, claimed.delta, dict(request.event))], CAP)
    assert account.snapshot("d", dataset.unit).epsilon == whole.epsilon <= claimed.epsilon


def is_start(event, stage: Stage) -> bool:
    return isinstance(event, StageStarted) and event.stage is stage


@pytest.mark.parametrize(("kind", "division", "by_user"), ALL)
def test_no_stage_reads_a_row_of_another_role(kind, division, by_user):
    dataset, log = data(rows(180, users=by_user), by_user), Log()
    request = planned(dataset, recipe(kind, division), max_unit_records=8)
    list(begun(dataset, request, log))
    parts = divide(dataset, request.recipe)
    mine = {stage: secrets(record.text for record in part.records) for stage, part in parts.items()}
    known: set[int] = set()
    for stage, entries in by_stage(log).items():
        # The correction of the chosen set is fitted on calibrators, who have paid for it before.
        allowed = mine[stage] | (mine[Stage.CALIBRATE] if stage is Stage.CHOOSE else set())
        assert read(entries) <= allowed
        if stage is not Stage.WRITE:  # writing samples; what was read under a set is not read again
            assert mine[stage] <= known | read(entries)
        known |= read(entries)
    if division is Division.ROLES:
        assert sum(map(len, mine.values())) == len(set().union(*mine.values()))
        assert sum(map(bool, mine.values())) > 1


@pytest.mark.parametrize("division", Division)
@pytest.mark.parametrize("kind", [Kind.VOTE, Kind.BOTH])
def test_a_run_that_is_closed_at_any_event_has_charged_the_stages_it_told_of_and_no_more(kind, division, tmp_path):
    dataset = data(rows(40))
    request = planned(dataset, recipe(kind, division))
    count = sum(1 for _ in begun(dataset, request))
    for last in range(count + 1):
        account, log = PrivacyLedger(tmp_path / str(last)), Log()
        account.set_cap("d", "record", CAP)
        run = begun(dataset, request, log, ledger=account)
        list(islice(run, last))
        run.close()
        wanted: dict = {}
        for stage in by_stage(log):
            for name, events in request.charges(stage):
                wanted[name] = wanted.get(name, ()) + events
        assert charged(account) == wanted
        assert [each["status"] for each in account.history("d")] == (["finished"] if RunStarted in kinds(log) else [])


@pytest.mark.parametrize(
    ("kind", "division", "arm"),
    [
        pytest.param(Kind.VOTE, Division.ROLES, -6, id="voted 3, plain words"),
        pytest.param(Kind.VOTE, Division.EPSILON, -1, id="none, plain words"),
        pytest.param(Kind.BOTH, Division.EPSILON, 6, id="voted 1"),
        pytest.param(Kind.TOKENS, Division.ROLES, 10, id="written 2"),
    ],
)
def test_wherever_a_run_is_stopped_what_it_has_told_stands(kind, division, arm, request, monkeypatch):
    monkeypatch.setattr(Choice, "release", lambda self, contributions, randomness: arm % contributions.shape[1])
    dataset = data(rows(60))
    events = list(begun(dataset, planned(dataset, recipe(kind, division, rounds=2, sets=3))))
    told = [event for event in events if not isinstance(event, StageProgress)]
    for before, event in pairwise(told):
        assert isinstance(before, SetKept) == isinstance(event, STANDING)
    ballots, sets, checked, found = {}, {}, set(), set()
    for before, event in pairwise(told):
        match event:
            case SetKept(kept):
                lost = found - (found := {name for name in FOUND if getattr(kept, name)})
                assert not lost
                stage = len(kept.demonstrations), *found
                assert stage in checked or verify(loads(kept.dumps())).problems == ()
                checked.add(stage)
            case DraftsWritten(label, number, drafts):
                ballots[label, number] = drafts
            case SetsMade(made):
                sets = {each.name: each for each in made}
            case _ if isinstance(event, STANDING):
                check_stands(event, before.demo_set, ballots, sets)
            case RunCompleted(demo_set):
                assert demo_set == kept
    assert found == set(FOUND)
    assert kept.choice.chosen == request.node.callspec.id.removesuffix(PLAIN if kept.demonstrations == () else "")


def check_stands(event, kept, ballots, sets) -> None:
    match event:
        case DemoCompleted(demonstration):
            assert demonstration in kept.demonstrations
        case VotesReleased(label, number, _, winners):
            assert Demonstration(ballots[label, number][winners[0]], label) in kept.demonstrations
        case ChoiceReleased(among, (name, correction)):
            assert (kept.demonstrations, kept.template) == (sets[name].demonstrations, sets[name].template)
            assert (kept.choice.among, kept.choice.correction) == (len(among), correction)
        case PriorsReleased():
            assert set(kept.prior) == set(LABELS)
        case ScoreReleased(score):
            assert kept.score == score


def same_for_all(model, template, label, labels, count, tokens, randomness, examples=(), taken=(), embedder=None):
    return tuple(text for text in (f"text {i}" for i in range(20)) if text not in {*examples, *taken})[:count]


def test_no_draft_stands_for_two_labels(monkeypatch):
    monkeypatch.setattr(recipe_stages, "write_drafts", same_for_all)
    dataset, ballots = data(rows(60)), {}
    for event in begun(dataset, planned(dataset, recipe(Kind.VOTE, Division.ROLES, rounds=3, drafts=8))):
        match event:
            case DraftsWritten(_, number, drafts):
                assert len(drafts) == 8
                ballots.setdefault(number, []).extend(drafts)
            case SetKept(kept):
                assert len({each.text for each in kept.demonstrations}) == len(kept.demonstrations)
            case SetsMade(sets):
                assert all(len({each.text for each in of.demonstrations}) == len(of.demonstrations) for of in sets)
    assert [len(set(drafts)) for drafts in ballots.values()] == [16, 16, 16]


@pytest.mark.parametrize(("kind", "division", "by_user"), ALL)
def test_stages_that_nobody_takes_part_in_finish(kind, division, by_user):
    dataset = data([], by_user)
    request = planned(dataset, recipe(kind, division))
    *_, last = begun(dataset, request)
    assert isinstance(last, RunCompleted)
    assert set(last.demo_set.score.arms) >= {"zero-shot", "public-only"}
    assert verify(loads(last.demo_set.dumps())).problems == ()


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize(
    "without",
    [
        (Stage.SCORE,),
        (Stage.CHOOSE,),
        (Stage.CHOOSE, Stage.SCORE),
        (Stage.CALIBRATE, Stage.CHOOSE),
        (Stage.CALIBRATE, Stage.CHOOSE, Stage.SCORE),
    ],
    ids=str,
)
def test_stages_may_be_left_out(kind, without):
    dataset, log = data(rows(60)), Log()
    request = planned(dataset, recipe(kind, Division.ROLES, without))
    *_, last = begun(dataset, request, log)
    made = last.demo_set
    assert kinds(log).count(SetsMade) == 1
    assert (made.prior is None, made.choice is None, made.score is None) == tuple(
        stage in without for stage in (Stage.CALIBRATE, Stage.CHOOSE, Stage.SCORE)
    )
    if Stage.CHOOSE in without:  # then what private rows have made is exported
        assert {each.label for each in made.demonstrations} == set(LABELS)
    assert verify(loads(made.dumps())).problems == ()


def refused(dataset, request, error, message: str, **rest) -> None:
    log, account = Log(), ledger(dataset.by_user)
    with pytest.raises(error, match=message):
        list(begun(dataset, request, log, ledger=account, **rest))
    assert log == []
    assert account.history("d") == []


def test_another_file_another_task_and_more_units_than_declared_are_refused():
    dataset = data(rows(60))
    request = planned(dataset, recipe(Kind.BOTH, Division.ROLES))
    refused(data(rows(61)), request, UsageError, "planned for another file")
    refused(data(rows(60, users=True), by_user=True), request, UsageError, "agree on the labels and on the")
    refused(replace(dataset, labels=LABELS[::-1]), request, UsageError, "agree on the labels")
    fewer = {label: size - 1 for label, size in request.sizes.items()}
    refused(dataset, replace(request, sizes=fewer), DataError, "more rows labelled 'red' than declared")


def test_over_the_cap_nothing_is_read():
    dataset, log, account = data(rows(60)), Log(), PrivacyLedger()
    account.set_cap("d", "record", Cap(1.0, 0.01))
    with pytest.raises(BudgetRefused):
        list(begun(dataset, planned(dataset, recipe(Kind.VOTE, Division.ROLES)), log, ledger=account))
    assert all(kind is Drafting for kind in kinds(log)), "only public drafts come before the refusal"
    assert not read(log)


@pytest.mark.parametrize("division", Division)
def test_a_measured_size_that_is_too_small_does_not_show(division):
    dataset, account = data(rows(60)), ledger()
    measured = measure_sizes(dataset, 0.5, 1e-5, account)
    short = replace(measured, sizes=dict.fromkeys(LABELS, 1))
    request = planned(dataset, recipe(Kind.VOTE, division)).with_measured_sizes(short)
    *_, last = begun(dataset, request, ledger=account, randomness=SecureRandomness())
    verified = verify(loads(last.demo_set.dumps()))
    assert verified.problems == ()
    assert account.snapshot("d", "record").epsilon <= verified.claim.epsilon + 1e-9 <= 2.0 + 2e-9


def test_a_test_seed_marks_the_set_and_the_data_set_and_nothing_else_does():
    dataset, account = data(rows(60)), ledger()
    request = planned(dataset, recipe(Kind.BOTH, Division.ROLES))
    *_, last = begun(dataset, request, ledger=account, randomness=SecureRandomness())
    assert last.demo_set.certificate.private
    assert account.rows.disclosures(fingerprint(dataset)) == ()
    *_, last = begun(dataset, request, ledger=account)
    certificate = last.demo_set.certificate
    assert (certificate.private, certificate.reason) == (False, TEST_SEED)
    assert account.rows.disclosures(fingerprint(dataset)) == certificate.disclosures == (SEEDED,)
    assert [each["mechanism"] for each in account.history("d")] == ["recipe both", "recipe both with a test seed"]


@pytest.mark.parametrize(("kind", "shown"), [(Kind.VOTE, False), (Kind.TOKENS, True)])
def test_a_curator_sees_clean_values_of_writing_alone_and_is_marked_for_them(kind, shown):
    dataset, log, account = data(rows(60)), Log(), ledger()
    request = planned(dataset, recipe(kind, Division.ROLES))
    *_, last = begun(dataset, request, log, ledger=account, curator=True, randomness=SecureRandomness())
    assert (PrivateDiagnostics in kinds(log)) == shown
    assert last.demo_set.certificate.disclosures == ((CLEAN_VALUES,) if shown else ())


def test_only_the_first_run_by_roles_calls_its_scorers_untouched():
    account = ledger()
    dataset = data(rows(60))
    by_roles = planned(dataset, recipe(Kind.VOTE, Division.ROLES))
    measure_sizes(dataset, 0.5, 1e-5, account)  # who counts does not judge
    for wanted in (True, False):
        *_, last = begun(dataset, by_roles, ledger=account)
        assert last.demo_set.score.held_out == wanted
    shared = planned(dataset, recipe(Kind.VOTE, Division.EPSILON))
    *_, last = begun(dataset, shared, ledger=account)
    assert not last.demo_set.score.held_out
