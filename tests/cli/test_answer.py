"""`answer` on small files and a small model: JSON, costs in words, exit codes."""

from __future__ import annotations

import json

import pytest

from mechanisms.public_inputs import FILE_FORMAT, LABEL_SET, WHETHER_RESERVED, WHETHER_SHOWN
from tests.cli.command import BANK, check_refusal, run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_model")]

BASE = f"answer {BANK} --label-column topic --delta 1e-5"
VOTES = f"{BASE} --labels Cards,Fraud --allow-left-out"
ASKED_OPEN = BASE.replace("--label-column", "card? --label-column")
ASKED = VOTES.replace("--label-column", "card? --label-column")
DUMMY = (
    "--text-column question --label-column who --labels u0,u1 --retrieval labels-only --queries 2 --delta 1e-5 --json "
    "--allow-left-out"
)


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.csv"
    rows = [f"What colour is thing {i}?,Thing {i} stands in the garden.,u{i % 5},green" for i in range(20)]
    path.write_text("\n".join(["question,context,who,answer", *rows]))
    return path


def test_a_question_is_answered_and_the_reservation_goes_on(capsys, small):
    line = f"answer {small} colour? {DUMMY}"
    code, out, err = run(capsys, f"{line} --epsilon 4")
    answer = json.loads(out)
    assert code == 0, err
    assert answer["answer"] in ("u0", "u1")
    assert set(answer["votes"]) == {"u0", "u1"}
    assert 3.9 < answer["epsilon"] <= 4
    assert (answer["reservation"], answer["answers_given"], answer["answers_left"]) == ("new", 1, 1)
    assert "once for all questions" in err
    assert err.index("of 100 questions") < err.index("once for all questions")

    code, out, err = run(capsys, f"{line} --epsilon 4")
    answer = json.loads(out)
    assert (answer["reservation"], answer["answers_given"], answer["answers_left"]) == ("continued", 2, 0)
    assert "nothing new is charged" in err

    code, out, _ = run(capsys, "ledger show small --json")
    [spent] = json.loads(out)["data_sets"]
    assert (spent["runs"], spent["epsilon"]) == (1, pytest.approx(answer["epsilon"]))

    code, _, err = run(capsys, f"{line} --epsilon 3")
    assert code == 2
    assert "make a new reservation" in err
    code, _, _ = run(capsys, f"{line} --epsilon 3 --new-reservation")
    assert code == 0


def test_what_is_taken_as_public_stands_beside_every_claim(capsys, small, tmp_path):
    """As in a demo set's certificate: what follows from the rows themselves, and is no parameter."""
    stated = {LABEL_SET, FILE_FORMAT, WHETHER_SHOWN, WHETHER_RESERVED}
    line = f"answer {small} {DUMMY} --epsilon 4"
    _, out, _ = run(capsys, f"answer {small} colour? {DUMMY} --epsilon 4")
    assert set(json.loads(out)["public_inputs"]) == stated
    strangers = tmp_path / "strangers.csv"
    strangers.write_text("question,who\nWhat is near the garden?,u0\n")
    _, out, _ = run(capsys, f"{line} --test {strangers}")
    report = json.loads(out)
    assert set(report["public_inputs"]) == stated
    assert (report["private"], report["rows"], "curator_only" in report) == (True, 1, False)
    _, out, err = run(capsys, f"{line} --test {small} --limit 1")
    report = json.loads(out)
    assert set(report["session"]["public_inputs"]) == stated
    assert (report["private"], report["curator_only"], "epsilon" in report) == (False, True, False)
    assert report["session"]["epsilon"] <= 4
    assert "'small'" in err


def test_open_answers_for_users(capsys, small):
    line = f"answer {small} --text-column question --label-column answer --unit-column who --delta 1e-5 --json"
    rest = f"--mechanism keywords --queries 1 --epsilon 8 --shards 2 --neighbours 1 --answer-tokens 3 --test {small}"
    code, out, err = run(capsys, f"{line} {rest} --limit 1 --max-record-tokens 12")
    assert code == 0, err
    report = json.loads(out)
    assert report["session"]["unit"] == "user:who"
    assert LABEL_SET not in report["session"]["public_inputs"]
    assert report["private_answers"]["accuracy"] in (0, 1)
    assert report["abstained"] in (0, 1)


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (f"{VOTES} --queries 2 --epsilon 1", 2, "Give a question"),
        (f"{VOTES} --queries 2 --epsilon 1 --test {BANK} --limit 0", 2, "--limit"),
        (f"{ASKED} --queries 2 --epsilon 1 --threshold 3", 2, "cosine"),
        (f"{ASKED} --queries 2 --epsilon 1 --most-keywords 3", 2, "--most-keywords"),
        (f"{ASKED} --queries 2 --epsilon 1 --retrieval poisson", 2, "rate"),
        (f"{ASKED} --queries 2 --epsilon 1 --size 50", 2, "rate"),
        (f"{ASKED} --queries 2 --epsilon 1 --retrieval poisson --size 0", 2, "Size"),
        (f"{VOTES} --queries 2 --epsilon 1 --retrieval poisson --size 400 --test {BANK}", 2, "--queries"),
        (f"{ASKED} --queries 2 --epsilon 1 --test-seed -1", 2, "--test-seed"),
        (f"{ASKED} --queries 2 --epsilon 1 --text-column body", 2, "body"),
        (f"{ASKED_OPEN} --queries 2 --epsilon 1", 2, "label"),
        (f"{ASKED_OPEN} --mechanism keywords --labels A,B --queries 2 --epsilon 1", 2, "open answers"),
        (f"{ASKED} --queries 2 --epsilon 50 --retrieval labels-only", 3, "allows epsilon"),
    ],
)
def test_bad_usage_gets_one_line_and_its_exit_code(capsys, line, code, message):
    check_refusal(capsys, line, code, message)
