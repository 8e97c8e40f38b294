"""`query` and `evaluate` with a reader elsewhere: what leaves, what is said, and what never happens."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mechanisms import api
from mechanisms.errors import UsageError
from mechanisms.inference.remote import KEY_VARIABLE
from mechanisms.records import Demonstration
from mechanisms.runs.score import of_demo_set
from tests.chat_server import Reply, query_of, serving
from tests.cli.command import check_refusal, run
from tests.exports.sets import single
from tests.runs.running import Speaking
from tests.ui.generate.recording import demo_set

KEY = "sk-not-to-be-seen"
SET = demo_set(Demonstration("one", "News"), Demonstration("two", "Sport"))
WITHOUT_PROMISE = replace(SET, certificate=replace(SET.certificate, private=False, reason="a test seed"))


def right_of(asked) -> Reply:
    """Knows the even rows' label, and says nothing about the others."""
    number = int(query_of(asked).split()[-1])
    return Reply(f"{'Sport' if number % 3 else 'News'}." if number % 2 == 0 else "No idea")


@pytest.fixture
def files(tmp_path, monkeypatch, any_text_passes):
    """Files of a set and of test rows, a key, and a home of one's own."""
    monkeypatch.setenv("DPICL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setattr(api, "listed_as", lambda label: "toy" if label == "toy" else None)
    monkeypatch.setattr(api, "load_model", lambda name: Speaking())
    lines = [f"text {i},{'Sport' if i % 3 else 'News'}" for i in range(20)]
    (tmp_path / "test.csv").write_text("\n".join(["text,label", *lines]))
    (tmp_path / "set.json").write_text(SET.dumps())
    return tmp_path


def asked_of(server) -> str:
    return f"--reader-url {server.url} --reader-model small"


def seen_nowhere(folder, *printed: str) -> bool:
    """Whether the key stands in nothing that was printed or written."""
    written = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return not any(KEY in text for text in printed) and not any(KEY.encode() in each for each in written)


def test_a_query_is_answered_elsewhere_and_says_so_before_it_is_sent(files, capsys):
    with serving(lambda asked: Reply("sport!")) as server:
        code, out, err = run(capsys, f"query {files}/set.json hello --json {asked_of(server)}")
        [asked] = server.asked
    assert code == 0
    host = server.url.removeprefix("http://").removesuffix("/v1")
    answered = {"label": "Sport", "written_with": "toy", "read_by": f"small at {host}", "same_model": False}
    assert json.loads(out) == answered
    assert f"leave this machine for {host}; private rows do not." in err.splitlines()[0]
    assert "neither contextual calibration nor a prior" in err
    assert [each in asked.prompt for each in ("Text: one\nLabel: News", "Text: hello")] == [True, True]
    assert seen_nowhere(files, out, err, asked.body)


def test_evaluate_has_the_raw_reading_of_every_arm(files, capsys):
    with serving(right_of) as server:
        code, out, err = run(capsys, f"evaluate {files}/set.json --test {files}/test.csv --json {asked_of(server)}")
        prompts = [asked.prompt for asked in server.asked]
    assert code == 0, err
    report = json.loads(out)
    assert report["rows"] == 20
    for arm in ("zero-shot", "public-only", "private demonstrations"):
        assert set(report[arm]) == {"raw", "without_answer", "balanced", "recall", "confusion"}
        assert report[arm]["raw"]["accuracy"] == 0.5
        assert report[arm]["without_answer"] == 10
    assert len(prompts) == 60
    assert sum("Text: one\nLabel: News" in prompt for prompt in prompts) == 20
    assert sum(prompt.count("Label:") == 1 for prompt in prompts) == 20
    assert err.index("leave this machine") < err.index("16 of 60")
    assert seen_nowhere(files, out, err, *prompts)


def test_public_text_is_left_out_with_its_reason_where_its_writer_is_not_here(files, capsys, monkeypatch):
    class Namesake(Speaking):
        sha256 = "1" * 64

    for missing in ({"listed_as": lambda label: None}, {"load_model": lambda name: Namesake()}):
        with monkeypatch.context() as patched:
            for name, value in missing.items():
                patched.setattr(api, name, value)
            with serving(right_of) as server:
                line = f"evaluate {files}/set.json --test {files}/test.csv --limit 6 --json {asked_of(server)}"
                report = json.loads(run(capsys, line)[1])
                assert len(server.asked) == 12
        assert "public-only" not in report
        assert "toy" in report["left_out"]["public-only"]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ("--reader-url https://h.example", 2, "needs both"),
        ("--reader-model small", 2, "needs both"),
        ("--reader-url https://h.example --reader-model small --model embedded", 2, "One model reads"),
        ("--reader-url http://h.example --reader-model small", 2, "must begin with https"),
        ("--reader-url http://127.0.0.1:9 --reader-model small", 4, "cannot be reached"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(files, capsys, options, code, said):
    check_refusal(capsys, f"query {files}/set.json hello {options}", code, said)


def test_a_refused_key_is_one_line_without_it(files, capsys):
    with serving(lambda asked: Reply(status=401, body=f"wrong key {KEY}".encode())) as server:
        code, out, err = run(capsys, f"evaluate {files}/set.json --test {files}/test.csv {asked_of(server)}")
    assert (code, out) == (4, "")
    assert err.splitlines()[-1].endswith(f"refuses the key (401): set {KEY_VARIABLE} to one that it takes.")
    assert seen_nowhere(files, err)


@pytest.mark.parametrize(
    "command",
    [
        "score set.json rows.csv --epsilon 1 --delta 1e-5",
        "synthesize rows.csv --labels A,B --epsilon 1 --delta 1e-5 --out o.json",
        "answer rows.csv question --queries 1 --epsilon 1 --delta 1e-5",
        "audit mechanism gaussian",
    ],
)
def test_whatever_reads_private_rows_refuses_a_reader_elsewhere_in_one_line(capsys, command):
    for option in ("--reader-url=https://h", "--reader-model s"):
        check_refusal(capsys, f"{command} {option}", 2, f"unrecognized arguments: {option}")


@pytest.mark.parametrize("where", ["--model nowhere", "--reader-url http://127.0.0.1:9 --reader-model any"])
def test_a_set_of_one_label_is_refused_before_a_model_is_looked_for(files, capsys, where):
    one = single("the vote was close")
    (files / "one.json").write_text(one.dumps())
    check_refusal(capsys, f"evaluate {files}/one.json --test {files}/test.csv {where}", 2, "at least two labels")
    check_refusal(capsys, f"query {files}/one.json text {where}", 2, "at least two labels")
    for door in (lambda: api.classify(one, ["a text"], Speaking()), lambda: of_demo_set(one)):
        with pytest.raises(UsageError, match="at least two labels"):
            door()
