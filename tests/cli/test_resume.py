"""Runs that are resumed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mechanisms import api
from mechanisms.accounting import LedgerRun, PrivacyLedger
from mechanisms.accounting.known_rows import KnownRows
from mechanisms.data.disclosures import UNKNOWN
from mechanisms.demos.demo_set import loads
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.runs.events import DemoCompleted
from mechanisms.runs.run_file import from_lines
from tests.cli.command import BANK, check_refusal, run

# `synthesize --journal` and `--resume`, on toy models.


LINE = (
    f"synthesize {BANK} --text-column text --label-column topic --labels Cards,Fraud --delta 1e-5 --subsets 4 "
    "--allow-left-out --tokens 3 --shots 2 --candidates 10 --name bank --draft-tokens 12 --drafts 4"
)
LEFT_OUT = {"allow_left_out": True, "tell": [].append}
RUNS = {
    "tokens": "--recipe tokens --count-epsilon 0.5 --epsilon 2",
    "stages": "--recipe both --sizes Cards=900,Fraud=1500 --epsilon 2",
}


FIRST = "Cards, demonstration 1: "
LAST = "Fraud, demonstration 2: "


def cut_off(capsys, monkeypatch, line: str, when: str) -> None:
    """A run that breaks off when it has told so much."""

    def breaking(message: str) -> None:
        if when in message:
            raise ModelUnavailable("The model is gone.")

    with monkeypatch.context() as patched:
        patched.setattr("mechanisms.cli.synthesize.progress", breaking)
        assert run(capsys, line)[0] == 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNS)
def test_a_run_that_broke_off_goes_on_and_its_certificate_holds(kind, capsys, monkeypatch, tmp_path, toy_models):
    line, journal, out = f"{LINE} {RUNS[kind]}", tmp_path / "run.jsonl", tmp_path / "demos.json"
    cut_off(capsys, monkeypatch, f"{line} --journal {journal}", "winners" if "stages" in kind else FIRST)
    runs = len(PrivacyLedger().account("bank", "record").runs)
    told = journal.read_text().splitlines()[1:]
    assert told
    code, _, err = run(capsys, f"{line} --resume {journal} --out {out}")
    assert code == 0, err
    assert len(PrivacyLedger().account("bank", "record").runs) == runs  # the sizes are not measured again either
    assert journal.read_text().splitlines()[1 : 1 + len(told)] == [line.partition(" ")[2] for line in told]
    made = loads(out.read_text())
    assert from_lines(journal.read_text())[-1].demo_set.demonstrations == made.demonstrations
    assert run(capsys, f"account --from {out}")[0] == 0


@pytest.mark.slow
def test_an_edited_run_file_is_refused_by_the_command_line_and_by_python(capsys, monkeypatch, tmp_path, toy_models):
    line, journal = f"{LINE} {RUNS['tokens']}", tmp_path / "run.jsonl"
    cut_off(capsys, monkeypatch, f"{line} --journal {journal}", FIRST)
    whole = journal.read_text()
    assert '"epsilon":0.5' in whole.replace(" ", "")
    for edited in (whole.replace('"epsilon": 0.5', '"epsilon": 0.001'), whole.replace('"chosen":', '"chosen": ')):
        journal.write_text(edited)
        check_refusal(capsys, f"{line} --resume {journal}", 2, "run's file")
        private = api.load(BANK, ["Cards", "Fraud"], text="text", label="topic", name="bank", **LEFT_OUT)
        with pytest.raises(UsageError, match="run's file"):
            api.resume(journal, private, tmp_path / "demos.json")
    journal.write_text(whole)
    assert run(capsys, f"{line} --resume {journal} --out {tmp_path / 'demos.json'}")[0] == 0


@pytest.mark.slow
def test_what_does_not_fit_is_refused_in_one_line(capsys, monkeypatch, tmp_path, toy_models):
    line, journal = f"{LINE} --recipe tokens --sizes Cards=900,Fraud=1500 --epsilon 2", tmp_path / "run.jsonl"
    check_refusal(capsys, f"{line} --resume {journal}", 2, "Cannot read")
    check_refusal(capsys, f"{line} --journal {journal} --test-seed 1", 2, "not private")
    check_refusal(capsys, f"{line} --mechanism public --journal {journal}", 2, "Only private runs")
    cut_off(capsys, monkeypatch, f"{line} --journal {journal}", FIRST)
    check_refusal(capsys, f"{line} --journal {journal}", 2, "there already")
    check_refusal(capsys, f"{line} --journal {journal} --resume {journal}", 2, "not allowed with")
    for changed in ("--tokens 4", "--epsilon 1", "--candidates 9", "--recipe vote", "--label-words Cards=cards"):
        check_refusal(capsys, f"{line} {changed} --resume {journal}", 2, "give the same options")
    check_refusal(capsys, f"{line} --name other --resume {journal}", 2, "other data")


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNS)
def test_a_set_is_given_where_the_ledger_is_full_when_its_run_ends(kind, capsys, monkeypatch, tmp_path, toy_models):
    def full(*_):
        raise UsageError("The ledger cannot be written.")

    with monkeypatch.context() as patched:

        def fill(message: str) -> None:
            if message.startswith(LAST if kind == "tokens" else "zero-shot: accuracy"):
                patched.setattr(KnownRows, "disclosures", full)
                patched.setattr(LedgerRun, "snapshot", full)
                patched.setattr(PrivacyLedger, "forget", full)

        patched.setattr("mechanisms.cli.synthesize.progress", fill)
        line = f"{LINE} {RUNS[kind]} --json --journal {tmp_path / 'run.jsonl'}"
        code, out, err = run(capsys, line)
    assert (code, err.splitlines()[-1]) == (2, "synthesize: The ledger cannot be written.")
    made = loads(out)
    assert made.demonstrations
    assert made.certificate.disclosures == (UNKNOWN,)
    saved = tmp_path / "saved.json"
    saved.write_text(out)
    assert run(capsys, f"account --from {saved}")[0] == 0


@pytest.mark.parametrize("option", ["--out", "--journal", "--resume"])
def test_the_private_file_is_not_written_over(option, capsys, tmp_path):
    private = tmp_path / "bank.csv"
    private.write_bytes(Path(BANK).read_bytes())
    line = LINE.replace(str(BANK), str(private)) + " --sizes Cards=900,Fraud=1500 --epsilon 2"
    check_refusal(capsys, f"{line} {option} {private}", 2, "is an input file")
    assert private.read_bytes() == Path(BANK).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNS)
def test_a_set_whose_place_is_gone_is_on_standard_output_and_its_run_gives_it_again(
    kind, capsys, monkeypatch, tmp_path, toy_models
):
    line, journal, folder = f"{LINE} {RUNS[kind]}", tmp_path / "run.jsonl", tmp_path / "folder"
    folder.mkdir()

    def removing(message: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    with monkeypatch.context() as patched:
        patched.setattr("mechanisms.cli.synthesize.progress", removing)
        code, out, err = run(capsys, f"{line} --out {folder}/demos.json --journal {journal}")
    assert code == 2
    assert "Cannot write" in err.splitlines()[-1]
    saved = tmp_path / "saved.json"
    saved.write_text(out)
    assert run(capsys, f"account --from {saved}")[0] == 0
    again = tmp_path / "again.json"
    assert run(capsys, f"{line} --resume {journal} --out {again}")[0] == 0
    # What is refused has public drafts in its place, which are written anew.
    written = {event.demonstration for event in from_lines(journal.read_text()) if isinstance(event, DemoCompleted)}
    first, second = (set(loads(text).demonstrations) for text in (out, again.read_text()))
    assert first == second if kind == "stages" else first & written == second & written != set()


def test_a_run_and_its_set_have_places_of_their_own(capsys, tmp_path):
    line = f"{LINE} --sizes Cards=900,Fraud=1500 --epsilon 2"
    (tmp_path / "link").symlink_to(tmp_path)
    for journal, out in (("run.jsonl", "run.jsonl"), ("link/run", "run")):
        for option in ("--journal", "--resume"):
            given = f"{line} {option} {tmp_path}/{journal} --out {tmp_path}/{out}"
            check_refusal(capsys, given, 2, "give each a place of its own")
    assert PrivacyLedger().names() == []
