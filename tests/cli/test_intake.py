"""Files of the kinds that people bring, on the command line: a sentence, a way on, and no private cell in a set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mechanisms.accounting import PrivacyLedger
from mechanisms.data.label_names import read_labels, read_pairs
from mechanisms.demos.demo_set import loads, to_text
from mechanisms.demos.signature import signed
from mechanisms.errors import UsageError
from mechanisms.records import Demonstration
from tests.cli.command import check_refusal, run
from tests.ui.generate.recording import demo_set

SECRET = "Zanzibar quagga lost a card in the old harbour"
WRITING = "--sizes counted --epsilon 2 --delta 1e-5 --recipe vote --drafts 4 --draft-tokens 12 --shots 1"
LABELS = "--labels News,Sport"
SET = to_text(signed(demo_set(Demonstration("the vote was close", "News"), Demonstration("a late goal", "Sport"))))


@pytest.fixture
def headerless(tmp_path: Path) -> Path:
    path = tmp_path / "headerless.csv"
    rows = [(SECRET if i == 0 else f"a letter about a thing {i}", ("News", "Sport")[i % 2]) for i in range(120)]
    path.write_text("".join(f"{text},{label}\n" for text, label in rows))
    return path


@pytest.mark.usefixtures("toy_models")
@pytest.mark.parametrize("header", ["--header", "--no-header"])
def test_a_private_row_is_never_a_name_in_a_released_set(capsys, headerless, tmp_path, header):
    """Wherever the text stands, as a row or, against all advice, as the name of a column."""
    text, label = ("1", "2") if header == "--no-header" else (SECRET, "News")
    asked = ["--text-column", text, "--label-column", label, "--out", str(tmp_path / "demos.json")]
    code, out, err = run(capsys, f"synthesize {headerless} {LABELS} {WRITING}", *asked)
    assert (code, out) == (2, "")
    assert "--no-header" in err
    assert PrivacyLedger().names() == []

    code, _, err = run(capsys, f"synthesize {headerless} {LABELS} {WRITING} {header} --json", *asked)
    assert code == 0, err
    written = (tmp_path / "demos.json").read_text()
    made = loads(written)
    assert (made.template.text, made.template.label) == ("Text", "Label")
    assert made.certificate.private
    assert not any(word.lower() in written.lower() for word in SECRET.split() if len(word) > 4)


# What is said of rows that are left out, and where.


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.csv"
    rows = "".join(f"a letter about a thing {i},{('News', 'Sport')[i % 2]}\n" for i in range(60))
    path.write_text(f"text,label\n{rows}one more,NEWS\nnan,News\n,Sport\nlast,other\n")
    return path


@pytest.mark.usefixtures("toy_models")
def test_rows_that_are_left_out_are_told_and_stand_in_no_document(capsys, mixed, tmp_path):
    line = f"synthesize {mixed} {LABELS} {WRITING} --out {tmp_path}/demos.json --json"
    code, out, err = run(capsys, line)
    assert (code, out) == (2, "")
    assert "4 of 64 rows are left out: 1 with an empty text" in err
    assert "--merge-labels" in err
    assert "--allow-left-out" in err
    assert PrivacyLedger().names() == []

    code, out, err = run(capsys, f"{line} --merge-labels")
    assert code == 0, err
    assert "3 of 64 rows are left out" in err
    assert "left out" not in out
    assert "left out" not in (tmp_path / "demos.json").read_text()
    code, out, _ = run(capsys, "ledger show mixed --json")
    assert (code, "left" in out) == (0, False)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("text,label\nhéhé,News\n".encode("gb18030") * 3, "", "--encoding"),
        (b"text,label\nx,News\n", "--encoding nothing", "no encoding 'nothing'"),
        (b"Letters of 2026\n\ntext,label\nx,News\ny,Sport\n", "", "--skip-lines 2"),
        (b"text,label\nx\0,News\n" + b"y,Sport\n" * 9, "", "Line 2 has a NUL byte"),
        (b"text,label\nx,News\n", "--sheet One", "no sheet to set"),
        (b"text,label\nx,News\n", "--rows data", "leave out --rows"),
        (b"text,label\nx,News\n", "--fill-merged", "leave out --fill-merged"),
        (b'text,label\n"say \\"hi\\", you",News\n', "", "--escape backslash"),
        (b"text,label\nx,1.0\n", "--labels 1,2", "--merge-labels"),
        (b"message,queue\nx,News\n", "", "no column 'text'"),
        (b"text,label\nx,News\n", "--skip-lines -1", "must not be negative"),
        (b"text,label\nx,News\n", "--separator ab", "one character"),
        (b"text,label\nx,News\n", "--labels News,news --merge-labels", "look alike"),
    ],
)
def test_what_is_unclear_gets_one_line_that_says_what_to_do(capsys, tmp_path, content, options, message):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    check_refusal(capsys, f"synthesize {path} {LABELS} {WRITING} {options}", 2, message)


# Labels of any kind can be said.

ODD = ('Billing, "urgent"', "\U0001f642 \u05e9\u05dc\u05d5\u05dd", "it's", "[x", "a=b")


def quoted(*labels: str) -> str:
    return ",".join('"{}"'.format(label.replace('"', '""')) for label in labels)


def test_labels_with_commas_and_quotes_are_said_in_quotes_or_as_json():
    assert read_labels(quoted(*ODD)) == read_labels(json.dumps(ODD)) == ODD
    assert read_labels(", ".join(ODD[1:])) == ODD[1:]
    assert read_labels('["not closed, x') == ('["not closed', "x")
    assert read_labels("[1, 2]") == ("[1", "2]")
    sizes = {label: i for i, label in enumerate(ODD)}
    assert {label: int(size) for label, size in read_pairs(json.dumps(sizes))} == sizes
    said = quoted(*(f"{label}={size}" for label, size in sizes.items()))
    assert {label: int(size) for label, size in read_pairs(said)} == sizes
    with pytest.raises(UsageError, match="JSON list"):
        read_labels('"open, x')


# A text that says nothing is asked about nothing.


@pytest.mark.parametrize("text", ["", "  \n", "\u00a0"])
def test_an_empty_text_is_refused(capsys, tmp_path, text):
    demos = tmp_path / "demos.json"
    demos.write_text(SET)
    for line, rest in ((f"query {demos}", "--json"), (f"answer {demos}", "--queries 1 --epsilon 1 --delta 1e-5")):
        code, out, err = run(capsys, line, text, *rest.split())
        assert (code, out) == (2, "")
        assert "The text is empty" in err
