"""Where options come from: the fields of the spec, a file, and the parameters of mechanisms."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import yaml

from mechanisms.accounting import fingerprint
from mechanisms.cli import synthesize as command
from mechanisms.cli.main import parser
from mechanisms.cli.options import spec_of
from mechanisms.data.columns import ColumnMapping, checked_dataset
from mechanisms.data.label_names import read_labels
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.data.sources import read_table
from mechanisms.data.table import Reading
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.records import Dataset
from mechanisms.runs import settings_file
from mechanisms.runs.plan import Plan, plan_for, solved_flag
from mechanisms.runs.spec import FLAGGED, RunSpec
from mechanisms.settings import PARAMETERS
from mechanisms.steps import mechanism_class, mechanism_names, transform_class, transform_names
from tests.cli.command import check_refusal

# Each field of the spec is an option, a key of the file, and the same when it comes back.

SECRET = "the private text"
LABELS = ("Yes", "2020-01-01")
MAPPING = ColumnMapping("the text", "null")
OTHER = {
    "epsilon": 2.5, "delta": 1e-7, "sizes": {"Yes": 700, "2020-01-01": 900}, "count_epsilon": 0.25,
    "kind": "note", "writer": "a nurse", "reader": "a doctor", "relation": "that says",
    "label_words": {"Yes": "agreement, or so"}, "sentence": "Write of {label}: 100% true.", "exemplars": 2,
    "instruction": "Sort:\x85the\u2028\rno\ufefftes.", "text_field": "Note", "label_field": "Answer", "shots": 3,
    "recipe": "both", "split": "epsilon", "shares": {"write": 0.5, "vote": 0.25}, "score": False,
    "drafts": 9, "draft_tokens": 30, "weighing": "labels",
    "mechanism": "adadpsyn", "transform": "pta", "parameters": {"alpha": 2.0}, "written": 2, "scheme": "per-token",
    "subsets": 12, "per_subset": 2, "tokens": 30, "min_tokens": 3, "candidates": 40, "candidate_top_p": 0.75,
    "max_record_tokens": 50, "max_unit_records": 4,
}  # fmt: skip
"""A value of each field that is not its default."""
TOGETHER = {"count_epsilon": {"sizes": None}, "parameters": {"transform": "pta"}, "per_subset": {"subsets": 12}}
"""What a field needs beside it."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "notes.csv"
    rows = [(f"{SECRET} {i}", LABELS[i % 2], f"p{i % 37}", f"{SECRET}'s answer") for i in range(74)]
    pd.DataFrame(rows, columns=["the text", "null", "who", "answer"]).to_csv(path, index=False)
    return path


def dataset_of(path: Path, mapping: ColumnMapping = MAPPING, labels: tuple[str, ...] = LABELS) -> Dataset:
    return checked_dataset(read_table(path), mapping, "my notes", labels, lambda told: None)


def from_command_line(text: str, file: Path) -> tuple[Plan, Dataset]:
    """The plan of `synthesize FILE --config`, and the data set that it is of."""
    config = file.with_name("settings.yaml")
    config.write_text(text, encoding="utf-8")
    options = parser().parse_args(["synthesize", str(file), "--config", str(config)])
    spec = spec_of(options)
    for _, attempt in command._demands(options, spec):
        attempt()
    dataset = command._dataset(options, spec)
    return plan_for(spec, dataset), dataset


def same(one: Plan, other: Plan) -> bool:
    """Whether two plans are one, but for noise that calibration solves for."""
    solved = solved_flag(one.spec.mechanism)
    bare = ({flag: value for flag, value in each.spec.parameters.items() if flag != solved} for each in (one, other))
    first, second = (
        replace(each, spec=each.spec.with_(parameters=own, sizes=None, count_epsilon=None))
        for each, own in zip((one, other), bare, strict=True)
    )
    return first == second


def test_every_field_has_a_value_to_try():
    assert OTHER.keys() == RunSpec.model_fields.keys()


