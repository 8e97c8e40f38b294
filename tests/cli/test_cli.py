"""The command line on a small file and a small model: JSON, exit codes, one-line errors."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from mechanisms.accounting import PrivacyLedger
from mechanisms.cli.main import COMMANDS
from mechanisms.demos.demo_set import loads
from mechanisms.inference.engine import DEVICE
from mechanisms.public_inputs import FILE_FORMAT
from tests.cli.command import BANK, check_refusal, run
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_model", "any_text_passes")]

SHORT = "--delta 1e-5 --sizes counted --shots 1 --subsets 6 --tokens 4 --candidates 10 --max-record-tokens 12"
SMALL = f"--recipe tokens --labels Cards,Fraud --allow-left-out {SHORT}"
COLUMNS = "--text-column text --label-column topic"


def test_from_csv_to_answers(capsys, tmp_path, toy_models):
    demos = tmp_path / "demos.json"
    code, _, err = run(capsys, f"synthesize {BANK} {COLUMNS} {SMALL} --epsilon 2 --out {demos}")
    assert code == 0, err
    demo_set = loads(demos.read_text())
    assert [d.label for d in demo_set.demonstrations] == ["Cards", "Fraud"]
    assert demo_set.certificate.private
    assert demo_set.certificate.unit == "record"
    assert FILE_FORMAT in demo_set.certificate.public_inputs
    check_account(capsys, demos)

    code, out, _ = run(capsys, f"query {demos} --json", "Somebody used my card without asking me.")
    answer = json.loads(out)
    assert code == 0
    assert answer["label"] in demo_set.labels
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    code, out, err = run(capsys, f"evaluate {demos} --test {BANK} {COLUMNS} --limit 6 --json --allow-left-out")
    assert (code, json.loads(out)["private"], json.loads(out)["curator_only"]) == (0, False, True)
    assert "'bank_support'" in err  # the rows that wrote the demonstrations

    code, out, _ = run(capsys, "ledger show bank_support --json")
    assert code == 0
    assert 0 < json.loads(out)["data_sets"][0]["epsilon"] <= 2


def check_account(capsys, demos):
    """The certificate fits as it was written, and not when it was edited."""
    true = demos.read_text()
    code, out, _ = run(capsys, f"account --json --from {demos}")
    found = json.loads(out)
    assert code == 0
    assert found["epsilon"] == pytest.approx(loads(true).certificate.claim.epsilon)
    assert (found["agrees"], found["problems"], found["signature"]) == (True, [], "valid")

    demos.write_text(true.replace('"tokens": 4', '"tokens": 5'))
    code, out, err = run(capsys, f"account --json --from {demos}")
    found = json.loads(out)
    assert code == 3
    assert "privacy/event/lists/Cards" in err
    assert (found["agrees"], len(found["problems"]), found["signature"]) == (False, 2, "changed")
    demos.write_text(true)


def test_output_that_nobody_reads_is_no_defect():
    command = [sys.executable, "-m", "mechanisms", "models", "--json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as told:
        assert told.stdout is not None
        assert told.stderr is not None
        told.stdout.close()
        assert told.stderr.read() == ""
    assert told.returncode == 0


def test_a_defect_is_told_by_its_place_alone(capsys, monkeypatch):
    def broken(options):
        raise ValueError("Mr Smith of Elm Street")

    monkeypatch.setattr("mechanisms.cli.ledger._show", broken)
    code, out, err = run(capsys, "ledger show")
    assert code == 1
    assert "ValueError at broken" in err
    assert "Smith" not in out + err


@pytest.mark.parametrize("rate", ["--rate 0.1", "--size 1000 --expected-sample 100"])
def test_a_rate_alone_pays_for_the_overflow_of_unit_rows_too(capsys, rate):
    line = f"account --noise-multiplier 3 --delta 1e-5 --tokens 10 --subsets 100 {rate} --json"
    code, out, err = run(capsys, line)
    assert code == 0, err
    [events] = json.loads(out)["event"]["lists"].values()
    assert [each["delta"] for each in events if each["type"] == "approximate"] == [pytest.approx(1e-8)]
    code, out, _ = run(capsys, f"{line} --per-subset 1")
    [events] = json.loads(out)["event"]["lists"].values()
    assert not [each for each in events if each["type"] == "approximate"]


def test_a_test_seed_marks_the_export(capsys):
    code, out, _ = run(capsys, f"synthesize {BANK} {COLUMNS} {SMALL} --epsilon 2 --test-seed 3 --json")
    privacy = json.loads(out)["privacy"]
    assert code == 0
    assert privacy["private"] is False
    assert "seed" in privacy["reason"]
    assert privacy["parameters"]["min_tokens"] == privacy["parameters"]["tokens"] == 4


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("calibrate --epsilon 1 --delta 1e-5", 2, "sampling rate"),
        ("calibrate --epsilon 1 --delta 1e-5 --rate 0.1 --size 100 --expected-sample 50", 2, "disagrees"),
        ("calibrate --epsilon 1 --delta 1e-5 --expected-sample 50", 2, "--size"),
        ("calibrate --epsilon 1 --delta 1e-5 --size 0 --expected-sample 5", 2, "--size"),
        ("calibrate --epsilon 1 --delta 1e-5 --size 10 --expected-sample 0", 2, "--expected-sample"),
        ("calibrate --epsilon 1 --delta 1e-5 --rate 3", 2, "--rate"),
        ("calibrate --epsilon 1 --delta 2 --rate 0.1", 2, "Delta"),
        (f"calibrate --epsilon 1 --delta 1e-5 --rate 0.1 --tokens {10**400}", 2, "tokens"),
        ("calibrate --epsilon 1 --delta 1e-5 --rate 0.1 --noise-multiplier 50", 2, "leave out"),
        ("calibrate --epsilon 1 --delta 1e-5 --rate 0.1 --transform pta --alpha 999", 2, "--alpha"),
        ("calibrate --epsilon 1 --delta 1e-5 --rate 0.1 --clip 3", 2, "--clip"),
        ("account --delta 1e-5 --rate 0.1", 2, "--noise-multiplier"),
        ("account --noise-multiplier 0.002 --delta 1e-5 --rate 1", 3, "noise"),
        (f"account --noise-multiplier 1 --delta 1e-5 --size {10**30}", 2, "size"),
        ("account --mechanism non-private --delta 1e-5 --rate 0.1", 2, "nothing to account"),
        ("account --from nowhere.json", 2, "nowhere.json"),
        ("ledger show nobody", 2, "nobody"),
        (f"synthesize {BANK} {COLUMNS} {SMALL} --epsilon 1 --out /nowhere/demos.json", 2, "choose another place"),
        (f"synthesize {BANK} {COLUMNS} {SMALL} --epsilon 1 --test-seed -1", 2, "--test-seed"),
        (f"synthesize nowhere.csv {COLUMNS} {SMALL} --epsilon 1", 2, "nowhere.csv"),
        (f"synthesize {BANK} {COLUMNS} --labels Cards,Cats --allow-left-out {SHORT} --epsilon 1", 2, "Cats"),
        (f"synthesize {BANK} {COLUMNS} --labels Cards,Fraud --allow-left-out --delta 1e-5 --epsilon 1", 2, "--sizes"),
        (
            f"synthesize {BANK} {COLUMNS} {SMALL.replace('counted', 'Cards')} --epsilon 1",
            2,
            "--sizes takes counted|A=N,B=N",
        ),
        (f"synthesize {BANK} {COLUMNS} {SMALL} --epsilon 1 --model no/such-folder/here", 4, "not available"),
    ],
)
def test_bad_usage_gets_one_line_and_its_exit_code(capsys, line, code, message):
    check_refusal(capsys, line, code, message)


def test_an_option_says_which_device_computes(capsys, monkeypatch):
    monkeypatch.setenv(DEVICE, "mps")  # the option goes before it, and what it sets goes with this test
    assert "(it was asked for)" in run(capsys, "models --device cpu")[1]
    code, _, err = run(capsys, "models --device cuda:99")
    assert (code, "'cuda:99' cannot be used" in err) == (2, True)


def test_a_cap_is_of_a_name_that_a_run_can_have(capsys):
    cap = "ledger cap --epsilon 0.5 --delta 1e-4 --json"
    for name, *unit in (("",), (" ",), ("clinic", "--unit-column", ""), ("clinic", "--unit-column", " ")):
        code, out, err = run(capsys, cap, name, *unit)
        assert (code, out) == (2, "")
        assert "empty" in err
    code, out, _ = run(capsys, cap, " clinic ")
    assert (code, json.loads(out)["name"]) == (0, "clinic")
    assert PrivacyLedger().snapshot("clinic", "record").cap.epsilon == 0.5
    assert set(PrivacyLedger().names()) <= {("clinic", "record")}


def test_every_command_has_help(capsys):
    for command in COMMANDS:
        code, out, _ = run(capsys, f"{command} --help")
        assert (code, out.startswith("usage")) == (0, True)


def test_the_list_of_commands_needs_none_of_them():
    program = (
        "import sys; from mechanisms.cli.main import parser; print(parser().format_help());"
        "assert not [each for each in ('torch', 'numpy', 'mechanisms.api') if each in sys.modules]"
    )
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "synthesize" in told


def test_an_audit_reports_what_it_can_prove(capsys):
    code, out, _ = run(capsys, "audit mechanism noisy-max --epsilon 1 --draws 4000 --json")
    report = json.loads(out)
    assert code == 0
    # Noisy max costs all of its epsilon on this pair, so that two bounds in ten thousand are above the claim. Their
    # mean is 0.867 and their deviation 0.038: in so wide an interval are all but one in a billion.
    assert 0.3 < report["epsilon_lower_bound"] < 1.2
    assert report["holds"] == (report["epsilon_lower_bound"] <= report["epsilon_claimed"])
    assert report["epsilon_claimed"] == pytest.approx(1)


def test_nothing_is_charged_where_the_run_could_not_follow(capsys):
    line = f"synthesize {BANK} {COLUMNS} --labels Cards,Fraud --delta 1e-5 --subsets 6 --tokens 4 --epsilon 1"
    for rest in ("--count-epsilon 2", "--count-epsilon 0.1 --model no/such-folder/here", "--sizes counted --out /no/x"):
        assert run(capsys, f"{line} --allow-left-out {rest}")[0] in (2, 4)
    code, out, _ = run(capsys, "ledger export --json")
    assert code == 0
    assert json.loads(out)["runs"] == {}
