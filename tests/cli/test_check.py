"""`synthesize --check`: every reason against a run in one list, and nothing charged, written or released."""

from __future__ import annotations

import json
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from mechanisms.accounting import PrivacyLedger
from mechanisms.accounting.filter import Cap
from mechanisms.data.sizes import measure_sizes
from mechanisms.inference.engine import memory
from mechanisms.records import RECORD
from tests.cli.command import run
from tests.toy_embedder import ToyEmbedder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_model", "toy_embedder", "any_text_passes")]

QUICK = "--delta 1e-5 --recipe vote --shares vote=1 --drafts 4 --draft-tokens 12 --shots 1"
WORDS = "--delta 1e-5 --recipe vote --shares words=.5,vote=.5 --drafts 4 --draft-tokens 12 --shots 1"
WRITTEN = "--delta 1e-4 --recipe tokens --shots 1 --subsets 4 --tokens 4 --candidates 10 --max-record-tokens 40"
TWO = "--epsilon 2 --labels News,Sport --sizes counted"
USUAL, WRITES = f"{QUICK} {TWO}", f"{WRITTEN} {TWO}"
SPANISH = "El ayuntamiento aprobó ayer el presupuesto extraordinario para rehabilitar viviendas deshabitadas"


def file_of(path: Path, texts: list[str], labels: tuple[str, ...] = ("News", "Sport")) -> Path:
    rows = "".join(f'"{text} {i}",{labels[i % len(labels)]}\n' for i, text in enumerate(texts))
    path.write_text(f"text,label\n{rows}", encoding="utf-8")
    return path


@pytest.fixture
def toy_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechanisms.cli.synthesize.load_embedder", ToyEmbedder)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return file_of(tmp_path / "notes.csv", ["a short letter about a thing"] * 80)


def checked(capsys, file: Path | str, options: str, *extra: str) -> tuple[int, list[dict[str, str]]]:
    """The exit code and the findings; nothing of a run may be left behind."""
    code, out, err = run(capsys, f"synthesize {file} {options} --check --json", *extra)
    assert "Traceback" not in err
    assert PrivacyLedger().names() == []
    found = json.loads(out)
    assert all(set(each) == {"check", "level", "message"} for each in found)
    assert code == (2 if any(each["level"] == "error" for each in found) else 0)
    assert len({each["message"] for each in found}) == len(found)
    return code, found


def lines(found: list[dict[str, str]], *levels: str) -> str:
    return "\n".join(each["message"] for each in found if each["level"] in (levels or ("error", "warning")))


def test_a_good_plan_has_notes_alone_and_charges_nothing(capsys, rows, tmp_path):
    many = file_of(tmp_path / "many.csv", ["a short letter about a thing"] * 4000)
    code, found = checked(capsys, many, USUAL, "--out", str(tmp_path / "demos.json"))
    assert code == 0
    assert {each["level"] for each in found} == {"note"}
    assert {"budget", "time"} <= {each["check"] for each in found}
    assert not (tmp_path / "demos.json").exists()


BAD = {
    "nobody says how large labels are": (f"{QUICK} --epsilon 2 --labels News,Sport", "--sizes counted"),
    "no row has a label": (f"{QUICK} --epsilon 2 --labels News,Sport,Ghost --sizes News=40,Sport=40,Ghost=40", "Ghost"),
    "a counted label has no row": (f"{QUICK} --epsilon 2 --labels News,Sport,Ghost --sizes counted", "Ghost"),
    "more rows than declared": (f"{QUICK} --epsilon 2 --labels News,Sport --sizes News=9,Sport=40", "'News' than decl"),
    "far fewer rows than declared": (
        f"{QUICK} --epsilon 2 --labels News,Sport --sizes News=4000,Sport=40",
        "half of the 4,000",
    ),
    "a label is misspelt": (f"{QUICK} --epsilon 2 --labels News,sports --sizes counted", "--allow-left-out"),
    "no such column": (f"{USUAL} --label-column topic", "no column 'topic'"),
    "a weak signal": (f"{WRITES} --epsilon 0.1", "decide few tokens"),
    "delta is too large": (f"{USUAL} --delta 0.5", "1 / n"),
    "epsilon is out of range": (f"{USUAL} --epsilon -1", "greater than 0"),
    "noise that is calibrated": (f"{WRITES} --noise-multiplier 3", "leave out --noise-multiplier"),
    "no such model": (f"{USUAL} --model /no/model.gguf", "'/no/model.gguf' is not available"),
    "a prompt that is too long": (f"{WRITES} --tokens 20000", "model's context"),
    "a set that cannot be written": (f"{USUAL} --out /no/folder/demos.json", "choose another place"),
    "a seed that is none": (f"{USUAL} --test-seed -1", "negative"),
    "words that clear no noise": (f"{WORDS} {TWO} --epsilon 0.5", "few words will clear the noise"),
    "votes that are chance": (f"{USUAL} --epsilon 0.1", "may be chance"),
}


@pytest.mark.parametrize("name", BAD)
def test_each_bad_plan_is_listed(capsys, rows, name):
    options, told = BAD[name]
    _, found = checked(capsys, rows, options)
    assert told in lines(found)


