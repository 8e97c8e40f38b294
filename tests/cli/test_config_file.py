"""Options from a file: the same as on the command line, which overrides them."""

from __future__ import annotations

import pytest

from mechanisms.cli.main import parser
from tests.cli.command import check_refusal

REQUIRED = "labels: [A, B]\nepsilon: 1\ndelta: 1e-5\n"


@pytest.fixture
def parsed(tmp_path):
    def parse(text: str, *line: str):
        path = tmp_path / "run.yaml"
        path.write_text(text)
        return vars(parser().parse_args(["synthesize", "data.csv", "--config", str(path), *line]))

    return parse


def test_a_file_says_what_flags_say(parsed):
    text = (
        "labels: [A, B]\nepsilon: 1.5\ndelta: 1e-5\nsizes: {A: 2000, B: 300}\nrecipe: both\ndrop-duplicates: true\n"
        "shares:\n  vote: 0.5\n  write: .25\nbase: false\njson: false\ntest-seed: -1\nname: 7\n"
    )
    flags = (
        "synthesize data.csv --labels A,B --epsilon 1.5 --delta 1e-5 --sizes A=2000,B=300 --recipe both "
        "--drop-duplicates --shares vote=0.5,write=0.25 --no-base --test-seed -1 --name 7"
    )
    from_file, from_line = parsed(text), vars(parser().parse_args(flags.split()))
    assert {name for name in from_line if from_file[name] != from_line[name]} == {"config"}


def test_the_command_line_overrides_the_file_wherever_it_stands(parsed, tmp_path):
    assert parsed(REQUIRED)["epsilon"] == 1
    assert parsed(REQUIRED, "--epsilon", "3")["epsilon"] == 3
    line = ["synthesize", "data.csv", "--epsilon", "3", f"--config={tmp_path / 'run.yaml'}"]
    assert parser().parse_args(line).epsilon == 3
    # A value that is the default overrides as well.
    assert parsed(f"{REQUIRED}tokens: 12\n", "--tokens", "30")["tokens"] == 30


def test_what_the_file_leaves_out_is_still_required(capsys, parsed):
    with pytest.raises(SystemExit):
        parsed("labels: A,B\nepsilon: 1\n")
    assert "--delta" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epsilonn: 1", "no option 'epsilonn'"),
        ("eps: 1", "no option 'eps'"),  # no abbreviations
        ("config: other.yaml", "no option 'config'"),
        ("help: true", "no option 'help'"),
        ("csv: other.csv", "no option 'csv'"),
        ("1: 2", "no option '1'"),
        ("labels: [Yes, No]", "put it in quotes"),
        ("name: 2020-01-01", "put it in quotes"),
        ("name:", "put it in quotes"),
        ("drop-duplicates: 1", "true or false"),
        ("epsilon: many", "--epsilon"),
        ("labels: &all [A, *all]", "write out"),
        ("labels: [&one [A, A], &two [*one, *one], [*two, *two]]", "write out"),
        pytest.param(f"epsilon: 0x{'f' * 5000}", "too long", id="a long number"),
        pytest.param(f"? 0x{'f' * 5000}\n: 1", "too long", id="a long name"),
        ("- epsilon", "has no options"),
        ("", "has no options"),
        ("a: [", "not YAML"),
        ("!!python/object/apply:os.getcwd []", "not YAML"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(capsys, tmp_path, text, message):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    check_refusal(capsys, f"synthesize data.csv --config {path}", 2, message)


def test_a_file_that_is_not_there(capsys):
    check_refusal(capsys, "synthesize data.csv --config nowhere.yaml", 2, "nowhere.yaml")
    check_refusal(capsys, "synthesize data.csv --config", 2, "--config")


def test_a_key_cannot_bring_escapes_to_a_terminal(capsys, tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text('"\\e[31mred": 1')
    check_refusal(capsys, f"synthesize data.csv --config {path}", 2, "no option '?[31mred'")
