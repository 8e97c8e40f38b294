"""Runs in stages on the command line, on toy models."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace

import pytest

from mechanisms.accounting import fingerprint
from mechanisms.cli.main import parser
from mechanisms.cli.synthesis_options import outputs_of, schema_of
from mechanisms.cli.synthesize import spec_of
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.demos.demo_set import loads
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.records import Dataset, Record
from mechanisms.runs.advice import proposed
from mechanisms.runs.events import SetKept
from mechanisms.runs.recipe import Division, Kind, Stage
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.verification import verify
from tests.certificates.recipes import FOUND, asked, certified, recipe
from tests.cli.command import BANK, check_refusal, run

SIZES = {"Cards": 900, "Fraud": 1500}
LINE = (
    f"synthesize {BANK} --text-column text --label-column topic --labels Cards,Fraud --sizes Cards=900,Fraud=1500 "
    "--allow-left-out --epsilon 2 --delta 1e-5 --subsets 4 --tokens 3 --candidates 10"
)
SCHEMA = '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}'
QUICK = "--drafts 3 --sets 1 --draft-tokens 12"


def spec(rest: str) -> RunSpec:
    options = parser().parse_args([*LINE.split(), *rest.split()])
    schema = schema_of(options)
    return spec_of(options, schema, outputs_of(options))


def request(rest: str, measured: MeasuredSizes | None = None):
    dataset = Dataset("d", ("Cards", "Fraud"), (Record("a text", "Cards"),))
    asked = spec(rest)
    if measured is not None:
        asked = replace(asked, sizes=replace(measured, content=fingerprint(dataset).content))
    return asked.request(dataset)


def test_a_run_has_stages_wherever_it_can():
    assert spec("").kind(2) is Kind.BOTH
    staged = ("", "--recipe vote", "--recipe both", "--split epsilon", "--recipe tokens --shares write=.5")
    assert all(spec(rest).in_stages(2) for rest in staged)
    # What is refused together with stages is written token by token where none are asked for.
    records = f"--schema {SCHEMA} --labels Cards"
    without = (
        records, "--output-column answer", "--output-field Genre --answers model", "--labels Cards",
        "--best-of 2", "--shots 51", "--mechanism public", "--mechanism non-private",
    )  # fmt: skip
    for rest in (*without, "--recipe tokens"):
        assert not spec(rest).in_stages(1 if "--labels Cards" in rest else 2)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("--schema {}", "Records are written token by token"),
        ("--output-field Genre --answers model", "Outputs are written token by token"),
        ("--labels Cards --allow-left-out --sizes Cards=900", "at least two labels"),
        ("--shots 51", "shots must lie between 1 and 50"),
        ("--shots 500", "shots must lie between 1 and 50"),
        ("--shots 17", "let the rows vote"),
    ],
)
def test_what_has_no_stages_is_still_refused_where_they_are_asked_for(capsys, rest, message):
    schemas = rest.replace("{}", SCHEMA)
    labels = " --labels Cards" if "schema" in rest else ""
    check_refusal(capsys, f"{LINE} --recipe both {schemas}{labels}", 2, message)


def test_what_is_left_open_is_planned():
    assert spec("--recipe vote").recipe_for(SIZES, 2.0) == proposed(Kind.VOTE, SIZES, 2.0)
    assert spec("--recipe vote --score none").recipe_for(SIZES, 2.0) == proposed(Kind.VOTE, SIZES, 2.0, False)
    forced = spec("--recipe tokens --split epsilon").recipe_for(SIZES, 2.0)
    assert forced == proposed(Kind.TOKENS, SIZES, 2.0, division=Division.EPSILON)
    given = spec("--recipe both --drafts 9 --rounds 2 --sets 4 --shares vote=.3,write=.2").recipe_for(SIZES, 2.0)
    assert (given.drafts, given.rounds, given.sets, given.division) == (9, 2, 4, Division.ROLES)
    assert given.shares == {Stage.VOTE: 0.3, Stage.WRITE: 0.2}


def test_lengths_follow_from_the_words_of_a_text_unless_they_are_given():
    usual, long = request("--recipe vote"), request("--recipe vote --text-words 180")
    assert (long.tokens, long.max_record_tokens) > (usual.tokens, usual.max_record_tokens)
    given = request("--recipe vote --text-words 180 --draft-tokens 30 --max-record-tokens 50")
    assert (given.tokens, given.max_record_tokens) == (30, 50)
    with pytest.raises(UsageError, match="at least 1 word"):
        request("--recipe vote --text-words 0")


def test_the_writing_gets_its_share_of_the_units_or_of_epsilon():
    roles = request("--recipe tokens --shares write=.25,calibrate=.1").apportioned()
    assert roles.written.plan.share == 0.25
    assert roles.written.target.epsilon == 2
    shared = request("--recipe tokens --shares write=.25,calibrate=.1 --split epsilon").apportioned()
    assert shared.written.plan.share == 1
    assert shared.written.target.epsilon == pytest.approx(0.5)
    assert request("--recipe vote").written is None


@pytest.mark.slow
@pytest.mark.parametrize("split", ["roles", "epsilon"])
def test_a_calibrated_run_costs_at_most_its_epsilon(split):
    wanted = request(f"--split {split} --recipe both")
    assert 1 < wanted.calibrated().claim().epsilon <= 2.0001


def test_measured_sizes_are_paid_for_once():
    measured = MeasuredSizes(SIZES, 0.5, 1e-8, "")
    shared = request("--recipe tokens --shares write=.4,calibrate=.1 --split epsilon", measured).apportioned()
    # Calibration takes the 0.5 off again: what is left is .4 of 1.5.
    assert shared.written.target.epsilon == pytest.approx(0.5 + 0.4 * 1.5)
    assert shared.epsilon(Stage.WRITE) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("--recipe tokens --drafts 4", "--drafts needs --recipe"),
        ("--best-of 2 --draft-tokens 4", "--draft-tokens needs --recipe"),
        ("--recipe tokens --score none", "--score needs --recipe"),
        ("--recipe vote --shares write=.5", "needs a share for the stage 'vote'"),
        ("--recipe vote --shares write=.5,vote=.2", "no stage 'write'"),
        ("--recipe vote --shares vote=1.5", "share"),
        ("--recipe vote --shares vote=.6,calibrate=.6", "more than 1"),
        ("--recipe vote --shares vote=.2,vote=.3", "twice"),
        ("--recipe vote --shares vote", "STAGE=SHARE"),
        ("--recipe vote --shares sing=.2", "write, vote, calibrate, choose, score"),
        ("--recipe vote --shares vote=.2,choose=.2", "calibrate"),
        ("--recipe vote --shares vote=.2,score=.2 --score none", "--score none"),
        ("--recipe vote --shares vote=.2 --score private", "--score private"),
        ("--recipe vote --drafts 0", "drafts"),
        ("--recipe both --mechanism non-private", "private mechanism"),
        ("--recipe both --mechanism public", "private mechanism"),
        ("--recipe vote --draft-tokens 1", "tokens"),
        ("--recipe both --best-of 2", "--best-of is for a run without stages"),
        ("--split epsilon --best-of 2", "--best-of is for a run without stages"),
        ("--best-of 0", "best of 1 to 16"),
        ("--best-of 17", "best of 1 to 16"),
        ("--recipe paint", "--recipe"),
    ],
)
def test_bad_recipes_get_one_line_before_anything_is_charged(capsys, rest, message):
    check_refusal(capsys, f"{LINE} {rest}", 2, message)
    _, out, _ = run(capsys, "ledger export --json")
    assert json.loads(out)["runs"] == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rest", "stages"),
    [
        ("--recipe vote", ["vote", "calibrate", "choose", "score"]),
        ("--recipe both --split epsilon --score none", ["write", "vote", "calibrate", "choose"]),
        ("--recipe tokens --shares write=.5,score=.2", ["write", "score"]),
    ],
)
def test_from_csv_to_a_signed_set(capsys, tmp_path, toy_models, rest, stages):
    demos = tmp_path / "demos.json"
    quick = QUICK if "shares" not in rest else "--draft-tokens 12"
    code, out, err = run(capsys, f"{LINE} {rest} {quick} --out {demos}")
    assert (code, out) == (0, ""), err
    demo_set = loads(demos.read_text())
    assert [stage.name for stage in demo_set.stages] == stages
    assert verify(demo_set).problems == ()
    assert all(f"{stage}: charged" in err for stage in stages)
    code, out, err = run(capsys, f"account --from {demos} --json")
    assert (code, json.loads(out)["signature"]) == (0, "valid"), err


def test_many_demonstrations_are_voted_for_at_the_price_of_one(capsys, tmp_path, toy_models):
    demos = tmp_path / "demos.json"
    code, _, err = run(
        capsys, f"{LINE} --shots 20 --draft-tokens 12 --out {demos}".replace("--subsets 4 --tokens 3", "")
    )
    assert code == 0, err
    made = loads(demos.read_text())
    assert [stage.name for stage in made.stages] == ["vote"]
    assert Counter(each.label for each in made.demonstrations) == {"Cards": 20, "Fraud": 20}
    assert len({each.text for each in made.demonstrations}) == 40
    assert verify(made).problems == ()
    one = request("--recipe vote --shares vote=1 --split epsilon")
    assert made.certificate.claim.epsilon == one.calibrated().claim().epsilon == 2


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (ModelUnavailable("No."), 4)])
@pytest.mark.parametrize("released", [False, True])
def test_a_run_that_ends_early_leaves_what_was_released(
    capsys, tmp_path, toy_models, monkeypatch, error, code, released
):
    demos = tmp_path / "demos.json"
    kept = certified(asked(recipe(Kind.VOTE, Division.ROLES)), **FOUND)

    def ending(*_, **__):
        if released:
            yield SetKept(kept)
        raise error

    monkeypatch.setattr("mechanisms.api.synthesize", ending)
    found, out, err = run(capsys, f"{LINE} --recipe vote {QUICK} --out {demos}")
    assert (found, out) == (code, ""), err
    assert demos.exists() == released == ("released before is kept" in err)
    if released:
        assert loads(demos.read_text()) == kept
        assert json.loads(demos.read_text())["signature"]


def test_progress_tells_nothing_private(capsys, tmp_path, toy_models):
    secret = tmp_path / "secret.csv"
    rows = [f"Mr Smith number {i} of Elm Street,{'Cards' if i % 3 else 'Fraud'}" for i in range(37)]
    secret.write_text("text,topic\n" + "\n".join(rows))
    line = f"{LINE} --recipe vote {QUICK}".replace(str(BANK), str(secret))
    code, out, err = run(capsys, line, "--json")
    assert code == 0, err
    assert "winners with" in err
    for private in ("Smith", "Elm", r"(?<![\d.])37(?!\d)"):  # a released share may well be 0.375
        assert not re.search(private, err)
        assert not re.search(private, json.dumps(json.loads(out)["demonstrations"]))


@pytest.mark.slow
def test_users_and_measured_sizes_go_with_a_recipe(capsys, tmp_path, toy_models):
    path, demos = tmp_path / "rows.csv", tmp_path / "demos.json"
    rows = [f"text number {i},{'Cards' if i % 3 else 'Fraud'},user {i % 9}" for i in range(45)]
    path.write_text("text,topic,who\n" + "\n".join(rows))
    line = LINE.replace(str(BANK), str(path)).replace("--sizes Cards=900,Fraud=1500", "--count-epsilon 0.4")
    code, _, err = run(capsys, f"{line} --recipe vote {QUICK} --unit-column who --out {demos}")
    assert code == 0, err
    demo_set = loads(demos.read_text())
    assert demo_set.certificate.unit == "user:who"
    assert demo_set.certificate.claim.epsilon <= 2.0001
    assert verify(demo_set).problems == ()
    code, out, _ = run(capsys, "ledger show rows --json")
    assert json.loads(out)["data_sets"][0]["runs"] == 2


def test_of_several_the_best_are_exported_and_all_are_stated(capsys, toy_models):
    code, out, err = run(capsys, f"{LINE} --mechanism public --best-of 3 --json")
    assert code == 0, err
    document = json.loads(out)
    assert [each["label"] for each in document["demonstrations"]] == ["Cards", "Fraud"]
    parameters = document["privacy"]["parameters"]
    assert (parameters["shots_per_label"], parameters["kept_per_label"]) == (3, 1)
    assert "kept 2 of 6" in err
