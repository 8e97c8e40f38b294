"""`query`, `evaluate`, `export` and `score`, here and with a reader elsewhere."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from mechanisms import api
from mechanisms.demos.demo_set import Baselines, DemoSet
from mechanisms.demos.directions import Directions
from mechanisms.errors import UsageError
from mechanisms.inference.remote import KEY_VARIABLE
from mechanisms.records import Demonstration
from mechanisms.runs.score import of_demo_set
from tests.chat_server import Reply, query_of, serving
from tests.cli.command import check_refusal, run
from tests.exports.sets import empty, labelled, single
from tests.runs.running import Reading, Speaking
from tests.toy_embedder import ToyEmbedder
from tests.ui.generate.recording import demo_set

# `query` and `evaluate` on a set with a measured correction, and on one without demonstrations.


PRIOR = {"News": -100.0, "Sport": 100.0}
"""Says "Sport" to everything."""
OPPOSITE = {"News": 100.0, "Sport": -100.0}
PLAIN = demo_set(Demonstration("one", "News"), Demonstration("two", "Sport"))
MEASURED = replace(PLAIN, prior=PRIOR, baselines=Baselines(OPPOSITE, None))
NONE = replace(MEASURED, demonstrations=())


class OtherModel(Speaking):
    name, sha256 = "other", "1" * 64


@pytest.fixture
def using(capsys, monkeypatch, tmp_path, any_text_passes):
    """Runs a command with a set and the toy model; gives its document."""
    (tmp_path / "test.csv").write_text("text,label\n" + "".join(f"text {i},Sport\n" for i in range(6)))
    (tmp_path / "set.json").write_text("{}")
    monkeypatch.setattr(api, "load_model", lambda name, *_: OtherModel() if name == "other" else Speaking())

    def used(demos, command, *rest, said=""):
        monkeypatch.setattr(api, "read", lambda path: demos)
        code, out, err = run(capsys, f"{command} {tmp_path / 'set.json'} --json", *rest)
        assert code == 0, err
        assert said in err
        assert bool(said) == ("Written with" in err)
        return json.loads(out)

    return used


def evaluated(using, tmp_path, demos):
    return using(demos, "evaluate", "--test", str(tmp_path / "test.csv"))


def test_an_answer_is_the_sets_own_and_the_other_readings_stand_beside_it(using):
    with_prior, plain = using(MEASURED, "query", "hello"), using(PLAIN, "query", "hello")
    assert with_prior["label"] == "Sport"
    assert with_prior["probabilities"]["Sport"] == pytest.approx(1)
    for way in ("calibrated", "raw"):
        assert with_prior[f"label_{way}"] == plain[f"label_{way}"]
        assert with_prior[f"probabilities_{way}"] == plain[f"probabilities_{way}"]
        assert sum(plain[f"probabilities_{way}"].values()) == pytest.approx(1)
    assert plain["label"] == plain["label_calibrated"]
    assert plain["probabilities"] == plain["probabilities_calibrated"]


def directed() -> DemoSet:
    """A set whose texts of News lie along the first text's place, and of Sport along the second's."""
    embedder = ToyEmbedder()
    places = embedder.embed(["one", "two"]).astype(float)
    return replace(MEASURED, directions=Directions.of(embedder, MEASURED.labels, places - places.mean(axis=0)))


def test_a_set_is_read_by_its_directions_by_its_model_or_by_both(using, monkeypatch):
    monkeypatch.setattr(api, "load_embedder", ToyEmbedder)
    by = {way: using(directed(), "query", "one", "--by", way) for way in ("directions", "model", "both")}
    assert by["directions"]["label"] == "News"
    assert by["model"]["label"] == "Sport" == using(directed(), "query", "one")["label"]
    assert by["both"]["label"] == "Sport", "the measured correction says so with a weight of 100"


def test_directions_arms_stand_beside_the_others_whatever_is_asked(using, monkeypatch, tmp_path):
    monkeypatch.setattr(api, "load_embedder", ToyEmbedder)
    report = evaluated(using, tmp_path, directed())
    assert {"directions", "both"} <= set(report)
    assert not {"directions", "both"} & set(evaluated(using, tmp_path, MEASURED))


def test_a_set_without_directions_is_not_read_by_them(using, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(api, "read", lambda path: MEASURED)
    check_refusal(capsys, f"query {tmp_path / 'set.json'} hello --by directions", 2, "no directions")


def test_every_arm_has_the_prior_that_was_measured_for_it(using, tmp_path):
    report = evaluated(using, tmp_path, MEASURED)
    assert report["private demonstrations"]["prior"]["accuracy"] == 1
    assert report["zero-shot"]["prior"]["accuracy"] == 0
    assert "prior" not in report["public-only"]
    for arm in ("zero-shot", "public-only", "private demonstrations"):
        for way in ("raw", "calibrated"):
            low, high = report[arm][way]["interval"]
            assert 0 <= low <= report[arm][way]["accuracy"] <= high <= 1


def test_another_reader_does_not_take_over_what_was_measured_with_the_writer(using, tmp_path):
    said = "Written with toy, read here by other: the prior was measured with the model that wrote the set"
    other = using(MEASURED, "query", "hello", "--model", "other", said=said)
    plain = using(PLAIN, "query", "hello")  # the two models are alike but for their weights' digest
    assert {name: other[name] for name in ("label", "probabilities")} == {
        "label": plain["label_calibrated"],
        "probabilities": plain["probabilities_calibrated"],
    }
    assert (other["written_with"], other["read_by"], other["same_model"]) == ("toy", "other", False)
    assert using(MEASURED, "query", "hello")["same_model"]
    for demos in (MEASURED, NONE):
        report = using(demos, "evaluate", "--model", "other", "--test", str(tmp_path / "test.csv"), said="read here by")
        assert not any("prior" in each for each in report.values() if isinstance(each, dict))
        assert not report["same_model"]


def test_a_test_file_is_read_under_the_names_of_its_labels(using, tmp_path):
    whole = evaluated(using, tmp_path, MEASURED)
    path = tmp_path / "test.csv"
    path.write_text(path.read_text().replace(",Sport", ",sport_news"))
    named = using(MEASURED, "evaluate", "--test", str(path), "--label-names", "sport_news=Sport")
    assert named["zero-shot"] == whole["zero-shot"]
    assert named["rows"] == whole["rows"] == 6


# `export`, and the digest by which `account` knows the file of a certificate page again.


@pytest.fixture
def demos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPICL_HOME", str(tmp_path / "home"))
    path = tmp_path / "demos.json"
    path.write_text(labelled("A goal in the last minute.", "A vote.").dumps(), encoding="utf-8")
    return path


def test_paper_and_file_are_compared(demos: Path, tmp_path: Path, capsys):
    page = tmp_path / "page.html"
    code, out, _ = run(capsys, f"export {demos} --format certificate --out {page} --json")
    assert code == 0
    found = json.loads(out)["digest"]
    assert found in page.read_text(encoding="utf-8")
    code, out, _ = run(capsys, f"account --from {demos} --json", "--digest", found)
    assert code == 0
    assert json.loads(out)["digest"] == found
    demos.write_text(demos.read_text(encoding="utf-8").replace("A goal", "No goal"), encoding="utf-8")
    code, out, err = run(capsys, f"account --from {demos} --json", "--digest", found)
    assert code == 3
    assert "not the file of that certificate page" in err
    assert json.loads(out)["digest"] != found


def test_several_files_are_a_folder_or_an_archive(demos: Path, tmp_path: Path, capsys):
    folder, archive = tmp_path / "new/set", tmp_path / "set.zip"
    for place in (folder, archive):
        code, *_ = run(capsys, f"export {demos} --format hugging-face --out {place}")
        assert code == 0
    with zipfile.ZipFile(archive) as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == {
            path.name: path.read_bytes() for path in folder.iterdir()
        }


def test_tests_of_promptfoo_come_from_a_test_file_and_rows_left_out_are_counted(demos: Path, tmp_path: Path, capsys):
    rows, folder = tmp_path / "rows.csv", tmp_path / "promptfoo"
    lines = [f"a match number {i},Sport" for i in range(30)]
    rows.write_text("\n".join(["words,topic", *lines, "rain,Weather", "{{ 1 }},News"]) + "\n", encoding="utf-8")
    given = f"--test {rows} --text-column words --label-column topic"
    code, _, err = run(capsys, f"export {demos} --format promptfoo --out {folder} {given}")
    assert code == 0
    written = (folder / "tests.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(each)["vars"]["text"] for each in written] == [f"a match number {i}" for i in range(30)]
    assert "1 of 31 test rows are left out" in err
    assert "1 of 32 rows" in err
    code, _, err = run(capsys, f"export {demos} --format promptfoo --out {folder}")
    assert "no tests" in err
    check_refusal(capsys, f"export {demos} --format csv --out {tmp_path / 'x'} {given}", 2, "no place for tests")


def test_a_card_has_the_licence_and_the_language_that_its_owner_says(demos: Path, tmp_path: Path, capsys):
    said = "--licence cc-by-4.0 --language en"
    code, *_ = run(capsys, f"export {demos} --format hugging-face --out {tmp_path / 'set'} {said}")
    assert code == 0
    card = (tmp_path / "set/README.md").read_text(encoding="utf-8")
    assert "license: cc-by-4.0" in card
    assert "- en\n" in card


@pytest.mark.parametrize(
    ("change", "line", "code", "message"),
    [
        (lambda text: "[]", "--format csv", 2, "not a dpicl-demos"),
        (lambda text: text.replace('"delta": 1e-05', '"delta": 1e-09'), "--format csv", 3, "refused"),
        (lambda text: empty().text, "--format csv", 2, "no demonstrations"),
        (lambda text: text, "--format excel", 2, "excel"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_nothing_is_written(
    demos: Path, tmp_path: Path, capsys, change, line, code, message
):
    before = demos.read_text(encoding="utf-8")
    demos.write_text(change(before), encoding="utf-8")
    assert (change(before) == before) == ("excel" in line)
    check_refusal(capsys, f"export {demos} {line} --out {tmp_path / 'out'}", code, message)
    assert not (tmp_path / "out").exists()


# `score`.

FLOWERS = {"labels": ["red", "blue"], "instruction": "Sort.", "template": {"text": "Note", "label": "Topic"}}
BY_HAND = {
    "demonstrations": [{"text": "a rose", "label": "red"}, {"text": "the sky", "label": "blue"}],
    "task": FLOWERS,
}


@pytest.fixture
def line(monkeypatch, tmp_path) -> str:
    """Scores a small file with a set that was written by hand."""
    monkeypatch.setattr("mechanisms.api.load_model", lambda *_: Reading())
    monkeypatch.setattr("mechanisms.api.load_embedder", ToyEmbedder)
    rows = [f"{('red', 'blue')[i % 2]} secret {i},{('red', 'blue')[i % 2]},user {i % 20}" for i in range(200)]
    (tmp_path / "rows.csv").write_text("text,label,who\n" + "\n".join(rows))
    (tmp_path / "set.json").write_text(json.dumps(BY_HAND))
    return f"score {tmp_path / 'rows.csv'} {tmp_path / 'set.json'} --delta 1e-5"


def test_a_set_by_hand_is_scored_and_charged(capsys, line):
    code, out, err = run(capsys, f"{line} --epsilon 4 --share 0.5 --prototypes-epsilon 3 --json")
    assert code == 0, err
    found = json.loads(out)
    assert list(found["arms"]) == ["zero-shot", "public-only", "demonstrations", "prototypes"]
    for arm in found["arms"].values():
        low, high = arm["interval"]
        assert 0 <= low <= arm["accuracy"] <= high <= 1
    assert found["arms"]["demonstrations"]["accuracy"] > 0.8
    assert found["rows"] == "private, and they may have taken part in what was chosen"
    assert (found["private"], found["unit"], found["share"]) == (True, "record", 0.5)
    assert found["epsilon"] == pytest.approx(4, abs=0.01)  # the larger of two disjoint parts
    assert list(found["event"]["lists"]) == ["score", "prototypes"]
    assert found["read_by"] == Reading().name
    assert "written_with" not in found, "nobody says"
    code, out, _ = run(capsys, "ledger show rows --json")
    assert json.loads(out)["data_sets"][0]["epsilon"] == pytest.approx(4, abs=0.01)
    assert "secret" not in out + err


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("--epsilon 0", "Epsilon"),
        ("--epsilon 1 --share 2", "share"),
        ("--epsilon 1 --share 1 --prototypes-epsilon 1", "below 1"),
        ("--epsilon 1 --prototypes-epsilon 0", "Epsilon"),
        ("--epsilon 1 --text-column body", "body"),
    ],
)
def test_bad_usage_gets_one_line(capsys, line, rest, message):
    check_refusal(capsys, f"{line} {rest}", 2, message)
    _, out, _ = run(capsys, "ledger export --json")
    assert json.loads(out)["runs"] == {}


# A reader elsewhere: what leaves, what is said, and what never happens.

KEY = "sk-not-to-be-seen"


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
    monkeypatch.setattr(api, "load_model", lambda *_: Speaking())
    lines = [f"text {i},{'Sport' if i % 3 else 'News'}" for i in range(20)]
    (tmp_path / "test.csv").write_text("\n".join(["text,label", *lines]))
    (tmp_path / "set.json").write_text(PLAIN.dumps())
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
    assert (
        f"are sent to {host}. A file with rows of a data set that this ledger knows is refused" in err.splitlines()[0]
    )
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
    assert err.index("are sent to") < err.index("16 of 60")
    assert seen_nowhere(files, out, err, *prompts)


def test_public_text_is_left_out_with_its_reason_where_its_writer_is_not_here(files, capsys, monkeypatch):
    class Namesake(Speaking):
        sha256 = "1" * 64

    for missing in ({"listed_as": lambda label: None}, {"load_model": lambda *_: Namesake()}):
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
    assert err.splitlines()[-1].endswith(f"refuses the key (401): set {KEY_VARIABLE} to a valid key.")
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