@pytest.mark.parametrize("name", OTHER)
def test_a_field_is_in_the_help_in_the_file_and_the_same_when_it_comes_back(file, capsys, name):
    with pytest.raises(SystemExit):
        parser().parse_args(["synthesize", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    spec = RunSpec.of(**{"sizes": "counted", name: OTHER[name]} | TOGETHER.get(name, {}))
    flags = [each.flag for each in FLAGGED if each.name == name] if name != PARAMETERS else [*OTHER[PARAMETERS]]
    assert flags
    assert all(f" --{flag}" in told for flag in flags)
    if name != PARAMETERS:
        field = RunSpec.model_fields[name]
        assert field.title in told.replace("- ", "-")
        assert field.description in told.replace("- ", "-")
    plan = plan_for(spec, dataset_of(file))
    text = settings_file.settings(plan, MAPPING, "my notes")
    assert set(flags) <= yaml.safe_load(text).keys()
    again, _ = from_command_line(text, file)
    assert (
        getattr(again.spec, name)
        == getattr(plan.spec, name)
        == getattr(spec, name)
        != RunSpec.model_fields[name].default
    )
    assert same(again, plan)


def plan_of(file: Path, **said: object) -> Plan:
    return plan_for(RunSpec.of(**{"sizes": "counted", "recipe": "tokens"} | said), dataset_of(file))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["gaussian", "adadpsyn", "blended-logits"])
def test_what_calibration_solves_for_is_no_setting(file, mechanism):
    """Else the command line would refuse the file of a plan, which is calibrated."""
    plan = plan_of(file, mechanism=mechanism).calibrated()
    text = settings_file.settings(plan, MAPPING, "my notes")
    again, _ = from_command_line(text, file)
    again = again.calibrated()
    assert again.spec.parameters == pytest.approx(plan.spec.parameters)  # the last digits are the machine's
    assert replace(again, spec=again.spec.with_(parameters=plan.spec.parameters)) == plan
    assert solved_flag(mechanism) not in yaml.safe_load(text)


def test_no_flag_belongs_to_a_mechanism_and_to_a_transform():
    """The form asks each for its own value; one flag would have to be both."""
    flags = {each.flag for name in transform_names() for each in parameters(transform_class(name))}
    assert not flags & {each.flag for name in mechanism_names() for each in parameters(mechanism_class(name))}


def test_sizes_that_were_measured_are_not_written_but_measured_again(file):
    dataset = dataset_of(file)
    measured = MeasuredSizes({"Yes": 4711, "2020-01-01": 4712}, 0.25, 1e-9, fingerprint(dataset).content)
    text = settings_file.settings(plan_for(RunSpec(), dataset, measured), MAPPING, "my notes")
    assert "471" not in text
    assert "paid for again" in text
    assert math.isclose(yaml.safe_load(text)["count-epsilon"], 0.25)


def test_a_label_that_the_command_line_cannot_name_is_refused(file):
    plan = replace(plan_of(file), labels=("Yes", " No"), sizes={"Yes": 3, " No": 3})
    with pytest.raises(UsageError, match="' No'"):
        settings_file.settings(plan, MAPPING, "my notes")


ODD = ('Billing, "urgent"', "\U0001f642 \u05e9\u05dc\u05d5\u05dd", "a=b", "[x", "two\nlines")


def test_any_label_comes_back_from_the_settings_as_it_was(tmp_path):
    path = tmp_path / "odd.csv"
    rows = [(f"{SECRET} {i}", ODD[i % len(ODD)], f"p{i % 37}") for i in range(60)]
    pd.DataFrame(rows, columns=["text", "label", "who"]).to_csv(path, index=False)
    names = ((ODD[2], "A, named = 1"),)
    mapping = ColumnMapping("text", "label", "who", True, label_names=names, merge_labels=True)
    called = tuple(dict(names).get(each, each) for each in ODD)
    words = dict(zip(called, ("a=b", "c,d", "'e'", '"f"', "g"), strict=True))
    asked = plan_for(RunSpec.of(sizes=dict.fromkeys(called, 30), label_words=words), dataset_of(path, mapping, called))
    reading = Reading(header=True, encoding="utf-8", separator=",")
    text = settings_file.settings(asked, mapping, "my notes", reading=reading)
    again, dataset = from_command_line(text, path)
    assert dataset.labels == called
    assert same(again, asked)
    assert again.sizes == asked.sizes
    options = parser().parse_args(["synthesize", str(path), "--config", str(path.with_name("settings.yaml"))])
    assert (options.header, options.encoding, options.separator) == (True, "utf-8", ",")
    assert options.merge_labels
    assert (dataset.unit, options.drop_duplicates) == ("user:who", True)
    assert SECRET not in text


# Options from a file: the same as on the command line, which overrides them.

REQUIRED = "labels: [A, B]\nepsilon: 2\n"


@pytest.fixture
def parsed(tmp_path):
    def parse(text: str, *line: str):
        path = tmp_path / "run.yaml"
        path.write_text(text)
        return parser().parse_args(["synthesize", "data.csv", "--config", str(path), *line])

    return parse


def test_a_file_says_what_flags_say(parsed):
    text = (
        "labels: [A, B]\nepsilon: 1.5\ndelta: 1e-7\nsizes: {A: 2000, B: 300}\nrecipe: both\ndrop-duplicates: true\n"
        "shares:\n  vote: 0.5\n  write: .25\nscore: none\ntransform: pta\nbase: false\njson: false\ntest-seed: -1\n"
        "name: 2020-01-01\ntext-column: No\n"
    )
    flags = (
        "synthesize data.csv --labels A,B --epsilon 1.5 --delta 1e-7 --sizes A=2000,B=300 --recipe both "
        "--drop-duplicates --shares vote=0.5,write=0.25 --score none --transform pta --no-base "
        "--test-seed -1 --name 2020-01-01 --text-column No"
    )
    from_file, from_line = parsed(text), parser().parse_args(flags.split())
    assert spec_of(from_file) == spec_of(from_line) != RunSpec()
    assert spec_of(from_file).sizes == {"A": 2000, "B": 300}
    assert read_labels(from_file.labels) == read_labels(from_line.labels) == ("A", "B")
    for name in ("drop_duplicates", "json", "test_seed", "name", "text_column"):
        assert getattr(from_file, name) == getattr(from_line, name)


def test_the_command_line_overrides_the_file_wherever_it_stands(parsed, tmp_path):
    assert spec_of(parsed(REQUIRED)).epsilon == 2
    assert spec_of(parsed(REQUIRED, "--epsilon", "3")).epsilon == 3
    line = ["synthesize", "data.csv", "--epsilon", "3", f"--config={tmp_path / 'run.yaml'}"]
    assert spec_of(parser().parse_args(line)).epsilon == 3
    # A value that is the default overrides as well.
    assert spec_of(parsed(f"{REQUIRED}tokens: 12\n", "--tokens", "24")).tokens == 24
    assert spec_of(parsed(f"{REQUIRED}per-subset: 2\n", "--unit-rows")).unit_rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("eps: 1", "no option 'eps'"),  # no abbreviations
        ("config: other.yaml", "no option 'config'"),
        ("csv: other.csv", "no option 'csv'"),
        ("drop-duplicates: 1", "true or false"),
        ("labels: [A, [B]]", "inside another one"),
        ("labels: [A, B]\nepsilon: many", "Epsilon (epsilon)"),
        ("labels: [A, B]\nrecipe: paint", "--recipe"),
        ('labels: ["\\ud83d", B]', "half a character"),
        ("labels: &all [A, *all]", "write out"),
        ("labels: [&one [A, A], &two [*one, *one], [*two, *two]]", "write out"),
        pytest.param(f"labels: [A, B]\ntokens: 0x{'f' * 5000}", "tokens", id="a long number"),
        ("- epsilon", "has no options"),
        ("", "has no options"),
        ("a: [", "not YAML"),
        ("!!python/object/apply:os.getcwd []", "has no options"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(capsys, tmp_path, text, message):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    check_refusal(capsys, f"synthesize data.csv --config {path}", 2, message)
    check_refusal(capsys, f"synthesize data.csv --config {tmp_path}/nowhere.yaml", 2, "nowhere.yaml")
    check_refusal(capsys, "synthesize data.csv --config", 2, "--config")