def test_rows_that_are_left_out_are_told_once_and_so_is_all_else_of_the_file(capsys, tmp_path):
    path = file_of(tmp_path / "mixed.csv", ["a short letter about a thing"] * 40, ("News", "Sport", "news"))
    _, found = checked(capsys, path, USUAL)
    [refused] = [each for each in found if "of 40 rows are left out" in each["message"]]
    assert (refused["level"], "--allow-left-out" in refused["message"]) == ("error", True)
    path.write_text(f'{path.read_text(encoding="utf-8")}"a short letter about a thing 0",Sport\n', encoding="utf-8")
    _, found = checked(capsys, path, USUAL)
    assert "1 text has more than one label" in lines(found, "warning")


def test_several_at_once_are_all_listed(capsys, rows, tmp_path, monkeypatch):
    """In the settings, the file, the model, the places, and what follows from them."""
    options = f"{QUICK} --epsilon -1 --subsets 0 --labels News,Sport --model nowhere"
    options += " --text-column message --label-column topic"
    code, found = checked(capsys, rows, f"{options} --out {tmp_path}/no/set.json --journal {tmp_path}/no/run")
    told = lines(found, "error")
    assert code == 2
    assert "Epsilon (epsilon)" in told
    assert "Rows per token (M) (subsets)" in told
    assert "no column 'message'" in told
    assert "no column 'topic'" in told
    assert "'nowhere'" in told
    assert "no/set.json" in told
    assert "no/run" in told
    assert "the settings" in lines(found, "note")

    options = f"{WRITES} --delta 0.5 --noise-multiplier 3 --max-record-tokens 2 --tokens 20000"
    monkeypatch.setattr(shutil, "disk_usage", lambda place: namedtuple("Usage", "free")(10**6))
    _, found = checked(capsys, rows, options)
    assert {"noise", "memory", "disk", "budget"} == {each["check"] for each in found if each["level"] == "error"}
    assert {"delta", "tokens"} <= {each["check"] for each in found if each["level"] == "warning"}


def test_the_cap_and_the_unit_of_the_ledger_are_asked(capsys, rows):
    ledger = PrivacyLedger()
    ledger.set_cap("notes", RECORD, Cap(1.0, 1e-3))
    before = ledger.history("notes")
    code, out, err = run(capsys, f"synthesize {rows} {USUAL} --check")
    assert code == 2
    assert "error: budget: The ledger of 'notes' allows epsilon 1" in out
    assert "1 error" in err
    code, out, _ = run(capsys, f"synthesize {rows} {USUAL} --check --epsilon 0.9")
    assert code == 0, out
    # Sizes that a run would still measure are part of its cost.
    measured = f"{QUICK} --labels News,Sport --epsilon 1.2 --count-epsilon 0.3"
    assert run(capsys, f"synthesize {rows} {measured} --check")[0] == 2
    assert ledger.history("notes") == before == []


def test_a_check_agrees_with_the_run_that_follows_it(capsys, rows, tmp_path):
    """A plan that is refused in the run has the same line in the list, and one that is not has none."""
    for options in (f"{WRITES} --tokens 20000", f"{USUAL} --epsilon 11", USUAL):
        code, found = checked(capsys, rows, options)
        ran, _, err = run(capsys, f"synthesize {rows} {options} --out {tmp_path}/demos.json")
        assert (code == 0) is (ran == 0)
        if ran:
            assert err.strip().splitlines()[-1].removeprefix("synthesize: ") in lines(found, "error")


def test_rows_of_another_language_are_told(capsys, tmp_path):
    spanish = file_of(tmp_path / "notas.csv", [SPANISH] * 80)
    _, found = checked(capsys, spanish, USUAL)
    assert "in many pieces" in lines(found)
    assert "asks in English" in lines(found)
    _, found = checked(capsys, spanish, USUAL, "--sentence", "Escribe un texto sobre {label}.")
    assert "asks in English" not in lines(found)


def test_long_texts_are_told_as_a_share_and_never_quoted(capsys, tmp_path):
    secret = "Zanzibar quagga lost a card in the old harbour"
    long = file_of(tmp_path / "long.csv", [f"{secret} " * 8] * 80)
    _, found = checked(capsys, long, WRITES)
    assert "100% of the texts are longer than 40 tokens" in lines(found, "warning")
    assert not any(word in json.dumps(found) for word in secret.split() if len(word) > 4)


def test_too_little_memory_is_an_error_before_the_run(capsys, rows, monkeypatch):
    monkeypatch.setattr(memory, "total_memory", lambda: 10**6)
    _, found = checked(capsys, rows, WRITES)
    assert "GiB, and" in lines(found, "error")


def test_known_rows_are_told_and_a_run_that_goes_on_is_not_checked(capsys, rows, tmp_path):
    code, out, _ = run(capsys, f"synthesize {rows} {USUAL} --check --resume {tmp_path}/run")
    assert code == 2
    assert "leave out --check, or --resume" in out
    from mechanisms import api

    measure_sizes(api.load(rows, ["News", "Sport"], name="other"), 0.5, 1e-4, PrivacyLedger())
    before = PrivacyLedger().history("other")
    code, out, _ = run(capsys, f"synthesize {rows} {USUAL} --check")
    assert code == 0
    assert "warning: ledger: Rows of this file were used before under 'other'" in out
    assert PrivacyLedger().history("other") == before


def test_a_public_run_needs_no_file_and_spends_nothing(capsys):
    code, out, _ = run(capsys, "synthesize --mechanism public --labels News,Sport --shots 1 --tokens 4 --check --json")
    assert code == 0
    assert "budget" not in {each["check"] for each in json.loads(out)}
